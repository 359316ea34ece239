"""Paired bootstrap of corpus BLEU, in NumPy.

Corpus BLEU is a function of ten sums over the sentences (`text_infilling.metrics.bleu.sentence_counts`), so a resample
of the sentences is a weighted sum of their counts and needs no second look at the texts. Source: Koehn 2004,
"Statistical Significance Tests for Machine Translation Evaluation".
"""

from typing import NamedTuple

import numpy as np

ORDERS = 4  # n-grams of 1 to 4 tokens
COLUMNS = 2 + 2 * ORDERS
_AT_ONCE = 500  # resamples whose weights are in memory at the same time


class Difference(NamedTuple):
    """How much better one set of outputs is than another on the same sentences, in BLEU points.

    Attributes:
        value: BLEU of the first minus BLEU of the second.
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


def paired_bootstrap(
    counts_a: np.ndarray, counts_b: np.ndarray, resamples: int, seed: int, smoothed: bool = False
) -> Difference:
    """Returns the difference in corpus BLEU of two sets of outputs with a 95% interval from resampled sentences.

    Both are scored on the same resamples, so what makes a sentence hard for both of them cancels.

    Args:
        counts_a, counts_b: `[sentences, 10]` counts of the same sentences in the same order, see `sentence_counts`.
        resamples: number of resamples, at least 1.
        seed: seed of the resamples.
        smoothed: as in `corpus_bleu`.

    Raises:
        ValueError: the shapes differ or are not `[sentences, 10]`, there are no sentences or no resamples.
    """
    a, b = (np.asarray(counts, "float64") for counts in (counts_a, counts_b))
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] != COLUMNS or not len(a):
        raise ValueError(f"counts must both be [sentences, {COLUMNS}]. Received: {a.shape} and {b.shape}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1. Received: {resamples}")
    random = np.random.default_rng(seed)
    both, uniform = np.concatenate([a, b], axis=1), np.full(len(a), 1 / len(a))
    found = []
    for first in range(0, resamples, _AT_ONCE):
        weights = random.multinomial(len(a), uniform, size=min(_AT_ONCE, resamples - first))  # [resamples, sentences]
        sums = weights @ both
        found.append(corpus_bleu(sums[:, :COLUMNS], smoothed) - corpus_bleu(sums[:, COLUMNS:], smoothed))
    differences = np.concatenate(found)
    value = float(corpus_bleu(a.sum(axis=0), smoothed) - corpus_bleu(b.sum(axis=0), smoothed))
    low, high = np.percentile(differences, [2.5, 97.5])
    # Under the hypothesis of no difference the resamples scatter around 0 as they do around their mean.
    extreme = np.sum(np.abs(differences - differences.mean()) >= abs(value))
    return Difference(value, float(low), float(high), float((extreme + 1) / (resamples + 1)))
