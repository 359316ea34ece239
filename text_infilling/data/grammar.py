"""What the embedded corpora share: tables of words, frames with slots, and the files of distinct sentences.

Only `random.Random(seed).random()` is drawn from, which gives the same numbers on every machine and Python version.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from text_infilling.data.masked_lines import format_line
from text_infilling.maskers import Blanks

SEED = 2019
SIZES = {"train": 10_000, "valid": 500, "test": 500}

Draw = Callable[[], float]
Row = tuple[tuple[str, ...], ...]
# The words of a sentence, and its blanks by task.
Masked = tuple[list[str], dict[str, Blanks]]


def items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(","))


def rows(table: str) -> tuple[Row, ...]:
    """One tuple a line, one tuple of words a column."""
    return tuple(tuple(map(items, line.split("|"))) for line in table.strip().splitlines())


def pick(draw: Draw, options: Sequence):
    return options[int(draw() * len(options))]


def spell(draw: Draw, frame: str, scene: dict) -> str:
    """The frame as a sentence: `{slot}` is looked up in the scene, `(a|b)` is free, `[a|b]` goes by `scene["side"]`."""
    frame = re.sub(r"\(([^)]*)\)", lambda choice: pick(draw, choice[1].split("|")), frame)
    frame = re.sub(r"\[([^]]*)\]", lambda choice: choice[1].split("|")[scene["side"]], frame)
    sentence = frame.format_map(scene).format_map(scene)  # Twice: a word of a table may hold a slot of its own.
    return re.sub(r"\b([Aa]) (?=[AEIOUaeiou8]|1[18] )", r"\1n ", " ".join(sentence.split()))


def distinct(make: Callable[[Draw], str], shortest: int, longest: int, seed: int, count: int) -> Iterator[str]:
    """`count` different sentences of `shortest` to `longest` tokens, always the same ones for the same seed."""
    draw = random.Random(seed).random
    seen: set[str] = set()
    while len(seen) < count:
        sentence = make(draw)
        if shortest <= sentence.count(" ") + 1 <= longest and sentence not in seen:
            seen.add(sentence)
            yield sentence


def write_splits(folder: str | Path, lines: Iterator[str]) -> None:
    """Writes the first lines as train.txt, valid.txt and test.txt of `SIZES` lines into `folder`."""
    for split, size in SIZES.items():
        text = "".join(f"{line}\n" for line in itertools.islice(lines, size))
        (Path(folder) / f"{split}.txt").write_bytes(text.encode("utf-8"))


def write_masked(folder: str | Path, sentences: Iterator[Masked], task: str) -> None:
    """Writes the splits as `masked_lines`, with the blanks of one task."""
    write_splits(folder, (format_line(words, blanks[task]) for words, blanks in sentences))


def blanks_around(kept: Blanks, length: int) -> Blanks:
    """The blanks that leave only the `kept` spans of a sentence: one more than there are spans, some perhaps empty."""
    kept = sorted(kept)
    return list(zip([0, *(end for _, end in kept)], [*(start for start, _ in kept), length]))
