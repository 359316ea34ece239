"""The scores of a cell's test sentences: resampled, for intervals of differences between cells."""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.statistics import SCORES, Scores, resampled
from text_infilling.metrics.bleu import bleu_paper, prepare_for_paper
from text_infilling.utils import files
from text_infilling.vocabulary import TEMPLATE_BLANK

RESAMPLES, SEED = 10_000, 1


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The predictions of a finished cell.

    Attributes:
        path: its predictions.jsonl.
    """

    path: Path

    @property
    def sentences(self) -> str:
        """A hash of the templates and true answers, equal for all cells with the same test sentences and blanks."""
        return _read(self.path, self.path.stat().st_mtime_ns)[0]

    def counts(self, metric: str) -> np.ndarray | None:
        """Returns the recorded counts `[sentences, columns]` of a key of `statistics.SCORES`; None without them."""
        return _read(self.path, self.path.stat().st_mtime_ns)[1].get(metric)

    def scores(self, metric: str) -> Scores | None:
        """Returns the score of all sentences and of `RESAMPLES` resamples; None if the counts were not recorded.

        Args:
            metric: key of `statistics.SCORES`.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is damaged.
        """
        return _scores(self.path, self.path.stat().st_mtime_ns, metric)

    def bleu_of_cut_references(self, words: int) -> float:
        """Returns `bleu_paper` with the true sentences cut at a number of words, for a corpus without unknown words."""
        return _bleu_of_cut_references(self.path, self.path.stat().st_mtime_ns, words)


def filled_text(template: str, texts: Sequence[str]) -> str:
    """Returns the words of a template with the n-th `<m>` replaced by the n-th text.

    >>> filled_text("the <m> was good <m> .", ["hot soup", ""])
    'the hot soup was good .'
    """
    remaining = iter(texts)
    words = (next(remaining) if word == TEMPLATE_BLANK else word for word in template.split())
    return " ".join(word for word in words if word)


def outputs_of(path: Path) -> Outputs | None:
    """Returns the outputs in a file; None if it does not exist."""
    return Outputs(path) if path.exists() else None


@functools.lru_cache(maxsize=256)
def _scores(path: Path, modified: int, metric: str) -> Scores | None:
    counts = _read(path, modified)[1].get(metric)
    return None if counts is None else resampled(counts, metric, RESAMPLES, SEED)


@functools.lru_cache(maxsize=256)
def _bleu_of_cut_references(path: Path, modified: int, words: int) -> float:
    predictions = files.read_jsonl(path)
    got, true = ([filled_text(one["template"], one[key]) for one in predictions] for key in ("infill", "answer"))
    cut = [" ".join(text.split()[:words]) for text in true]
    return bleu_paper(*([prepare_for_paper(text.split(), list) for text in texts] for texts in (got, cut)))


@functools.lru_cache(maxsize=256)
def _read(path: Path, modified: int) -> tuple[str, dict[str, np.ndarray]]:
    """Returns the hash of the sentences, and the counts `[sentences, columns]` of each metric that has them."""
    predictions = files.read_jsonl(path)
    try:
        texts = hashlib.sha256("\n".join(f"{one['template']}\t{one['answer']}" for one in predictions).encode("utf-8"))
        counts = {
            metric: np.array([one["counts"][metric] for one in predictions], "float64")
            for metric in SCORES
            if all(metric in one.get("counts", {}) for one in predictions)
        }
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error
    return texts.hexdigest(), counts
