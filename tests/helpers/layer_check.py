"""The check that every layer must pass, and its helpers."""

import json

import keras
import numpy as np
import tensorflow as tf


def randoms(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def randomize(layer, seed=1):
    """Sets all weights to random values, so that none keeps its initial value."""
    random = np.random.default_rng(seed)
    for variable in layer.weights:
        variable.assign(random.normal(size=variable.shape, scale=0.4))
    return layer


class Holder(keras.Model):
    """A model that wraps a layer, because Keras saves only the weights of models."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.built = True


def check_layer(make, call, shape, tmp_path, weights):
    """Checks shapes, dtypes, configuration, saving, gradients and mixed precision of a layer.

    Args:
        make: builds the layer; accepts `dtype`.
        call: returns the layer's output for fixed inputs.
        shape: shape of that output.
        tmp_path: an empty folder.
        weights: expected number of weights.
    """
    layer = randomize(made(make))
    outputs = call(layer)
    assert outputs.shape == shape and outputs.dtype == tf.float32
    assert len(layer.trainable_weights) == len(layer.weights) == weights
    np.testing.assert_allclose(tf.function(lambda: call(layer), autograph=False)(), outputs, atol=1e-5)

    # The configuration survives JSON and restores the same layer.
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    copy = made(lambda **_: type(layer).from_config(config))
    assert copy.get_config() == config
    assert [v.shape for v in copy.weights] == [v.shape for v in layer.weights]

    if weights:
        randomize(copy, seed=2)
        for one, other in zip(copy.weights, layer.weights):
            assert not np.any(one.numpy() == other.numpy())
        Holder(layer).save_weights(tmp_path / "layer.weights.h5")
        Holder(copy).load_weights(tmp_path / "layer.weights.h5")
        for one, other in zip(copy.weights, layer.weights):
            np.testing.assert_array_equal(one, other)

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(layer) * randoms(*shape, seed=3))
        gradients = tape.gradient(loss, [v.value for v in layer.trainable_weights])
        for variable, gradient in zip(layer.trainable_weights, gradients):
            assert gradient is not None and np.any(tf.convert_to_tensor(gradient) != 0), variable.path
    np.testing.assert_array_equal(call(copy), outputs)

    mixed = made(make, dtype="mixed_bfloat16")
    mixed.set_weights(layer.get_weights())
    half = call(mixed)
    assert half.dtype == tf.bfloat16
    assert {v.dtype for v in mixed.weights} <= {"float32"}
    np.testing.assert_allclose(tf.cast(half, tf.float32), outputs, atol=0.05 * np.max(np.abs(outputs)))


def made(make, **options):
    layer = make(**options)
    if not layer.built:
        layer.build()
    return layer
