"""The layers of the self-attention model, each by one shared check and by what it alone must do."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling.layers.attention import MultiHeadAttention
from text_infilling.layers.feed_forward import FeedForward
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding
from text_infilling.layers.template_transformer_decoder import TemplateTransformerDecoder

DIM, LENGTH, TEMPLATE_LENGTH = 8, 5, 7


def randoms(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).normal(size=shape), tf.float32)


def randomize(layer, seed=1):
    """Gives every weight a value of its own, so that none is as it was made."""
    random = np.random.default_rng(seed)
    for variable in layer.weights:
        variable.assign(random.normal(size=variable.shape, scale=0.4))
    return layer


class Holder(keras.Model):
    """A model that is a layer: keras saves the weights of models only."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.built = True


def check_layer(make, call, shape, tmp_path, weights):
    """What holds for every layer.

    Args:
        make: makes the layer, given `dtype`.
        call: the layer's output for some inputs of its own.
        shape: of that output.
        tmp_path: an empty folder.
        weights: how many weights it has.
    """
    layer = randomize(made(make))
    outputs = call(layer)
    assert outputs.shape == shape and outputs.dtype == tf.float32
    assert len(layer.trainable_weights) == len(layer.weights) == weights
    np.testing.assert_allclose(tf.function(lambda: call(layer), autograph=False)(), outputs, atol=1e-5)

    # From its configuration, which JSON can hold, comes the same layer.
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
            assert gradient is not None and np.any(gradient != 0), variable.path
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


# Inputs of each layer.


def encode(layer):
    return layer(tf.constant([[0, 1, 1], [2, 2, 5]]), tf.constant([[0, 0, 1], [7, 8, 0]]))


def feed(layer):
    return layer(randoms(2, LENGTH, DIM))


def attend_to_sequence(layer, inputs=None):
    return layer(randoms(2, LENGTH, DIM) if inputs is None else inputs)[0]


def attended(lengths=(TEMPLATE_LENGTH, 4)):
    return tf.sequence_mask(lengths, TEMPLATE_LENGTH)


def attend_to_template(layer, template=None):
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5) if template is None else template
    memory = layer.memory(tf.cast(template, layer.compute_dtype))
    return layer(randoms(2, LENGTH, DIM), memory=memory, attended=attended())


def decode(layer, inputs=None, template=None):
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5) if template is None else template
    memories = layer.memories(tf.cast(template, layer.compute_dtype))
    return layer(randoms(2, LENGTH, DIM) if inputs is None else inputs, memories, attended())[0]


def decoder(**options):
    return TemplateTransformerDecoder({"dim": DIM, "num_blocks": 2, "num_heads": 2, "ffn_dim": 12}, **options)


def test_check_of_position_encoding(tmp_path):
    check_layer(lambda **options: SegmentPositionEncoding(6, **options), encode, (2, 3, 6), tmp_path, weights=0)


def test_check_of_feed_forward(tmp_path):
    check_layer(lambda **options: FeedForward(DIM, 12, 0.1, **options), feed, (2, LENGTH, DIM), tmp_path, weights=4)


@pytest.mark.parametrize(
    ("over", "call", "weights"), [("sequence", attend_to_sequence, 2), ("template", attend_to_template, 3)]
)
def test_check_of_attention(tmp_path, over, call, weights):
    check_layer(
        lambda **options: MultiHeadAttention(DIM, 2, 0.1, over, **options), call, (2, LENGTH, DIM), tmp_path, weights
    )


def test_check_of_decoder(tmp_path):
    per_block = 3 * 2 + 2 + 3 + 4  # norms, attention, attention to the template, feed-forward
    check_layer(decoder, decode, (2, LENGTH, DIM), tmp_path, weights=2 * per_block + 2)


@pytest.mark.parametrize("dim", [400, 32, 6])
def test_position_encoding_in_halves_equals_the_original(shared, dim):
    data = np.load(shared / "original" / "golden" / "sinusoid_segmental.npz")
    layer = SegmentPositionEncoding(dim, {"layout": "halves"})
    np.testing.assert_allclose(layer(data["segment_ids"], data["offsets"]), data[f"c{dim}"], atol=1e-3)


def test_interleaved_position_encoding_by_hand():
    layer = SegmentPositionEncoding(4, {"layout": "interleaved", "base": 100})
    expected = [np.sin(302), np.cos(302), np.sin(3.02), np.cos(3.02)]  # wavelengths 2 pi and 200 pi
    np.testing.assert_allclose(layer(tf.constant([3]), tf.constant([2]))[0], expected, atol=1e-4)


def test_positions_are_exact_in_half_precision():
    """Neighbours at positions in the thousands differ, though bfloat16 has 8 bits."""
    layer = SegmentPositionEncoding(8, dtype="mixed_bfloat16")
    encoding = tf.cast(layer(tf.fill([100], 9), tf.range(100)), tf.float32)
    expected = SegmentPositionEncoding(8)(tf.fill([100], 9), tf.range(100))
    np.testing.assert_allclose(encoding, expected, atol=0.005)


