"""Layers of the models: one shared check, and tests per layer (for the classifier see test_conv1d_classifier.py)."""

import doctest
import importlib

import numpy as np
import pytest
import tensorflow as tf
from golden import golden
from keras import ops
from layer_check import check_layer, randomize, randoms

from text_infilling.layers.attention import MultiHeadAttention
from text_infilling.layers.basic_positional_rnn_decoder import BasicPositionalRNNDecoder
from text_infilling.layers.conv1d_classifier import Conv1DClassifier
from text_infilling.layers.feed_forward import FeedForward
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding
from text_infilling.layers.template_transformer_decoder import TemplateTransformerDecoder
from text_infilling.layers.unidirectional_rnn_encoder import UnidirectionalRNNEncoder
from text_infilling.layers.word_embedder import WordEmbedder

LAYERS = (
    BasicPositionalRNNDecoder, Conv1DClassifier, FeedForward, MultiHeadAttention, SegmentPositionEncoding,
    TemplateTransformerDecoder, UnidirectionalRNNEncoder, WordEmbedder,
)  # fmt: skip
DIM, LENGTH, TEMPLATE_LENGTH = 8, 5, 7
UNITS, VOCAB = 6, 11
READ = [TEMPLATE_LENGTH, 4]  # number of positions read in each template


def made(make, **options):
    """Returns a layer that is built without a call."""
    layer = make(**options)
    layer.build((None, None, DIM))
    return layer


# Calls of each layer with suitable inputs.


def attend_to_sequence(layer, inputs=None):
    return layer(randoms(2, LENGTH, DIM) if inputs is None else inputs)[0]


def attended(lengths=READ):
    return tf.sequence_mask(lengths, TEMPLATE_LENGTH)


def attend_to_template(layer, inputs=None, template=None, mask=None):
    inputs = randoms(2, LENGTH, DIM) if inputs is None else inputs
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5) if template is None else template
    memory = layer.memory(ops.cast(template, layer.compute_dtype))
    return layer(inputs, memory=memory, attended=attended() if mask is None else mask)


def decode(layer, inputs=None, template=None, mask=None, **options):
    inputs = randoms(2, LENGTH, DIM) if inputs is None else inputs
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5) if template is None else template
    memories = layer.memories(ops.cast(template, layer.compute_dtype))
    return layer(inputs, memories, attended() if mask is None else mask, **options)[0]


def decoder(**options):
    return TemplateTransformerDecoder({"dim": DIM, "num_blocks": 2, "num_heads": 2, "ffn_dim": 12}, **options)


def embedder(**options):
    return WordEmbedder(VOCAB, {"dim": DIM}, **options)


def soft_ids():
    return tf.nn.softmax(randoms(2, 3, VOCAB, seed=4))


def encoder(hparams=None, **options):
    return UnidirectionalRNNEncoder({"units": UNITS, **(hparams or {})}, **options)


def read(layer, template, lengths):
    """Returns outputs, hidden state and cell state, concatenated along the length."""
    outputs, (hidden, cell) = layer(template, lengths)
    return ops.concatenate([outputs, hidden[:, None], cell[:, None]], axis=1)


def rnn_decoder(hparams=None, **options):
    return BasicPositionalRNNDecoder(VOCAB, DIM, {"units": UNITS, **(hparams or {})}, {"base": 100}, **options)


def rnn_state(layer):
    """Returns a nonzero hidden state and a nonzero cell state."""
    return [tf.cast(randoms(2, UNITS, seed=seed), layer.compute_dtype) for seed in (6, 7)]


def write(layer, inputs=None, **options):
    inputs = randoms(2, LENGTH, DIM) if inputs is None else inputs
    return layer(inputs, tf.constant([3, 5]), rnn_state(layer), **options)


def write_logits(layer, inputs, segment_ids, hidden, cell):
    outputs = layer(inputs, segment_ids, [hidden, cell])
    kernel, bias = (ops.cast(x, layer.compute_dtype) for x in (layer.output_kernel, layer.output_bias))
    return ops.matmul(outputs, ops.transpose(kernel)) + bias


