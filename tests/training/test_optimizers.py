"""The optimizers, compared with those of Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling.configs.defaults import OPTIMIZER, defaults
from text_infilling.training.optimizers import new_optimizer

SHAPES = {"square": (6, 6), "wide": (4, 24), "tall": (24, 5), "embedding": (30, 8), "bias": (6,)}


def updated(optimizer, updates=4):
    """Returns the variables after some updates by the same random gradients."""
    random = np.random.default_rng(1)
    variables = [
        keras.Variable(random.normal(size=shape), dtype="float32", name=name) for name, shape in SHAPES.items()
    ]
    for _ in range(updates):
        optimizer.apply([tf.constant(random.normal(size=v.shape), tf.float32) for v in variables], variables)
    return dict(zip(SHAPES, [v.numpy() for v in variables], strict=True))


def check_equal(one, other):
    """Checks that the variables differ by less than 1e-5 of an update of 0.1: TensorFlow's Adam rounds 1 - beta_2."""
    for name in SHAPES:
        np.testing.assert_allclose(one[name], other[name], err_msg=name, rtol=0, atol=4e-6)


def test_adam_equals_that_of_keras():
    ours = updated(new_optimizer(0.1, defaults(OPTIMIZER)))
    check_equal(ours, updated(keras.optimizers.Adam(0.1, beta_2=0.997, epsilon=1e-9)))


@pytest.mark.parametrize("ns_steps", [1, 2, 5])
def test_muon_equals_that_of_keras(ns_steps):
    ours = updated(
        new_optimizer(0.1, defaults(OPTIMIZER) | {"name": "muon", "ns_steps": ns_steps, "weight_decay": 0.1})
    )
    theirs = keras.optimizers.Muon(
        0.1, adam_beta_2=0.997, epsilon=1e-9, ns_steps=ns_steps, weight_decay=0.1, adam_weight_decay=None
    )
    check_equal(ours, updated(theirs))


def test_muon_makes_a_matrix_nearly_orthogonal_even_if_it_is_singular():
    random = np.random.default_rng(2)
    muon = new_optimizer(0.1, defaults(OPTIMIZER) | {"name": "muon"})
    x = tf.constant(random.normal(size=(20, 3)) @ random.normal(size=(3, 20)), tf.float32)  # rank 3
    values = np.linalg.svd(muon.zeropower_via_newtonschulz5(x, 5), compute_uv=False)
    assert np.all(values[:3] > 0.6) and np.all(values[:3] < 1.3) and np.all(values[3:] < 1e-3)


def test_a_sparse_gradient_updates_as_its_dense_form():
    results = []
    for dense in (False, True):
        variable = keras.Variable(np.ones((5, 2)), dtype="float32", name="embedding")
        gradient = tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1, 1]), tf.constant([5, 2]))
        optimizer = new_optimizer(0.1, defaults(OPTIMIZER))
        optimizer.apply([tf.convert_to_tensor(gradient) if dense else gradient], [variable])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)
