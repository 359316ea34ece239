"""Shows how the models see a text: its template, the position of each token, and what each blank may attend to."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from text_infilling import templates
from text_infilling.templates import TemplateFormat
from text_infilling.text.blanks import BLANK_PATTERN
from text_infilling.utils.columns import aligned
from text_infilling.vocabulary import BLANK_ID, BOB_ID, SPECIAL_TOKENS, Vocabulary

PLACEHOLDER = ("w1", "w2")  # an infill that is not given
PAPER = TemplateFormat()  # the numbering of the protocol `paper`


class Token(NamedTuple):
    """A token and where it is: `position` is `segment_id * base + offset_id`."""

    token: str
    segment_id: int
    offset_id: int
    position: int


class Turn(NamedTuple):
    """The filling of one blank.

    Attributes:
        blank: number of the blank, from 1.
        template: the tokens of the template at this time, all of which the blank may attend to.
        answer: `<BOB>` and the words of the infill; each may attend to the template, to itself and to those before it.
    """

    blank: int
    template: list[Token]
    answer: list[Token]


def turns(
    text: str, infills: Sequence[str] = (), template_format: TemplateFormat = PAPER
) -> tuple[list[Turn], list[Token]]:
    """Returns the filling of each blank, left to right, and the filled text at the end.

    >>> found, filled = turns("the ____ is hot .", ["fish soup"])
    >>> [(one.token, one.segment_id, one.offset_id) for one in found[0].template][:4]
    [('<BOS>', 0, 0), ('the', 0, 1), ('<m>', 1, 0), ('is', 2, 1)]

    Args:
        text: words separated by spaces; `____` is a blank.
        infills: infills of the first blanks; the others are shown with two placeholder words.
        template_format: how templates are numbered.

    Raises:
        ValueError: the text has no blank, or fewer blanks than there are infills.
    """
    words = [None if BLANK_PATTERN.fullmatch(token) else token for token in text.split()]
    check_blanks(words, infills)
    answers = [*(infill.split() for infill in infills), *[list(PLACEHOLDER)] * words.count(None)]
    known = dict.fromkeys([*filter(None, words), *(word for answer in answers for word in answer)])
    return filling(words, Vocabulary(known), template_format, lambda number, _: answers[number])


def check_blanks(words: Sequence[str | None], infills: Sequence[str]) -> None:
    """Raises ValueError if the words of a text have no blank (None), or fewer blanks than there are infills."""
    blanks = words.count(None)
    if not blanks:
        raise ValueError("the text has no blank ____ between spaces. Received: " + repr(" ".join(filter(None, words))))
    if len(infills) > blanks:
        raise ValueError(f"the text has {blanks} blanks. Received: {len(infills)} infills")


def filling(
    words: Sequence[str | None],
    vocabulary: Vocabulary,
    template_format: TemplateFormat,
    infill_of: Callable[[int, templates.Template], list[str]],
) -> tuple[list[Turn], list[Token]]:
    """Returns the filling of each blank, left to right, and the filled text at the end.

    Args:
        words: of the text; None is a blank.
        vocabulary: encodes the words.
        template_format: how templates are numbered.
        infill_of: `infill_of(number, template)` returns the words of an infill; blanks are counted from 0.
    """
    blanks = [i for i, word in enumerate(words) if word is None]
    kept = [word for word in words if word is not None]
    starts = [[i - n for n, i in enumerate(blanks)]]  # an open blank has no words of its own
    ids = tf.constant([vocabulary.encode(kept)], tf.int32)
    template = templates.initial_template(ids, [len(kept)], starts, starts, [len(blanks)], template_format)
    found = []
    for number in range(len(blanks)):
        answer = infill_of(number, template)
        segment = int(templates.answer_segment_ids(template, template_format)[0])
        located = [
            Token(word, segment, i, segment * template_format.base + i)
            for i, word in enumerate([SPECIAL_TOKENS[BOB_ID], *answer])
        ]
        found.append(Turn(number + 1, _tokens(template, vocabulary, template_format), located))
        # One column more than words, because a tensor of an empty infill would have no column to gather from.
        ids = tf.constant([[*vocabulary.encode(answer), BLANK_ID]])
        template = templates.fill_blank(template, ids, [len(answer)], template_format)
    return found, _tokens(template, vocabulary, template_format)


def _tokens(template: templates.Template, vocabulary: Vocabulary, template_format: TemplateFormat) -> list[Token]:
    columns = (template.ids, template.segment_ids, template.offset_ids)
    ids, segments, offsets = (column[0].numpy().tolist() for column in columns)
    return [
        Token(word, segment, offset, segment * template_format.base + offset)
        for word, segment, offset in zip(vocabulary.decode(ids), segments, offsets, strict=True)
    ]


def as_text(text: str, infills: Sequence[str] = (), template_format: TemplateFormat = PAPER) -> str:
    """Returns the explanation of a text for a terminal; arguments as in `turns`."""
    return turns_as_text(*turns(text, infills, template_format), template_format.base)


def turns_as_text(found: Sequence[Turn], filled: Sequence[Token], base: int) -> str:
    """Returns the result of `turns` or `filling` for a terminal; `base` is that of the positions."""
    parts = []
    for turn in found:
        segment = turn.answer[0].segment_id
        parts += [
            f"Blank {turn.blank} of {len(found)}, segment {segment}. It attends to all {len(turn.template)} tokens of "
            "the template:",
            _table(turn.template),
            "Its own tokens attend to the template, to themselves and to those to their left:",
            _table(turn.answer),
        ]
    position = f"position = {base} * segment id + offset id"
    return "\n\n".join([*parts, "After the last blank:", _table(filled), position])


def _table(tokens: Sequence[Token]) -> str:
    rows = [
        ("token", *(one.token for one in tokens)),
        ("segment id", *(str(one.segment_id) for one in tokens)),
        ("offset id", *(str(one.offset_id) for one in tokens)),
        ("position", *(str(one.position) for one in tokens)),
    ]
    return "\n".join(aligned(rows))
