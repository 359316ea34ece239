"""From text as people type it to the words of a corpus, and to its blanks.

    I can't eat ____, Dr. Jones!   ->   i ca n't eat (blank) , dr. jones !

The corpora here are tokenised as in the Penn Treebank: punctuation and `n't`, `'s`, `'ll` are words of their own.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from text_infilling import files

# Alone between spaces or punctuation: the blanks of `Toronto_Raptors`, `_num_` and `__init__` are none.
_BLANK = re.compile(r"(?<!\w)(?:__m__|_{2,})(?!\w)|(?<![^\W_])\[blank\](?![^\W_])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHUNK = re.compile(r"\S+")

# The following is what graph_tokenizer.py takes too. Ranges are written as characters, which RE2 reads as well.
CLOSING_ELSEWHERE = "،؛؟।॥，．：；！？）"  # of Arabic, Devanagari and full width
OPENING = "([{<\"'`“‘«¡¿#$*（"
CLOSING = ".,;:!?…)]}>\"'’”»%*" + CLOSING_ELSEWHERE
SYMBOLS = "\u2190-\u2bff\ufe0e\ufe0f\u200d\U0001f000-\U0001faff"  # arrows, pictures, and what joins them
NO_LETTERS = "!-/:-@\\[-^`{-~¡-©«-±´¶-¹»-¿\u2000-\u206f\u3000-\u303f！-／：-＠［-｀｛-･" + CLOSING_ELSEWHERE + SYMBOLS
ABBREVIATIONS = r"(?:mr|mrs|ms|dr|st|jr|sr|prof|mt|vs|jan|feb|aug|sept|oct|nov|dec)\."
CONTRACTION = "['’](?:s|ll|d|ve|re|m)"
_LETTER = rf"[^\s{NO_LETTERS}]"
_TOKEN = re.compile(
    rf"""{ABBREVIATIONS}(?!{_LETTER})
    | (?:[^\W\d_]\.){{2,}}                                            # a.m. U.S.
    | \d+(?:[.,:/]\d+)+(?!{_LETTER})                                  # 3.50 9:30 1/2
    | {_LETTER}+(?:[-./&]{_LETTER}+)*?(?=n['’]t(?!{_LETTER})) | n['’]t(?!{_LETTER})
    | {CONTRACTION}(?!{_LETTER})
    | {_LETTER}+(?:[-./&]{_LETTER}+|(?!{CONTRACTION}(?!{_LETTER}))['’]{_LETTER}+)*
    | \.{{2,}} | -{{2,}} | `` | '' | [{SYMBOLS}]+
    | \S""",
    re.IGNORECASE | re.VERBOSE,
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NUMBER_WORD = "_num_"  # what Yelp has for every number
MERGED = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3}  # where the Treebank cuts them
_PLAIN = str.maketrans("’‘", "''")
OTHER_SPELLINGS = {
    "…": ["..."],
    "—": ["--", "-"],
    "–": ["-", "--"],
    "“": ["``", "''", '"'],
    "”": ["''", "``", '"'],
    "(": ["-lrb-"],
    ")": ["-rrb-"],
}


def has_blank(text: str) -> bool:
    """Whether a text has a blank: two or more underscores, `__m__` or `[blank]`."""
    return _BLANK.search(text) is not None


class Piece(NamedTuple):
    """A word or a blank of a text.

    Attributes:
        start, end: where it stands, half-open.
        word: as the vocabulary has it; as it was typed where it is unknown; None for a blank.
        known: whether the vocabulary has it.
    """

    start: int
    end: int
    word: str | None
    known: bool


@dataclass(frozen=True)
class Tokenizer:
    """How the text of a corpus became words.

    Attributes:
        lower: whether words are lower-cased.
    """

    lower: bool

    @classmethod
    def infer(cls, words: Collection[str]) -> "Tokenizer":
        """The tokenizer of a corpus with this vocabulary: one without an upper-case letter was lower-cased."""
        return cls(lower=all(word == word.lower() for word in words))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """The tokenizer that `save` wrote.

        Raises:
            OSError: the file cannot be read.
            ValueError: it does not hold the settings of a tokenizer.
        """
        settings = files.read_json(Path(path))
        if not isinstance(settings, dict) or settings.keys() != {"lower"} or not isinstance(settings["lower"], bool):
            raise ValueError(
                f'{path} should hold the settings of a tokenizer, {{"lower": true}}. Received: {files.shown(settings)}'
            )
        return cls(**settings)

    def save(self, path: str | Path) -> None:
        """Writes the settings as JSON."""
        files.write_json(Path(path), asdict(self))

    def words(self, text: str, known: Collection[str] = frozenset()) -> list[str]:
        """The words of a text, without its blanks; without a vocabulary, as for a corpus, much faster."""
        if known:
            return [piece.word for piece in self.split(text, known) if piece.word is not None]
        _check_unicode(text)
        plain = self._plain_ascii if text.isascii() else self.plain
        return [plain(token) for part in _BLANK.split(text) for token in _TOKEN.findall(part)]

    def split(self, text: str, known: Collection[str] = frozenset()) -> list[Piece]:
        """The words and blanks of a text, in order; every character but white space is in one of them.

        A blank is two or more underscores, `__m__` or `[blank]`. The vocabulary decides between ways to split and to
        spell: a word that it has is not taken apart, and one that it does not have is, at hyphens, slashes and points,
        if it has the parts. A number that it does not have is its `_num_`.

        Args:
            text: as typed.
            known: words of the vocabulary, best as a set.

        Raises:
            ValueError: a lone surrogate, which is no text.
        """
        _check_unicode(text)
        pieces, place = [], 0
        for blank in [*_BLANK.finditer(text), None]:
            for chunk in _CHUNK.finditer(text, place, blank.start() if blank else len(text)):
                pieces += self._pieces(text, *chunk.span(), known)
            if blank:
                pieces.append(Piece(*blank.span(), None, False))
                place = blank.end()
        return pieces

    def plain(self, typed: str) -> str:
        """A word in the characters of the corpus: composed, with plain apostrophes, lower-cased if that was."""
        plain = unicodedata.normalize("NFC", typed).translate(_PLAIN)
        return plain.lower() if self.lower else plain

    def _pieces(self, text, start, end, known) -> Iterator[Piece]:
        """The words of a stretch without white space and blanks."""
        chunk = text[start:end]
        if (chunk[-1] not in CLOSING or len(chunk) == 1 or chunk[0] in CLOSING) and self._form(chunk, known):
            yield self._piece(text, start, end, known)
            return
        first = start + len(chunk) - len(chunk.lstrip(OPENING))
        last = end - (len(chunk) - len(chunk.rstrip(CLOSING)))
        if first < last:
            short = _TOKEN.match(text, first, last + 1)  # with its point: dr. and the like
            if short and short.end() == last + 1 <= end and text[last] == "." and self._form(short[0], known):
                last += 1
            if self._form(text[first:last], known):
                for part in _TOKEN.finditer(text, start, first):
                    yield self._piece(text, *part.span(), known)
                yield self._piece(text, first, last, known)
                for part in _TOKEN.finditer(text, last, end):
                    yield self._piece(text, *part.span(), known)
                return
        for token in _TOKEN.finditer(text, start, end):
            yield from self._parts(text, *token.span(), known)

    def _parts(self, text, start, end, known) -> Iterator[Piece]:
        """The word of a token, or its parts if only these are known."""
        token = text[start:end]
        cuts = [0]
        if not self._form(token, known):
            if cut := MERGED.get(token.lower()):
                cuts = [0, cut]
            elif len(token) > 1 and not token.isalnum():
                cuts = [part.start() for part in re.finditer(r"[-./&]|[^-./&]+", token)]
        places = [start + cut for cut in cuts] + [end]
        spans = list(zip(places, places[1:]))
        if not all(self._form(text[slice(*span)], known) for span in spans):
            spans = [(start, end)]
        for span in spans:
            yield self._piece(text, *span, known)

    def _piece(self, text, start, end, known) -> Piece:
        typed = text[start:end]
        form = self._form(typed, known)
        if typed == '"':  # opening in front of a word
            opening = (start == 0 or text[start - 1].isspace() or text[start - 1] in OPENING) and (
                end < len(text) and not text[end].isspace()
            )
            form = self._form("“" if opening else "”", known)
        return Piece(start, end, form or self.plain(typed), form is not None)

    def _plain_ascii(self, typed):
        return typed.lower() if self.lower else typed

    def _form(self, typed, known):
        """The first spelling of a word that is known, or None."""
        plain = self.plain(typed)
        spellings = [plain, plain.lower(), *OTHER_SPELLINGS.get(plain, [])]
        if plain.startswith("..") and not plain.strip("."):
            spellings.append("...")
        if plain.startswith("--") and not plain.strip("-"):
            spellings += ["--", "-"]
        if _NUMBER.fullmatch(plain):
            spellings.append(NUMBER_WORD)
        return next((spelling for spelling in spellings if spelling in known), None)


def _check_unicode(text: str) -> None:
    if surrogate := _SURROGATE.search(text):
        raise ValueError(
            f"expected Unicode text. Received: a lone surrogate, {surrogate[0]!a}, at character "
            f"{surrogate.start()}: decode the bytes it comes from with errors='replace'"
        )
