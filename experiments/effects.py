"""Numbers of finished cells with 95% intervals: over seeds, or of resampled test sentences from predictions.jsonl."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.cells import cell as cells
from experiments.statistics import paired_bootstrap
from experiments.tables.outputs import RESAMPLES, SEED, filled_text, outputs_of
from text_infilling.metrics.bleu import prepare_for_paper, sentence_counts
from text_infilling.runs.layout import PREDICTIONS, VOCABULARY
from text_infilling.vocabulary import Vocabulary

# Student's t for a two-sided 95% interval with 1, 2, ... degrees of freedom; the last one serves for more, too wide.
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Effect(NamedTuple):
    """A number, such as a difference or a score, with its 95% interval if there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def of_seeds(values: Sequence[float]) -> Effect:
    """Returns the mean over seeds, with Student's 95% interval if there are two seeds or more.

    >>> [round(x, 2) for x in of_seeds([1.0, 2.0, 3.0])]
    [2.0, -0.48, 4.48]
    >>> of_seeds([1.0])
    Effect(value=1.0, low=None, high=None)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Effect(mean)
    half = T95[min(len(values) - 1, len(T95)) - 1] * statistics.stdev(values) / math.sqrt(len(values))
    return Effect(mean, mean - half, mean + half)


def difference(first: np.ndarray, second: np.ndarray, metric: str) -> Effect:
    """Returns BLEU of the first outputs minus BLEU of the second, with its paired bootstrap interval.

    Args:
        first, second: counts of the same sentences, see `counts`.
        metric: `bleu_paper` or `bleu`.
    """
    return Effect(*paired_bootstrap(first, second, RESAMPLES, SEED, metric)[:3])


def counts(folder: Path, metric: str) -> np.ndarray | None:
    """Returns the `[sentences, 10]` BLEU counts of a finished cell's test outputs.

    Args:
        folder: folder of the cell.
        metric: `bleu_paper` or `bleu`.

    Returns:
        The recorded counts; without them those of the texts. None if the folder has no predictions.jsonl or, for
        unrecorded `bleu_paper`, which replaces unknown words, no vocabulary.txt.

    Raises:
        ValueError: a line of predictions.jsonl is not a prediction.
    """
    outputs = outputs_of(folder / PREDICTIONS)
    if outputs is None or (recorded := outputs.counts(metric)) is not None:
        return outputs and recorded
    if metric == "bleu_paper" and not (folder / VOCABULARY).exists():
        return None
    vocabulary = Vocabulary.load(folder / VOCABULARY) if metric == "bleu_paper" else None
    return bleu_counts(cells.read_predictions(folder), metric, vocabulary)


def bleu_counts(predictions: Sequence[dict], metric: str, vocabulary: Vocabulary | None) -> np.ndarray:
    """Returns the `[sentences, 10]` BLEU counts of lines of predictions.jsonl; `vocabulary` is for `bleu_paper`."""
    pairs = [[filled_text(one["template"], one[key]) for one in predictions] for key in ("infill", "answer")]
    if metric == "bleu_paper":
        pairs = [[prepare_for_paper(text.split(), vocabulary.replace_unknown) for text in texts] for texts in pairs]
    return np.array(sentence_counts(*pairs, metric))


def lengths(folder: Path) -> list[tuple[int, int]]:
    """Returns the words of the true answer and of the infill of each blank of a cell; empty without predictions.jsonl.

    Raises:
        ValueError: a line of predictions.jsonl is not a prediction.
    """
    if not (folder / PREDICTIONS).exists():
        return []
    return [
        (len(answer.split()), len(infill.split()))
        for one in cells.read_predictions(folder)
        for answer, infill in zip(one["answer"], one["infill"], strict=True)
    ]
