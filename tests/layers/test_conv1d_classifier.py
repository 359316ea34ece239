"""The discriminator: shared layer check, and the effect of padding, lengths, soft ids and dropout on its logits."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_check import check_layer, randomize, randoms

from text_infilling.layers.conv1d_classifier import Conv1DClassifier

DIM, LENGTH = 6, 9
HPARAMS = {"filters": 4}
MARGIN = (5 + 1) // 2  # with at least this much padding, more never matters; the largest kernel size is 5
LENGTHS = tf.constant([LENGTH, 4, 1, 0])


def classifier(hparams=None, seed=1):
    layer = Conv1DClassifier({**HPARAMS, **(hparams or {})})
    layer.build((None, None, DIM))
    return randomize(layer, seed)


def padded(rows, width, padding=0.0):
    """Returns rows `[length, dim]` of various lengths as one tensor `[rows, width, dim]`, and their lengths."""
    inputs = np.full((len(rows), width, DIM), padding, "float32")
    for i, row in enumerate(rows):
        inputs[i, : len(row)] = row
    return tf.constant(inputs), tf.constant([len(row) for row in rows])


def by_hand(layer, row, width):
    """Returns the logit of one row, computed window by window around each of `width` zero-padded positions."""
    features = []
    for convolution in layer.convolutions:
        kernel, bias = convolution.kernel.numpy(), convolution.bias.numpy()
        before = (len(kernel) - 1) // 2
        zeros = np.zeros((width + 2 * len(kernel), DIM))
        zeros[before : before + len(row)] = row
        windows = [np.einsum("ti,tio->o", zeros[t : t + len(kernel)], kernel) + bias for t in range(width)]
        features.append(np.maximum(np.max(windows, axis=0), 0))
    return float(np.concatenate(features) @ layer.logit.kernel.numpy()[:, 0])


def test_check_of_classifier(tmp_path):
    check_layer(
        lambda **options: Conv1DClassifier(HPARAMS, **options),
        lambda layer, inputs, lengths: layer(inputs, lengths),
        [randoms(4, LENGTH, DIM), LENGTHS],
        (4,),
        tmp_path,
        weights=3 * 2 + 1,
    )


@pytest.mark.parametrize("kernel_sizes", [[3, 4, 5], [1], [2, 7, 20]])
def test_logits_equal_hand_computed_values(kernel_sizes):
    layer = classifier({"kernel_sizes": kernel_sizes})
    inputs = randoms(4, LENGTH, DIM)
    expected = [by_hand(layer, inputs[i, :length].numpy(), LENGTH) for i, length in enumerate(LENGTHS.numpy())]
    np.testing.assert_allclose(layer(inputs, LENGTHS), expected, atol=1e-4)


@pytest.mark.parametrize("garbage", [1e3, np.inf, np.nan])
def test_content_of_the_padding_never_matters(garbage):
    layer, inputs = classifier(), randoms(4, LENGTH, DIM)
    is_token = tf.sequence_mask(LENGTHS, LENGTH)[..., None]
    changed = tf.where(is_token, inputs, garbage)
    np.testing.assert_array_equal(layer(changed, LENGTHS), layer(inputs, LENGTHS))

    with tf.GradientTape() as tape:
        tape.watch(changed)
        loss = tf.reduce_sum(layer(changed, LENGTHS))
    gradient = tape.gradient(loss, changed)
    np.testing.assert_array_equal(gradient[~is_token[..., 0]], 0)
    assert np.any(gradient[is_token[..., 0]] != 0) and np.all(np.isfinite(gradient))


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(0, 8), min_size=1, max_size=5), more=st.integers(0, 6))
def test_other_rows_and_more_padding_never_matter(seed, lengths, more):
    """A single row with sufficient padding has the same logit as in any wider batch."""
    layer = classifier(seed=seed)
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(length, DIM)) for length in lengths]
    together = layer(*padded(rows, max(lengths) + MARGIN + more, padding=7.0))
    alone = [layer(*padded([row], len(row) + MARGIN))[0] for row in rows]
    np.testing.assert_allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 4, 5, 6])
def test_documented_padding_is_the_minimum_for_a_constant_logit(kernel_size):
    """With less padding the logit depends on the amount, as in the original code."""
    layer = classifier({"kernel_sizes": [kernel_size], "filters": 200})
    rows = [randoms(2, DIM)]
    least = (kernel_size + 1) // 2
    (expected,) = layer(*padded(rows, 40))
    for padding in range(8):
        (logit,) = layer(*padded(rows, 2 + padding))
        assert np.isclose(logit, expected, atol=1e-4) == (padding >= least)


def test_logit_of_a_row_of_length_0_depends_only_on_the_biases():
    layer = classifier()
    biases = np.concatenate([convolution.bias.numpy() for convolution in layer.convolutions])
    expected = np.maximum(biases, 0) @ layer.logit.kernel.numpy()
    np.testing.assert_allclose(layer(randoms(2, LENGTH, DIM), tf.constant([0, 0])), [expected[0]] * 2, atol=1e-5)
    for convolution in layer.convolutions:
        convolution.bias.assign(tf.zeros(4))
    np.testing.assert_array_equal(layer(randoms(2, LENGTH, DIM), tf.constant([0, 0])), [0, 0])


def test_gradients_reach_soft_ids():
    """All words of a soft id and all embeddings get a gradient; a one-hot soft id equals a hard id."""
    layer, table = classifier(), randoms(11, DIM, seed=2)
    soft_ids, lengths = tf.nn.softmax(randoms(3, LENGTH, 11)), tf.constant([LENGTH, 4, 2])
    with tf.GradientTape() as tape:
        tape.watch([soft_ids, table])
        loss = tf.reduce_sum(layer(soft_ids @ table, lengths))
    of_ids, of_table = tape.gradient(loss, [soft_ids, table])
    reached = np.any(of_ids.numpy() != 0, axis=-1)
    assert not np.any(reached & ~tf.sequence_mask(lengths, LENGTH).numpy())
    assert np.all(reached.any(axis=1)) and np.all(of_ids.numpy()[reached] != 0) and np.all(of_table != 0)

    ids = tf.argmax(soft_ids, axis=-1)
    hard = layer(tf.gather(table, ids), lengths)
    np.testing.assert_allclose(layer(tf.one_hot(ids, 11) @ table, lengths), hard, atol=1e-5)


def test_dropout_acts_in_training_only():
    inputs = randoms(4, LENGTH, DIM)
    layer = classifier()
    still = layer(inputs, LENGTHS)
    np.testing.assert_array_equal(layer(inputs, LENGTHS), still)
    np.testing.assert_array_equal(layer(inputs, LENGTHS, training=False), still)
    assert not np.allclose(layer(inputs, LENGTHS, training=True), still)
    np.testing.assert_allclose(classifier({"dropout": 0.0})(inputs, LENGTHS, training=True), still, atol=1e-6)


def test_one_graph_works_for_any_number_of_rows_and_any_length():
    layer, traces = classifier(), []

    @tf.function(input_signature=[tf.TensorSpec([None, None, DIM]), tf.TensorSpec([None], tf.int64)])
    def logits(inputs, lengths):
        traces.append(inputs)
        return layer(inputs, lengths)

    for rows, length in ((1, 1), (4, LENGTH), (3, 2)):
        inputs, lengths = randoms(rows, length, DIM), tf.minimum(tf.range(rows), length)
        outputs = logits(inputs, tf.cast(lengths, tf.int64))
        assert outputs.shape == layer.compute_output_shape(inputs.shape, lengths.shape) == (rows,)
        np.testing.assert_allclose(outputs, layer(inputs, lengths), atol=1e-5)
    assert len(traces) == 1


def test_default_sizes_are_those_of_the_paper():
    layer = Conv1DClassifier()
    layer(randoms(2, LENGTH, 400), tf.constant([3, 4]))
    shapes = [tuple(weight.shape) for weight in layer.weights]
    assert shapes == [(3, 400, 128), (128,), (4, 400, 128), (128,), (5, 400, 128), (128,), (384, 1)]
    assert layer.dropout.rate == 0.5


def test_every_hyperparameter_is_read():
    """Changing any hyperparameter changes the weight shapes or the training logits."""
    changes = {"kernel_sizes": [3, 4], "filters": 5, "dropout": 0.1}
    assert list(changes) == list(Conv1DClassifier.default_hparams())

    def fingerprint(hparams):
        keras.utils.set_random_seed(3)
        layer = classifier(hparams)
        return [weight.shape for weight in layer.weights], layer(randoms(4, LENGTH, DIM), LENGTHS, training=True)

    shapes, logits = fingerprint({})
    np.testing.assert_array_equal(fingerprint({})[1], logits)
    for key, value in changes.items():
        other_shapes, other_logits = fingerprint({key: value})
        assert other_shapes != shapes or np.any(other_logits != logits), key


@pytest.mark.parametrize(
    ("hparams", "message"),
    [
        (
            {"kernel_sizes": []},
            r"classifier.kernel_sizes must be 1 to 100 numbers, each at least 1.*sizes=\[\]",
        ),
        ({"kernel_sizes": [3, 0]}, r"classifier.kernel_sizes must be 1 to 100 numbers, .*kernel_sizes=\[3, 0\]"),
        ({"filters": 0}, "classifier.filters must be at least 1 .*filters=0"),
        ({"dropout": 1.0}, "classifier.dropout must be at least 0 and less than 1. Received: classifier.dropout=1.0"),
        ({"filter": 3}, "Unknown hyperparameter 'classifier.filter'; did you mean 'classifier.filters'"),
    ],
)
def test_bad_hyperparameters_are_errors(hparams, message):
    with pytest.raises(ValueError, match=message):
        Conv1DClassifier(hparams)


@pytest.mark.parametrize("shape", [(None, DIM), (None, None, None)])
def test_inputs_without_an_embedding_axis_are_errors(shape):
    with pytest.raises(ValueError, match="inputs must be embedded tokens .* Received: input_shape="):
        Conv1DClassifier().build(shape)
