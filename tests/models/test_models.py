"""Tests of every model: saving, precision, positions counted in the loss, use of all its hyperparameters."""

import functools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling import hparams, templates
from text_infilling.configs.defaults import SHARED, defaults
from text_infilling.configs.presets import PRESETS
from text_infilling.configs.protocols import run_hparams
from text_infilling.models.gan import GANModel
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.phase import Span
from text_infilling.models.registry import MODELS
from text_infilling.training.task import Task, new_model
from text_infilling.vocabulary import EOB_ID, PAD_ID, Vocabulary

VOCAB = 20
SEQ2SEQ = {"embedder": {"dim": 16}, "encoder": {"units": 12}, "decoder": {"units": 12}}
SMALL = {
    "self_attention": {"decoder": {"dim": 16, "num_blocks": 1, "num_heads": 2, "ffn_dim": 24}},
    "seq2seq": SEQ2SEQ,
    "gan": {**SEQ2SEQ, "classifier": {"filters": 4}, "gan": {"discriminator_dim": 8}},
}
SMALL = {name: hparams.merge(sizes, MODELS[name].default_hparams()) for name, sizes in SMALL.items()}

every_model = pytest.mark.parametrize("name", list(MODELS))


def made(name, changes=None, seed=1, **options):
    """Returns a small model whose weights are all random and distinct."""
    keras.utils.set_random_seed(0)
    model = MODELS[name](VOCAB, hparams.merge(changes, SMALL[name]), **options)
    model.build()
    random = np.random.default_rng(seed)
    for variable in model.weights:
        variable.assign(random.normal(size=variable.shape, scale=0.3))
    return model


@functools.cache
def examples(template_format):
    """Returns three sentences of different lengths; blanks at the start, adjacent, and empty."""
    random = np.random.default_rng(0)
    ids = random.integers(7, VOCAB, (3, 10))
    arguments = ids, [10, 6, 8], [[0, 2], [2, 2], [1, 6]], [[2, 4], [2, 5], [2, 8]], [2, 2, 2]
    return templates.build_examples(*(tf.constant(x, tf.int32) for x in arguments), template_format)._asdict()


@functools.cache
def half_filled(template_format):
    """Returns two templates with the first blank filled."""
    spans = [[1, 1], [2, 2]], [[1, 3], [2, 4]], [2, 2]
    template = templates.initial_template(tf.fill([2, 6], 9), [6, 4], *spans, template_format)
    return templates.fill_blank(template, tf.fill([2, 1], 8), [1, 0], template_format)


@every_model
def test_all_weights_are_restored_from_a_weights_file(name, tmp_path):
    one, other = made(name, seed=1), made(name, seed=2)
    for a, b in zip(one.weights, other.weights, strict=True):
        assert not np.any(a.numpy() == b.numpy()), a.path
    one.save_weights(tmp_path / "best.weights.h5")
    other.load_weights(tmp_path / "best.weights.h5")
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)


@every_model
def test_the_whole_model_is_restored_from_a_keras_file(name, tmp_path):
    model = made(name, {"position": {"layout": "halves"}, "loss": {"label_smoothing": 0.2}})
    batch = examples(model.template_format)
    expected = model(batch)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model) and loaded.get_config() == model.get_config()
    assert len(loaded.weights) == len(model.weights)
    for a, b in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=a.path)
    np.testing.assert_array_equal(loaded(batch), expected)


@every_model
def test_mixed_precision(name):
    model, mixed = made(name), made(name, dtype="mixed_bfloat16")
    batch = examples(model.template_format)
    assert {v.dtype for v in mixed.weights} == {"float32"}
    states = mixed.answer_states({field: x[:, 0] for field, x in batch.items()})
    assert states.dtype == tf.bfloat16 and mixed.output(states).dtype == tf.bfloat16
    loss, _ = mixed.score(batch)
    assert loss.dtype == tf.float32
    np.testing.assert_allclose(loss, model.score(batch)[0], atol=0.1)


