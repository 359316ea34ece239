"""Reads the authors' masked sentences: files of templates with the sentences they were made from.

    {"template": "<m> miller <m> laughed <m>", "expected": "then the miller got up and laughed at them"}

A file has one JSON object per line, tokens separated by spaces, and the same number of blanks in every template.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from text_infilling.masking.rules import Blanks, WordRule, choose_blanks
from text_infilling.utils.files import parse_json
from text_infilling.vocabulary import TEMPLATE_BLANK


class Pair(NamedTuple):
    """A sentence and its blanks, `(start, end)` word positions from 0, half-open, left to right."""

    tokens: list[str]
    blanks: Blanks


@dataclass(frozen=True)
class Pairs:
    """The pairs of a file, and how many have ambiguous blanks.

    Attributes:
        pairs: in file order.
        ambiguous: number of templates that fit their sentence in several ways.
        leftmost: number of ambiguous templates read as the leftmost fit, because the rule's choice is not a fit.
        note: a phrase on the `leftmost` ones for captions and logs; empty if there are none.
    """

    pairs: list[Pair]
    ambiguous: int
    leftmost: int
    note: str


def read_pairs(path: str | Path, rule: WordRule) -> Pairs:
    """Returns the pairs of a file.

    If a template fits its sentence in several ways, the blanks are those that `rule` gives the sentence. If these do
    not fit, or the rule needs tags and the tagger's data is missing, the blanks are those of the leftmost fit.

    Raises:
        ValueError: a line is not JSON in UTF-8, lacks `template` or `expected`, has a different number of blanks than
            the rule makes, or has a template that does not fit; or the file is empty.
        OSError: the file cannot be read.
    """
    pairs: list[Pair] = []
    several: dict[int, list[Blanks]] = {}
    with open(path, "rb") as lines:
        for line_number, line in enumerate(lines, start=1):
            try:
                template, tokens = _parse(line)
                if template.count(TEMPLATE_BLANK) != rule.blanks:
                    raise ValueError(f"{template.count(TEMPLATE_BLANK)} blanks, but {rule.name} makes {rule.blanks}")
                fits = fits_of(template, tokens)
                if not fits:
                    raise ValueError(f"template {' '.join(template)!r} does not fit {' '.join(tokens)!r}")
            except ValueError as error:
                raise ValueError(f"{path}, line {line_number}: {error}") from error
            if len(fits) > 1:
                several[len(pairs)] = fits
            pairs.append(Pair(tokens, fits[0]))
    if not pairs:
        raise ValueError(f'{path} is empty: it needs lines such as {{"template": "a <m> .", "expected": "a b ."}}')

    reason = "the rule's choice is not among the fits"
    try:
        # Only ambiguous ones, since tagging is slow.
        choices = list(choose_blanks([pairs[i].tokens for i in several], rule))
    except FileNotFoundError as error:
        choices, reason = [None] * len(several), str(error)
    leftmost = 0
    for (i, fits), choice in zip(several.items(), choices):
        if choice in fits:
            pairs[i] = Pair(pairs[i].tokens, choice)
        else:
            leftmost += 1
    note = (
        f"{leftmost} of {len(several)} ambiguous templates are read as the leftmost fit: {reason}" if leftmost else ""
    )
    return Pairs(pairs, len(several), leftmost, note)


def split_validation(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Returns training and validation pairs: validation is the last tenth without the sentences that train also has.

    It is one block because neighbouring lines are from the same tale. The sentences left out are in neither split.

    Raises:
        ValueError: no pair is left for validation.
    """
    cut = len(pairs) - len(pairs) // 10
    train = list(pairs[:cut])
    seen = {tuple(pair.tokens) for pair in train}
    valid = [pair for pair in pairs[cut:] if tuple(pair.tokens) not in seen]
    if not valid:
        raise ValueError(
            f"no validation sentences: the last tenth of {len(pairs)} pairs only repeats sentences of the others"
        )
    return train, valid


def _parse(line: bytes) -> tuple[list[str], list[str]]:
    try:
        row = parse_json(line.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"expected JSON in UTF-8. Received: {line[:80]!r}") from error
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in ("template", "expected")):
        raise ValueError(f'expected an object with the strings "template" and "expected". Received: {row!r}')
    return row["template"].split(), row["expected"].split()


def fits_of(template: list[str], tokens: list[str]) -> list[Blanks]:
    """Returns all choices of blanks that turn the tokens into the template, the leftmost first.

    >>> fits_of("<m> the <m>".split(), "in the end the".split())
    [[(0, 1), (2, 4)], [(0, 3), (4, 4)]]
    """
    runs: list[list[str]] = [[]]
    for token in template:
        if token == TEMPLATE_BLANK:
            runs.append([])
        else:
            runs[-1].append(token)
    first, *rest = runs
    if tokens[: len(first)] != first:
        return []
    fits: list[tuple[Blanks, int]] = [([], len(first))]  # With the end of the last run.
    for run in rest:
        fits = [
            ([*blanks, (end, start)], start + len(run))
            for blanks, end in fits
            for start in range(end, len(tokens) - len(run) + 1)
            if tokens[start : start + len(run)] == run
        ]
    # The last run must end the sentence.
    return [blanks for blanks, end in fits if end == len(tokens)]
