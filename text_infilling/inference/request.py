"""Reads a request: checks its options, and splits its texts into the words, blanks and limits that a model reads."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from text_infilling.decoding.complete_texts import Sampling
from text_infilling.inference.fill_options import NO_REPEAT_NGRAM, check_options, is_sampled
from text_infilling.inference.limits import BlankLimits, Limits, LimitsReader
from text_infilling.templates import TemplateFormat
from text_infilling.text.tokenizer import Piece, Tokenizer
from text_infilling.vocabulary import Vocabulary

LimitsLike = Limits | Mapping | None  # the limits of a blank, as a user gives them


class SearchOptions(NamedTuple):
    """How infills are searched for or drawn.

    Attributes:
        num_results: distinct results per text.
        width: ways to fill a text in the first attempt: the beam width, or the number of samples.
        sampling: options of sampling, without the number of the attempt in the seed; None: search.
        confident: whether the most confident blank is filled first.
        no_repeat_ngram: as in `Infiller.fill`; 0 turns the rule off.
        length_penalty: as in `Infiller.fill`.
    """

    num_results: int
    width: int
    sampling: Sampling | None
    confident: bool
    no_repeat_ngram: int
    length_penalty: float

    @classmethod
    def read(
        cls,
        default_width: int,
        *,
        num_results: int,
        beam_width: int | None,
        temperature: float | None,
        top_k: int | None,
        top_p: float | None,
        seed: int | None,
        order: str,
        no_repeat_ngram: int | None,
        length_penalty: float | None = None,
    ) -> "SearchOptions":
        """Returns the options of a request, see `Infiller.fill`; `default_width` is the beam width of the run.

        Raises:
            ValueError: an option has the wrong type, is out of range, or cannot be combined with another.
        """
        check_options(
            num_results=num_results, beam_width=beam_width, temperature=temperature, top_k=top_k, top_p=top_p,
            seed=seed, order=order, no_repeat_ngram=no_repeat_ngram, length_penalty=length_penalty,
        )  # fmt: skip
        width = num_results = int(num_results)
        sampling = None
        if is_sampled(temperature, top_k, top_p, seed):
            sampling = Sampling(
                seed=int(seed or 0),
                temperature=np.float32(1.0 if temperature is None else temperature),
                top_k=np.int32(2**31 - 1 if top_k is None else top_k),
                top_p=np.float32(2.0 if top_p is None else top_p),  # 2: no word is excluded by rounding
            )
        else:
            width = max(default_width, num_results) if beam_width is None else int(beam_width)
        if no_repeat_ngram is None:
            no_repeat_ngram = NO_REPEAT_NGRAM
        return cls(num_results, width, sampling, order == "confident", no_repeat_ngram, float(length_penalty or 0))


@dataclasses.dataclass(frozen=True)
class MaskedText:
    """A text as the model reads it.

    Attributes:
        text: as typed.
        pieces: its words and blanks.
        ids: of its words.
        places: the number of words before each blank.
        limits: of each blank.
    """

    text: str
    pieces: list[Piece]
    ids: list[int]
    places: list[int]
    limits: list[BlankLimits]


class RequestReader:
    """Reader of the texts and limits of a request.

    Args:
        tokenizer, vocabulary: those of the run.
        template_format: that of the model.
        longest: maximum number of words of an infill whose limits do not set `max_words`.
        least: minimum number of words of an infill whose limits do not set `min_words`.
    """

    def __init__(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, template_format: TemplateFormat, longest: int, least: int
    ):
        self._tokenizer, self._vocabulary, self._template_format = tokenizer, vocabulary, template_format
        self._reader = LimitsReader(tokenizer, vocabulary, longest, least)

    def read(self, texts: Sequence[str], limits: Sequence[LimitsLike | Sequence[LimitsLike]]) -> list[MaskedText]:
        """Returns the texts as the model reads them.

        Args:
            texts: with their blanks.
            limits: of each text: one value for all blanks, or one per blank.

        Raises:
            ValueError: see `Infiller.fill`.
        """
        seen = {}
        return [
            self._read(text, given, named(i, len(texts)), seen)
            for i, (text, given) in enumerate(zip(texts, limits, strict=True))
        ]

    def _read(self, text, limits, where, seen) -> MaskedText:
        """Returns one text; `where` names it in messages, `seen` caches the limits read in this request."""
        try:
            pieces = self._tokenizer.split(text, self._reader.known)
        except ValueError as error:
            raise ValueError(f"{where}{error}") from error
        words = [piece.word for piece in pieces if piece.word is not None]
        blanks = len(pieces) - len(words)
        if not isinstance(limits, Sequence):
            limits = [limits] * blanks
        elif len(limits) != blanks:
            raise ValueError(f"{where}limits must have one entry per blank, {blanks}. Received: {len(limits)}")
        if not blanks:
            return MaskedText(text, pieces, [], [], [])
        most = self._template_format.base - 2  # see `TemplateFormat.check_base`
        if len(pieces) > most:
            raise ValueError(
                f"{where}the model reads at most {most} words and blanks (position.base of the run is "
                f"{self._template_format.base}), so fill it part by part. "
                f"Received: {len(words)} words and {blanks} blanks"
            )
        if self._template_format.segment_ids == "renumbered":  # infills and kept words merge into one segment
            most = (most - len(words)) // blanks
        read = []
        for k, given in enumerate(limits, start=1):
            key = checked, _ = Limits.of(given, f"{where}blank {k}"), most
            if key not in seen:
                seen[key] = self._reader.read(checked, f"{where}blank {k}", most)
            read.append(seen[key])
        places, before = [], 0
        for piece in pieces:
            if piece.word is None:
                places.append(before)
            else:
                before += 1
        return MaskedText(text, pieces, self._vocabulary.encode(words), places, read)


def named(i: int, texts: int) -> str:
    """Returns the name of text `i` for the start of a message; empty if there is only one text.

    >>> named(0, 1), named(0, 2)
    ('', 'text 1: ')
    """
    return f"text {i + 1}: " if texts > 1 else ""
