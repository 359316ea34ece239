"""Greedy search, and the decoding loop that it shares with sampling."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID


class Infills(NamedTuple):
    """The infills found for one blank of every row.

    Attributes:
        ids: `[rows, max_length]` words, then `<PAD>`.
        lengths: `[rows]` words, without `<EOB>`.
        scores: `[rows]` log probability of the words and their `<EOB>`, in nats.
        positions: scalar, decoder positions computed in total; a measure of the work done.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    positions: tf.Tensor


def greedy_search(
    step: Callable, state, rows: int | tf.Tensor, max_length: int, forbid_special: bool = True
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
    return search_by(lambda logits, *_: best_token(logits, forbid_special), step, state, rows, max_length)


def search_by(choose: Callable, step: Callable, state, rows: int | tf.Tensor, max_length: int) -> Infills:
    """Returns infills whose tokens are picked by `choose`.

    Args:
        choose: `choose(logits [active, vocab], row_numbers [active], time) -> ids [active]`; `active` is the number of
            rows still computed, `row_numbers` are their indices among all rows.
        step, state, rows, max_length: as for `greedy_search`.
    """

    def body(time, active, done, ids, state, out, lengths, scores, positions):
        logits, state = step(ids, time, state)
        logits = tf.cast(logits, tf.float32)
        ids = choose(logits, active, time)
        log_probs = tf.gather(logits, ids, batch_dims=1) - tf.reduce_logsumexp(logits, axis=1)
        scores = tf.tensor_scatter_nd_add(scores, active[:, None], tf.where(done, 0.0, log_probs))
        ended = done | (ids == EOB_ID)
        written = tf.where(ended, PAD_ID, ids)
        out = tf.tensor_scatter_nd_update(out, tf.stack([active, tf.fill(tf.shape(active), time)], axis=1), written)
        lengths = tf.tensor_scatter_nd_add(lengths, active[:, None], tf.cast(~ended, tf.int32))
        positions += tf.size(ids)
        (active, done, ids, state), _ = drop_ended(ended, (active, ended, ids, state))
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


def drop_ended(ended, of_rows, of_hypotheses=(), hypotheses=1):
    """Drops finished rows once at least a quarter of the rows are finished; drops nothing before that.

    With 8 rows, nothing is dropped when 1 is finished; when 2 are, the remaining 6 are kept.

    Args:
        ended: `[rows]` bool.
        of_rows: a nest of tensors `[rows, ...]`.
        of_hypotheses: a nest of tensors `[rows * hypotheses, ...]`, all hypotheses of the first row first.
        hypotheses: hypotheses per row.

    Returns:
        Both nests, `[kept rows, ...]` and `[kept rows * hypotheses, ...]`.
    """

    def fewer():
        kept = tf.where(~ended)[:, 0]
        numbers = tf.reshape(tf.range(tf.size(ended) * hypotheses), [-1, hypotheses])
        theirs = tf.reshape(tf.gather(numbers, kept), [-1])
        return (
            tf.nest.map_structure(lambda x: tf.gather(x, kept), of_rows),
            tf.nest.map_structure(lambda x: tf.gather(x, theirs), of_hypotheses),
        )

    left = tf.reduce_sum(tf.cast(~ended, tf.int32))
    return tf.cond(4 * left <= 3 * tf.size(ended), fewer, lambda: (of_rows, of_hypotheses))


def best_token(logits, forbid_special):
    """Returns the id of the largest logit of each row, `[rows]`; with `forbid_special`, of words and `<EOB>` only."""
    if not forbid_special:
        return tf.argmax(logits, axis=1, output_type=tf.int32)
    return tf.argmax(logits[:, EOB_ID:], axis=1, output_type=tf.int32) + EOB_ID  # `<EOB>` is the last special token


def any_rows(tensor):
    """Returns the shape of a loop variable of the same rank whose axes may all change size."""
    return tf.TensorShape([None] * tf.convert_to_tensor(tensor).shape.rank)
