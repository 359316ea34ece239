"""Results of filling a text: the infills as words, as they appear in the text, and their log probabilities."""

import dataclasses
import math

import numpy as np

from text_infilling.inference.request import MaskedText
from text_infilling.text.detokenizer import fill_in
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary


@dataclasses.dataclass(frozen=True)
class Filled:
    """A text with its blanks filled.

    >>> Filled("I had tea.", ["tea"], -0.75, [-0.75], [[-0.5, -0.25]], [["tea"]]).text
    'I had tea.'

    Attributes:
        text: the whole text.
        fills: the infill of each blank, as it appears in `text`.
        log_probability: of all infills, in nats: the sum of `log_probabilities`.
        log_probabilities: of each infill with its `<EOB>`, given the blanks filled before it, in nats.
        token_log_probabilities: for each blank, of each of its `words` and then of `<EOB>`, in nats.
        words: for each blank, the words of the infill as the model writes them.
        alternatives: all requested results, best first; the first is this one.
    """

    text: str
    fills: list[str]
    log_probability: float
    log_probabilities: list[float]
    token_log_probabilities: list[list[float]]
    words: list[list[str]]
    alternatives: list["Filled"] = dataclasses.field(default_factory=list, repr=False)


def without_blanks(text: str) -> Filled:
    """Returns the result for a text that has no blanks: the text itself, with probability 1."""
    return Filled(text, [], 0.0, [], [], [])


def render(
    text: MaskedText, vocabulary: Vocabulary, ids: np.ndarray, lengths: np.ndarray, log_probs: np.ndarray
) -> Filled:
    """Returns one way to fill a text.

    Args:
        text: the text.
        vocabulary: of the model.
        ids: `[blanks, longest]` words of the infills; ids above the vocabulary's are words spelled as in the limits.
        lengths: `[blanks]` words.
        log_probs: `[blanks, longest + 1]` of each word and then of `<EOB>`, in nats.
    """
    fills, touching = [], []
    for limits, infill, length in zip(text.limits, ids.tolist(), lengths):
        words = [limits.typed.get(i) or vocabulary.words[i - len(SPECIAL_TOKENS)] for i in infill[:length]]
        words[: len(limits.prefix)] = limits.prefix_words
        fills.append(words)
        touching.append(limits.touching_in(infill[:length]))
    typed = [len(limits.prefix) for limits in text.limits]
    whole, shown = fill_in(text.text, text.pieces, fills, typed, touching)
    tokens = [row[: len(words) + 1] for row, words in zip(log_probs.tolist(), fills)]
    sums = [math.fsum(row) for row in tokens]
    return Filled(whole, shown, math.fsum(sums), sums, tokens, fills)
