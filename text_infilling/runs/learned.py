"""What the model of a run has learned, and which texts are far from it."""

import dataclasses
import functools

from text_infilling.text.blanks import with_blanks
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary

MOST_UNKNOWN = 0.5  # share of unknown words from which a text is far from what a model learned


@dataclasses.dataclass(frozen=True)
class Learned:
    """What the model of a run has learned.

    >>> tokenizer, vocabulary = Tokenizer(lower=True), Vocabulary(["the", "soup", "was"])
    >>> cell = {"corpus": "yelp", "masking": "fixed", "blanks": 1, "mask_rate": 0.5}
    >>> learned = Learned.of(cell, tokenizer, vocabulary)
    >>> learned.summary
    'texts of yelp in lower case, 1 blank per text, 50% of the words masked'
    >>> learned.warning("the ____ was ____")
    'it has 2 blanks, and the model learned texts with 1 blank: infills may be poor'
    >>> learned.unknown_words("the ramen was ____")
    ['ramen']

    Attributes:
        corpus: name of the corpus, or None if the run does not record it.
        masking: kind of the masking, or None.
        blanks: fewest and most blanks per text, or None.
        mask_rate: lowest and highest share of the words that was masked, or None.
        tokenizer, vocabulary: those of the run.
    """

    corpus: str | None
    masking: str | None
    blanks: tuple[int, int] | None
    mask_rate: tuple[float, float] | None
    tokenizer: Tokenizer
    vocabulary: Vocabulary

    @classmethod
    def of(cls, cell: dict, tokenizer: Tokenizer, vocabulary: Vocabulary) -> "Learned":
        """Returns what the run of a cell of config.json has learned; entries of another type count as missing."""
        names = (cell.get(name) for name in ("corpus", "masking"))
        corpus, masking = (name if isinstance(name, str) else None for name in names)
        blanks, rate = cell.get("blanks"), cell.get("mask_rate")
        blanks = ((1 if masking == "any" else blanks), blanks) if type(blanks) is int else None
        rates = rate if isinstance(rate, list | tuple) else [rate, rate]
        rates = tuple(rates) if len(rates) == 2 and all(isinstance(each, float | int) for each in rates) else None
        return cls(corpus, masking, blanks, rates, tokenizer, vocabulary)

    @property
    def summary(self) -> str:
        """A description on one line."""
        case = "in lower case" if self.tokenizer.lower else "with capitals"
        parts = [f"texts of {self.corpus or 'an unnamed corpus'} {case}"]
        if self.blanks:
            parts.append(f"{self._blanks()} per text")
        if self.mask_rate:
            low, high = (f"{rate:.0%}" for rate in self.mask_rate)
            parts.append(f"{low if low == high else f'{low} to {high}'} of the words masked")
        return ", ".join(parts)

    def as_dict(self) -> dict:
        """Returns the entries as JSON has them, with the summary."""
        entries = {name: getattr(self, name) for name in ("corpus", "masking", "blanks", "mask_rate")}
        return {**entries, "lower_case": self.tokenizer.lower, "summary": self.summary}

    def unknown_words(self, text: str, blank_token: str | None = None) -> list[str]:
        """Returns the distinct words of a text that the model does not know, as typed."""
        return list(dict.fromkeys(self._words(text, blank_token)[1]))

    def warning(self, text: str, blank_token: str | None = None) -> str | None:
        """Returns a warning on one line if a text is far from what the model learned, else None.

        Far are a number of blanks of at least twice the most, or at most half the fewest, and a text at least half of
        whose words are unknown. A text without blanks gets no warning.
        """
        words, unknown, blanks = self._words(text, blank_token)
        if not blanks:
            return None
        found = []
        if self.blanks and (blanks >= 2 * self.blanks[1] or 2 * blanks <= self.blanks[0]):
            found.append(f"it has {_count(blanks)}, and the model learned texts with {self._blanks()}")
        if unknown and len(unknown) >= MOST_UNKNOWN * words:
            found.append(f"the model does not know {len(unknown)} of its {words} words")
        return f"{'; '.join(found)}: infills may be poor" if found else None

    def _words(self, text: str, blank_token: str | None) -> tuple[int, list[str], int]:
        """Returns the number of words of a text, its unknown words, and its number of blanks."""
        text = with_blanks(text, blank_token) if blank_token else text
        pieces = self.tokenizer.split(text, self._known)
        words = [piece for piece in pieces if piece.word is not None]
        unknown = [text[piece.start : piece.end] for piece in words if not piece.known]
        return len(words), unknown, len(pieces) - len(words)

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.vocabulary.words)

    def _blanks(self) -> str:
        least, most = self.blanks
        return _count(most) if least == most else f"{least} to {_count(most)}"


def _count(blanks: int) -> str:
    return f"{blanks} blank" if blanks == 1 else f"{blanks} blanks"
