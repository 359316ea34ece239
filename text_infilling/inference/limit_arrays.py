"""The limits of a batch of texts as the arrays that the search reads."""

import itertools
from collections.abc import Sequence

import numpy as np

from text_infilling.decoding.constraints import Constraints, borders_of
from text_infilling.inference.limits import BlankLimits, overlap


def stack(rows: Sequence[Sequence[BlankLimits]]) -> Constraints:
    """Returns the limits of a batch of texts as arrays `[texts, blanks, ...]`; a missing blank has no words."""
    arrays = Constraints(**_zeros(rows))
    for i, row in enumerate(rows):
        for k, limits in enumerate(row):
            # With `...`, an element is a view too.
            _write(limits, Constraints(*(array[i, k, ...] for array in arrays)))
    return arrays


def _zeros(rows):
    """Returns an array of zeros for each field of `Constraints`, as large as the limits of all blanks need."""
    limits = [limits for row in rows for limits in row]
    phrases = [phrase for x in limits for phrase in x.phrases]
    sequences = [sequence for x in limits for sequence in x.sequences]

    def longest(lists):
        return max(map(len, lists), default=0)

    blanks = [len(rows), longest(rows)]
    of_phrases = [*blanks, longest(x.phrases for x in limits)]
    length = max(1, longest(phrases))
    of_sequences = [*blanks, longest(x.sequences for x in limits), max(1, longest(sequences))]
    return {
        "min_words": np.zeros(blanks, np.int32),
        "max_words": np.zeros(blanks, np.int32),
        "prefix": np.zeros([*blanks, longest(x.prefix for x in limits)], np.int32),
        "prefix_lengths": np.zeros(blanks, np.int32),
        "banned": np.zeros([*blanks, longest(x.banned for x in limits)], np.int32),
        "phrases": np.zeros([*of_phrases, length], np.int32),
        "phrase_lengths": np.zeros(of_phrases, np.int32),
        "borders": np.zeros([*of_phrases, length + 1, length], bool),
        "overlaps": np.zeros(of_phrases, np.int32),
        "sequences": np.zeros([*of_sequences, longest(word for each in sequences for word in each)], np.int32),
    }


def _write(limits, arrays):
    """Writes the limits of a blank into its zeros."""
    arrays.min_words[...], arrays.max_words[...] = limits.min_words, limits.max_words
    arrays.prefix_lengths[...] = len(limits.prefix)
    arrays.prefix[: len(limits.prefix)] = limits.prefix
    arrays.banned[: len(limits.banned)] = limits.banned
    longest = arrays.phrases.shape[1]
    for j, phrase in enumerate(limits.phrases):
        arrays.phrases[j, : len(phrase)], arrays.phrase_lengths[j] = phrase, len(phrase)
        arrays.borders[j] = borders_of(phrase, longest)
    arrays.overlaps[1 : len(limits.phrases)] = [overlap(*pair) for pair in itertools.pairwise(limits.phrases)]
    for j, sequence in enumerate(limits.sequences):
        for m, word in enumerate(sequence, start=arrays.sequences.shape[1] - len(sequence)):
            arrays.sequences[j, m, : len(word)] = word
