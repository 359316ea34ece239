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
_EXTRA_ID = r"<extra_id_\d+>"
_FOREIGN_MASK = re.compile(rf"{_EXTRA_ID}|<(?:mask|blank|m)>|\[(?:mask|blank)\]|\b_\b|\b\w*__\w*", re.IGNORECASE)
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
            raise ValueError(f'{path} should hold the settings of a tokenizer, {{"lower": true}}. Received: {settings}')
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


def foreign_masks(text: str) -> list[str]:
    """Returns the distinct marks of a text that look like a misplaced blank or a blank of another tool, in order.

    >>> foreign_masks("an un____able [MASK] or ____")
    ['un____able', '[MASK]']
    """
    return list(dict.fromkeys(mark for part in _BLANK.split(text) for mark in _FOREIGN_MASK.findall(part)))


def with_blanks(text: str, blank_token: str) -> str:
    """Returns the text with a blank for every `blank_token` that is alone between spaces or punctuation.

    `<extra_id_0>` is any numbered mask: `<extra_id_0>`, `<extra_id_1>` and so on.

    >>> with_blanks("the [MASK] was [MASK].", "[MASK]")
    'the [blank] was [blank].'
    """
    mask = _EXTRA_ID if re.fullmatch(_EXTRA_ID, blank_token) else re.escape(blank_token)
    return re.sub(rf"(?<!\w){mask}(?!\w)", "[blank]", text)


def check_blank_token(blank_token: str) -> str:
    """Returns `blank_token` if it is a non-empty string without white space.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(blank_token, str) or not blank_token or re.search(r"\s", blank_token):
        raise ValueError(f"blank_token must be a string without white space, not empty. Received: {blank_token!r}")
    return blank_token


class BlankWarning(NamedTuple):
    """What is wrong with the blanks of a text.

    Attributes:
        kinds: of the problem, to report each once: "no blank", "blank in a word", or a mask in lower case with its
            numbers as 0.
        message: one line.
    """

    kinds: frozenset[str]
    message: str


def blank_warning(
    text: str, name: str = "the text", blank_token: str | None = None, option: str = "blank_token"
) -> BlankWarning | None:
    """Returns the warning for a text without a blank, or with a mark that looks like one; None if there is neither.

    A text of white space only gets no warning.

    Args:
        text: as typed.
        name: of the text, the subject of the message.
        blank_token: another mask that counts as a blank, see `with_blanks`.
        option: the name under which the user sets `blank_token`.

    >>> print(blank_warning("It was [MASK].").message)  # doctest: +NORMALIZE_WHITESPACE
    the text has no blank, but [MASK]: a blank is ____ (two or more underscores), alone between spaces or punctuation;
    blank_token '[MASK]' accepts another mask
    """
    text = with_blanks(text, blank_token) if blank_token else text
    marks, blank = foreign_masks(text), has_blank(text)
    if not text.strip() or (blank and not marks):
        return None
    kinds = ["blank in a word" if "__" in mark else re.sub(r"\d+", "0", mark.lower()) for mark in marks] or ["no blank"]
    found = ", ".join(f"{mark[:40]}..." if len(mark) > 40 else mark for mark in marks[:3])
    found += ", ..." if len(marks) > 3 else ""
    if blank:
        found += ", which is not a blank" if len(marks) == 1 else ", which are not blanks"
    else:
        found = f"no blank, but {found}" if marks else "no blank"
    also = f" or {blank_token}" if blank_token else ""
    other = next((mark for mark in marks if not re.search(r"__|\s", mark) and not blank_token), None)
    return BlankWarning(
        frozenset(kinds),
        f"{name} has {found}: a blank is ____ (two or more underscores){also}, alone between spaces or punctuation"
        + (f"; {option} '{other}' accepts another mask" if other else ""),
    )
