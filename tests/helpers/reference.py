"""Slow reference implementation, on lists, of `text_infilling.templates`.

A text is a list of pieces, and a piece is one segment: a run of kept words, an open blank or an infill. Written from
the paper (section 3.1, appendix A.2) and its two readings (constant or renumbered ids, words from one or from zero).
"""

from typing import NamedTuple

from text_infilling.vocabulary import BLANK_ID, BOB_ID, BOS_ID, EOB_ID, EOS_ID, PAD_ID


class Sentence(NamedTuple):
    """Words (ids), and for each blank the pair (start, end) of the words it covers."""

    words: list
    blanks: list

    @property
    def answers(self):
        return [self.words[start:end] for start, end in self.blanks]


class Row(NamedTuple):
    """A template: one list per field, and the segment id of its first open blank (0 if none is open)."""

    ids: list
    segment_ids: list
    offset_ids: list
    blanks: list
    open_segment: int


def pieces_of(sentence, infills):
    """Returns (kind, tokens) of every segment if the first blanks hold `infills`; kind is kept, open or filled."""
    pieces, run, place = [], [BOS_ID], 0
    for k, (start, end) in enumerate(sentence.blanks):
        run += sentence.words[place:start]
        if run:
            pieces.append(("kept", run))
        pieces.append(("filled", list(infills[k])) if k < len(infills) else ("open", [BLANK_ID]))
        run, place = [], end
    return pieces + [("kept", run + sentence.words[place:] + [EOS_ID])]


def melted(pieces):
    """Returns the pieces with adjacent pieces merged unless one of them is open."""
    result = []
    for kind, tokens in pieces:
        if kind != "open" and result and result[-1][0] != "open":
            result[-1] = ("kept", result[-1][1] + tokens)
        else:
            result.append((kind, tokens))
    return result


def template(sentence, infills, template_format, padding=0) -> Row:
    """Returns the template with the first blanks filled and its last segment extended by `padding` tokens."""
    pieces = pieces_of(sentence, infills)
    if template_format.segment_ids == "renumbered":
        pieces = melted(pieces)
    kind, tokens = pieces[-1]
    pieces[-1] = (kind, tokens + [PAD_ID] * padding)
    row = Row([], [], [], [], next((n for n, (kind, _) in enumerate(pieces) if kind == "open"), 0))
    for number, (kind, tokens) in enumerate(pieces):
        at_zero = template_format.origin == "zero" or number == 0 or kind == "open"
        for place, token in enumerate(tokens):
            row.ids.append(token)
            row.segment_ids.append(number)
            row.offset_ids.append(place if at_zero else place + 1)
            row.blanks.append(kind == "open")
    return row


def batch_of_templates(sentences, infills, template_format):
    """Builds a batch whose first blanks hold `infills[row]`; rows are padded only if padding is attended.

    Returns:
        The rows, the lengths of the texts without padding, and the width of the batch.
    """
    lengths = [len(template(s, filled, template_format).ids) for s, filled in zip(sentences, infills)]
    if template_format.mask_padding:
        return [template(s, filled, template_format) for s, filled in zip(sentences, infills)], lengths, max(lengths)
    longest = max(len(s.words) for s in sentences)
    width = max(length + longest - len(s.words) for s, length in zip(sentences, lengths))
    paddings = [width - length for length in lengths]
    formats = [template_format] * len(sentences)
    return [template(*each) for each in zip(sentences, infills, formats, paddings)], lengths, width


def answer(sentence, k):
    """Returns the decoder's input and target tokens for blank k: `<BOB>`, words, `<EOB>`."""
    return [BOB_ID, *sentence.answers[k], EOB_ID]


def answer_segment(sentence, k, template_format):
    """Returns the segment id of the answer to blank k if all earlier blanks are filled."""
    if template_format.answer_segment_ids == "released":
        return 2 * k + 1
    return template(sentence, sentence.answers[:k], template_format).open_segment


def filled(sentence, infills):
    """Returns the words of the text with every blank filled."""
    words, place = [], 0
    for (start, end), infill in zip(sentence.blanks, infills):
        words += sentence.words[place:start] + list(infill)
        place = end
    return words + sentence.words[place:]
