"""Losses of the GAN's generator and discriminator, under both objectives."""

import math

import numpy as np
import pytest
import tensorflow as tf

from text_infilling.losses import discriminator_loss, generator_loss, reinforce_loss

# Logits of the probabilities 3/4, 1/4 and 1/2 of being the truth.
LOG_3 = math.log(3)
TRUTH = [LOG_3, LOG_3, -LOG_3, 0.0]
INFILL = [-LOG_3, LOG_3, LOG_3, 0.0]


def test_standard_discriminator_loss_equals_hand_computed_values():
    """The truth has label 1 and the infill label 0: -log p(truth) - log(1 - p(infill))."""
    expected = -np.log([3 / 4 * 3 / 4, 3 / 4 * 1 / 4, 1 / 4 * 1 / 4, 1 / 2 * 1 / 2])
    np.testing.assert_allclose(discriminator_loss(TRUTH, INFILL, "standard"), expected, atol=1e-6)


def test_released_discriminator_loss_equals_hand_computed_values():
    """The truth has label 1, the infill is ignored: -log p(truth)."""
    expected = -np.log([3 / 4, 3 / 4, 1 / 4, 1 / 2])
    np.testing.assert_allclose(discriminator_loss(TRUTH, INFILL, "released"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("objective", "probabilities"),
    [("standard", [1 / 4, 3 / 4, 3 / 4, 1 / 2]), ("released", [3 / 4, 1 / 4, 1 / 4, 1 / 2])],
)
def test_generator_loss_equals_hand_computed_values(objective, probabilities):
    """-log of the probability that the infill is the truth ("standard") or is not ("released")."""
    np.testing.assert_allclose(generator_loss(INFILL, objective), -np.log(probabilities), atol=1e-6)


@pytest.mark.parametrize(("objective", "sign_of_infill"), [("standard", -1), ("released", 0)])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_discriminator_gradient_raises_truth_logits_and_lowers_infill_logits(objective, sign_of_infill, scale):
    """Gradient descent raises truth logits and lowers infill logits; with "released" infill logits get no gradient."""
    truth, infill = (tf.constant(x) * scale for x in (TRUTH, INFILL))
    with tf.GradientTape() as tape:
        tape.watch([truth, infill])
        loss = discriminator_loss(truth, infill, objective)
    of_truth, of_infill = tape.gradient(loss, [truth, infill], unconnected_gradients="zero")
    np.testing.assert_allclose(-of_truth, 1 - tf.sigmoid(truth), atol=1e-6)
    np.testing.assert_allclose(-of_infill, sign_of_infill * tf.sigmoid(infill), atol=1e-6)


@pytest.mark.parametrize(("objective", "sign"), [("standard", 1), ("released", -1)])
def test_where_the_generator_is_driven(objective, sign):
    """Gradient descent moves infills towards the truth ("standard") or away from it ("released"), by at most 1."""
    infill = tf.constant(INFILL)
    with tf.GradientTape() as tape:
        tape.watch(infill)
        loss = generator_loss(infill, objective)
    step = -tape.gradient(loss, infill)
    np.testing.assert_array_equal(tf.sign(step), [sign] * 4)
    np.testing.assert_allclose(tf.abs(step), tf.sigmoid(-sign * infill), atol=1e-6)


def test_generator_gradient_does_not_vanish_when_the_discriminator_is_certain():
    """If the discriminator is certain, the standard gradient is 1, while the gradient of log(1 - p) would vanish."""
    infill = tf.constant([-100.0])
    with tf.GradientTape() as tape:
        tape.watch(infill)
        loss = generator_loss(infill, "standard")
    np.testing.assert_allclose(tape.gradient(loss, infill), [-1.0])


def test_reinforce_raises_the_probability_of_infills_with_more_than_the_mean_reward():
    """No gradient flows through the rewards."""
    scores, rewards = tf.constant([-1.0, -2.0, -3.0]), tf.constant([-0.5, -1.5, -1.0])
    with tf.GradientTape() as tape:
        tape.watch([scores, rewards])
        loss = reinforce_loss(scores, rewards, -1.0)
    of_scores, of_rewards = tape.gradient(loss, [scores, rewards])
    np.testing.assert_allclose(-of_scores, [0.5, -0.5, 0.0])
    assert of_rewards is None


@pytest.mark.parametrize("objective", ["standard", "released"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
def test_losses_are_exact_at_large_logits(objective, dtype):
    """At +-100 the loss is 0 or 100 per label, although probabilities round to 0 or 1 and logs may be infinite."""
    truth, infill = tf.constant([100.0, -100.0, 100.0], dtype), tf.constant([-100.0, 100.0, 100.0], dtype)
    loss = discriminator_loss(truth, infill, objective)
    assert loss.dtype == tf.float32 and loss.shape == (3,)
    np.testing.assert_allclose(loss, [0, 200, 100] if objective == "standard" else [0, 100, 0], atol=1e-6)
    loss = generator_loss(infill, objective)
    assert loss.dtype == tf.float32 and loss.shape == (3,)
    np.testing.assert_allclose(loss, [100, 0, 0] if objective == "standard" else [0, 100, 100], atol=1e-6)


@pytest.mark.parametrize("loss", [lambda x: discriminator_loss(x, x, "wgan"), lambda x: generator_loss(x, "wgan")])
def test_an_unknown_objective_is_an_error(loss):
    with pytest.raises(ValueError, match="gan.objective takes one of standard, released. Received: .*'wgan'"):
        loss(tf.zeros(2))
