"""Splits text as people type it into the words of a corpus, and into blanks.

    I can't eat ____, Dr. Jones!   ->   i ca n't eat (blank) , dr. jones !

The corpora here are tokenized as in the Penn Treebank: punctuation, `n't`, `'s` and `'ll` are separate words.
"""

import itertools
import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from text_infilling.utils import files

# A blank touches no letter, digit or underscore (unlike `Toronto__Raptors` and `__init__`), but `n't` may follow it.
NOT = "[nN]['’][tT]"
_BLANK = re.compile(
    rf"(?<!\w)(?:__m__|_{{2,}})(?:(?!\w)|(?={NOT}(?!\w)))|(?<![^\W_])\[blank\](?:(?![^\W_])|(?={NOT}(?![^\W_])))"
)
_IN_WORD = re.compile(r"\w")
_STARTS_WITH_NOT = re.compile(rf"{NOT}(?!\w)")
_EXTRA_ID = r"<extra_id_\d+>"
_FOREIGN_MASK = re.compile(
    r"\[[gs]?mask(?:[_ -]?\d+)?\]|<(?:mask|blank|fill|infill|fill_me|fill_in|sentinel)(?:[_ -]?\d+)?>|<m>"
    r"|<extra_id_\d+>|\{\{?(?:mask|blank)(?:[_ -]?\d+)?\}?\}|\[blank(?:[_ -]?\d+)?\]"
    r"|(?<!\S)_(?![^\s.,;:!?])|(?<![\w'’])[\w'’]*__[\w'’]*",
    re.IGNORECASE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHUNK = re.compile(r"\S+")

# The following constants are shared with graph_tokenizer.py. Ranges are written as characters, which RE2 also reads.
CLOSING_ELSEWHERE = "،؛؟।॥，．：；！？）"  # Arabic, Devanagari and full-width punctuation
OPENING = "([{<\"'`“‘«¡¿#$*（„‚‹£¥"
CLOSING = ".,;:!?…)]}>\"'’”»›%*" + CLOSING_ELSEWHERE
DASHES = "-–—"
INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # not part of a word
JOINERS = "\u200c\u200d"  # join letters or emoji; invisible elsewhere
PICTURES = "\u2190-\u2bff\U0001f000-\U0001faff"  # emoji, symbols and arrows
_VARIANTS = "\ufe0e\ufe0f\U000e0020-\U000e007f"  # variation selectors and tags, after an emoji
_MORE = "«-\u00ad¶»¿\u2000-\u200b\u200e-\u206f\u3000-\u303f！-／：-＠［-｀｛-･" + CLOSING_ELSEWHERE
PUNCTUATION = "!-/:-@\\[-^`{-~¡£-¨" + _MORE
NO_LETTERS = PUNCTUATION + PICTURES
_AFTER_SUFFIX = "!\"%'),.:-@\\]^`{-~¡¤¦-¨" + _MORE + PICTURES
ABBREVIATIONS = r"(?:mr|mrs|ms|dr|st|jr|sr|prof|mt|vs|jan|feb|aug|sept|oct|nov|dec)\."
CONTRACTION = "['’](?:s|ll|d|ve|re|m)"
SHORTENED = "['’](?:n['’]|(?:tis|twas|em|cause|til|till|n|bout|round)|[0-9]{2}s)"  # 'n' 'tis '90s
EMOTICON = r"(?:>?[:;=]-?[()\[\]dpo3*/\\|]+|[:;=]['’]-?[()]+|</?3+)"
_JOINT = r"(?:%?[-–‐‑/⁄]|[.&@+=:~\\$·#]|\*+)"  # within a word
# Unknown words are cut before and after each match, if the parts are known.
CUT = r"{digit}+(?:[.,]{digit}+)+|[-–‐‑./\\&@+=:*~·$£¥§#%()\[\]]"
_HEBREW = "\u05d0-\u05ea"


class Patterns(NamedTuple):
    """Regular expressions of tokens, without look-ahead so that RE2 can use them too; case-insensitive.

    Attributes:
        option: `--option`, only at the start of a chunk (text without white space).
        link: a URL.
        negated: a word that `n't` may follow.
        word: a word, including parts joined to it.
        suffix: characters that may end a word: `C++` `w/` `pre-` `5*`.
        after_suffix: characters that may follow a suffix, as the content of a character class.
        other: a token that is not a word.
    """

    option: str
    link: str
    negated: str
    word: str
    suffix: str
    after_suffix: str
    other: str

    @classmethod
    def of(cls, letter: str, digit: str, space: str, apostrophe: str) -> "Patterns":
        """Builds the patterns.

        Args:
            letter, digit: pattern of one letter (or other character of a word) and of one digit.
            space: white space, as the content of a character class.
            apostrophe: pattern of an apostrophe within a word.
        """
        entity = r"&(?:[a-z][a-z0-9]{1,31}|#[0-9]{1,7}|#x[0-9a-f]{1,6});"
        run = rf"(?:{letter}+(?:{entity}{letter}*)*|(?:{entity}{letter}*)+)"
        unit = rf"(?:{digit}+(?:[.,:/]{digit}+)+{letter}*(?:{entity}{letter}*)*|{run})"
        joined = (
            rf"{unit}(?:{_JOINT}{unit}|{apostrophe}-?{letter}+|[(\[]{letter}+[)\]]{letter}*|\"[{_HEBREW}]{letter}*)*"
        )
        return cls(
            option=rf"--{letter}+(?:{_JOINT}{letter}+)*",
            link=rf"(?:(?:https?|ftp|file)://|www\.)[^{space}\"'‘’“”<>]*[^{space}\"'‘’“”<>.,;:!?…)\]}}]",
            negated=rf"{run}(?:{_JOINT}{run})*?",
            word=rf"(?:(?:[-@#+^§]|~?/|~|\*+)?{joined}|\({letter}+\){joined}|[.:]{digit}+{letter}*)",
            suffix=r"(?:\++|\*+|[-/#$£¥])",
            after_suffix=space + _AFTER_SUFFIX,
            other=rf"\.{{2,}}|-{{2,}}|\*{{2,}}|``|''|[-=]+>|<[-=]+|[<>]=|={{2,}}|[{PICTURES}][{PICTURES}{JOINERS}{_VARIANTS}]*",
        )


def _token_pattern():
    letter = rf"[^\s{NO_LETTERS}]"
    ends = rf"(?!{letter})"
    cut = rf"(?!-?{letter})"  # unlike the contraction of a bird's-nest
    p = Patterns.of(letter, r"\d", r"\s", rf"(?!{CONTRACTION}{cut})['’]")
    return re.compile(
        rf"{letter}++(?!\S)"  # fast path for most words
        rf"|(?:{ABBREVIATIONS}|(?:[^\W\d_]\.){{2,}}|{SHORTENED}|(?<!\S){EMOTICON}){ends}|(?:{CONTRACTION}|{NOT}){cut}"
        rf"|(?<!\S){p.option}|(?<!\S)’{letter}+|{p.link}"
        rf"|{p.negated}(?={NOT}{cut})"
        rf"|{p.word}(?:{p.suffix}(?![^{p.after_suffix}]))?|{p.other}|\S\ufe0f?",
        re.IGNORECASE,
    )


_TOKEN = _token_pattern()
JOINED_TO_NEXT = "[-/]"  # a separate word before a blank, as in `well-____`
_JOINED_TO_NEXT = re.compile(rf"[^\s{NO_LETTERS}]{JOINED_TO_NEXT}$")
_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
_INVISIBLE_OR_JOINER = re.compile(f"[{INVISIBLE}{JOINERS}]")
_LOOSE_JOINERS = re.compile(rf"(?<![^\s{PUNCTUATION}])[{JOINERS}]+|[{JOINERS}]+(?![^\s{PUNCTUATION}])")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
NUMBER_WORD = "_num_"  # stands for every number in the Yelp corpus
MERGED = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3}  # where the Treebank splits them
OPENING_QUOTES = {'"': "``", "'": "`"}  # Penn Treebank words of straight quotation marks
CLOSING_QUOTES = {'"': "''", "'": "'"}
_CUT = re.compile(CUT.format(digit=r"\d"))
STRAIGHT = str.maketrans("’‘", "''")
_CURLY = str.maketrans("'", "’")
OTHER_SPELLINGS = {
    "…": ["..."],
    "—": ["--", "-"],
    "–": ["-", "--"],
    "“": ["``", "''", '"'],
    "”": ["''", "``", '"'],
    "``": ["“", "''", '"'],
    "''": ["”", "``", '"'],
    "‘": ["`", "'"],
    "’": ["'"],
    "`": ["‘", "'"],
    "'": ["’"],
    "(": ["-lrb-"],
    ")": ["-rrb-"],
}


