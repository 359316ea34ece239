"""Lines of text that include their blanks: `can i have a beef burger , please .<TAB>0:2 4:6`.

A line has the words separated by single spaces, a tab, and each blank as `start:end`: word positions from 0, half-open,
left to right. The blanks come from a rule of `rules` or from the authors' pairs. Unlike the blanks of `spans`, two of
them may touch (`0:2 2:3`, no kept word between them), and a blank may be empty (`2:2`). All lines of a file have the
same number of blanks, so that it is known when a pipeline builds its graph.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from text_infilling.masking.rules import Blanks
from text_infilling.vocabulary import TEMPLATE_BLANK


def format_line(words: Sequence[str], blanks: Blanks) -> str:
    """Returns the line of a sentence and its blanks, without a newline.

    Raises:
        ValueError: the blanks are not in order, or outside the sentence.
    """
    bounds = [0, *(bound for blank in blanks for bound in blank), len(words)]
    if bounds != sorted(bounds):
        raise ValueError(f"expected blanks in order and within {len(words)} words. Received: {list(blanks)}")
    return f"{' '.join(words)}\t{' '.join(f'{start}:{end}' for start, end in blanks)}"


def parse_line(line: str) -> tuple[list[str], Blanks]:
    """Returns the words and the blanks of a line."""
    words, _, blanks = line.rstrip("\n").partition("\t")
    pairs = (blank.split(":") for blank in blanks.split())
    return words.split(), [(int(start), int(end)) for start, end in pairs]


def read(path: Path) -> Iterator[tuple[list[str], Blanks]]:
    """Yields the words and the blanks of each line of a file."""
    with open(path, encoding="utf-8") as lines:
        yield from map(parse_line, lines)


def write(path: Path, rows: Iterable[tuple[Sequence[str], Blanks]]) -> None:
    """Writes sentences with their blanks, one per line."""
    path.write_bytes("".join(f"{format_line(*row)}\n" for row in rows).encode("utf-8"))


def filled(template: str, infills: Sequence[str]) -> str:
    """Returns the template with each `<m>` replaced by its infill in brackets, e.g. `i live [down the street] .`"""
    remaining = iter(infills)
    return " ".join(f"[{next(remaining, token)}]" if token == TEMPLATE_BLANK else token for token in template.split())
