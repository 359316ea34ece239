"""The generator of the embedded corpora: reads words and frames from `data/`, and makes distinct sentences of them.

All random choices use `random.Random(seed).random()`, which gives the same numbers on all machines and Python versions.
"""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from text_infilling.masking.masked_lines import format_line
from text_infilling.masking.rules import Blanks

SEED = 2019
SIZES = {"train": 10_000, "valid": 500, "test": 500}

Draw = Callable[[], float]
Row = tuple[tuple[str, ...], ...]
# The words of a sentence, and its blanks for each task.
Masked = tuple[list[str], dict[str, Blanks]]


def items(text: str) -> tuple[str, ...]:
    """Returns the comma-separated items of a text.

    >>> items("sake, green tea")
    ('sake', 'green tea')
    """
    return tuple(item.strip() for item in text.split(","))


def grammar_file(name: str) -> Path:
    """Returns the file of a grammar."""
    return Path(__file__).parent / "data" / f"{name}.txt"


class Grammar:
    """The words and the frames of a corpus, read from `data/NAME.txt`.

    A line that starts with `==` begins a section; empty lines and lines that start with `#` are ignored.

    Args:
        name: name of the file, without its ending.

    >>> Grammar("reviews").rows("cities")[0]
    (('phoenix',), ('arizona',), ('canyon',))
    """

    def __init__(self, name: str):
        self._sections: dict[str, list[str]] = {}
        for line in grammar_file(name).read_text("utf-8").splitlines():
            if line.startswith("=="):
                section = self._sections.setdefault(line.removeprefix("==").strip(), [])
            elif line and not line.startswith("#"):
                section.append(line)

    def lines(self, section: str) -> tuple[str, ...]:
        """Returns the lines of a section."""
        return tuple(self._sections[section])

    def items(self, section: str) -> tuple[str, ...]:
        """Returns the words of a section that is a list."""
        return tuple(itertools.chain(*map(items, self.lines(section))))

    def rows(self, section: str) -> tuple[Row, ...]:
        """Returns one tuple per line of a table; it has a tuple of words per column."""
        return tuple(tuple(map(items, line.split("|"))) for line in self.lines(section))

    def columns(self, section: str) -> dict[str, Row]:
        """Returns the columns of a table after the first one, by the word in the first column."""
        return {key: tuple(columns) for (key,), *columns in self.rows(section)}

    def sentences(
        self, scene: Callable[[Draw], dict], shortest: int, longest: int, seed: int, count: int
    ) -> Iterator[str]:
        """Yields `count` different sentences of `shortest` to `longest` tokens; the seed determines which.

        A sentence is a random line of the section `frames`, its slots filled from a scene.
        """
        draw, frames = random.Random(seed).random, self.lines("frames")
        seen: set[str] = set()
        while len(seen) < count:
            sentence = spell(draw, pick(draw, frames), scene(draw))
            if shortest <= sentence.count(" ") + 1 <= longest and sentence not in seen:
                seen.add(sentence)
                yield sentence


def pick(draw: Draw, options: Sequence) -> Any:
    """Returns a random option, using one draw."""
    return options[int(draw() * len(options))]


def spell(draw: Draw, frame: str, scene: dict) -> str:
    """Returns the sentence of a frame.

    `{slot}` is looked up in the scene, `(a|b)` is a random choice, and `scene["side"]` (0 or 1) selects from `[a|b]`.
    """
    frame = re.sub(r"\(([^)]*)\)", lambda choice: pick(draw, choice[1].split("|")), frame)
    frame = re.sub(r"\[([^]]*)\]", lambda choice: choice[1].split("|")[scene["side"]], frame)
    sentence = frame.format_map(scene).format_map(scene)  # Twice, since a word of a table may itself contain a slot.
    return re.sub(r"\b([Aa]) (?=[AEIOUaeiou8]|1[18] )", r"\1n ", " ".join(sentence.split()))


def write_splits(folder: str | Path, lines: Iterator[str]) -> None:
    """Writes train.txt, valid.txt and test.txt into `folder`, each with the next `SIZES[split]` of the lines."""
    for split, size in SIZES.items():
        text = "".join(f"{line}\n" for line in itertools.islice(lines, size))
        (Path(folder) / f"{split}.txt").write_bytes(text.encode("utf-8"))


def write_masked(folder: str | Path, sentences: Iterator[Masked], task: str, tasks: Sequence[str]) -> None:
    """Writes the splits in the format of `masked_lines`, with the blanks of one task.

    Raises:
        ValueError: `task` is not one of `tasks`.
    """
    if task not in tasks:
        raise ValueError(f"these synthetic sentences support only the tasks {', '.join(tasks)}. Received: {task!r}")
    write_splits(folder, (format_line(words, blanks[task]) for words, blanks in sentences))


def blanks_around(kept: Blanks, length: int) -> Blanks:
    """Returns the blanks that keep only the `kept` spans of a sentence: one more than spans; blanks may be empty."""
    kept = sorted(kept)
    return list(zip([0, *(end for _, end in kept)], [*(start for start, _ in kept), length]))
