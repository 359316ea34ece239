"""Greedy search."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling.decoding.loop import Infills, any_rows, best_token, drop_finished
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID


class _Loop(NamedTuple):
    """The loop variables: `active` to `state` are those of the rows that are still computed.

    Attributes:
        time: scalar, number of tokens generated.
        active: `[active]` indices of the rows among all rows.
        done: `[active]` whether each row is finished.
        ids: `[active]` the last token.
        state: of `step`, `[active, ...]`.
        out: `[rows, max_length]` words, then `<PAD>`.
        lengths: `[rows]` words.
        scores: `[rows]` log probability so far, in nats.
        positions: scalar, decoder positions computed.
    """

    time: tf.Tensor
    active: tf.Tensor
    done: tf.Tensor
    ids: tf.Tensor
    state: Any
    out: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    positions: tf.Tensor


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

    start = _Loop(
        time=tf.constant(0),
        active=tf.range(rows),
        done=tf.zeros([rows], tf.bool),
        ids=tf.fill([rows], BOB_ID),
        state=state,
        out=tf.fill([rows, max_length], PAD_ID),
        lengths=tf.zeros([rows], tf.int32),
        scores=tf.zeros([rows]),
        positions=tf.constant(0),
    )
    (last,) = tf.while_loop(
        lambda now: (now.time < max_length) & (tf.size(now.active) > 0),
        lambda now: (_advance(now, step, forbid_special),),
        (start,),
        shape_invariants=(tf.nest.map_structure(any_rows, start),),
    )
    return Infills(last.out, last.lengths, last.scores, last.positions)


def _advance(now: _Loop, step: Callable, forbid_special: bool) -> _Loop:
    """Returns the loop variables after one more token per row."""
    logits, state = step(now.ids, now.time, now.state)
    logits = tf.cast(logits, tf.float32)
    ids = best_token(logits, forbid_special)
    log_probs = tf.gather(logits, ids, batch_dims=1) - tf.reduce_logsumexp(logits, axis=1)
    done = now.done | (ids == EOB_ID)
    rows = now.active[:, None]
    cells = tf.stack([now.active, tf.fill(tf.shape(now.active), now.time)], axis=1)  # [active, 2]
    (active, kept_done, kept_ids, state), _ = drop_finished(done, (now.active, done, ids, state))
    return _Loop(
        time=now.time + 1,
        active=active,
        done=kept_done,
        ids=kept_ids,
        state=state,
        out=tf.tensor_scatter_nd_update(now.out, cells, tf.where(done, PAD_ID, ids)),
        lengths=tf.tensor_scatter_nd_add(now.lengths, rows, tf.cast(~done, tf.int32)),
        scores=tf.tensor_scatter_nd_add(now.scores, rows, tf.where(now.done, 0.0, log_probs)),
        positions=now.positions + tf.size(ids),
    )
