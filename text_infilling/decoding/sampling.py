"""Sampling: words drawn from the model's distribution, and their relaxation that gradients go through."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from text_infilling.decoding.greedy import Infills, any_rows, best_token, search_by
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID


class SoftInfills(NamedTuple):
    """Relaxed samples for one blank of every row.

    Attributes:
        probabilities: `[rows, max_length, vocab]` soft ids, float32, each position's sum is 1; 0 behind `lengths`.
        ids: `[rows, max_length]` the most probable token of each position, int32, with `<EOB>`; `<PAD>` behind it.
        lengths: `[rows]` tokens up to and with the first `<EOB>` of `ids`, or `max_length` where there is none.
    """

    probabilities: tf.Tensor
    ids: tf.Tensor
    lengths: tf.Tensor


def sample(step, state, rows, max_length, seed, temperature=1.0, forbid_special=True) -> Infills:
    """Infills drawn token by token from softmax(logits / temperature), until `<EOB>` or `max_length` tokens.

    What is drawn at (row, time) is a function of the logits and of (seed, row, time) only: neither of the other rows
    nor of which of them have ended. Rows that have ended are dropped as in `greedy_search`. The `scores` are log
    probabilities under the model's own distribution: at temperature 1, and over all tokens, the forbidden ones too.

    Args:
        step: `step(ids [rows], time, state) -> logits [rows, vocab], state`.
        state: a nest of tensors with the rows in front.
        rows: how many rows.
        max_length: tokens of an infill at most, `<EOB>` included.
        seed: `[2]` integers.
        temperature: above 0; the lower, the nearer to greedy search.
        forbid_special: no special token but `<EOB>` may come out.

    Raises:
        ValueError: the temperature is not above 0. Where it is known only when the graph runs, that is an
            `InvalidArgumentError` then.
    """
    temperature = _positive(temperature)

    def draw(logits, row_numbers, time):
        noise = tf.gather(gumbel_noise(rows, tf.shape(logits)[1], seed, time), row_numbers)
        # The largest of logits / temperature + noise is a draw from their softmax; this way no temperature overflows.
        return best_token(logits + temperature * noise, forbid_special)

    return search_by(draw, step, state, rows, max_length)


def sampling_search(seed, temperature=1.0, forbid_special=True):
    """A `search` for `fill_blanks` that samples; every blank has its own noise.

    Args:
        seed, temperature, forbid_special: as for `sample`.

    Returns:
        `search(step, state, rows, max_length, k) -> Infills`, `k` the index of the blank.
    """
    _positive(temperature)  # an error now, not when the search is used; a variable is read then

    def search(step, state, rows, max_length, k):
        return sample(step, state, rows, max_length, fold_in(seed, k), temperature, forbid_special)

    return search


def gumbel_softmax(step, state, rows, max_length, seed, temperature, forbid_special=True) -> SoftInfills:
    """Infills of soft ids softmax((logits + Gumbel noise) / temperature), each fed to the next step as it is.

    Their gradient goes through all earlier steps (Jang et al., "Categorical reparameterization with Gumbel-softmax").
    The lower the temperature, the nearer to one-hot samples. It stops when every row has ended;
    a row's result depends on no other row.

    Args:
        step: `step(inputs, time, state) -> logits [rows, vocab], state`; the inputs are ids `[rows]` int32 at time 0
            and probabilities `[rows, vocab]` float32 later.
        state: a nest of tensors with the rows in front.
        rows: how many rows.
        max_length: tokens of an infill, `<EOB>` included; at least 1.
        seed: `[2]` integers.
        temperature: above 0.
        forbid_special: special tokens but `<EOB>` have probability 0.

    Raises:
        ValueError: as for `sample`.
    """
    temperature = _positive(temperature)
    first = EOB_ID if forbid_special else 0  # `<EOB>` is the last special token

    def advance(time, inputs, state, ended, lengths, probabilities, ids):
        logits, state = step(inputs, time, state)
        logits = tf.cast(logits, tf.float32)
        noisy = logits + gumbel_noise(rows, tf.shape(logits)[1], seed, time)
        best = best_token(noisy, forbid_special)
        soft = tf.pad(tf.nn.softmax(noisy[:, first:] / temperature), [[0, 0], [first, 0]])
        probabilities = probabilities.write(time, tf.where(ended[:, None], 0.0, soft))
        ids = ids.write(time, tf.where(ended, PAD_ID, best))
        lengths += tf.cast(~ended, tf.int32)
        return time + 1, soft, state, ended | (best == EOB_ID), lengths, probabilities, ids

    # Time 0 outside the loop, whose inputs are soft: ids are embedded by a look-up, not by a matrix product.
    start = advance(
        tf.constant(0),
        tf.fill([rows], BOB_ID),
        state,
        tf.zeros([rows], tf.bool),
        tf.zeros([rows], tf.int32),
        tf.TensorArray(tf.float32, max_length),
        tf.TensorArray(tf.int32, max_length),
    )
    arrays = (tf.TensorShape(None), tf.TensorShape(None))
    *_, lengths, probabilities, ids = tf.while_loop(
        lambda time, inputs, state, ended, *_: ~tf.reduce_all(ended),
        advance,
        start,
        shape_invariants=(*tf.nest.map_structure(any_rows, start[:-2]), *arrays),
        maximum_iterations=max_length - 1,
    )
    # What was never written stacks as 0, which is `<PAD>`.
    return SoftInfills(tf.transpose(probabilities.stack(), [1, 0, 2]), tf.transpose(ids.stack()), lengths)


def gumbel_noise(rows, vocab, seed, time):
    """Standard Gumbel noise `[rows, vocab]` of one position, the same for a row however many rows there are."""
    # Philox counts along the rows, so more of them leave the first as they are.
    uniforms = tf.random.stateless_uniform(
        [rows, vocab], fold_in(seed, time), minval=np.finfo(np.float32).tiny, alg="philox"
    )
    return -tf.math.log(-tf.math.log(uniforms))


def fold_in(seed, number):
    """The seed `[2]` of something numbered that draws from a seed."""
    return tf.random.fold_in(tf.cast(seed, tf.int64), tf.cast(number, tf.int64))


def _positive(temperature):
    """The temperature as a float32 scalar, once it is above 0."""
    tensor = tf.cast(temperature, tf.float32)
    known = tf.get_static_value(tensor)
    if known is None:
        with tf.control_dependencies([tf.debugging.assert_positive(tensor, message="temperature")]):
            return tf.identity(tensor)
    if not known > 0:
        raise ValueError(f"temperature must be above 0. Received: temperature={temperature}")
    return tensor