def has_blank(text: str) -> bool:
    """Returns whether a text has a blank: two or more underscores, `__m__` or `[blank]`."""
    return ("__" in text or "[blank]" in text) and _BLANK.search(text) is not None


def foreign_masks(text: str) -> list[str]:
    """Returns the distinct marks that look like a blank but are none: masks of other tools, or blanks inside a word.

    >>> foreign_masks("My [MASK] likes <extra_id_0>, un____able, _ and my ____.")
    ['[MASK]', '<extra_id_0>', 'un____able', '_']
    """
    marks = dict.fromkeys(mark[0] for mark in _FOREIGN_MASK.finditer(text))
    return [mark for mark in marks if not has_blank(mark)]


class Piece(NamedTuple):
    """A word or a blank of a text.

    Attributes:
        start, end: character positions in the text, half-open.
        word: in the spelling of the vocabulary, or as typed if unknown; None for a blank.
        known: whether the word is in the vocabulary.
    """

    start: int
    end: int
    word: str | None
    known: bool


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer that splits text as the corpus was split.

    >>> Tokenizer(lower=True).words("I can't eat, Dr. Jones!")
    ['i', 'ca', "n't", 'eat', ',', 'dr.', 'jones', '!']

    Attributes:
        lower: whether words are lower-cased.
    """

    lower: bool

    @classmethod
    def infer(cls, words: Collection[str]) -> "Tokenizer":
        """Infers the tokenizer of a corpus from its vocabulary: lower-case if no word has an upper-case letter."""
        return cls(lower=all(word == word.lower() for word in words))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Loads a tokenizer written by `save`.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file does not hold the settings of a tokenizer.
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
        """Returns the words of a text, without its blanks; much faster without `known`, as for a corpus."""
        if known or has_blank(text):
            return [piece.word for piece in self.split(text, known) if piece.word is not None]
        _check_unicode(text)
        if text.isascii():
            visible = text.lower() if self.lower else text
            tokens = _TOKEN.findall(visible)
        else:
            visible = _visible(text)
            tokens = [self.plain(token) for token in _TOKEN.findall(visible)]
        if OPENING_QUOTES.keys().isdisjoint(tokens):
            return tokens
        place = quotes = 0
        for i, token in enumerate(_TOKEN.finditer(visible)):
            if token[0] in OPENING_QUOTES:
                start, end = token.span()
                quotes += visible.count('"', place, start)
                place = start
                tokens[i] = _quote(token[0], visible[start - 1 : start] or " ", visible[end : end + 1] or " ", quotes)
        return tokens

    def split(self, text: str, known: Collection[str] = frozenset()) -> list[Piece]:
        """Returns the words and blanks of a text, in order.

        A blank is two or more underscores, `__m__` or `[blank]`. Every character is in one piece, except white space
        and invisible characters such as a zero-width space. The vocabulary decides how to split and spell: a known
        word stays whole; an unknown one is split at hyphens, slashes and periods if its parts are known. An unknown
        number becomes `_num_` if that is known.

        Args:
            text: as typed.
            known: words of the vocabulary, preferably a set.

        Raises:
            ValueError: the text has a lone surrogate.
        """
        _check_unicode(text)
        pieces, place, quotes = [], 0, 0
        for blank in [*_BLANK.finditer(text), None]:
            for typed in _CHUNK.finditer(text, place, blank.start() if blank else len(text)):
                first, last = typed.span()
                chunk, places = typed[0], range(first, last)
                if _INVISIBLE_OR_JOINER.search(chunk):
                    chunk, places = _visible(chunk), [first + i for i in _visible_places(chunk)]
                beside = text[first - 1 : first] or " ", text[last : last + 1] or " "
                for start, end, word, is_known in self._pieces(chunk, beside, quotes, known) if chunk else ():
                    pieces.append(Piece(places[start], places[end - 1] + 1, word, is_known))
                quotes += chunk.count('"')
            if blank:
                pieces.append(Piece(*blank.span(), None, False))
                place = blank.end()
        return pieces

    def plain(self, typed: str) -> str:
        """Normalizes a word: NFC, without invisible characters, lower-cased if `lower`."""
        plain = typed if typed.isascii() else _INVISIBLE.sub("", unicodedata.normalize("NFC", typed))
        return plain.lower() if self.lower else plain

    def _pieces(self, chunk, beside, quotes, known) -> Iterator[tuple[int, int, str, bool]]:
        """Yields start, end, word and whether it is known, for each word of a chunk.

        Args:
            chunk: text without white space and blanks.
            beside: the characters before and after the chunk; a space at either end of the text.
            quotes: number of straight double quotation marks before the chunk.
            known: words of the vocabulary.
        """
        for start, end in self._spans(chunk, not beside[1].isspace(), known):
            typed = chunk[start:end]
            if typed in OPENING_QUOTES:
                before = chunk[start - 1] if start else beside[0]
                typed = _quote(typed, before, chunk[end] if end < len(chunk) else beside[1], quotes)
            form = self._form(typed, known)
            yield start, end, form or self.plain(typed), form is not None

    def _spans(self, chunk, before_blank, known) -> Iterator[tuple[int, int]]:
        size = len(chunk)
        if (chunk[-1] not in CLOSING or size == 1 or chunk[0] in CLOSING) and self._form(chunk, known):
            yield 0, size
            return
        first, last = size - len(chunk.lstrip(OPENING)), len(chunk.rstrip(CLOSING))
        if first < last:
            short = _TOKEN.match(chunk, first, last + 1)  # with its period: dr. etc.
            if short and short.end() == last + 1 <= size and chunk[last] == "." and self._form(short[0], known):
                last += 1
            if self._form(chunk[first:last], known):
                yield from (token.span() for token in _TOKEN.finditer(chunk[:first]))
                yield first, last
                yield from ((last + token.start(), last + token.end()) for token in _TOKEN.finditer(chunk[last:]))
                return
        ends = [size - 1, size] if before_blank and _JOINED_TO_NEXT.search(chunk) else [size]
        for start, end in (token.span() for token in _TOKEN.finditer(chunk)):
            for i, j in itertools.pairwise([start, *(place for place in ends if start < place < end), end]):
                yield from self._parts(i, j, chunk[i:j], known)

    def _parts(self, start, end, token, known) -> Iterator[tuple[int, int]]:
        """Yields the span of a token, or the spans of its parts if only the parts are known."""
        cuts = [0]
        if not self._form(token, known):
            if cut := MERGED.get(token.lower()):
                cuts = [0, cut]
            elif len(token) > 1 and not token.isalnum():
                cuts = sorted({0, *(place for part in _CUT.finditer(token) for place in part.span())} - {len(token)})
        spans = list(itertools.pairwise([*cuts, len(token)]))
        if not all(self._form(token[slice(*span)], known) for span in spans):
            spans = [(0, len(token))]
        yield from ((start + i, start + j) for i, j in spans)

    def _form(self, typed, known):
        """Returns the first known spelling of a word, or None."""
        plain = self.plain(typed)
        if plain in known:
            return plain
        spellings = [plain.lower()]
        if not plain.isalnum():
            for other in (plain.translate(STRAIGHT), plain.translate(_CURLY)):
                spellings += [other, other.lower()]
        spellings += OTHER_SPELLINGS.get(plain, [])
        if plain.startswith("..") and not plain.strip("."):
            spellings.append("...")
        if plain.startswith("--") and not plain.strip("-"):
            spellings += ["--", "-"]
        if _NUMBER.fullmatch(plain):
            spellings.append(NUMBER_WORD)
        return next((spelling for spelling in spellings if spelling in known), None)


def _quote(typed: str, before: str, after: str, quotes: int) -> str:
    """Returns the word of a straight quotation mark: "``" or "`" if it opens, "''" or "'" if it closes a quotation.

    Args:
        typed: `"` or `'`.
        before, after: the adjacent characters.
        quotes: number of `"` before it; decides if white space is on both sides.
    """
    if before.isspace():
        opens = not after.isspace() or (typed == '"' and quotes % 2 == 0)
    else:
        opens = before in OPENING + DASHES and not after.isspace() and after not in CLOSING + DASHES
    return (OPENING_QUOTES if opens else CLOSING_QUOTES)[typed]


def _visible(text: str) -> str:
    return _LOOSE_JOINERS.sub("", _INVISIBLE.sub("", text))


def _visible_places(text: str) -> list[int]:
    """Returns the positions in `text` of the characters of `_visible(text)`."""
    places = [i for i, character in enumerate(text) if not _INVISIBLE.match(character)]
    loose = {i for joiners in _LOOSE_JOINERS.finditer("".join(text[i] for i in places)) for i in range(*joiners.span())}
    return [place for i, place in enumerate(places) if i not in loose]


def _check_unicode(text: str) -> None:
    if surrogate := _SURROGATE.search(text):
        raise ValueError(
            f"expected Unicode text. Received: a lone surrogate, {surrogate[0]!a}, at character "
            f"{surrogate.start()}: decode the bytes it comes from with errors='replace'"
        )


def with_blanks(text: str, blank_token: str) -> str:
    """Replaces every `blank_token` that is alone between spaces or punctuation by a blank.

    `<extra_id_0>` matches any numbered mask: `<extra_id_0>`, `<extra_id_1>` and so on.

    >>> with_blanks("the [MASK] was [MASK].", "[MASK]")
    'the [blank] was [blank].'
    """
    mask = _EXTRA_ID if re.fullmatch(_EXTRA_ID, blank_token) else re.escape(blank_token)
    return re.sub(rf"(?<!\w){mask}(?:(?!\w)|(?={NOT}(?!\w)))", "[blank]", text)


def check_blank_token(blank_token: str) -> str:
    """Returns `blank_token` after checking that it is a non-empty string without white space.

    Raises:
        ValueError: `blank_token` is anything else.
    """
    if not isinstance(blank_token, str) or not blank_token or re.search(r"\s", blank_token):
        raise ValueError(f"blank_token must be a string without white space, not empty. Received: {blank_token!r}")
    return blank_token


class BlankWarning(NamedTuple):
    """A warning about the blanks of a text.

    Attributes:
        kinds: kinds of the problems, to report each once: "no blank", "blank in a word", or a mask in lower case with
            0 for each number.
        message: the warning, on one line.
    """

    kinds: frozenset[str]
    message: str


def blank_warning(
    text: str, name: str = "the text", blank_token: str | None = None, option: str = "blank_token"
) -> BlankWarning | None:
    """Returns a warning if a text has no blank, or has a mark that looks like one; otherwise None.

    A text of white space only gets no warning.

    Args:
        text: as typed.
        name: name of the text in the message.
        blank_token: another mask that counts as a blank, see `with_blanks`.
        option: name of the flag or argument with which the user sets `blank_token`.

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
