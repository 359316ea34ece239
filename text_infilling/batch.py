"""Filling several requests at once, where an error of one is not an error of the others."""

import itertools
from collections.abc import Mapping, Sequence


def fill_each(infiller, groups: Sequence[tuple], options: Mapping, errors=ValueError) -> list:
    """Returns the result of each group of texts: a list of `Filled`, or the error that it raises.

    All groups are filled in one call. If that fails, the groups that cause the error are found by halving.

    Args:
        infiller: an `Infiller`.
        groups: pairs of texts and, for each of them, its limits.
        options: of `Infiller.fill`, except limits.
        errors: what counts as an error of a group; others are raised.
    """
    texts, limits = ([each for group in groups for each in group[part]] for part in (0, 1))
    try:
        filled = iter(infiller.fill(texts, limits=limits, **options))
    except errors as error:
        if len(groups) == 1:
            return [error]
        half = len(groups) // 2
        return [each for part in (groups[:half], groups[half:]) for each in fill_each(infiller, part, options, errors)]
    return [list(itertools.islice(filled, len(group[0]))) for group in groups]