def inputs_of(*, template=True):
    """Returns embedded answers, embedded templates and which template positions are attended."""
    return [randoms(2, LENGTH, DIM), *([randoms(2, TEMPLATE_LENGTH, DIM, seed=5), attended()] if template else [])]


def test_check_of_position_encoding(tmp_path):
    check_layer(
        lambda **options: SegmentPositionEncoding(6, **options),
        lambda layer, segment_ids, offset_ids: layer(segment_ids, offset_ids),
        [tf.constant([[0, 1, 1], [2, 2, 5]]), tf.constant([[0, 0, 1], [7, 8, 0]])],
        (2, 3, 6),
        tmp_path,
        weights=0,
    )


def test_check_of_feed_forward(tmp_path):
    check_layer(
        lambda **options: FeedForward(DIM, 12, 0.1, **options),
        lambda layer, inputs: layer(inputs),
        [randoms(2, LENGTH, DIM)],
        (2, LENGTH, DIM),
        tmp_path,
        weights=4,
    )


@pytest.mark.parametrize(
    ("over", "call", "weights"), [("sequence", attend_to_sequence, 2), ("template", attend_to_template, 3)]
)
def test_check_of_attention(tmp_path, over, call, weights):
    inputs = inputs_of(template=over == "template")
    check_layer(
        lambda **options: MultiHeadAttention(DIM, 2, 0.1, over, **options),
        call,
        inputs,
        (2, LENGTH, DIM),
        tmp_path,
        weights,
    )


def test_check_of_decoder(tmp_path):
    per_block = 3 * 2 + 2 + 3 + 4  # norms, self-attention, attention over the template, feed-forward
    check_layer(decoder, decode, inputs_of(), (2, LENGTH, DIM), tmp_path, weights=2 * per_block + 2)


@pytest.mark.parametrize("inputs", [lambda: tf.constant([[1, 0, 3], [10, 3, 3]]), soft_ids])
def test_check_of_embedder(tmp_path, inputs):
    check_layer(embedder, lambda layer, ids: layer(ids), [inputs()], (2, 3, DIM), tmp_path, weights=1)


def test_check_of_encoder(tmp_path):
    inputs = [randoms(2, TEMPLATE_LENGTH, DIM, seed=5), tf.constant(READ)]
    check_layer(encoder, read, inputs, (2, TEMPLATE_LENGTH + 2, UNITS), tmp_path, weights=3)


def test_check_of_rnn_decoder(tmp_path):
    inputs = [randoms(2, LENGTH, DIM), tf.constant([3, 5]), randoms(2, UNITS, seed=6), randoms(2, UNITS, seed=7)]
    check_layer(rnn_decoder, write_logits, inputs, (2, LENGTH, VOCAB), tmp_path, weights=3 + 2)


@pytest.mark.parametrize("cls", LAYERS, ids=lambda cls: cls.__name__)
def test_examples_in_docstrings_are_correct(cls):
    result = doctest.testmod(importlib.import_module(cls.__module__))
    assert result.attempted and not result.failed


@pytest.mark.parametrize("dim", [400, 32, 6])
def test_position_encoding_in_halves_equals_the_original(dim):
    data = golden("sinusoid_segmental")
    layer = SegmentPositionEncoding(dim, {"layout": "halves"})
    np.testing.assert_allclose(layer(data["segment_ids"], data["offsets"]), data[f"c{dim}"], atol=1e-6)


def test_interleaved_position_encoding_equals_hand_computed_values():
    layer = SegmentPositionEncoding(4, {"layout": "interleaved", "base": 100})
    expected = [np.sin(302), np.cos(302), np.sin(3.02), np.cos(3.02)]  # wavelengths 2 pi and 200 pi
    np.testing.assert_allclose(layer(tf.constant([3]), tf.constant([2]))[0], expected, atol=1e-4)


