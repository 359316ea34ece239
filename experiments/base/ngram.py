"""An n-gram filler, the baseline of the base model: trigram counts with interpolated back-off.

The probability of a word after two others is that of Witten and Bell 1991, "The zero-frequency problem", in the
interpolated form: p(w | a b) = (c(a b w) + d(a b) p(w | b)) / (c(a b) + d(a b)), where c counts in the training text
and d(a b) is the number of different words after a b. p(w | b) is the same with one word, p(w) is the share of the
word with one added to each count.
"""

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.vocabulary import BOS_ID, EOS_ID, SPECIAL_TOKENS, UNK_ID, Vocabulary

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.training.evaluation import Fill

CANDIDATES = 300  # most probable next words, among which the word after the blank decides
MOST_WORDS = 32  # per infill


class _Counts:
    """Counts of n-grams of one order.

    Args:
        contexts: `[tokens]` number of the words before each token.
        words: `[tokens]` ids of the tokens.
        size: number of ids.
    """

    def __init__(self, contexts: np.ndarray, words: np.ndarray, size: int):
        self._size = size
        self._keys, self._counts = np.unique(contexts * size + words, return_counts=True)
        self._contexts, first = np.unique(self._keys // size, return_index=True)
        self._bounds = np.append(first, len(self._keys))
        self._totals = np.add.reduceat(self._counts, first)

    def after(self, context: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of the words that follow a context, and their counts."""
        place = np.searchsorted(self._contexts, context)
        if place == len(self._contexts) or self._contexts[place] != context:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found = slice(self._bounds[place], self._bounds[place + 1])
        return self._keys[found] % self._size, self._counts[found]

    def interpolated(self, contexts: np.ndarray, word: int, lower: np.ndarray) -> np.ndarray:
        """Returns the probability of a word after each context `[n]`, given the one after the shorter contexts."""
        places = np.minimum(np.searchsorted(self._contexts, contexts), len(self._contexts) - 1)
        known = self._contexts[places] == contexts
        totals = np.where(known, self._totals[places], 0)
        distinct = np.where(known, self._bounds[places + 1] - self._bounds[places], 0)
        keys = contexts * self._size + word
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        counts = np.where(self._keys[places] == keys, self._counts[places], 0)
        return np.where(known, (counts + distinct * lower) / np.maximum(totals + distinct, 1), lower)


class NgramFiller:
    """A filler of blanks that knows counts of words, pairs and triples of words.

    A blank is filled from left to right: each next word, or the end of the blank, is the most probable one given two
    words before it and two words after the blank. The end has a prior probability that depends on the number of blanks
    and of kept words of the sentence and on the words so far; if the blank does not end, the words after it are taken
    as independent of those before it.

    Args:
        sentences: the training text.
        vocabulary: its words, one of which may be any infill; others are unknown.
        masked: training sentences with their blanks, from which the prior of the end is counted.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], vocabulary: Vocabulary, masked: Iterable["Fill"]):
        self._words = [*SPECIAL_TOKENS, *vocabulary.words]
        self._ids = {word: i for i, word in enumerate(self._words) if i >= len(SPECIAL_TOKENS)}
        self._size = size = len(self._words)
        stream = [BOS_ID, BOS_ID]
        for sentence in sentences:
            stream += [*self._to_ids(sentence), EOS_ID, BOS_ID, BOS_ID]
        ids = np.array(stream, np.int64)
        first, second, word = ids[:-2], ids[1:-1], ids[2:]
        inside = word != BOS_ID
        first, second, word = first[inside], second[inside], word[inside]
        single = np.bincount(word, minlength=size) + 1
        self._single = single / single.sum()
        self._pairs = _Counts(second, word, size)
        self._triples = _Counts(first * size + second, word, size)
        self._ends = end_chances(masked)

    def fill(self, fill: "Fill") -> list[list[str]]:
        """Returns an infill for each blank of a sentence; `fill.infills` is not read."""
        left, position, infills = [BOS_ID, BOS_ID], 0, []
        kept = len(fill.words) - sum(end - start for start, end in zip(fill.starts, fill.ends, strict=True))
        for number, (start, end) in enumerate(zip(fill.starts, fill.ends, strict=True)):
            left += self._to_ids(fill.words[position:start])
            next_start = fill.starts[number + 1] if number + 1 < len(fill.starts) else len(fill.words)
            right = self._to_ids(fill.words[end:next_start])
            if next_start == len(fill.words):
                right.append(EOS_ID)
            chances = self._ends.get((len(fill.starts), kept), ())
            infill = self._blank(left, right[:2], chances)
            left, position = left + infill, end
            infills.append([self._words[i] for i in infill])
        return infills

    def _blank(self, left: Sequence[int], right: Sequence[int], chances: Sequence[float]) -> list[int]:
        """Returns the ids of an infill between the ids `left` (two or more) and `right` (one or two)."""
        infill: list[int] = []
        apart = self._joint(np.array([0]), np.array([0]), right, False)[0]  # of `right` after an unknown history
        while len(infill) < MOST_WORDS:
            first, second = [*left, *infill][-2:]
            end, later = (chances[n] if n < len(chances) else 0.5 for n in (len(infill), len(infill) + 1))
            next_words = self._next(first, second)
            next_words[: len(SPECIAL_TOKENS)] = 0
            best = np.argpartition(next_words, -min(CANDIDATES, self._size))[-min(CANDIDATES, self._size) :]
            joined = self._joint(np.full(len(best), second), best, right)
            scores = (1 - end) * next_words[best] * (later * joined + (1 - later) * apart)
            ending = end * self._joint(np.array([first]), np.array([second]), right)[0]
            if infill and ending >= scores.max():
                break
            infill.append(int(best[np.argmax(scores)]))
        return infill

    def _next(self, first: int, second: int) -> np.ndarray:
        """Returns the probability of each word after two others, `[vocab]`."""
        chances = self._single.copy()
        for counts, context in ((self._pairs, second), (self._triples, first * self._size + second)):
            words, found = counts.after(context)
            if len(words):
                total = found.sum() + len(words)
                chances *= len(words) / total
                chances[words] += found / total
        return chances

    def _joint(self, first: np.ndarray, second: np.ndarray, right: Sequence[int], known: bool = True) -> np.ndarray:
        """Returns the probability of the words `right` after each pair of words `[n]`, or if not `known` after any."""
        total = np.ones(len(second))
        for place, word in enumerate(right):
            chance = np.full(len(second), self._single[word])
            if known or place:
                chance = self._pairs.interpolated(second, word, chance)
            if known:
                chance = self._triples.interpolated(first * self._size + second, word, chance)
            total *= chance
            first, second = second, np.full(len(second), word)
        return total

    def _to_ids(self, words: Iterable[str]) -> list[int]:
        return [self._ids.get(word, UNK_ID) for word in words]


def end_chances(masked: Iterable["Fill"]) -> Mapping[tuple[int, int], list[float]]:
    """Returns the probability that a blank ends after n words if it did not end before, for n = 0, 1, 2, ...

    The keys are the numbers of blanks and of kept words of the sentence. An end and a continuation are added to the
    counts of each n.
    """
    lengths: dict[tuple[int, int], collections.Counter] = collections.defaultdict(collections.Counter)
    for fill in masked:
        sizes = [end - start for start, end in zip(fill.starts, fill.ends, strict=True)]
        lengths[len(sizes), len(fill.words) - sum(sizes)].update(sizes)
    found = {}
    for key, counts in lengths.items():
        left = counts.total()
        found[key] = []
        for length in range(max(counts) + 1):
            found[key].append((counts[length] + 1) / (left + 2))
            left -= counts[length]
    return found
