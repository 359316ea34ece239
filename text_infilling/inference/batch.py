"""Fills several requests in one batch; an error of one request does not affect the others."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.inference.infiller import Infiller


def fill_each(
    infiller: "Infiller",
    groups: Sequence[tuple],
    options: Mapping,
    errors: type[Exception] | tuple[type[Exception], ...] = ValueError,
) -> list:
    """Returns the result of each group of texts: a list of `Filled`, or the error that it raises.

    Fills all groups in one call. If the call fails, bisects the groups to find those that cause the error.

    Args:
        infiller: fills the texts.
        groups: pairs of a list of texts and a list with the limits of each of them.
        options: options of `Infiller.fill`, except `limits`.
        errors: exception types that are returned as the error of a group; all others are raised.
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