def test_positions_are_exact_in_half_precision():
    """Neighboring positions in the thousands differ, although bfloat16 has only 8 bits of precision."""
    layer = SegmentPositionEncoding(8, dtype="mixed_bfloat16")
    encoding = tf.cast(layer(tf.fill([100], 9), tf.range(100)), tf.float32)
    expected = SegmentPositionEncoding(8)(tf.fill([100], 9), tf.range(100))
    np.testing.assert_allclose(encoding, expected, atol=0.005)


@pytest.mark.parametrize("over", ["sequence", "template"])
def test_attention_equals_a_loop_over_heads_and_positions(over):
    """Each head at each position is a softmax over the visible positions."""
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


def test_soft_ids_are_embedded_as_weighted_means_of_words():
    layer, ids = randomize(made(embedder)), tf.constant([[1, 0, 3], [10, 3, 3]])
    np.testing.assert_array_equal(layer(ids), layer.embedding.numpy()[ids.numpy()])
    np.testing.assert_allclose(layer(tf.one_hot(ids, VOCAB)), layer(ids), atol=1e-6)
    half = 0.5 * tf.one_hot([2], VOCAB) + 0.5 * tf.one_hot([7], VOCAB)
    np.testing.assert_allclose(layer(half)[0], (layer.embedding[2] + layer.embedding[7]) / 2, atol=1e-6)


def lstm_by_hand(cell, inputs, state):
    """Returns outputs `[length, units]` and the last state for one row, computed gate by gate."""
    outputs, (hidden, memory) = [], state
    for x in inputs:
        gates = x @ cell.kernel.numpy() + hidden @ cell.recurrent_kernel.numpy() + cell.bias.numpy()
        let_in, keep, candidate, let_out = np.split(gates, 4)
        let_in, keep, let_out = (1 / (1 + np.exp(-gate)) for gate in (let_in, keep, let_out))
        memory = keep * memory + let_in * np.tanh(candidate)
        hidden = let_out * np.tanh(memory)
        outputs.append(hidden)
    return np.array(outputs), hidden, memory


def test_the_encoder_equals_a_hand_written_lstm():
    """The returned state is the state after the last position read."""
    layer, template = randomize(made(encoder)), randoms(2, TEMPLATE_LENGTH, DIM, seed=5)
    outputs, (hidden, cell) = layer(template, tf.constant(READ))
    for row, length in enumerate(READ):
        expected = lstm_by_hand(layer.lstm.cell, template[row, :length].numpy(), [np.zeros(UNITS)] * 2)
        for found, by_hand in zip((outputs[row, :length], hidden[row], cell[row]), expected, strict=True):
            np.testing.assert_allclose(found, by_hand, atol=1e-5)


@pytest.mark.parametrize(
    ("position", "segments_and_offsets"),
    [("own", [(5, 0), (5, 1), (5, 2), (5, 3), (5, 4)]), ("released", [None, (1, 0), (1, 1), (1, 2), (1, 3)])],
)
def test_the_rnn_decoder_by_hand(position, segments_and_offsets):
    """Every input gets a position encoding: that of its own position, or that of the authors' code."""
    layer, inputs = randomize(made(lambda: rnn_decoder({"position": position}))), randoms(2, LENGTH, DIM).numpy()
    outputs = write(layer)
    for time, place in enumerate(segments_and_offsets):
        if place:
            inputs[1, time] += layer.position_encoding(*(tf.constant([x]) for x in place))[0]
    expected, _, _ = lstm_by_hand(layer.lstm.cell, inputs[1], [x[1].numpy() for x in rnn_state(layer)])
    np.testing.assert_allclose(outputs[1], expected, atol=1e-5)