@every_model
def test_eager_and_graph_agree_and_gradients_reach_all_weights(name):
    model = made(name)
    batch = examples(model.template_format)

    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = model.compute_loss(batch, training=False)
        return loss, tape.gradient(loss, [v.value for v in model.trainable_weights])

    loss, gradients = loss_and_gradients()
    graph_loss, graph_gradients = tf.function(loss_and_gradients, autograph=False)()
    np.testing.assert_allclose(loss, graph_loss, atol=1e-5)
    for variable, one, other in zip(model.trainable_weights, gradients, graph_gradients, strict=True):
        one, other = tf.convert_to_tensor(one), tf.convert_to_tensor(other)
        assert np.any(one != 0), variable.path
        np.testing.assert_allclose(one, other, atol=1e-5)


@every_model
@pytest.mark.parametrize("count_padding", [False, True])
def test_the_loss_is_the_cross_entropy_of_all_logits(name, count_padding):
    """The output product is computed for counted positions only; all other losses are 0."""
    model = made(name, {"loss": {"count_padding": count_padding, "label_smoothing": 0.0}})
    batch = examples(model.template_format)
    losses, nlls = model.score(batch)
    assert losses.shape == (3, 2, batch["answer_ids"].shape[2] - 1)
    for k in range(2):
        states = model.answer_states({field: x[:, k] for field, x in batch.items()})
        log_probs = tf.nn.log_softmax(model.output(states))
        labels = batch["answer_ids"][:, k, 1:]
        expected = -tf.gather(log_probs, labels, batch_dims=2).numpy()
        longest = np.max(batch["answer_lengths"][:, k]) if count_padding else batch["answer_lengths"][:, k].numpy()
        counted = np.arange(expected.shape[1])[None, :] < np.reshape(longest, [-1, 1])
        np.testing.assert_array_equal(np.broadcast_to(counted, expected.shape), model.counted(batch)[:, k])
        np.testing.assert_allclose(nlls[:, k], expected * counted, atol=1e-5)
        is_word = labels.numpy() != PAD_ID
        np.testing.assert_allclose(losses[:, k], expected * counted * is_word, atol=1e-5)
    assert np.any(batch["answer_ids"][:, :, 1] == EOB_ID)  # at least one answer is empty
    mean = model.compute_loss(batch, training=False)
    np.testing.assert_allclose(mean, np.sum(losses) / np.sum(model.counted(batch)), rtol=1e-6)


@every_model
def test_call_and_predict_return_the_logits_that_the_loss_is_computed_from(name):
    model = made(name)
    batch = examples(model.template_format)
    logits = model(batch)
    assert logits.shape == (3, 2, batch["answer_ids"].shape[2] - 1, VOCAB)
    _, nll = model.score(batch)
    labels = batch["answer_ids"][:, :, 1:]
    expected = -tf.gather(tf.nn.log_softmax(logits), labels, batch_dims=3)
    np.testing.assert_allclose(nll, np.where(model.counted(batch, with_padding=False), expected, 0), atol=1e-5)
    np.testing.assert_allclose(model.predict(batch, verbose=0), logits, atol=1e-5)
    model.compile()
    loss = model.evaluate(batch, verbose=0, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, model.compute_loss(batch, training=False), rtol=1e-5)


