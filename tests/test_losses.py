"""Smoothed cross entropy, compared with the authors' numbers and with dense targets."""

import numpy as np
import pytest
import tensorflow as tf
from golden import golden
from hypothesis import given, settings
from hypothesis import strategies as st

from text_infilling import losses
from text_infilling.vocabulary import PAD_ID


def smoothed_cross_entropy(logits, labels, smoothing):
    """Returns the losses of given logits: with the identity as kernel, they are the states."""
    kernel = tf.eye(logits.shape[1], dtype=logits.dtype)
    return losses.smoothed_cross_entropy(logits, kernel, None, labels, smoothing)


def random_positions(seed, positions=9, vocab=13):
    """Returns logits and labels; some labels are `<PAD>`."""
    random = np.random.default_rng(seed)
    labels = np.where(random.random(positions) < 0.3, PAD_ID, random.integers(1, vocab, positions))
    return tf.constant(random.normal(size=(positions, vocab), scale=3), tf.float32), tf.constant(labels, tf.int32)


def dense_targets(labels, vocab, smoothing):
    """Returns `[positions, vocab]`: 1 - smoothing on the label, the rest spread over the other words, 0 on `<PAD>`."""
    targets = np.full((len(labels), vocab), smoothing / (vocab - 2))
    targets[np.arange(len(labels)), labels] = 1 - smoothing
    targets[:, PAD_ID] = 0
    return targets


def test_loss_and_gradient_equal_the_original():
    data = golden("smoothing_ce")
    logits = tf.constant(data["logits"].reshape(-1, 50))
    smoothing = 1 - float(data["confidence"])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = smoothed_cross_entropy(logits, data["labels"].reshape(-1), smoothing)
        mean = tf.reduce_mean(loss)
    np.testing.assert_allclose(loss, data["loss"].reshape(-1), atol=1e-5)
    np.testing.assert_allclose(tape.gradient(mean, logits), data["grad_of_mean"].reshape(-1, 50), atol=1e-6)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), smoothing=st.sampled_from([0.0, 0.1, 0.4]))
def test_loss_and_gradient_equal_dense_targets(seed, smoothing):
    """For `<PAD>` labels the targets sum to about `smoothing`, and the gradient is still softmax - targets."""
    logits, labels = random_positions(seed)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = smoothed_cross_entropy(logits, labels, smoothing)
    targets = dense_targets(labels.numpy(), 13, smoothing)
    np.testing.assert_allclose(loss, -np.sum(targets * tf.nn.log_softmax(logits), axis=1), atol=1e-4)
    np.testing.assert_allclose(tape.gradient(loss, logits), tf.nn.softmax(logits) - targets, atol=1e-5)


def test_the_second_result_is_the_negative_log_likelihood():
    logits, labels = random_positions(1)
    _, nll = smoothed_cross_entropy(logits, labels, 0.1)
    np.testing.assert_allclose(nll, -tf.gather(tf.nn.log_softmax(logits), labels, batch_dims=1), atol=1e-5)


def test_without_smoothing_the_loss_of_words_is_their_negative_log_likelihood():
    logits, labels = random_positions(2)
    loss, nll = smoothed_cross_entropy(logits, labels, 0.0)
    is_word = labels.numpy() != PAD_ID
    assert 0 < is_word.sum() < len(is_word)
    np.testing.assert_allclose(loss.numpy()[is_word], nll.numpy()[is_word], atol=1e-5)
    np.testing.assert_allclose(loss.numpy()[~is_word], 0, atol=1e-5)


@pytest.mark.parametrize("with_bias", [False, True])
def test_gradients_of_both_losses_equal_those_of_plain_operations(with_bias):
    _, labels = random_positions(3)
    random = np.random.default_rng(3)
    shapes = [(9, 5), (13, 5), *([(13,)] if with_bias else [])]
    inputs = [tf.constant(random.normal(size=shape), tf.float32) for shape in shapes]
    weights = [tf.constant(random.normal(size=9), tf.float32) for _ in range(2)]

    def plain(states, kernel, bias, labels, smoothing):
        logits = states @ tf.transpose(kernel) + (0.0 if bias is None else bias)
        normalizer = tf.reduce_logsumexp(logits, axis=1)
        targets = dense_targets(labels.numpy(), 13, smoothing).astype("float32")
        missing = tf.stop_gradient((1 - tf.reduce_sum(targets, axis=1)) * normalizer)
        loss = normalizer - missing - tf.reduce_sum(targets * logits, axis=1)
        return loss, normalizer - tf.gather(logits, labels, batch_dims=1)

    results = []
    for function in (losses.smoothed_cross_entropy, plain):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            found = function(inputs[0], inputs[1], inputs[2] if with_bias else None, labels, 0.1)
            total = sum(tf.reduce_sum(weight * loss) for weight, loss in zip(weights, found, strict=True))
        results.append((*found, *tape.gradient(total, inputs)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_the_negative_log_likelihood_of_a_very_improbable_label_is_finite():
    _, nll = smoothed_cross_entropy(tf.constant([[0.0, 500.0, 0.0]]), tf.constant([2]), 0.1)
    np.testing.assert_allclose(nll, [500.0])


def test_half_precision_logits_are_cast_to_float32():
    logits, labels = random_positions(4)
    half = tf.cast(logits, tf.bfloat16)
    loss, nll = smoothed_cross_entropy(half, labels, 0.1)
    assert loss.dtype == nll.dtype == tf.float32
    expected, _ = smoothed_cross_entropy(tf.cast(half, tf.float32), labels, 0.1)
    np.testing.assert_array_equal(loss, expected)


def test_eager_equals_graph_with_64_bit_labels():
    logits, labels = random_positions(5)
    graph = tf.function(lambda *x: smoothed_cross_entropy(*x, 0.1))
    for one, other in zip(smoothed_cross_entropy(logits, labels, 0.1), graph(logits, tf.cast(labels, tf.int64))):
        np.testing.assert_allclose(one, other, atol=1e-5)
