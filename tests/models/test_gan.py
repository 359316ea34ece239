"""The GAN's two training phases: updates of each network, logs, saved weights and use outside training."""

import functools

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from small_gan import (
    ADVERSARIAL_LOGS,
    SEQ2SEQ,
    STILL,
    VOCAB,
    after_step,
    batch,
    estimators,
    fitted,
    gan,
    networks,
    objectives,
    same,
    values,
    with_gan,
)

from text_infilling.decoding.decode_blanks import fill_blanks
from text_infilling.models.adversarial_watch import AdversarialWatch
from text_infilling.models.gan import GANModel
from text_infilling.models.phase import Span
from text_infilling.models.seq2seq import Seq2SeqModel
from text_infilling.training.callbacks import BestWeights
from text_infilling.training.optimizers import without_optimizers

# Two networks, one optimizer each.


def test_every_weight_belongs_to_exactly_one_network():
    model = gan()
    of = {name: {v.path for v in getattr(model, f"{name}_variables")} for name in ("generator", "discriminator")}
    assert not of["generator"] & of["discriminator"]
    assert of["generator"] | of["discriminator"] == {v.path for v in model.weights} - {
        model.temperature.path,
        model.baseline.path,
    }
    assert of["generator"] == {v.path for v in model.trainable_variables}
    assert len(of["generator"]) == 9 and len(of["discriminator"]) == 8


def test_each_network_has_its_own_optimizer():
    model = gan(adversarial=False)
    model.optimizer.build(model.trainable_variables)
    assert GANModel.OPTIMIZERS == ("optimizer", "discriminator_optimizer")
    first_and_second_moments = 2 * len(model.discriminator_variables)
    assert len(model.discriminator_optimizer.variables) == 2 + first_and_second_moments  # step count, learning rate
    np.testing.assert_allclose(model.discriminator_optimizer.learning_rate, 0.01)
    steps = []
    for adversarial in (False, True):
        if adversarial:
            model.begin_adversarial()
        model.train_step((batch(),))
        steps.append([int(getattr(model, name).iterations) for name in GANModel.OPTIMIZERS])
    assert steps == [[1, 0], [2, 1]]


def test_weights_can_be_saved_without_optimizer_state(tmp_path):
    """`BestWeights` omits the optimizer state from the file and leaves it unchanged in the model."""
    model = gan()
    before = after_step(model)[:2]
    model.save_weights(tmp_path / "all.weights.h5")
    best = BestWeights(tmp_path / "best.weights.h5", "best")
    best.set_model(model)
    best.on_epoch_end(0, {"val_ppl": 1.0})

    def names(path):
        with h5py.File(path) as file:
            found = []
            file.visit(found.append)
        return {name for name in found if "optimizer" in name}

    assert {name.split("/")[0] for name in names(tmp_path / "all.weights.h5")} >= {"discriminator_optimizer"}
    assert not names(tmp_path / "best.weights.h5")
    assert int(model.discriminator_optimizer.iterations) == int(model.optimizer.iterations) == 1
    other = gan(seed=9)
    with without_optimizers(other):
        other.load_weights(tmp_path / "best.weights.h5")
    for one, expected in zip(networks(other), before):
        assert same(one, expected)


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({}, None),
        ({"val_d_accuracy_truth": 0.995, "val_d_accuracy_hard": 0.995}, "the discriminator has won"),
        ({"val_d_accuracy_truth": 0.995, "val_d_accuracy_soft": 0.995}, None),
        ({"val_largest_share": 0.6}, "60.0% of all infills are the same"),
    ],
)
def test_collapse_of_adversarial_training_is_logged(changes, warning):
    logs = {"d_loss": 1.0, "g_loss": 2.0}
    logs |= {"val_d_accuracy_truth": 0.9, "val_d_accuracy_soft": 0.8, "val_d_accuracy_hard": 0.7}
    logs |= {"val_distinct_1": 0.1, "val_distinct_2": 0.3, "val_largest_share": 0.1, **changes}
    said = []
    AdversarialWatch(Span(0, 4, 10), said.append).on_epoch_end(2, logs)
    assert said[0].startswith("epoch 3: d_loss 1.0000, g_loss 2.0000; on validation the discriminator is right on ")
    assert ("distinct-1 0.1000, distinct-2 0.3000" in said[0]) and len(said) == (2 if warning else 1)
    assert warning is None or (said[1].startswith("warning: ") and warning in said[1])


# Pre-training.


