"""Dropout."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling.layers.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.003])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_rate_is_that_asked_for_and_kept_elements_are_scaled(rate, dtype):
    inputs = tf.ones([1001, 333], dtype)
    outputs = tf.cast(Dropout(rate, seed=1, dtype=dtype)(inputs, training=True), tf.float32).numpy()
    assert np.mean(outputs == 0) == pytest.approx(rate, abs=4 * (rate / outputs.size) ** 0.5)
    np.testing.assert_allclose(outputs[outputs > 0], 1 / (1 - rate), rtol=1e-4 if dtype == "float32" else 1e-2)


def test_elements_are_dropped_independently_of_their_neighbours():
    """Two elements share one random word."""
    dropped = Dropout(0.5, seed=2)(tf.ones([200_000]), training=True).numpy() == 0
    for distance in (1, 2, 3, 100):
        both = np.mean(dropped[distance:] & dropped[:-distance])
        assert both == pytest.approx(0.25, abs=0.005)


def test_every_call_drops_other_elements_and_the_same_seed_the_same():
    inputs = tf.ones([40, 50])
    one, other = (Dropout(0.5, seed=3) for _ in range(2))
    first = one(inputs, training=True)
    np.testing.assert_array_equal(first, other(inputs, training=True))
    assert np.any(first != one(inputs, training=True))


def test_the_gradient_has_the_same_mask():
    inputs = tf.Variable(tf.ones([40, 50]))
    with tf.GradientTape() as tape:
        outputs = Dropout(0.3)(inputs, training=True)
    np.testing.assert_array_equal(tape.gradient(outputs, inputs), outputs)


def test_outside_training_and_at_rate_0_nothing_changes():
    inputs = tf.random.normal([4, 5])
    assert Dropout(0.9)(inputs) is inputs
    assert Dropout(0.0)(inputs, training=True) is inputs
    copy = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(Dropout(0.25)))
    assert isinstance(copy, Dropout) and copy.rate == 0.25