@pytest.mark.parametrize("position", ["own", "released"])
def test_stepping_the_rnn_decoder_equals_teacher_forcing(position):
    layer, inputs = randomize(made(lambda: rnn_decoder({"position": position}))), randoms(2, LENGTH, DIM)
    expected, state = write(layer), rnn_state(layer)
    for time in range(LENGTH):
        outputs, state = layer.step(inputs[:, time], tf.constant([3, 5]), tf.constant(time), state)
        np.testing.assert_allclose(outputs, expected[:, time], atol=1e-5)


@pytest.mark.parametrize("make", [encoder, rnn_decoder])
def test_lstm_biases_start_at_0(make):
    np.testing.assert_array_equal(made(make).lstm.cell.bias, np.zeros(4 * UNITS))


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (lambda: MultiHeadAttention(DIM, 2), attend_to_sequence),
        (decoder, decode),
        (encoder, lambda layer, inputs: layer(inputs, tf.constant([LENGTH, LENGTH]))[0]),
        (rnn_decoder, write),
    ],
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
    [
        (lambda: MultiHeadAttention(DIM, 2, over="template"), attend_to_template),
        (decoder, decode),
        (encoder, lambda layer, template: tf.concat(layer(template, tf.constant(READ))[1], axis=-1)),
    ],
)
def test_padding_of_the_template_never_matters(make, call):
    layer = randomize(made(make))
    template = randoms(2, TEMPLATE_LENGTH, DIM, seed=5)
    garbage = tf.where(attended()[..., None], template, 1e3)
    assert np.any(garbage != template)
    np.testing.assert_array_equal(call(layer, template=garbage), call(layer, template=template))
    inside = tf.where(attended((3, 3))[..., None], template, 1.0)
    assert not np.allclose(call(layer, template=inside), call(layer, template=template))


def test_decoding_with_a_cache_equals_teacher_forcing():
    """Calls on one position at a time, or on two chunks, return the same states as one call on all positions."""
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


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (decoder, decode),
        (encoder, lambda layer, **options: layer(randoms(2, LENGTH, DIM), tf.constant([5, 3]), **options)[0]),
        (rnn_decoder, write),
    ],
)
def test_dropout_acts_in_training_only(make, call):
    layer = randomize(made(make))
    still = call(layer)
    np.testing.assert_array_equal(still, call(layer))
    assert not np.allclose(still, call(layer, training=True))


def test_rnn_decoder_applies_dropout_to_inputs_and_outputs():
    layer = randomize(made(lambda: rnn_decoder({"dropout": 0.5})))
    still, moving = write(layer).numpy(), write(layer, training=True).numpy()
    kept = moving != 0
    assert 0.1 < np.mean(kept) < 0.9
    assert not np.allclose(0.5 * moving[kept], still[kept], atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiHeadAttention(8, 3), "num_heads must divide dim. Received: dim=8, num_heads=3"),
        (
            lambda: MultiHeadAttention(8, 2, over="answer"),
            "over must be one of sequence, template. Received: .*'answer'",
        ),
        (lambda: SegmentPositionEncoding(5), "dim must be even and at least 4. Received: dim=5"),
        (
            lambda: SegmentPositionEncoding(6, {"layout": "half"}),
            "position.layout must be one of interleaved, halves. .*'half'",
        ),
        (
            lambda: SegmentPositionEncoding(6, {"bass": 2}),
            "Unknown hyperparameter 'position.bass'; did you mean 'position.base'",
        ),
        (lambda: TemplateTransformerDecoder({"num_blocks": 0}), "decoder.num_blocks must be at least 1 .*num_blocks=0"),
        (lambda: WordEmbedder(VOCAB, {"dim": 0}), "embedder.dim must be at least 1 .* Received: embedder.dim=0"),
        (lambda: encoder({"units": 0}), "encoder.units must be at least 1 .* Received: encoder.units=0"),
        (lambda: rnn_decoder({"units": 0}), "decoder.units must be at least 1 .* Received: decoder.units=0"),
        (lambda: rnn_decoder({"position": "none"}), "decoder.position must be one of own, released. Received: 'none'"),
    ],
)
def test_bad_arguments_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
