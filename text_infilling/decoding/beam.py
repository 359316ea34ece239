"""Beam search."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling.decoding.loop import Infills, any_rows
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID

_IMPOSSIBLE = -1e9


class _Loop(NamedTuple):
    """The loop variables.

    Attributes:
        time: scalar, number of tokens generated.
        ids: `[rows * width]` the last token of each open hypothesis, all hypotheses of the first row first.
        cache: of `step`, `[rows * width, ...]`.
        open_ids: `[rows, width, max_length]` tokens of the open hypotheses, best first, then `<PAD>`.
        open_scores: `[rows, width]` their log probabilities, in nats.
        ended_ids, ended_scores: the same of the best hypotheses that ended with `<EOB>`.
        positions: scalar, decoder positions computed.
    """

    time: tf.Tensor
    ids: tf.Tensor
    cache: Any
    open_ids: tf.Tensor
    open_scores: tf.Tensor
    ended_ids: tf.Tensor
    ended_scores: tf.Tensor
    positions: tf.Tensor


class _Continuations(NamedTuple):
    """The best continuations of each row by one token, best first; `best` is twice the beam width.

    Attributes:
        parents: `[rows, best]` indices of the open hypotheses that they continue.
        tokens: `[rows, best]` the new tokens.
        sequences: `[rows, best, max_length]` all tokens.
        scores: `[rows, best]` log probabilities of all tokens, in nats.
    """

    parents: tf.Tensor
    tokens: tf.Tensor
    sequences: tf.Tensor
    scores: tf.Tensor


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
    state = tf.nest.map_structure(lambda x: tf.repeat(x, beam_width, axis=0), state)
    start = _start(state["cache"], rows, max_length, beam_width)

    def advance(now):
        logits, new_state = step(now.ids, now.time, {**state, "cache": now.cache})
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        if forbid_special:
            log_probs = tf.where(tf.range(tf.shape(logits)[1])[None, :] < EOB_ID, _IMPOSSIBLE, log_probs)
        return (_advance(now, _best_continuations(now, log_probs), new_state["cache"]),)

    def unfinished(now):
        hopeful = now.open_scores[:, 0] > now.ended_scores[:, -1]  # scores never increase
        return (now.time < max_length) & tf.reduce_any(hopeful)

    (last,) = tf.while_loop(unfinished, advance, (start,), shape_invariants=(tf.nest.map_structure(any_rows, start),))
    return _result(last)


def _start(cache: Any, rows: int | tf.Tensor, max_length: int, width: int) -> _Loop:
    """Returns the loop variables before the first token. The hypotheses of a row are equal, so only one is possible."""
    nothing = tf.fill([rows, width, max_length], PAD_ID)
    first_only = tf.broadcast_to(tf.where(tf.range(width) == 0, 0.0, _IMPOSSIBLE)[None, :], [rows, width])
    return _Loop(
        time=tf.constant(0),
        ids=tf.fill([rows * width], BOB_ID),
        cache=cache,
        open_ids=nothing,
        open_scores=first_only,
        ended_ids=nothing,
        ended_scores=tf.fill([rows, width], _IMPOSSIBLE),
        positions=tf.constant(0),
    )


def _best_continuations(now: _Loop, log_probs: tf.Tensor) -> _Continuations:
    """Returns the best continuations, given the log probabilities of the next token `[rows * width, vocab]`."""
    rows, width, max_length = tf.unstack(tf.shape(now.open_ids))
    vocab = tf.shape(log_probs)[1]
    total = now.open_scores[:, :, None] + tf.reshape(log_probs, [rows, width, vocab])
    # At most width of the 2 * width continuations end, so enough open ones are left.
    scores, flat = tf.math.top_k(tf.reshape(total, [rows, width * vocab]), tf.minimum(2 * width, width * vocab))
    parents, tokens = flat // vocab, flat % vocab
    is_new = tf.range(max_length)[None, None, :] == now.time
    sequences = tf.where(is_new, tokens[:, :, None], tf.gather(now.open_ids, parents, batch_dims=1))
    return _Continuations(parents, tokens, sequences, scores)


def _advance(now: _Loop, best: _Continuations, cache: Any) -> _Loop:
    """Returns the loop variables after one more token per hypothesis.

    Args:
        now: before that token.
        best: the best continuations.
        cache: of the open hypotheses that they continue, `[rows * width, ...]`.
    """
    rows, width = tf.unstack(tf.shape(now.open_scores))
    is_end = best.tokens == EOB_ID
    ends = is_end & (tf.range(tf.shape(best.tokens)[1])[None, :] < width)
    pool = tf.concat([now.ended_scores, tf.where(ends, best.scores, _IMPOSSIBLE)], axis=1)
    ended_scores, chosen = tf.math.top_k(tf.maximum(pool, _IMPOSSIBLE), width)
    ended_ids = tf.gather(tf.concat([now.ended_ids, best.sequences], axis=1), chosen, batch_dims=1)

    open_scores, chosen = tf.math.top_k(tf.where(is_end, _IMPOSSIBLE, best.scores), width)
    parents = tf.gather(best.parents, chosen, batch_dims=1) + tf.range(rows)[:, None] * width
    return _Loop(
        time=now.time + 1,
        ids=tf.reshape(tf.gather(best.tokens, chosen, batch_dims=1), [-1]),
        cache=tf.nest.map_structure(lambda x: tf.gather(x, tf.reshape(parents, [-1])), cache),
        open_ids=tf.gather(best.sequences, chosen, batch_dims=1),
        open_scores=tf.maximum(open_scores, _IMPOSSIBLE),
        ended_ids=ended_ids,
        ended_scores=ended_scores,
        positions=now.positions + rows * width,
    )


def _result(last: _Loop) -> Infills:
    """Returns the ended hypotheses of each row, or the open ones if no hypothesis has ended."""
    any_ended = last.ended_scores[:, :1] > _IMPOSSIBLE / 2
    ids = tf.where(any_ended[:, :, None], last.ended_ids, last.open_ids)
    scores = tf.where(any_ended, last.ended_scores, last.open_scores)
    lengths = tf.reduce_sum(tf.cast(tf.math.cumsum(tf.cast(ids == EOB_ID, tf.int32), axis=2) == 0, tf.int32), axis=2)
    lengths = tf.where(scores > _IMPOSSIBLE / 2, lengths, 0)
    ids = tf.where(tf.range(tf.shape(ids)[2])[None, None, :] < lengths[:, :, None], ids, PAD_ID)
    return Infills(ids, lengths, scores, last.positions)
