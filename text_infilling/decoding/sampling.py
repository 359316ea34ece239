"""Gumbel noise, and the Gumbel-softmax relaxation of sampling, which is differentiable."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from text_infilling.decoding.loop import any_rows, best_token
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID


class SoftInfills(NamedTuple):
    """Relaxed samples for one blank of every row.

    Attributes:
        probabilities: `[rows, max_length, vocab]` float32 soft ids; each position sums to 1, or is 0 after `lengths`.
            If sampled with `hard`, they are one-hot.
        ids: `[rows, max_length]` int32, the most probable token of each position, `<EOB>` included; then `<PAD>`.
        lengths: `[rows]` tokens up to and including the first `<EOB>` of `ids`; `max_length` if `<EOB>` is missing.
    """

    probabilities: tf.Tensor
    ids: tf.Tensor
    lengths: tf.Tensor


class _Loop(NamedTuple):
    """The loop variables.

    Attributes:
        time: scalar, number of tokens drawn.
        inputs: of `step`: `<BOB>` `[rows]` before the first token, then the last soft ids `[rows, vocab]`.
        state: of `step`, `[rows, ...]`.
        done: `[rows]` whether each row is finished.
        lengths: `[rows]` tokens, `<EOB>` included.
        probabilities: array over time of soft ids `[rows, vocab]`.
        ids: array over time of tokens `[rows]`.
    """

    time: tf.Tensor
    inputs: tf.Tensor
    state: Any
    done: tf.Tensor
    lengths: tf.Tensor
    probabilities: tf.TensorArray
    ids: tf.TensorArray


def gumbel_softmax(
    step: Callable,
    state: Any,
    rows: int | tf.Tensor,
    max_length: int | tf.Tensor,
    seed: list[int] | tf.Tensor,
    temperature: float | tf.Tensor,
    forbid_special: bool = True,
    hard: bool = False,
) -> SoftInfills:
    """Draws infills of soft ids softmax((logits + Gumbel noise) / temperature), each fed to the next step unchanged.

    Gradients flow through all earlier steps. A lower temperature gives samples closer to one-hot. Decoding stops when
    every row is finished; the result of a row does not depend on the other rows.
    With `hard`, soft ids are one-hot in the forward pass, and their gradient is that of the softmax (straight-through):
    then `ids` is a sample of the model's distribution at every temperature.
    Source: Jang et al. 2017, "Categorical reparameterization with Gumbel-softmax".

    Args:
        step: `step(inputs, time, state) -> logits [rows, vocab], state`; the inputs are ids `[rows]` int32 at time 0
            and probabilities `[rows, vocab]` float32 later.
        state: a nest of tensors `[rows, ...]`.
        rows: number of rows.
        max_length: maximum number of tokens per infill, `<EOB>` included; at least 1.
        seed: `[2]` integers.
        temperature: above 0.
        forbid_special: whether all special tokens except `<EOB>` get probability 0.
        hard: whether soft ids are one-hot in the forward pass.

    Raises:
        ValueError: the temperature is not above 0.
        tf.errors.InvalidArgumentError: the same, if the temperature is known only when the graph runs.
    """
    temperature = _positive(temperature)

    def advance(now):
        logits, state = step(now.inputs, now.time, now.state)
        logits = tf.cast(logits, tf.float32)
        noisy = logits + gumbel_noise(rows, tf.shape(logits)[1], seed, now.time)
        ids, soft = _relaxed(noisy, temperature, forbid_special, hard)
        return (
            _Loop(
                time=now.time + 1,
                inputs=soft,
                state=state,
                done=now.done | (ids == EOB_ID),
                lengths=now.lengths + tf.cast(~now.done, tf.int32),
                probabilities=now.probabilities.write(now.time, tf.where(now.done[:, None], 0.0, soft)),
                ids=now.ids.write(now.time, tf.where(now.done, PAD_ID, ids)),
            ),
        )

    start = _Loop(
        time=tf.constant(0),
        inputs=tf.fill([rows], BOB_ID),
        state=state,
        done=tf.zeros([rows], tf.bool),
        lengths=tf.zeros([rows], tf.int32),
        probabilities=tf.TensorArray(tf.float32, max_length),
        ids=tf.TensorArray(tf.int32, max_length),
    )
    # Time 0 is outside the loop: its inputs are ids, embedded by lookup; later inputs are soft, embedded by a product.
    (first,) = advance(start)
    shapes = tf.nest.map_structure(any_rows, first._replace(probabilities=(), ids=()))
    shapes = shapes._replace(probabilities=tf.TensorShape(None), ids=tf.TensorShape(None))
    (last,) = tf.while_loop(
        lambda now: ~tf.reduce_all(now.done),
        advance,
        (first,),
        shape_invariants=(shapes,),
        maximum_iterations=max_length - 1,
    )
    # Positions that were never written are stacked as 0, which is `<PAD>`.
    return SoftInfills(
        tf.transpose(last.probabilities.stack(), [1, 0, 2]), tf.transpose(last.ids.stack()), last.lengths
    )


def _relaxed(noisy: tf.Tensor, temperature: tf.Tensor, forbid_special: bool, hard: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the best tokens `[rows]` and soft ids `[rows, vocab]`, given logits with noise `[rows, vocab]`."""
    ids = best_token(noisy, forbid_special)
    first = EOB_ID if forbid_special else 0  # `<EOB>` is the last special token
    soft = tf.pad(tf.nn.softmax(noisy[:, first:] / temperature), [[0, 0], [first, 0]])
    if hard:
        # The bracket is exactly 0 in the forward pass.
        soft = tf.one_hot(ids, tf.shape(noisy)[1]) + (soft - tf.stop_gradient(soft))
    return ids, soft


def gumbel_noise(rows: int | tf.Tensor, vocab: int | tf.Tensor, seed: tf.Tensor, time: int | tf.Tensor) -> tf.Tensor:
    """Returns standard Gumbel noise `[rows, vocab]` of one position; that of a row does not depend on `rows`."""
    # Philox fills the array row by row, so additional rows do not change the first ones.
    uniforms = tf.random.stateless_uniform(
        [rows, vocab], fold_in(seed, time), minval=np.finfo(np.float32).tiny, alg="philox"
    )
    return -tf.math.log(-tf.math.log(uniforms))


def fold_in(seed: tf.Tensor, number: int | tf.Tensor) -> tf.Tensor:
    """Returns a seed `[2]` derived from `seed` and `number`, such as that of one time step."""
    return tf.random.fold_in(tf.cast(seed, tf.int64), tf.cast(number, tf.int64))


def _positive(temperature):
    """Returns the temperature as a float32 scalar; raises an error unless it is above 0."""
    tensor = tf.cast(temperature, tf.float32)
    known = tf.get_static_value(tensor)
    if known is None:
        with tf.control_dependencies([tf.debugging.assert_positive(tensor, message="temperature")]):
            return tf.identity(tensor)
    if not known > 0:
        raise ValueError(f"temperature must be above 0. Received: temperature={temperature}")
    return tensor