def test_pretraining_equals_training_of_seq2seq():
    """With the same weights, dropout and optimizer the generator takes the same step, and the discriminator none."""
    keras.utils.set_random_seed(3)
    seq2seq = Seq2SeqModel(VOCAB, SEQ2SEQ)
    seq2seq.build()
    seq2seq.compile(keras.optimizers.Adam(0.01))
    model = gan(seed=3, adversarial=False)
    model.compile(keras.optimizers.Adam(0.01))
    for ours, theirs in zip(model.generator_variables, seq2seq.trainable_variables, strict=True):
        ours.assign(theirs)
    generator, discriminator = networks(model)
    for _ in range(2):
        expected = seq2seq.train_step((batch(),))
        moved, rested, logs = after_step(model)
        assert logs == {"loss": float(expected["loss"])}
        assert same(moved, values(seq2seq.trainable_variables))
    assert same(rested, discriminator)
    assert not any(np.array_equal(one, other) for one, other in zip(moved, generator))


@pytest.mark.parametrize(
    ("share", "pretraining", "expected"), [(0.25, 1, 1), (0.25, 8, 2), (0.25, 120, 30), (0.25, 7, 1), (0.0, 9, 1)]
)
def test_how_many_adversarial_epochs_follow(share, pretraining, expected):
    """A fraction of the pre-training epochs, rounded down, at least one."""
    assert GANModel.adversarial_epochs({"gan": {"adversarial_epochs": share}}, pretraining) == expected


@objectives
def test_the_discriminator_can_learn_from_the_first_step(objective):
    """The generator's steps stay those of pre-training."""
    expected, same_as_before, _ = after_step(gan(STILL, adversarial=False))
    model = gan({**STILL, "gan": {"objective": objective, "discriminator_start": "pretraining"}}, adversarial=False)
    generator, discriminator, logs = after_step(model)
    assert same(generator, expected) and logs.keys() == {"loss"}
    assert not any(np.array_equal(one, other) for one, other in zip(discriminator, same_as_before))
    assert int(model.discriminator_optimizer.iterations) == 1


# The adversarial phase: which loss updates which network.


@functools.cache
def step_of(objective, weight, discriminator_rate=0.01):
    """Returns generator and discriminator weights after an adversarial step."""
    return after_step(gan(with_gan(objective=objective, weight=weight, discriminator_rate=discriminator_rate)))[:2]


