"""The self-attention model: saving, precision, what counts in its loss, and that it reads all its hyperparameters."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling import hparams, templates
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.self_attention import SelfAttentionModel
from text_infilling.training.protocols import run_hparams
from text_infilling.vocabulary import EOB_ID, PAD_ID

VOCAB = 20
SMALL = hparams.merge(
    {"decoder": {"dim": 16, "num_blocks": 1, "num_heads": 2, "ffn_dim": 24}}, SelfAttentionModel.default_hparams()
)


def made(changes=None, seed=1, **options):
    """A small model whose every weight has a value of its own."""
    keras.utils.set_random_seed(0)
    model = SelfAttentionModel(VOCAB, hparams.merge(changes, SMALL), **options)
    model.build()
    random = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape, scale=0.3))
    return model


@functools.cache
def examples(protocol):
    """Three sentences of different lengths; blanks at the start, adjacent, and empty."""
    random = np.random.default_rng(0)
    ids = random.integers(7, VOCAB, (3, 10))
    arguments = ids, [10, 6, 8], [[0, 2], [2, 2], [1, 6]], [[2, 4], [2, 5], [2, 8]], [2, 2, 2]
    return templates.build_examples(*(tf.constant(x, tf.int32) for x in arguments), protocol)._asdict()


def test_all_weights_come_back_from_a_weights_file(tmp_path):
    one, other = made(seed=1), made(seed=2)
    for a, b in zip(one.weights, other.weights, strict=True):
        assert not np.any(a.numpy() == b.numpy()), a.path
    one.save_weights(tmp_path / "best.weights.h5")
    other.load_weights(tmp_path / "best.weights.h5")
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)


def test_the_whole_model_comes_back_from_a_keras_file(tmp_path):
    model = made({"position": {"layout": "halves"}, "loss": {"label_smoothing": 0.2}})
    batch = examples(model.protocol)
    expected = model(batch)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert len(loaded.weights) == len(model.weights)
    for a, b in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)
    np.testing.assert_array_equal(loaded(batch), expected)


def test_mixed_precision():
    model, mixed = made(), made(dtype="mixed_bfloat16")
    batch = examples(model.protocol)
    assert {v.dtype for v in mixed.weights} == {"float32"}
    states = mixed.answer_states({name: x[:, 0] for name, x in batch.items()})
    assert states.dtype == tf.bfloat16 and mixed.output(states).dtype == tf.bfloat16
    loss = mixed(batch)
    assert loss.dtype == tf.float32
    np.testing.assert_allclose(loss, model(batch), atol=0.1)


def test_eager_and_graph_agree_and_gradients_reach_all_weights():
    model = made()
    batch = examples(model.protocol)

    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(batch, None, model(batch))
        return loss, tape.gradient(loss, [v.value for v in model.trainable_weights])

    loss, gradients = loss_and_gradients()
    graph_loss, graph_gradients = tf.function(loss_and_gradients, autograph=False)()
    np.testing.assert_allclose(loss, graph_loss, atol=1e-5)
    for variable, one, other in zip(model.trainable_weights, gradients, graph_gradients, strict=True):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        assert np.any(one != 0), variable.path
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("count_padding", [False, True])
def test_the_loss_is_the_cross_entropy_of_all_logits(count_padding):
    """Only some positions go through the output product; those are right and all others 0."""
    model = made({"loss": {"count_padding": count_padding, "label_smoothing": 0.0}})
    batch = examples(model.protocol)
    losses, nlls = model.score(batch)
    assert losses.shape == (3, 2, batch["answer_ids"].shape[2] - 1)
    for k in range(2):
        states = model.answer_states({name: x[:, k] for name, x in batch.items()})
        log_probs = tf.nn.log_softmax(model.output(states))
        labels = batch["answer_ids"][:, k, 1:]
        expected = -tf.gather(log_probs, labels, batch_dims=2).numpy()
        longest = np.max(batch["answer_lengths"][:, k]) if count_padding else batch["answer_lengths"][:, k].numpy()
        counted = np.arange(expected.shape[1])[None, :] < np.reshape(longest, [-1, 1])
        np.testing.assert_array_equal(np.broadcast_to(counted, expected.shape), model.counted(batch)[:, k])
        np.testing.assert_allclose(nlls[:, k], expected * counted, atol=1e-5)
        is_word = labels.numpy() != PAD_ID
        np.testing.assert_allclose(losses[:, k], expected * counted * is_word, atol=1e-5)
    assert np.any(batch["answer_ids"][:, :, 1] == EOB_ID)  # one was empty
    mean = model.compute_loss(batch, None, losses)
    np.testing.assert_allclose(mean, np.sum(losses) / np.sum(model.counted(batch)), rtol=1e-6)


def test_with_xla_the_loss_is_the_same():
    model = made()
    batch = examples(model.protocol)
    expected = model.score(batch)
    model.compile(jit_compile=True)
    for one, other in zip(model.score(batch), expected):
        np.testing.assert_allclose(one, other, atol=1e-5)


@functools.cache
def half_filled(protocol):
    """Two templates of which the first blank is filled."""
    spans = [[1, 1], [2, 2]], [[1, 3], [2, 4]], [2, 2]
    template = templates.initial_template(tf.fill([2, 6], 9), [6, 4], *spans, protocol)
    return templates.fill_blank(template, tf.fill([2, 1], 8), [1, 0], protocol)


def fingerprint(changes):
    """The shapes of the weights; the losses of a training step and the logits of a first decoding step, in a row."""
    model = made(changes)
    keras.utils.set_random_seed(0)
    losses = model(examples(model.protocol), training=True)
    mean = model.compute_loss(examples(model.protocol), None, losses)
    logits, _ = model.step(tf.constant([5, 5]), tf.constant(0), model.start(half_filled(model.protocol)))
    return [v.shape for v in model.weights], np.concatenate([np.ravel(losses), [mean], np.ravel(logits)])


CHANGES = {
    "decoder.dim": 12,
    "decoder.num_blocks": 2,
    "decoder.num_heads": 4,
    "decoder.ffn_dim": 20,
    "decoder.embedding_dropout": 0.5,
    "decoder.attention_dropout": 0.5,
    "decoder.residual_dropout": 0.5,
    "template.segment_ids": "renumbered",
    "template.mask_padding": False,
    "template.scale": False,
    "position.origin": "zero",
    "position.layout": "halves",
    "position.base": 100,
    "answer.segment_ids": "released",
    "loss.label_smoothing": 0.3,
    "loss.count_padding": True,
}


def test_every_declared_hyperparameter_is_read():
    assert list(CHANGES) == list(hparams.flatten(SelfAttentionModel.default_hparams()))
    shapes, numbers = fingerprint(None)
    np.testing.assert_array_equal(fingerprint(None)[1], numbers)
    for key, value in CHANGES.items():
        other_shapes, other = fingerprint(hparams.assign(SMALL, f"{key}={value}"))
        assert shapes != other_shapes or numbers.shape != other.shape or np.any(numbers != other), key


def test_every_hyperparameter_of_a_run_reaches_the_model():
    for protocol in ("paper", "released"):
        run = run_hparams(protocol, "full")
        for group in SelfAttentionModel.default_hparams():
            assert run[group].keys() == SelfAttentionModel.default_hparams()[group].keys()
    assert run_hparams("paper", "full")["decoder"] == SelfAttentionModel.default_hparams()["decoder"]


def test_a_model_must_say_how_it_works():
    class Silent(InfillingModel):
        @classmethod
        def default_hparams(cls):
            return cls.shared_hparams()

    model = Silent(VOCAB)
    for method, arguments in (("answer_states", 1), ("output", 1), ("start", 1), ("step", 3)):
        with pytest.raises(NotImplementedError, match=f"Silent must implement {method}"):
            getattr(model, method)(*[None] * arguments)
