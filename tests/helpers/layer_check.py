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


class Around(keras.Model):
    """A model that is one call of a layer."""

    def __init__(self, layer, call):
        super().__init__()
        self.layer, self._call = layer, call
        self.built = True

    def call(self, inputs):
        return self._call(self.layer, *inputs)


def check_layer(make, call, inputs, shape, tmp_path, weights):
    """Checks building, shapes, dtypes, configuration, saving, gradients, training and low precision of a layer.

    Args:
        make: builds the layer; accepts `dtype`.
        call: `call(layer, *inputs)` returns the output of the layer, for tensors and for symbolic inputs.
        inputs: tensors, the first axis of each is the batch.
        shape: shape of that output.
        tmp_path: an empty folder.
        weights: expected number of weights.
    """
    layer = make()
    assert not layer.built
    call(layer, *inputs)  # builds the layer
    assert layer.built
    randomize(layer)
    outputs = call(layer, *inputs)
    assert outputs.shape == shape and outputs.dtype == tf.float32
    assert len(layer.trainable_weights) == len(layer.weights) == weights
    graph = tf.function(lambda *x: call(layer, *x), autograph=False)
    np.testing.assert_allclose(graph(*inputs), outputs, atol=1e-5)

    symbolic = call(make(), *(keras.Input(x.shape[1:], dtype=x.dtype.name) for x in inputs))
    assert symbolic.shape == (None, *shape[1:]) and symbolic.dtype == "float32"

    copy = check_config(layer)
    call(copy, *inputs)
    assert [v.shape for v in copy.weights] == [v.shape for v in layer.weights]
    if weights:
        randomize(copy, seed=2)
        for one, other in zip(copy.weights, layer.weights):
            assert not np.any(one.numpy() == other.numpy())
        Around(layer, call).save_weights(tmp_path / "layer.weights.h5")
        Around(copy, call).load_weights(tmp_path / "layer.weights.h5")
        for one, other in zip(copy.weights, layer.weights):
            np.testing.assert_array_equal(one, other)

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(layer, *inputs) * randoms(*shape, seed=3))
        gradients = tape.gradient(loss, [v.value for v in layer.trainable_weights])
        for variable, gradient in zip(layer.trainable_weights, gradients):
            assert gradient is not None and np.any(tf.convert_to_tensor(gradient) != 0), variable.path
    np.testing.assert_array_equal(call(copy, *inputs), outputs)

    # Mixed: TensorFlow cannot initialize the recurrent weights of an LSTM in bfloat16.
    for dtype in ("mixed_bfloat16", "mixed_float16"):
        low = make(dtype=dtype)
        call(low, *inputs)
        low.set_weights(layer.get_weights())
        half = call(low, *inputs)
        assert half.dtype == dtype.removeprefix("mixed_")
        assert {v.dtype for v in low.weights} <= {"float32"}
        np.testing.assert_allclose(tf.cast(half, tf.float32), outputs, atol=0.05 * np.max(np.abs(outputs)))

    if weights:
        check_fit(copy, call, inputs, shape)


def check_config(layer):
    """Checks that the configuration survives JSON, is a copy, and restores the layer; returns the restored layer."""
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    changed = layer.get_config()
    for value in changed.values():
        if isinstance(value, dict):
            for inner in value.values():
                if isinstance(inner, list):
                    inner.append(0)
            value["more"] = 1
    assert layer.get_config() == config
    assert type(layer).from_config(config).get_config() == config

    stored = keras.saving.serialize_keras_object(layer)
    assert stored["registered_name"] == f"text_infilling>{type(layer).__name__}"
    restored = keras.saving.deserialize_keras_object(json.loads(json.dumps(stored)))
    assert type(restored) is type(layer) and restored.get_config() == config
    return restored


def check_fit(layer, call, inputs, shape):
    """Checks that one step of `fit` has a finite loss and changes every weight."""
    before = layer.get_weights()
    model = Around(layer, call)
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    history = model.fit(list(inputs), randoms(*shape, seed=8), batch_size=shape[0], epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    for variable, old in zip(layer.weights, before, strict=True):
        assert np.any(variable.numpy() != old), variable.path
