"""The arithmetic of the fixed masking rule, for Python's and NumPy's integers and for tensors; needs no TensorFlow."""

from typing import TypeVar

import numpy as np

Integer = TypeVar("Integer")  # an int, an integer array, or an integer tensor


def fixed_rate(mask_rate: float) -> np.float32:
    """Returns the mask rate that the original multiplies with the number of words.

    It is not `mask_rate` itself: going through its 32-bit complement decides the floor if rate * words is a whole
    number, e.g. 3 of 10 words for 0.4.
    """
    return np.float32(1) - np.float32(1 - mask_rate)


def fixed_places(words: Integer, masked: Integer, blanks: int) -> list[tuple[Integer, Integer]]:
    """Returns the start and the number of words of each blank, left to right; words count from 0.

    >>> fixed_places(10, masked_words(10, 0.4), 2)  # 3 of 10 words: [2, 4) and [6, 7)
    [(2, 2), (6, 1)]

    Args:
        words: number of words in the sentence.
        masked: number of words to mask, at least `blanks`.
        blanks: number of blanks.
    """
    # Kept words to distribute before, between and after the blanks; one word between two blanks is already reserved.
    free = words - masked - blanks + 2
    places, next_start = [], words - words  # a zero of the same type
    for blank in range(blanks):
        before = free // (blanks + 1)
        size = (masked + (blanks - 1 - blank)) // blanks  # the first blanks get the words that are left over
        places.append((next_start + before, size))
        next_start = next_start + before + size + 1
        free = free - before
    return places


def masked_words(words: int, mask_rate: float) -> int:
    """Returns how many words of a sentence the rule masks, computed in 32-bit floats and rounded down."""
    return int(np.float32(words) * fixed_rate(mask_rate))


def fixed_template(words: list[str], mask_rate: float, blanks: int, blank: str) -> list[str]:
    """Returns the words with each blank of the rule replaced by the token `blank`.

    >>> " ".join(fixed_template("a b c d e f g h i j".split(), 0.4, 2, "<m>"))
    'a b <m> e f <m> h i j'
    """
    template, end = [], 0
    for start, size in fixed_places(len(words), masked_words(len(words), mask_rate), blanks):
        template += [*words[end:start], blank]
        end = start + size
    return template + words[end:]
