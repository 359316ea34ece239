"""Plans how the texts of a request are filled: which texts form a batch, and how much memory a batch takes."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from text_infilling.decoding.decode_blanks import BATCHES_AT_ONCE
from text_infilling.inference.request import MaskedText, SearchOptions
from text_infilling.models.infilling_model import InfillingModel

HYPOTHESES = 32, 128  # target range of hypotheses per batch of several texts; fewer if there are not enough texts
MAX_NUMBERS = 2**29  # in memory at once: 2 GiB of templates, logits and continuations, if all infills are longest
ATTEMPTS = 4  # to find distinct results; each draws more samples or doubles the beam


class TextSize(NamedTuple):
    """The cost of filling a text.

    Attributes:
        blanks, words: of the text.
        hypotheses: number computed at a time; see `fill_texts` and `constrained_search`.
        numbers: floats and ints in memory per hypothesis.
    """

    blanks: int
    words: int
    hypotheses: int
    numbers: int

    @property
    def is_too_large(self) -> bool:
        """Whether the text alone may exceed the memory."""
        return self.hypotheses * self.numbers > MAX_NUMBERS


class Plan(NamedTuple):
    """Batches of texts.

    Attributes:
        batches: the texts of each batch, by their keys.
        at_once: number of batches that run at the same time.
    """

    batches: list[list[int]]
    at_once: int


@dataclasses.dataclass(frozen=True)
class Planner:
    """Planner of the batches of a model.

    Attributes:
        vocabulary_size: words and special tokens.
        cached: numbers that the model keeps per position: the keys and values of all layers.
    """

    vocabulary_size: int
    cached: int

    @classmethod
    def of(cls, model: InfillingModel) -> "Planner":
        """Returns the planner of a model."""
        layers = model.hparams["decoder"].get("num_blocks", 0)
        return cls(model.vocabulary_size, 2 * layers * model.dim)

    def size(self, text: MaskedText, options: SearchOptions, attempt: int) -> TextSize:
        """Returns the cost of filling a text in an attempt; attempts are counted from 0.

        The numbers per hypothesis are logits, keys and values of its template, and continuations.
        """
        width = width_of(options, attempt)
        beam = 1 if options.sampling else width
        phrase_words = max(sum(map(len, limits.phrases)) for limits in text.limits)
        hypotheses = width * beam * (1 + phrase_words) * (len(text.places) if options.confident else 1)
        positions = len(text.pieces) + sum(limits.max_words for limits in text.limits)
        numbers = 2 * self.vocabulary_size + positions * self.cached + 2 * beam * 8
        return TextSize(len(text.places), len(text.ids), hypotheses, numbers)


def width_of(options: SearchOptions, attempt: int) -> int:
    """Returns the beam width, which doubles with each attempt, or the number of samples, which does not."""
    return options.width if options.sampling else options.width << attempt


def plan(sizes: Mapping[int, TextSize]) -> Plan:
    """Returns batches of texts with the same number of blanks and a similar size, which need little padding.

    Every text of a batch is padded to the largest number of hypotheses in the batch. Here two batches run at once, and
    each half would have (1 + 1 + 20 + 20) / 2 = 21 hypotheses, so a batch gets up to 32. The small texts 1 and 3 form a
    batch of 2 * 1 hypotheses. With text 0 it would have 3 * 20 = 60, and texts 0 and 2 together have 2 * 20 = 40: both
    too many.

    >>> plan({i: TextSize(1, 9, hypotheses, 1000) for i, hypotheses in enumerate([20, 1, 20, 1])})
    Plan(batches=[[1, 3], [0], [2]], at_once=2)

    If the memory does not hold two batches of the largest text, batches run one after another.

    >>> plan({0: TextSize(1, 9, 1, MAX_NUMBERS), 1: TextSize(1, 3, 1, 1000)})
    Plan(batches=[[1], [0]], at_once=1)

    Args:
        sizes: the size of each text, by any key; each text alone must fit in memory.
    """
    order = sorted(sizes, key=lambda i: (sizes[i].blanks, sizes[i].hypotheses, sizes[i].words))
    at_once = BATCHES_AT_ONCE
    if any(size.hypotheses * size.numbers * at_once > MAX_NUMBERS for size in sizes.values()):
        at_once = 1
    least, most = HYPOTHESES
    target = min(max(math.ceil(sum(size.hypotheses for size in sizes.values()) / at_once), least), most)
    batches = []
    while order:
        count = _fitting([sizes[i] for i in order], target, MAX_NUMBERS // at_once)
        batches.append(order[:count])
        order = order[count:]
    return Plan(batches, at_once)


def _fitting(sizes: Sequence[TextSize], max_hypotheses: int, max_numbers: int) -> int:
    """Returns how many of the first texts make a batch; a single text may exceed the maxima."""
    count = hypotheses = numbers = 0  # hypotheses and numbers of the largest text
    for size in sizes:
        hypotheses, numbers = max(hypotheses, size.hypotheses), max(numbers, size.numbers)
        padded = (count + 1) * hypotheses
        if count and (padded > max_hypotheses or padded * numbers > max_numbers):
            break
        count += 1
    return count
