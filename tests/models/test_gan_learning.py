"""What the GAN's networks learn: each against the other, each estimator, the temperature."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_gan import (
    STILL,
    accuracy,
    after_step,
    batch,
    estimators,
    fitted,
    gan,
    networks,
    objectives,
    same,
    with_gan,
)

from text_infilling.models.adversarial_watch import AdversarialWatch
from text_infilling.models.phase import Span
from text_infilling.vocabulary import EOB_ID


@estimators
def test_the_generator_learns_to_pass_for_truth(estimator):
    """First the discriminator learns to tell infills of an untrained generator from truth; then the generator learns
    with the cross entropy's share made negligible, until its hard infills are told from truth less often."""
    model = gan(with_gan(weight=100.0, discriminator_rate=0.02, estimator=estimator), rate=0.0, vocab=60)
    start, _ = networks(model)
    steps = 100 if estimator == "reinforce" else 50  # its gradient is noisier
    fitted(model, 4 * steps // 5)
    told, told_loss = accuracy(model), fitted(model, steps // 5)["g_loss"][0]
    assert told["truth"] > 0.9 and told["hard"] > 0.9
    generator, discriminator = networks(model)
    assert same(generator, start)

    model.discriminator_optimizer.learning_rate = 0.0
    model.optimizer.learning_rate = 0.01
    fitted(model, steps)
    passed, passed_loss = accuracy(model), fitted(model, steps // 5)["g_loss"][0]
    assert passed_loss < told_loss / 2
    assert passed["hard"] < told["hard"] - 0.2
    assert same(networks(model)[1], discriminator)


def test_the_discriminator_loses_to_a_generator_that_learns_along_with_it():
    """It tells hard infills of an untrained generator from truth; those of a trained one it cannot tell."""
    model = gan(with_gan(weight=1.0), rate=0.0, vocab=60)
    fitted(model, 80)
    assert accuracy(model)["hard"] > 0.9
    model.compile(keras.optimizers.Adam(0.02))
    model.begin_adversarial()
    fitted(model, 400)
    assert accuracy(model)["hard"] < 0.75


def test_the_generator_s_loss_can_have_the_discriminator_s_dropout():
    """Two steps of networks that do not move have the same loss only without dropout and with the same noise."""
    for dropout in (False, True):
        changes = {"classifier": {"dropout": 0.5}, "gan": {"generator_dropout": dropout, "discriminator_rate": 0.0}}
        model = gan({**STILL, **changes}, rate=0.0)
        noise, losses = model._noise.state.numpy(), []
        for _ in range(2):
            model._noise.state.assign(noise)
            model.reset_metrics()
            losses.append(after_step(model)[2]["g_loss"])
        assert (losses[0] == losses[1]) == (not dropout)


@estimators
def test_the_discriminator_sees_words_unless_the_estimator_is_soft(estimator):
    model = gan(with_gan(estimator=estimator))
    rows = model._existing(batch())
    infills = model._sample(rows, tf.constant([1, 2]), model._hard)
    highest = tf.reduce_max(infills.probabilities, axis=2)[infills.ids > 0]
    assert np.all(highest == 1.0) == (estimator != "soft")


def test_reinforce_scores_infills_like_decoding_step_by_step():
    """The gradient of "reinforce" flows through log probabilities of the sampled words only, `<EOB>` included."""
    model = gan(with_gan(estimator="reinforce"))
    rows = model._existing(batch())
    infills = model._sample(rows, tf.constant([1, 2]), hard=True)
    fields = ("template_ids", "template_segment_ids", "template_offset_ids", "template_lengths")
    state = {"segments": rows["answer_segment_ids"], "cache": model.encode(*(rows[name] for name in fields))}
    ids, expected = rows["answer_ids"][:, 0], np.zeros(len(rows["answer_ids"]))
    for time in range(infills.ids.shape[1]):
        logits, state = model.step(ids, tf.constant(time), state)
        ids = infills.ids[:, time]
        scores = tf.nn.log_softmax(logits[:, EOB_ID:])
        there = time < infills.lengths.numpy()
        expected += np.where(there, tf.gather(scores, tf.maximum(ids - EOB_ID, 0), batch_dims=1), 0)
    np.testing.assert_allclose(model._log_probabilities(rows, infills), expected, rtol=1e-5)


def test_the_baseline_of_reinforce_is_a_moving_average_of_rewards():
    model = gan(with_gan(estimator="reinforce", discriminator_rate=0.0), rate=0.0)
    baseline = 0.0
    for _ in range(3):
        model.reset_metrics()
        _, _, logs = after_step(model)
        baseline = 0.9 * baseline - 0.1 * logs["g_loss"]
    np.testing.assert_allclose(model.baseline, baseline, rtol=1e-5)


@objectives
def test_a_step_of_the_generator_lowers_its_loss(objective):
    """With the same noise; `standard` moves infills towards the truth, `released` away from it."""
    model = gan(with_gan(objective=objective, weight=1e4, discriminator_rate=0.0, estimator="soft"), rate=1e-5)
    noise = model._noise.state.numpy()
    _, _, before = after_step(model)
    model._noise.state.assign(noise)
    model.reset_metrics()
    _, _, after = after_step(model)
    assert after["g_loss"] < before["g_loss"] - 1e-4
    assert after["d_loss"] > before["d_loss"] if objective == "standard" else after["d_loss"] == before["d_loss"]


@pytest.mark.parametrize(
    ("floor", "expected"), [(0.1, [1, 0.5, 0.25, 0.125, 0.1, 0.1]), (0.3, [1, 0.5, 0.3, 0.3, 0.3, 0.3])]
)
def test_the_temperature_is_halved_each_epoch_down_to_its_floor(floor, expected):
    model = gan(with_gan(temperature_decay="epoch", temperature_floor=floor))
    assert model.temperature == 1
    found = []
    for epoch in range(6):
        for step in range(2):
            model.set_temperature(epoch, step, Span(3, 6, 2))
            found.append(float(model.temperature))
    np.testing.assert_allclose(found, np.repeat(expected, 2), rtol=1e-6)


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_temperature_reaches_its_floor_within_the_phase(epochs):
    """Also if the phase has one epoch: it falls by the same factor at each step, also after a stop in an epoch."""
    model, span = gan(with_gan(temperature_start=2.0, temperature_floor=0.02)), Span(4, epochs, 5)
    watch = AdversarialWatch(span, print)
    watch.set_model(model)
    found = []
    for epoch in range(4, 4 + epochs):
        watch.on_epoch_begin(epoch)
        for first, last in ((0, 3), (3, 5)):  # a stop after three steps
            watch.set_params({"steps": 5 - first})
            for batch_ in range(last - first):
                watch.on_train_batch_begin(batch_)
                found.append(float(model.temperature))
    np.testing.assert_allclose(found, np.geomspace(2.0, 0.02, 5 * epochs), rtol=1e-5)


def test_infills_are_sampled_at_the_temperature():
    """The temperature changes the step and is logged; at a very low temperature all weights stay finite."""
    steps = []
    for epoch in (0, 20):
        model = gan(with_gan(weight=1.0, temperature_floor=0.001, temperature_decay="epoch", estimator="soft"))
        model.set_temperature(epoch, 0, Span(0, 30, 10))
        steps.append(after_step(model))
    for (generator, discriminator, logs), temperature in zip(steps, (1, 0.001)):
        np.testing.assert_allclose(logs["temperature"], temperature, rtol=1e-6)
        assert all(np.all(np.isfinite(x)) for x in [*generator, *discriminator])
    assert not same(steps[0][0], steps[1][0]) and not same(steps[0][1], steps[1][1])
