"""Beam search."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from text_infilling.decoding.loop import Infills, any_rows
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID

_IMPOSSIBLE = -1e9


def beam_search(
    step: Callable,
    state: dict[str, Any],
    rows: int | tf.Tensor,
    max_length: int,
    beam_width: int,
    forbid_special: bool = True,
) -> Infills:
    """Returns the most probable infills, found by beam search without length penalty: `[rows, beam_width, ...]`.

    The infills of a row are sorted, best first. A hypothesis ends when `<EOB>` is among the `beam_width` best
    continuations of its row; a row is finished when no open hypothesis can still enter its best `beam_width` ended
    ones. If no hypothesis has ended after `max_length` tokens, the open ones are returned. A missing hypothesis has no
    words and a score of -1e9. With a beam of 1 this is greedy search.

    Args:
        step: `step(ids [rows], time, state) -> logits [rows, vocab], state`.
        state: a dict of nests of tensors `[rows, ...]`. Only the tensors under its key "cache" differ between the
            hypotheses of a row.
        rows: number of rows.
        max_length: maximum number of tokens per infill, `<EOB>` included.
        beam_width: hypotheses per row.
        forbid_special: whether to exclude all special tokens except `<EOB>`.
    """
    width = beam_width
    state = tf.nest.map_structure(lambda x: tf.repeat(x, width, axis=0), state)

    def body(time, ids, cache, open_ids, open_scores, ended_ids, ended_scores, positions):
        logits, new_state = step(ids, time, {**state, "cache": cache})
        vocab = tf.shape(logits)[1]
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        if forbid_special:
            log_probs = tf.where(tf.range(vocab)[None, :] < EOB_ID, _IMPOSSIBLE, log_probs)
        total = open_scores[:, :, None] + tf.reshape(log_probs, [rows, width, vocab])
        # At most width of the 2 * width continuations end, so enough open ones are left.
        scores, flat = tf.math.top_k(tf.reshape(total, [rows, width * vocab]), tf.minimum(2 * width, width * vocab))
        parents, tokens = flat // vocab, flat % vocab
        sequences = tf.gather(open_ids, parents, batch_dims=1)
        column = tf.range(max_length)[None, None, :] == time
        sequences = tf.where(column, tokens[:, :, None], sequences)

        ends = (tokens == EOB_ID) & (tf.range(tf.shape(tokens)[1])[None, :] < width)
        pool = tf.concat([ended_scores, tf.where(ends, scores, _IMPOSSIBLE)], axis=1)
        ended_scores, chosen = tf.math.top_k(tf.maximum(pool, _IMPOSSIBLE), width)
        ended_ids = tf.gather(tf.concat([ended_ids, sequences], axis=1), chosen, batch_dims=1)

        open_scores, chosen = tf.math.top_k(tf.where(tokens == EOB_ID, _IMPOSSIBLE, scores), width)
        open_scores = tf.maximum(open_scores, _IMPOSSIBLE)
        open_ids = tf.gather(sequences, chosen, batch_dims=1)
        parents = tf.gather(parents, chosen, batch_dims=1) + tf.range(rows)[:, None] * width
        cache = tf.nest.map_structure(lambda x: tf.gather(x, tf.reshape(parents, [-1])), new_state["cache"])
        ids = tf.reshape(tf.gather(tokens, chosen, batch_dims=1), [-1])
        return time + 1, ids, cache, open_ids, open_scores, ended_ids, ended_scores, positions + rows * width

    def unfinished(time, ids, cache, open_ids, open_scores, ended_ids, ended_scores, positions):
        hopeful = open_scores[:, 0] > ended_scores[:, -1]  # scores never increase
        return (time < max_length) & tf.reduce_any(hopeful)

    nothing = tf.fill([rows, width, max_length], PAD_ID)
    first_only = tf.broadcast_to(tf.where(tf.range(width) == 0, 0.0, _IMPOSSIBLE)[None, :], [rows, width])
    start = (
        tf.constant(0),
        tf.fill([rows * width], BOB_ID),
        state["cache"],
        nothing,
        first_only,
        nothing,
        tf.fill([rows, width], _IMPOSSIBLE),
        tf.constant(0),
    )
    _, _, _, open_ids, open_scores, ended_ids, ended_scores, positions = tf.while_loop(
        unfinished, body, start, shape_invariants=tf.nest.map_structure(any_rows, start)
    )
    any_ended = ended_scores[:, :1] > _IMPOSSIBLE / 2
    ids = tf.where(any_ended[:, :, None], ended_ids, open_ids)
    scores = tf.where(any_ended, ended_scores, open_scores)
    lengths = tf.reduce_sum(tf.cast(tf.math.cumsum(tf.cast(ids == EOB_ID, tf.int32), axis=2) == 0, tf.int32), axis=2)
    lengths = tf.where(scores > _IMPOSSIBLE / 2, lengths, 0)
    ids = tf.where(tf.range(max_length)[None, None, :] < lengths[:, :, None], ids, PAD_ID)
    return Infills(ids, lengths, scores, positions)
