"""Mean scores with intervals, and how far annotators agree, in NumPy; scores are `[annotators, items, models]`."""

import numpy as np


def mean_scores(scores: np.ndarray, resamples: int = 2000, seed: int = 1) -> list[tuple[float, float, float]]:
    """Returns mean, low and high (95% interval, resampled items) of each model's score."""
    scores = np.asarray(scores, "float64")
    by_item = scores.mean(axis=0)  # [items, models]
    drawn = np.random.default_rng(seed).integers(len(by_item), size=(resamples, len(by_item)))
    low, high = np.percentile(by_item[drawn].mean(axis=1), [2.5, 97.5], axis=0)
    return [tuple(map(float, row)) for row in zip(by_item.mean(axis=0), low, high, strict=True)]


def kendalls_w(scores: np.ndarray) -> float:
    """Returns Kendall's W, the agreement of the annotators on one item's ranking, averaged over items; in [0, 1].

    >>> kendalls_w([[[3, 2, 1]], [[3, 2, 1]]]), kendalls_w([[[3, 2, 1]], [[1, 2, 3]]])
    (1.0, 0.0)
    """
    scores = np.asarray(scores, "float64")
    annotators, _, models = scores.shape
    sums = scores.sum(axis=0)
    spread = np.sum((sums - sums.mean(axis=1, keepdims=True)) ** 2, axis=1)
    return float(np.mean(12 * spread / (annotators**2 * (models**3 - models))))


def krippendorffs_alpha(scores: np.ndarray) -> float:
    """Returns Krippendorff's alpha for ordinal data over all texts: 1 is perfect agreement, 0 that of chance.

    Without ties each score is equally frequent, so ordinal distances are proportional to squared differences.

    >>> krippendorffs_alpha([[[3, 2, 1]], [[3, 2, 1]]])
    1.0

    Raises:
        ValueError: fewer than two annotators.
    """
    scores = np.asarray(scores, "float64")
    if len(scores) < 2:
        raise ValueError(f"agreement needs at least 2 annotators. Received: {len(scores)}")
    texts = scores.reshape(len(scores), -1)  # [annotators, texts]
    within = np.mean(np.var(texts, axis=0, ddof=1))
    return float(1 - within / np.var(texts, ddof=1))


def sums_to_six(means: list[float]) -> bool:
    """Returns whether the mean scores of three models sum to 6, as ranks without ties must, within rounding.

    >>> sums_to_six([1.950, 1.775, 2.275]), sums_to_six([2.005, 1.900, 2.045])
    (True, False)
    """
    return abs(sum(means) - 6) < 0.01
