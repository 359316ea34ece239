"""How different infills are from each other, and how much they repeat themselves."""

from collections import Counter
from collections.abc import Sequence


def distinct(infills: Sequence[Sequence[str]], n: int) -> float:
    """Different n-grams over all n-grams within the infills (Li et al. 2016, distinct-n), in [0, 1]; 0 without any."""
    ngrams = [tuple(infill[i : i + n]) for infill in infills for i in range(len(infill) - n + 1)]
    return len(set(ngrams)) / len(ngrams) if ngrams else 0.0


def largest_share(infills: Sequence[Sequence[str]]) -> float:
    """The share of the infill that comes out most often, in (0, 1]; 1 where all are the same."""
    ((_, count),) = Counter(tuple(infill) for infill in infills).most_common(1)
    return count / len(infills)


def repeating(infills: Sequence[Sequence[str]], n: int = 3) -> float:
    """The share of infills in which an n-gram stands twice or more, in [0, 1]; 0 without infills."""
    ngrams = [[tuple(infill[i : i + n]) for i in range(len(infill) - n + 1)] for infill in infills]
    return sum(len(set(found)) < len(found) for found in ngrams) / max(len(infills), 1)
