"""The rules of words, each written once; the tokenizers and detokenizers in Python and in a graph read them from here.

A rule is a pattern, a set of characters or a table. Ranges are written as characters, which RE2 also reads.

Four steps are written twice, in Python for one text and in tensor operations for a batch: finding tokens (RE2 has no
look-ahead), looking up spellings, the direction of straight quotation marks (`tokenizer._quote`,
`graph_tokenizer._directed`) and spaces and capitals (`detokenizer`, `GraphDetokenizer._join`). No table of patterns and
replacements can hold them, because they depend on the vocabulary, or on state that earlier words left: the number of
`"` before, an open `„`, whether a sentence begins. `tests/text/test_graph_*.py` compare the two versions.
"""

from typing import NamedTuple

# Blanks. `n't` may follow a blank, as in `they ____n't`.
UNDERSCORES = "(?:__m__|_{2,})"  # touches no letter, digit or underscore, unlike `Toronto__Raptors` and `__init__`
BRACKETED_BLANK = r"\[blank\]"  # touches no letter or digit
JOINED_TO_NEXT = "[-/]"  # a separate word before a blank, as in `well-____`

# Characters.
CLOSING_ELSEWHERE = "،؛؟।॥，．：；！？）"  # Arabic, Devanagari and full-width punctuation
OPENING = "([{<\"'`“‘«¡¿#$*（„‚‹£¥"
CLOSING = ".,;:!?…)]}>\"'’”»›%*" + CLOSING_ELSEWHERE
DASHES = "-–—"
BEFORE_OPENING_QUOTE = OPENING + DASHES  # one of these is before a straight quotation mark that opens, or a space
AFTER_CLOSING_QUOTE = CLOSING + DASHES  # none of these, and no space, is after it
INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # not part of a word
JOINERS = "\u200c\u200d"  # join letters or emoji; invisible elsewhere
PICTURES = "\u2190-\u2bff\U0001f000-\U0001faff"  # emoji, symbols and arrows
_VARIANTS = "\ufe0e\ufe0f\U000e0020-\U000e007f"  # variation selectors and tags, after an emoji
_MORE = "«-\u00ad¶»¿\u2000-\u200b\u200e-\u206f\u3000-\u303f！-／：-＠［-｀｛-･" + CLOSING_ELSEWHERE
PUNCTUATION = "!-/:-@\\[-^`{-~¡£-¨" + _MORE
NO_LETTERS = PUNCTUATION + PICTURES
_AFTER_SUFFIX = "!\"%'),.:-@\\]^`{-~¡¤¦-¨" + _MORE + PICTURES

# Patterns of tokens.
ABBREVIATIONS = r"(?:mr|mrs|ms|dr|st|jr|sr|prof|mt|vs|jan|feb|aug|sept|oct|nov|dec)\."
NOT = "[nN]['’][tT]"
_CONTRACTIONS = ("s", "ll", "d", "ve", "re", "m")
CONTRACTION = f"['’](?:{'|'.join(_CONTRACTIONS)})"
SHORTENED = "['’](?:n['’]|(?:tis|twas|em|cause|til|till|n|bout|round)|[0-9]{2}s)"  # 'n' 'tis '90s
EMOTICON = r"(?:>?[:;=]-?[()\[\]dpo3*/\\|]+|[:;=]['’]-?[()]+|</?3+)"
_JOINT = r"(?:%?[-–‐‑/⁄]|[.&@+=:~\\$·#]|\*+)"  # within a word
# Unknown words are cut before and after each match, if the parts are known.
CUT = r"{digit}+(?:[.,]{digit}+)+|[-–‐‑.,/\\&@+=:*~·$£¥§#%()\[\]]"
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
        rest = (
            rf"(?:{_JOINT}{unit}|,{digit}{letter}*|{apostrophe}-?{letter}+|[(\[]{letter}+[)\]]{letter}*"
            rf"|\"[{_HEBREW}]{letter}*)*"
        )
        return cls(
            option=rf"--{letter}+(?:{_JOINT}{letter}+)*",
            link=rf"(?:(?:https?|ftp|file)://|www\.)[^{space}\"'‘’“”<>]*[^{space}\"'‘’“”<>.,;:!?…)\]}}]",
            negated=rf"{run}(?:{_JOINT}{run})*?",
            word=rf"(?:(?:[-@#+^§]|~?/|~|\*+|\({letter}+\))?{unit}|[.,:]{digit}{letter}*){rest}",
            suffix=r"(?:\++|\*+|[-/#$£¥])",
            after_suffix=space + _AFTER_SUFFIX,
            other=rf"\.{{2,}}|-{{2,}}|\*{{2,}}|``|''|[-=]+>|<[-=]+|[<>]=|={{2,}}|[{PICTURES}][{PICTURES}{JOINERS}{_VARIANTS}]*",
        )


