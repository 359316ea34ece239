"""Blanks in typed text: finds them, replaces the masks of other tools, and warns about marks that are not blanks."""

import re
from typing import NamedTuple

from text_infilling.text.rules import BRACKETED_BLANK, NOT, UNDERSCORES

BLANK_PATTERN = re.compile(
    rf"(?<!\w){UNDERSCORES}(?:(?!\w)|(?={NOT}(?!\w)))"
    rf"|(?<![^\W_]){BRACKETED_BLANK}(?:(?![^\W_])|(?={NOT}(?![^\W_])))"
)
_EXTRA_ID = r"<extra_id_\d+>"
_FOREIGN_MASK = re.compile(
    r"\[[gs]?mask(?:[_ -]?\d+)?\]|<(?:mask|blank|fill|infill|fill_me|fill_in|sentinel)(?:[_ -]?\d+)?>|<m>"
    r"|<extra_id_\d+>|\{\{?(?:mask|blank)(?:[_ -]?\d+)?\}?\}|\[blank(?:[_ -]?\d+)?\]"
    r"|(?<!\S)_(?![^\s.,;:!?])|(?<![\w'’])[\w'’]*__[\w'’]*",
    re.IGNORECASE,
)


def has_blank(text: str) -> bool:
    """Returns whether a text has a blank: two or more underscores, `__m__` or `[blank]`."""
    return ("__" in text or "[blank]" in text) and BLANK_PATTERN.search(text) is not None


def foreign_masks(text: str) -> list[str]:
    """Returns the distinct marks that look like a blank but are none: masks of other tools, or blanks inside a word.

    >>> foreign_masks("My [MASK] likes <extra_id_0>, un____able, _ and my ____.")
    ['[MASK]', '<extra_id_0>', 'un____able', '_']
    """
    marks = dict.fromkeys(mark[0] for mark in _FOREIGN_MASK.finditer(text))
    return [mark for mark in marks if not has_blank(mark)]


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
