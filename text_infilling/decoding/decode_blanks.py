"""Fills the blanks of a batch one by one: decode, fill the template, repeat (Paper, section 3.2)."""

from typing import NamedTuple

import tensorflow as tf

from text_infilling import templates
from text_infilling.decoding.beam import beam_search
from text_infilling.decoding.greedy import greedy_search
from text_infilling.decoding.loop import Infills, any_rows
from text_infilling.vocabulary import PAD_ID

BATCHES_AT_ONCE = 2  # one thread each: while one batch is in a single-core step, the other uses the remaining cores


class FilledTexts(NamedTuple):
    """Infills of all blanks of a batch; while blanks are filled, those of the first blanks.

    Attributes:
        ids: `[batch, blanks, max_length]` words, then `<PAD>`.
        lengths: `[batch, blanks]` words; 0 if the row has no such blank, or it is open.
        scores: `[batch, blanks]` log probability of each infill with its `<EOB>`, in nats.
        template: the `templates.Template` with these blanks filled.
        positions: scalar, decoder positions computed.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    template: templates.Template
    positions: tf.Tensor


def fill_blanks(
    model,
    ids: tf.Tensor,
    lengths: tf.Tensor,
    starts: tf.Tensor,
    ends: tf.Tensor,
    counts: tf.Tensor,
    max_length: int,
    beam_width: int = 1,
    forbid_special: bool = True,
) -> FilledTexts:
    """Fills every blank from left to right; each infill is put into the template before the next blank is decoded.

    Args:
        model: an object with `template_format`, `start(template)` and `step(ids, time, state)`.
        ids, lengths, starts, ends, counts: sentences and their blanks as in `templates.initial_template`; the words
            inside a blank are ignored.
        max_length: maximum number of tokens per infill, `<EOB>` included.
        beam_width: 1 is greedy search.
        forbid_special: whether to exclude all special tokens except `<EOB>`.

    Raises:
        ValueError: `beam_width` is below 1.
    """
    if beam_width < 1:
        raise ValueError(f"decoding.beam_width must be at least 1. Received: beam_width={beam_width}")
    template = templates.initial_template(ids, lengths, starts, ends, counts, model.template_format)
    rows, blanks = tf.shape(starts)[0], tf.shape(starts)[1]

    def advance(k, filled):
        state = model.start(filled.template)
        infills = _best_infills(model.step, state, rows, max_length, beam_width, forbid_special)
        template = templates.fill_blank(filled.template, infills.ids, infills.lengths, model.template_format)
        here = (tf.range(blanks) == k)[None, :] & (k < counts)[:, None]  # [batch, blanks]
        return k + 1, FilledTexts(
            ids=tf.where(here[:, :, None], infills.ids[:, None, :], filled.ids),
            lengths=tf.where(here, infills.lengths[:, None], filled.lengths),
            scores=tf.where(here, infills.scores[:, None], filled.scores),
            template=template,
            positions=filled.positions + infills.positions,
        )

    nothing = FilledTexts(
        ids=tf.fill([rows, blanks, max_length], PAD_ID),
        lengths=tf.zeros([rows, blanks], tf.int32),
        scores=tf.zeros([rows, blanks]),
        template=template,
        positions=tf.constant(0),
    )
    start = tf.constant(0), nothing
    _, filled = tf.while_loop(
        lambda k, _: k < blanks, advance, start, shape_invariants=tf.nest.map_structure(any_rows, start)
    )
    return filled


def _best_infills(step, state, rows, max_length, beam_width, forbid_special) -> Infills:
    """Returns the infills of greedy search, or the best ones of a beam."""
    if beam_width == 1:
        return greedy_search(step, state, rows, max_length, forbid_special)
    n_best = beam_search(step, state, rows, max_length, beam_width, forbid_special)
    return n_best._replace(ids=n_best.ids[:, 0], lengths=n_best.lengths[:, 0], scores=n_best.scores[:, 0])