NUMBER_WORD = "_num_"  # stands for every number in the Yelp corpus
MERGED = {"cannot": 3, "gonna": 3, "gotta": 3, "wanna": 3, "gimme": 3, "lemme": 3}  # where the Treebank splits them
OPENING_QUOTES = {'"': "``", "'": "`"}  # Penn Treebank words of straight quotation marks
CLOSING_QUOTES = {'"': "''", "'": "'"}
_BRACKETS = {"(": "-lrb-", ")": "-rrb-"}
CURLY_APOSTROPHES = "’‘"
STRAIGHT = str.maketrans(CURLY_APOSTROPHES, "''")
CURLY = str.maketrans("'", "’")
# Spellings to try, in order, for a word that is not in the vocabulary.
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
    **{bracket: [word] for bracket, word in _BRACKETS.items()},
}


def spellings_of_patterns(digit: str) -> list[tuple[str, list[str]]]:
    """Returns pairs of a pattern and the other spellings of the words that match it; `digit` matches one digit."""
    return [
        (r"\.{2,}", ["..."]),
        ("-{2,}", ["--", "-"]),
        (rf"{digit}+(?:[.,]{digit}+)*", [NUMBER_WORD]),
    ]


# Readable text.
_SHOWN = {word: mark for quotes in (OPENING_QUOTES, CLOSING_QUOTES, _BRACKETS) for mark, word in quotes.items()}
_NO_SPACES = {"—", *"，．：；！？、。・"}  # no space on either side, as for dashes of several hyphens
OPENING_WORDS = {*OPENING, *"「『【《〈", "``", "-lrb-", *_NO_SPACES} - set("<\"'*")
CLOSING_WORDS = {*CLOSING, *"」』】》〉", "''", "-rrb-", *_NO_SPACES, "n't", "n’t"} - set('>"*')
CLOSING_WORDS |= {apostrophe + letters for apostrophe in "'’" for letters in _CONTRACTIONS}
SECOND_HALVES = {(word[:cut], word[cut:]) for word, cut in MERGED.items() if word != "cannot"}
ENDS = {".", "!", "?"}
QUOTES = {"``", "''", "`", "'", '"', "“", "”", "‘", "’", "(", ")", "[", "]", "-lrb-", "-rrb-"}


def is_closing(word: str) -> bool:
    """Returns whether a word has no space before it: punctuation, `n't`, `...` and dashes of several hyphens."""
    return word.lower() in CLOSING_WORDS or is_dots(word) or _is_dash(word)


def is_opening(word: str) -> bool:
    """Returns whether a word has no space after it: opening quotes and brackets, and dashes of several hyphens."""
    return word in OPENING_WORDS or _is_dash(word)


def is_dots(word: str) -> bool:
    """Returns whether a word consists of two or more periods."""
    return len(word) > 1 and set(word) == {"."}


def _is_dash(word):
    return len(word) > 1 and set(word) == {"-"}


def shown(word: str) -> str:
    """Returns a word as written in readable text, e.g. `"` for "``"."""
    return _SHOWN.get(word, word)
