"""The sentences that fits learn from and are scored on."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from text_infilling.corpora import base_texts
from text_infilling.corpora.corpus import load_corpus

HELD_OUT = 600  # sentences that are scored
LINES = 300  # of a source of the base model, to fit a model from scratch to
HELD_OUT_TALES = 1 / 6  # share of the tales whose sentences are scored; another such share is for validation


class Texts(NamedTuple):
    """Lines of text.

    Attributes:
        train: to fit a model to.
        valid: for choices between settings.
        test: to score models on.
    """

    train: list[str]
    valid: list[str]
    test: list[str]


def sample(lines: Sequence[str], count: int, seed: int) -> list[str]:
    """Returns `count` of the lines, or all if there are fewer, in random order.

    >>> sample(["a", "b", "c"], 2, seed=1) == sample(["a", "b", "c"], 2, seed=1)
    True
    """
    return random.Random(f"lines, seed {seed}").sample(lines, min(count, len(lines)))


def yelp(data_dir: str | None) -> Texts:
    """Returns the sentences of Yelp.

    Raises:
        ValueError, OSError: as `load_corpus`.
    """
    corpus = load_corpus("yelp", data_dir)
    train, valid, test = ([line.rstrip("\n") for line in corpus.texts(split)] for split in ("train", "valid", "test"))
    return Texts(train, sample(valid, HELD_OUT, 0), sample(test, HELD_OUT, 0))


def grimm(data_dir: str | None) -> Texts:
    """Returns the sentences of Grimm's tales in `data_dir/grimm/tales`; held-out sentences are of other tales.

    Raises:
        FileNotFoundError: the folder has no tales.
        OSError: a file cannot be read.
    """
    folder = Path(data_dir or ".") / "grimm" / "tales"
    paths = sorted(folder.glob("*.txt"), key=lambda path: base_texts.chance(path.name))
    held_out = round(HELD_OUT_TALES * len(paths))
    if not held_out:
        raise FileNotFoundError(f"{folder} has too few tales: give --data_dir, the folder that contains grimm/")

    def sentences(of: Sequence[Path]) -> list[str]:
        texts = (paragraph for path in of for paragraph in path.read_text("utf-8").split("\n\n")[1:])  # not the title
        return list(dict.fromkeys(base_texts.split(texts)))

    test, valid, train = paths[:held_out], paths[held_out : 2 * held_out], paths[2 * held_out :]
    return Texts(sentences(train), sample(sentences(valid), HELD_OUT, 0), sample(sentences(test), HELD_OUT, 0))


def sources(base_text: str) -> dict[str, Texts]:
    """Returns the held-out sentences of each source of the base model: `LINES` for training, others for scoring.

    Raises:
        ValueError: the folder has no held-out sentences.
        OSError: a file cannot be read.
    """
    found = {}
    for path in sorted((Path(base_text) / "held_out").glob("*.txt")):
        lines = sample(path.read_text("utf-8").splitlines(), HELD_OUT + LINES, 0)
        test = lines[LINES:]
        found[path.stem] = Texts(lines[:LINES], [], test)
    if not found:
        raise ValueError(f"{base_text} has no held_out/SOURCE.txt: give --base_text, the folder that `prepare` wrote")
    return found
