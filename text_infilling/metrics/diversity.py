"""Diversity of infills: how much they differ from each other, and how often they repeat themselves."""

from collections import Counter
from collections.abc import Sequence


def distinct(infills: Sequence[Sequence[str]], n: int) -> float:
    """Returns distinct n-grams divided by all n-grams of the infills, in [0, 1]; 0 if there are no n-grams.

    Source: Li et al. 2016, distinct-n.
    """
    ngrams = [tuple(infill[i : i + n]) for infill in infills for i in range(len(infill) - n + 1)]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def largest_share(infills: Sequence[Sequence[str]]) -> float:
    """Returns the share of the most frequent infill, in (0, 1]; 1 if all are the same. Needs at least one infill."""
    ((_, count),) = Counter(tuple(infill) for infill in infills).most_common(1)
    return count / len(infills)


def repeating(infills: Sequence[Sequence[str]], n: int = 3) -> float:
    """Returns the share of infills that contain an n-gram at least twice, in [0, 1]; 0 if there are no infills."""
    ngrams = [[tuple(infill[i : i + n]) for i in range(len(infill) - n + 1)] for infill in infills]
    return sum(len(set(found)) < len(found) for found in ngrams) / max(len(infills), 1)