@pytest.mark.parametrize("over", ["sequence", "template"])
def test_attention_by_hand(over):
    """Head by head and position by position: a softmax over what may be attended."""
    layer = randomize(made(lambda: MultiHeadAttention(DIM, 2, over=over)))
    inputs = randoms(2, LENGTH, DIM).numpy()
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5).numpy()
    if over == "sequence":
        query, key, value = np.split(inputs @ layer.query_key_value.numpy(), 3, axis=-1)
    else:
        query = inputs @ layer.query.numpy()
        key, value = np.split(template @ layer.key_value.numpy(), 2, axis=-1)
    context = np.zeros_like(query)
    for row in range(2):
        for i in range(LENGTH):
            seen = slice(i + 1) if over == "sequence" else slice((TEMPLATE_LENGTH, 4)[row])
            for head in (slice(0, 4), slice(4, 8)):
                logits = key[row, seen, head] @ query[row, i, head] / np.sqrt(4)
                weights = np.exp(logits) / np.sum(np.exp(logits))
                context[row, i, head] = weights @ value[row, seen, head]
    outputs = (attend_to_sequence if over == "sequence" else attend_to_template)(layer)
    np.testing.assert_allclose(outputs, context @ layer.output_transform.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "call"), [(lambda: MultiHeadAttention(DIM, 2), attend_to_sequence), (decoder, decode)]
)
def test_later_inputs_never_change_earlier_outputs(make, call):
    layer = randomize(made(make))
    before = call(layer, randoms(2, LENGTH, DIM))
    for i in range(1, LENGTH):
        changed = tf.concat([randoms(2, LENGTH, DIM)[:, :i], randoms(2, LENGTH - i, DIM, seed=9)], axis=1)
        after = call(layer, changed)
        np.testing.assert_allclose(after[:, :i], before[:, :i], atol=1e-6)
        assert not np.any(np.isclose(after[:, i:], before[:, i:]).all(axis=-1))


@pytest.mark.parametrize(
    ("make", "call"),
    [(lambda: MultiHeadAttention(DIM, 2, over="template"), attend_to_template), (decoder, decode)],
)
def test_padding_of_the_template_never_matters(make, call):
    layer = randomize(made(make))
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5)
    garbage = tf.where(attended()[..., None], template, 1e3)
    assert np.any(garbage != template)
    np.testing.assert_array_equal(call(layer, template=garbage), call(layer, template=template))
    inside = tf.where(attended((3, 3))[..., None], template, 1.0)
    assert not np.allclose(call(layer, template=inside), call(layer, template=template))


def test_the_cache_holds_earlier_positions():
    """One position after the other, and two blocks of them, give what all at once give."""
    layer, inputs = randomize(made(decoder)), randoms(2, LENGTH, DIM)
    memories = layer.memories(randoms(2, TEMPLATE_LENGTH, DIM, seed=5))
    expected, _ = layer(inputs, memories, attended())
    for cuts in ([0, 1, 2, 3, 4, 5], [0, 3, 5]):
        cache, parts = None, []
        for start, end in zip(cuts, cuts[1:]):
            states, cache = layer(inputs[:, start:end], memories, attended(), cache=cache)
            parts.append(states)
        np.testing.assert_allclose(tf.concat(parts, axis=1), expected, atol=1e-5)
        assert [x.shape for pair in cache for x in pair] == [(2, 2, LENGTH, DIM // 2)] * 4


def test_dropout_acts_in_training_only():
    layer = randomize(made(decoder))
    inputs, memories = randoms(2, LENGTH, DIM), layer.memories(randoms(2, TEMPLATE_LENGTH, DIM, seed=5))
    still, _ = layer(inputs, memories, attended())
    again, _ = layer(inputs, memories, attended())
    np.testing.assert_array_equal(still, again)
    moving, _ = layer(inputs, memories, attended(), training=True)
    assert not np.allclose(still, moving)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadAttention(8, 3), "num_heads must divide dim. Received: dim=8, num_heads=3"),
        (lambda: MultiHeadAttention(8, 2, over="answer"), "over takes one of sequence, template. Received: .*'answer'"),
        (lambda: SegmentPositionEncoding(5), "dim must be even and at least 4. Received: dim=5"),
        (lambda: SegmentPositionEncoding(6, {"layout": "half"}), "layout takes one of interleaved, halves. .*'half'"),
        (lambda: SegmentPositionEncoding(6, {"bass": 2}), "Unknown hyperparameter 'bass'; did you mean 'base'"),
        (lambda: TemplateTransformerDecoder({"num_blocks": 0}), "num_blocks must be at least 1. .*num_blocks=0"),
    ],
)
def test_bad_arguments_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