@objectives
def test_with_weight_0_the_generator_learns_from_likelihood_only(objective):
    expected, _, _ = after_step(gan(STILL, adversarial=False))
    generator, _ = step_of(objective, weight=0.0)
    for one, other in zip(generator, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    weighted, _ = step_of(objective, weight=1e3)
    assert not any(np.allclose(one, other, atol=1e-6) for one, other in zip(weighted, expected))


def test_with_weight_0_adversarial_training_is_seq2seq_continued_bitwise():
    """The control of the GAN: in graphs, with dropout, over the change of phase."""
    keras.utils.set_random_seed(3)
    seq2seq = Seq2SeqModel(VOCAB, SEQ2SEQ)
    seq2seq.build()
    seq2seq.compile(keras.optimizers.Adam(0.01))
    model = gan({"gan": {"weight": 0.0}}, seed=3, adversarial=False)
    model.compile(keras.optimizers.Adam(0.01))
    for ours, theirs in zip(model.generator_variables, seq2seq.trainable_variables, strict=True):
        ours.assign(theirs)
    expected = fitted(seq2seq, 3)["loss"] + fitted(seq2seq, 5)["loss"]
    first = fitted(model, 3)
    _, untrained = networks(model)
    model.begin_adversarial()
    second = fitted(model, 5)
    assert (first.keys(), second.keys()) == ({"loss"}, ADVERSARIAL_LOGS)
    assert first["loss"] + second["loss"] == expected
    assert same(values(model.generator_variables), values(seq2seq.trainable_variables))
    assert not same(networks(model)[1], untrained)  # the discriminator learns, so that its accuracy can be shown


@objectives
def test_neither_loss_updates_the_other_network(objective):
    """The discriminator's step does not depend on the weight of the generator's loss, nor the generator's step on the
    discriminator's learning rate."""
    _, start = networks(gan(with_gan(objective=objective)))
    generator, discriminator = step_of(objective, weight=0.0)
    weighted, same_step = step_of(objective, weight=1e3)
    same_generator, rested = step_of(objective, weight=1e3, discriminator_rate=0.0)
    assert same(same_step, discriminator) and not same(weighted, generator)
    assert same(same_generator, weighted) and not same(rested, discriminator)
    assert same(rested, start) and not any(np.array_equal(one, other) for one, other in zip(discriminator, start))


@objectives
def test_which_discriminator_sees_the_infills(objective):
    """The authors' discriminator never sees infills: its step does not depend on the sampled infills."""
    _, expected = step_of(objective, weight=0.0)
    other = gan(with_gan(objective=objective, weight=0.0))
    other._noise.next()  # so that other infills are sampled
    _, discriminator, _ = after_step(other)
    assert same(discriminator, expected) == (objective == "released")


def test_missing_blanks_do_not_affect_training():
    examples = dict(batch())
    assert np.any(examples["answer_lengths"] == 0)
    not_there = examples["answer_lengths"] == 0
    garbage = {
        name: tf.where(tf.reshape(not_there, [3, 2, *[1] * (x.shape.rank - 2)]), x + 3, x)
        for name, x in examples.items()
        if name not in ("answer_lengths", "template_lengths")
    }
    one, other = after_step(gan()), after_step(gan(), {**examples, **garbage})
    for mine, theirs in zip(one[:2], other[:2]):
        assert same(mine, theirs)
    assert one[2] == other[2]
    with_it = after_step(gan(), batch((2, 2, 2)))
    assert not same(with_it[1], one[1])


def test_the_same_seed_gives_the_same_step():
    """Including dropout and infills; from the same weights, another seed gives a different step."""
    runs, weights = [], gan(seed=4).get_weights()
    for seed in (4, 4, 5):
        model = gan(seed=seed)
        model.set_weights(weights)
        runs.append(after_step(model))
    assert same(runs[0][0], runs[1][0]) and same(runs[0][1], runs[1][1]) and runs[0][2] == runs[1][2]
    assert not same(runs[0][0], runs[2][0]) and not same(runs[0][1], runs[2][1])


# Logs, and results that do not depend on the discriminator.


@estimators
def test_logs_equal_hand_computed_values(estimator):
    """Logs describe the networks before the step, with one sample of noise, averaged over all existing blanks."""
    model, twin = gan(with_gan(estimator=estimator)), gan(with_gan(estimator=estimator))
    _, _, logs = after_step(model)
    assert logs.keys() == ADVERSARIAL_LOGS
    rows = twin._existing(batch())
    infills = twin._sample(rows, twin._noise.next(), twin._hard)
    truth, lengths = rows["answer_ids"][:, 1:], rows["answer_lengths"]
    assert lengths.shape == (5,) and truth.shape == (5, infills.probabilities.shape[1])
    on_truth, on_infills = twin.discriminate(truth, lengths), twin.discriminate(infills.probabilities, infills.lengths)
    right, wrong = (np.log1p(np.exp(sign * on_infills.numpy())) for sign in (1, -1))
    np.testing.assert_allclose(logs["d_loss"], np.mean(np.log1p(np.exp(-on_truth.numpy())) + right), rtol=1e-5)
    np.testing.assert_allclose(logs["g_loss"], np.mean(wrong), rtol=1e-5)
    np.testing.assert_allclose(logs["loss"], twin.compute_loss(batch(), training=False), rtol=1e-5)


def test_diagnostics_equal_hand_computed_values():
    """Dropout is off; the same noise gives the same numbers."""
    model, seed = gan(), tf.constant([4, 5])
    rows = model._existing(batch())
    truth, soft, hard = (x.numpy() for x in model.diagnostics(batch(), seed))
    infills = [model._sample(rows, seed, hard=hard_) for hard_ in (False, True)]
    on_truth = model.discriminate(rows["answer_ids"][:, 1:], rows["answer_lengths"])
    on_soft, on_hard = (model.discriminate(x.probabilities, x.lengths) for x in infills)
    np.testing.assert_array_equal(truth, on_truth > 0)
    np.testing.assert_array_equal(soft, on_soft <= 0)
    np.testing.assert_array_equal(hard, on_hard <= 0)


def test_logits_do_not_depend_on_padding_or_on_one_hot_input():
    """A row has the same logit as ids, as one-hot soft ids, and with more padding after it."""
    model = gan()
    rows = model._existing(batch())
    truth, lengths = rows["answer_ids"][:, 1:], rows["answer_lengths"]
    expected = model.discriminate(truth, lengths)
    np.testing.assert_allclose(model.discriminate(tf.one_hot(truth, VOCAB), lengths), expected, atol=1e-5)
    wider = model.discriminate(tf.pad(truth, [[0, 0], [0, 4]]), lengths)
    np.testing.assert_allclose(wider, expected, atol=1e-5)
    alone = [model.discriminate(truth[i : i + 1, : lengths[i]], lengths[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_scores_and_infills_do_not_depend_on_the_discriminator():
    model = gan()
    sentences = [[7, 8, 9, 7]], [4], [[0, 2]], [[1, 4]], [2]
    sentences = [tf.constant(x, tf.int32) for x in sentences]

    def outputs():
        filled = fill_blanks(model, *sentences, 4)
        return [*(x.numpy() for x in model.score(batch())), filled.ids.numpy(), filled.scores.numpy()]

    before = outputs()
    for variable in [*model.discriminator_variables, model.temperature]:
        variable.assign(variable + 1.0)
    assert same(outputs(), before)


def test_an_adversarial_step_works_in_mixed_precision():
    model = gan(STILL, dtype="mixed_bfloat16")
    _, _, logs = after_step(model)
    assert logs.keys() == ADVERSARIAL_LOGS and np.all(np.isfinite(list(logs.values())))
    full = gan(STILL)
    np.testing.assert_allclose(logs["loss"], full.compute_loss(batch(), training=False), rtol=0.05)
    assert all(v.dtype == "float32" for v in model.weights)
