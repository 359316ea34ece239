"""Greedy search."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from text_infilling.decoding.loop import Infills, any_rows, best_token, drop_finished
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID


def greedy_search(
    step: Callable, state: Any, rows: int | tf.Tensor, max_length: int, forbid_special: bool = True
) -> Infills:
    """Returns the infills that take the most probable token at every step, until `<EOB>` or `max_length` tokens.

    Finished rows are dropped from the computation once they are at least a quarter of it.

    Args:
        step: `step(ids [rows], time, state) -> logits [rows, vocab], state`.
        state: a nest of tensors `[rows, ...]`.
        rows: number of rows.
        max_length: maximum number of tokens per infill, `<EOB>` included.
        forbid_special: whether to exclude all special tokens except `<EOB>`.
    """

    def body(time, active, done, ids, state, out, lengths, scores, positions):
        logits, state = step(ids, time, state)
        logits = tf.cast(logits, tf.float32)
        ids = best_token(logits, forbid_special)
        log_probs = tf.gather(logits, ids, batch_dims=1) - tf.reduce_logsumexp(logits, axis=1)
        scores = tf.tensor_scatter_nd_add(scores, active[:, None], tf.where(done, 0.0, log_probs))
        ended = done | (ids == EOB_ID)
        written = tf.where(ended, PAD_ID, ids)
        out = tf.tensor_scatter_nd_update(out, tf.stack([active, tf.fill(tf.shape(active), time)], axis=1), written)
        lengths = tf.tensor_scatter_nd_add(lengths, active[:, None], tf.cast(~ended, tf.int32))
        positions += tf.size(ids)
        (active, done, ids, state), _ = drop_finished(ended, (active, ended, ids, state))
        return time + 1, active, done, ids, state, out, lengths, scores, positions

    start = (
        tf.constant(0),
        tf.range(rows),
        tf.zeros([rows], tf.bool),
        tf.fill([rows], BOB_ID),
        state,
        tf.fill([rows, max_length], PAD_ID),
        tf.zeros([rows], tf.int32),
        tf.zeros([rows]),
        tf.constant(0),
    )
    _, _, _, _, _, out, lengths, scores, positions = tf.while_loop(
        lambda time, active, *_: (time < max_length) & (tf.size(active) > 0),
        body,
        start,
        shape_invariants=tf.nest.map_structure(any_rows, start),
    )
    return Infills(out, lengths, scores, positions)
