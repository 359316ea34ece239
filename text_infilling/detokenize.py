"""From words back to text that people read: spaces where they belong, capitals where the rest of the text has them.

i | ca n't eat `` raw '' fish , sorry |      ->   i can't eat "raw" fish, sorry
"""

from collections.abc import Collection, Sequence

from text_infilling.tokenizer import CLOSING_ELSEWHERE, Piece

_SHOWN = {"``": '"', "''": '"', "`": "'", "-lrb-": "(", "-rrb-": ")"}
OPENING = {"(", "[", "{", "``", "`", "“", "‘", "$", "#", "-lrb-"}
_CONTRACTIONS = {"n't", "'s", "'m", "'d", "'ll", "'ve", "'re"}
CLOSING = {",", ".", ";", ":", "!", "?", "...", "%", ")", "]", "}", "''", "'", "”", "’", "-rrb-", *_CONTRACTIONS}
CLOSING |= set(CLOSING_ELSEWHERE)
SECOND_HALVES = {("gon", "na"), ("wan", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me")}
ENDS = {".", "!", "?"}
QUOTES = {"``", "''", "`", "'", '"', "“", "”", "‘", "’", "(", ")", "[", "]", "-lrb-", "-rrb-"}


def join(words: Sequence[str], touching: Collection[int] = ()) -> str:
    """The words as text: no space in front of punctuation and `n't`, none behind an opening quote or bracket.

    Args:
        words: as the model writes them, or as they were typed.
        touching: numbers of the words that have no space in front of them in any case.
    """
    text, quoted, previous = "", False, None
    for i, word in enumerate(words):
        closing, opening = word.lower() in CLOSING, word in OPENING
        if word == '"':  # of a vocabulary that does not tell one side from the other
            closing, opening, quoted = quoted, not quoted, not quoted
        merged = previous is not None and (previous.lower(), word.lower()) in SECOND_HALVES
        apart = text and previous is not None and not (closing or merged or i in touching)
        text += (" " if apart else "") + shown(word)
        previous = None if opening else word
    return text


def shown(word: str) -> str:
    """A word as it stands in readable text."""
    return _SHOWN.get(word, word)


def fill_in(
    text: str,
    pieces: Sequence[Piece],
    fills: Sequence[Sequence[str]],
    typed: Sequence[int] = (),
    touching: Sequence[Collection[int]] = (),
) -> tuple[str, list[str]]:
    """The text with its blanks filled, and the fills as they stand in it.

    Outside of the blanks nothing changes, but that spaces at a blank go where the fill asks for it: where it is empty,
    begins with `,` or `n't`, or ends with an opening bracket. If the rest of the text has upper-case letters, so has
    the first letter of a fill's word that begins a sentence, and the word `i`.

    Args:
        text: with blanks.
        pieces: of `Tokenizer.split`.
        fills: words for each blank.
        typed: for each blank, how many of its first words keep their case, because the user typed them; default: none.
        touching: for each blank, which of its words touch the one before, whatever they are; default: none.
    """
    capitals = _has_capitals(text, pieces)
    out, place, begins, glue, shown_fills = "", 0, True, False, []
    for piece in pieces:
        if piece.word is not None:
            begins = _begins(piece.word, begins)
            continue
        number = len(shown_fills)
        words, kept_case = list(fills[number]), typed[number] if typed else 0
        between = text[place : piece.start]
        beside = number > 0 and not between  # the blank before
        out += between.lstrip(" ") if glue else between
        for i, word in enumerate(words):
            if capitals and i >= kept_case:
                words[i] = word[:1].upper() + word[1:] if begins or word == "i" else word
            begins = _begins(word, begins)
        fill = join(words, touching[number] if touching else ())
        following = text[piece.end : piece.end + 1]
        if not words:
            glue = glue or not out or out[-1].isspace() or out[-1] in OPENING
            if not following or following in CLOSING:
                out = out.rstrip(" ")
        else:
            if words[0].lower() in CLOSING:
                out = out.rstrip(" ")
            elif beside and out and not glue and not out[-1].isspace():
                out += " "
            out += fill
            glue = words[-1] in OPENING
        shown_fills.append(fill)
        place = piece.end
    rest = text[place:]
    return out + (rest.lstrip(" ") if glue else rest), shown_fills


def _has_capitals(text, pieces):
    kept = (text[piece.start : piece.end] for piece in pieces if piece.word is not None)
    return any(letter.isupper() for word in kept for letter in word)


def _begins(word, begins):
    """Whether the next word begins a sentence, if this one did or did not."""
    return begins if word in QUOTES else word in ENDS
