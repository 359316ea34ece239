"""Paired bootstrap of corpus BLEU and perplexity, in NumPy.

Corpus BLEU is a function of ten sums over the sentences (`text_infilling.metrics.bleu.sentence_counts`), perplexity of
two, so a resample of the sentences is a weighted sum of their counts and needs no second look at the texts. Source:
Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

ORDERS = 4  # n-grams of 1 to 4 tokens
COLUMNS = 2 + 2 * ORDERS
_AT_ONCE = 500  # resamples that are drawn and scored at the same time


class Difference(NamedTuple):
    """How much larger the score of one set of outputs is than that of another on the same sentences.

    Attributes:
        value: score of the first minus score of the second.
        low, high: 95% interval of the difference (percentiles of the resamples).
        p: two-sided p-value of a difference of 0, at least 1 / (resamples + 1).
    """

    value: float
    low: float
    high: float
    p: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def corpus_bleu(sums: np.ndarray, smoothed: bool) -> np.ndarray:
    """Returns corpus BLEU-4 in [0, 100] from summed counts.

    >>> round(float(corpus_bleu(np.array([4, 5, 3, 1, 0, 0, 4, 3, 2, 1]), smoothed=True)), 2)
    27.53

    Args:
        sums: `[..., 10]` counts, see `sentence_counts`.
        smoothed: whether an order without a match has half the precision of the one before (as `bleu_paper`), or makes
            the score 0 (as `bleu`).
    """
    sums = np.asarray(sums, "float64")
    length, reference = sums[..., 0], sums[..., 1]
    matches, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    with np.errstate(divide="ignore", invalid="ignore"):
        halvings = np.cumsum(matches == 0, axis=-1) if smoothed else np.inf
        precisions = np.where(matches > 0, matches, 0.5**halvings) / totals
        brevity = np.where(length < reference, np.exp(1 - reference / length), 1.0)
        score = 100 * brevity * np.exp(np.mean(np.log(precisions), axis=-1))
    return np.where(np.all(totals > 0, axis=-1) & np.any(matches > 0, axis=-1), score, 0.0)


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Returns `ppl` from sums `[..., 2]` of negative log likelihoods in nats and of tokens."""
    return np.exp(sums[..., 0] / sums[..., 1])


# The scores of a corpus as functions of counts summed over its sentences, and the number of counts per sentence.
SCORES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], int]] = {
    "bleu_paper": (functools.partial(corpus_bleu, smoothed=True), COLUMNS),
    "bleu": (functools.partial(corpus_bleu, smoothed=False), COLUMNS),
    "ppl": (perplexity, 2),
    "ppl_words": (perplexity, 2),
}


class Scores(NamedTuple):
    """A score of a set of outputs, and the scores of its resamples.

    Attributes:
        value: score of all sentences.
        resampled: `[resamples]` scores; the same place is the same resample of the sentences in all `Scores` with the
            same number of sentences and the same seed.
    """

    value: float
    resampled: np.ndarray


def resampled(counts: np.ndarray, metric: str, resamples: int, seed: int) -> Scores:
    """Returns a score of resampled sentences.

    Args:
        counts: `[sentences, columns]`, see `SCORES`.
        metric: key of `SCORES`.
        resamples: number of resamples, at least 1.
        seed: seed of the resamples.

    Raises:
        ValueError: the counts have another shape, there are no sentences or no resamples.
    """
    score, columns = SCORES[metric]
    counts = np.asarray(counts, "float64")
    if counts.ndim != 2 or counts.shape[1] != columns or not len(counts):
        raise ValueError(f"counts of {metric} must be [sentences, {columns}]. Received: {counts.shape}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1. Received: {resamples}")
    parts = _weights(len(counts), resamples, seed)
    found = np.concatenate([score(part.astype("float64") @ counts) for part in parts])
    return Scores(float(score(counts.sum(axis=0))), found)


def mean(scores: Sequence[Scores]) -> Scores:
    """Returns the mean of the scores of several seeds, also of each resample."""
    return Scores(*(np.mean(column, axis=0) for column in zip(*scores, strict=True)))


def difference(a: Scores, b: Scores) -> Difference:
    """Returns how much larger a score is than another, with a 95% interval from the resamples.

    Both are scored on the same resamples, so what makes a sentence hard for both of them cancels.
    """
    differences, value = a.resampled - b.resampled, float(a.value - b.value)
    low, high = np.percentile(differences, [2.5, 97.5])
    # Under the hypothesis of no difference the resamples scatter around 0 as they do around their mean.
    extreme = np.sum(np.abs(differences - differences.mean()) >= abs(value))
    return Difference(value, float(low), float(high), float((extreme + 1) / (len(differences) + 1)))


def paired_bootstrap(counts_a: np.ndarray, counts_b: np.ndarray, resamples: int, seed: int, metric: str) -> Difference:
    """Returns the difference of two sets of outputs in a score, see `difference`.

    Args:
        counts_a, counts_b: counts of the same sentences in the same order, as in `resampled`.
        resamples, seed, metric: as in `resampled`.

    Raises:
        ValueError: the numbers of sentences differ; see also `resampled`.
    """
    if len(counts_a) != len(counts_b):
        raise ValueError(f"both must have the same sentences. Received: {len(counts_a)} and {len(counts_b)} sentences")
    return difference(*(resampled(counts, metric, resamples, seed) for counts in (counts_a, counts_b)))


@functools.lru_cache(maxsize=4)
def _weights(sentences: int, resamples: int, seed: int) -> list[np.ndarray]:
    """Returns how often each resample has each sentence (a dozen times at most): `[at most _AT_ONCE, sentences]`."""
    random, uniform = np.random.default_rng(seed), np.full(sentences, 1 / sentences)
    sizes = (min(_AT_ONCE, resamples - first) for first in range(0, resamples, _AT_ONCE))
    return [random.multinomial(sentences, uniform, size=size).astype("uint8") for size in sizes]