@every_model
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_grouping_rows_by_length_does_not_change_the_losses(name, protocol):
    values = run_hparams(protocol, "full", model=name)
    changes = {key: values[key] for key in ("template", "position", "answer", "loss")}
    for group in ("encoder", "decoder"):
        changes[group] = {key: 0.0 for key in values.get(group, {}) if key.endswith("dropout")}
    model = made(name, {group: keys for group, keys in changes.items() if keys})
    batch = examples(model.template_format)
    expected = model.score(batch)
    for groups in (2, 3, 6):
        model.row_groups = groups
        for one, other in zip(model.score(batch, training=True), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("on", [True, False])
def test_dropout_on_templates_can_be_off(on):
    """With dropout on embeddings alone, and an answer that is `<BOB>` only, all randomness is in the template."""
    dropout = {"embedding_dropout": 0.5, "attention_dropout": 0.0, "residual_dropout": 0.0, "drop_template": on}
    model = made("self_attention", {"decoder": dropout})
    seen = []
    model.decoder.memories = lambda template: (
        seen.append(template.numpy()) or type(model.decoder).memories(model.decoder, template)
    )
    batch = examples(model.template_format)
    for _ in range(2):
        model(batch, training=True)
    assert np.array_equal(*seen) == (not on)


def test_released_lstm_dropout_is_on_outputs_only():
    """The encoder's state and the decoder's inputs are the same in training and in use, its outputs are not."""
    values = run_hparams("released", "full", model="seq2seq")
    assert values["encoder"]["dropout"] == 0.0 and not values["decoder"]["drop_inputs"]
    model = made("seq2seq", {"encoder": {"dropout": 0.0}, "decoder": {"dropout": 0.5, "drop_inputs": False}})
    batch = examples(model.template_format)
    plain, trained = model(batch).numpy(), model(batch, training=True).numpy()
    assert not np.allclose(plain, trained)
    kept = []
    model.decoder.dropout.call = lambda inputs, training=None: kept.append(inputs) or inputs
    np.testing.assert_allclose(model(batch, training=True), plain, atol=1e-6)
    assert len(kept) == 2  # inputs and outputs; the former without training


@pytest.mark.parametrize("name", ["self_attention", "seq2seq"])
@pytest.mark.parametrize("answer", ["own", "released"])
def test_the_segment_of_an_infill(name, answer):
    """It is the segment of the blank, or 1 as in the authors' decoding."""
    model = made(name, {"answer": {"segment_ids": answer}})
    state = model.start(half_filled(model.template_format))
    np.testing.assert_array_equal(state["segments"], [2, 2] if answer == "own" else [1, 1])


def test_encoder_and_decoder_must_have_the_same_units():
    message = "decoder.units must equal encoder.units.* Received: encoder.units=12, decoder.units=13"
    with pytest.raises(ValueError, match=message):
        made("seq2seq", {"decoder": {"units": 13}})


# Hyperparameters.


@functools.cache
def few_examples(template_format):
    """Returns shorter sentences than `examples`, because LSTM steps are slow."""
    arguments = [[7, 8, 9, 10, 11], [12, 13, 14, 0, 0]], [5, 3], [[0, 2], [1, 1]], [[2, 3], [1, 3]], [2, 2]
    return templates.build_examples(*(tf.constant(x, tf.int32) for x in arguments), template_format)._asdict()


def shapes(model):
    return [v.shape for v in model.weights]


def numbers(model):
    """Returns losses of a training step and logits of a first decoding step, concatenated; for the GAN, discriminator
    logits in training, temperature, learning rate and number of adversarial epochs."""
    keras.utils.set_random_seed(0)
    batch = few_examples(model.template_format)
    if isinstance(model, GANModel):
        model.compile()
        model.set_temperature(1, 3, Span(2, 2, 8))
        logits = model.discriminate(batch["template_ids"][:, 0], batch["template_lengths"][:, 0], training=True)
        rate, epochs = model.discriminator_optimizer.learning_rate, model.adversarial_epochs(model.hparams, 40)
        found = [logits, model.temperature, rate, epochs]
    else:
        losses, _ = model.score(batch, training=True)
        mean = model.compute_loss(batch, training=False)
        logits, _ = model.step(tf.constant([5, 5]), tf.constant(0), model.start(half_filled(model.template_format)))
        found = [losses, mean, logits]
    return np.concatenate([np.ravel(x) for x in found])


SHARED_CHANGES = {
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
SEQ2SEQ_CHANGES = {
    "embedder.dim": 12,
    "encoder.units": 10,
    "encoder.dropout": 0.5,
    "encoder.length": "sentence",
    "decoder.units": 10,
    "decoder.dropout": 0.5,
    "decoder.position": "released",
    "decoder.drop_inputs": False,
}
GAN_CHANGES = {  # the others need training steps: see test_gan.py
    "classifier.kernel_sizes": [2, 3],
    "classifier.filters": 5,
    "classifier.dropout": 0.1,
    "gan.adversarial_epochs": 0.5,
    "gan.temperature_decay": "epoch",
    "gan.temperature_start": 2.0,
    "gan.temperature_floor": 0.5,
    "gan.discriminator_dim": 6,
    "gan.discriminator_rate": 0.1,
}
GAN_TRAINING = {
    f"gan.{key}" for key in ("objective", "estimator", "weight", "discriminator_start", "generator_dropout")
}
CHANGES = {
    "self_attention": {
        "decoder.dim": 12,
        "decoder.num_blocks": 2,
        "decoder.num_heads": 4,
        "decoder.ffn_dim": 20,
        "decoder.embedding_dropout": 0.5,
        "decoder.drop_template": False,
        "decoder.attention_dropout": 0.5,
        "decoder.residual_dropout": 0.5,
        **SHARED_CHANGES,
    },
    "seq2seq": {**SEQ2SEQ_CHANGES, **SHARED_CHANGES},
    "gan": {**SEQ2SEQ_CHANGES, **SHARED_CHANGES, **GAN_CHANGES},
}
OWN_CHANGES = {**CHANGES, "gan": GAN_CHANGES}  # the GAN inherits its other keys and their code from seq2seq
# Changes together two sizes that must be equal.
TOGETHER = {"encoder.units": {"decoder": {"units": 10}}, "decoder.units": {"encoder": {"units": 10}}}
# Padding has no effect on an encoder that reads only the template.
BASES = {("seq2seq", "template.mask_padding"): {"encoder": {"length": "sentence"}}}


@every_model
def test_every_declared_hyperparameter_is_read(name):
    declared = hparams.flatten(MODELS[name].default_hparams()).keys()
    assert CHANGES[name].keys() == declared - GAN_TRAINING
    plain, plain_shapes = numbers(made(name)), shapes(made(name))
    np.testing.assert_array_equal(numbers(made(name)), plain)
    for key, value in OWN_CHANGES[name].items():
        base = hparams.merge(BASES.get((name, key)), SMALL[name])
        changes = hparams.merge(TOGETHER.get(key), hparams.assign(base, f"{key}={json.dumps(value)}"))
        model = made(name, changes)
        if shapes(model) == plain_shapes:
            before, after = numbers(made(name, base)) if (name, key) in BASES else plain, numbers(model)
            assert before.shape != after.shape or np.any(before != after), key


@every_model
@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_every_hyperparameter_of_a_run_reaches_the_model(name, preset, protocol):
    run = run_hparams(protocol, preset, model=name, models=list(MODELS))
    groups = MODELS[name].default_hparams()
    for group in groups:
        assert run[group].keys() == groups[group].keys()
    if preset == "smoke":
        task = Task(None, Vocabulary(["to", "fill"]), "fixed", 0.4, 1, seed=1)
        model = new_model(task, name, run)
        assert model.hparams == {group: run[group] for group in groups} and model.vocabulary_size == 9


@pytest.mark.parametrize(
    ("masking", "batch_size", "blanks", "groups"),
    [("random", 100, 3, 3), ("any", 100, 2, 2), ("any", 12, 3, 1), ("any", 50, 4, 2), ("fixed", 100, 2, 1)],
)
def test_large_batches_of_answers_of_different_lengths_are_trained_in_groups(masking, batch_size, blanks, groups):
    run = run_hparams("paper", "smoke", [f"train.batch_size={batch_size}"])
    task = Task(None, Vocabulary(["to", "fill"]), masking, 0.4, blanks, seed=1)
    assert new_model(task, "self_attention", run).row_groups == groups


def test_abstract_methods_raise_not_implemented():
    class Silent(InfillingModel):
        @classmethod
        def default_hparams(cls):
            return defaults(SHARED)

    model = Silent(VOCAB)
    for method, arguments in (("answer_states", 1), ("output_weights", 0), ("start", 1), ("step", 3)):
        with pytest.raises(NotImplementedError, match=f"Silent must implement {method}"):
            getattr(model, method)(*[None] * arguments)
