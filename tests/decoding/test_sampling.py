"""Relaxed samples: their distribution, the inputs that a draw depends on, and the gradient through them."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from peaked import FIRST_WORD, LovesSpecialTokens

from text_infilling.decoding.loop import best_token
from text_infilling.decoding.sampling import gumbel_noise, gumbel_softmax
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID, UNK_ID

VOCAB = FIRST_WORD + 6
MAX_LENGTH = 6
SEEDS = st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)).map(list)


class Recurrent:
    """A small recurrent network over ids or soft ids; rows with `ends` in their state end at once."""

    def __init__(self, seed=0, dim=5):
        random = np.random.default_rng(seed)
        shapes = {"embedding": (VOCAB, dim), "recurrent": (dim, dim), "output": (dim, VOCAB)}
        self.weights = {k: tf.Variable(random.normal(size=v), dtype=tf.float32) for k, v in shapes.items()}
        # One bias per time step, so that a test can see which steps a gradient reaches.
        self.weights["bias"] = tf.Variable(random.normal(size=(MAX_LENGTH, VOCAB)), dtype=tf.float32)

    def start(self, ends):
        ends = tf.convert_to_tensor(ends)
        cells = tf.reshape(tf.range(tf.size(ends) * 5), [-1, 5]) % 7
        return {"cell": tf.cast(cells, tf.float32) / 7, "ends": ends}

    def step(self, inputs, time, state):
        table, recurrent, output, bias = self.weights.values()
        embedded = tf.gather(table, inputs) if inputs.dtype.is_integer else inputs @ table
        cell = tf.tanh(embedded + state["cell"] @ recurrent)
        ending = tf.cast(state["ends"], tf.float32)[:, None] * tf.one_hot([EOB_ID], VOCAB) * 100.0
        return cell @ output + bias[time] + ending, {**state, "cell": cell}


NETWORK = Recurrent()


@functools.cache
def graph_of(**static):
    """Returns `gumbel_softmax` with `NETWORK` as a graph of (ends, max_length, seed, temperature)."""

    def run(ends, max_length, seed, temperature):
        rows = tf.size(ends)
        return gumbel_softmax(NETWORK.step, NETWORK.start(ends), rows, max_length, seed, temperature, **static)

    shapes = ([None], tf.bool), ([], tf.int32), ([2], tf.int32), ([], tf.float32)
    return tf.function(run, input_signature=[tf.TensorSpec(*x) for x in shapes], autograph=False)


def relaxed(ends, seed=(1, 2), max_length=MAX_LENGTH, temperature=1.0, **static):
    """Returns soft infills of `NETWORK` as arrays."""
    infills = graph_of(**static)(tf.constant(ends), max_length, list(seed), temperature)
    return infills._make(x.numpy() for x in infills)


def no_row_ends(rows):
    return np.zeros(rows, bool)


def assert_frequencies(counts, probabilities):
    """Asserts that Pearson's chi-square is less than five standard deviations above its expected value."""
    expected = np.sum(counts) * np.asarray(probabilities)
    assert np.min(expected) > 10
    freedom = counts.size - 1
    assert np.sum((counts - expected) ** 2 / expected) < freedom + 5 * np.sqrt(2 * freedom)


# The distribution.


@pytest.mark.parametrize("forbid_special", [True, False])
def test_token_frequencies_match_the_softmax(forbid_special):
    logits = np.random.default_rng(3).normal(size=VOCAB, scale=0.5).astype(np.float32)

    def step(ids, time, state):
        return tf.repeat(logits[None], tf.shape(ids)[0], axis=0), state

    tokens = gumbel_softmax(step, {}, 20000, 1, [5, 6], 0.7, forbid_special).ids[:, 0].numpy()
    first = EOB_ID if forbid_special else 0
    assert tokens.min() >= first
    assert_frequencies(np.bincount(tokens, minlength=VOCAB)[first:], tf.nn.softmax(logits[first:]))


def test_the_tokens_of_one_row_are_drawn_independently():
    """Checks all pairs of the first two tokens, with a model whose second token does not depend on the first."""
    logits = np.random.default_rng(4).normal(size=VOCAB)
    logits[EOB_ID] = -50

    def step(ids, time, state):
        return tf.repeat(tf.constant(logits[None], tf.float32), tf.shape(ids)[0], axis=0), state

    ids = gumbel_softmax(step, {}, 40000, 2, [5, 6], 1.0).ids.numpy() - FIRST_WORD
    words = VOCAB - FIRST_WORD
    one = tf.nn.softmax(logits[FIRST_WORD:]).numpy()
    assert_frequencies(np.bincount(ids[:, 0] * words + ids[:, 1], minlength=words**2), np.outer(one, one).ravel())


@settings(max_examples=15)
@given(seed=SEEDS, temperature=st.floats(0.1, 10))
def test_samples_contain_no_special_tokens_except_the_end(seed, temperature):
    held = gumbel_softmax(soft(LovesSpecialTokens().step), {"row": tf.range(8)}, 8, 4, seed, temperature)
    assert np.all((held.ids.numpy() >= EOB_ID) == (np.arange(4) < held.lengths[:, None]))
    assert np.all((held.ids.numpy() == PAD_ID) == (np.arange(4) >= held.lengths[:, None]))


def test_samples_contain_special_tokens_if_allowed():
    step = soft(LovesSpecialTokens().step)
    infills = gumbel_softmax(step, {"row": tf.range(8)}, 8, 4, [1, 2], 0.5, forbid_special=False)
    assert UNK_ID in infills.ids.numpy()


def soft(step):
    """Returns a step that also takes soft ids, for a model that reads only the number of rows."""
    return lambda inputs, time, state: step(tf.zeros([tf.shape(inputs)[0]], tf.int32), time, state)


# Inputs that a draw depends on.


@settings(max_examples=15)
@given(seed=SEEDS, temperature=st.floats(0.1, 3))
def test_the_same_seed_gives_the_same_infills(seed, temperature):
    one, other = (relaxed(no_row_ends(20), seed, temperature=temperature) for _ in range(2))
    for x, y in zip(one, other):
        np.testing.assert_array_equal(x, y)


def test_both_numbers_of_the_seed_matter():
    infills = [relaxed(no_row_ends(20), seed).ids for seed in ([1, 2], [1, 3], [2, 2], [2, 1])]
    for i, one in enumerate(infills):
        for other in infills[:i]:
            assert np.mean(np.any(one != other, axis=1)) > 0.5


@settings(max_examples=25)
@given(ends=st.lists(st.booleans(), min_size=20, max_size=20), seed=SEEDS)
def test_a_row_does_not_depend_on_which_others_are_finished(ends, seed):
    ends = np.array(ends)
    together, some_end = relaxed(no_row_ends(20), seed), relaxed(ends, seed)
    assert np.all(some_end.lengths[ends] == 1)
    np.testing.assert_allclose(together.probabilities[~ends], some_end.probabilities[~ends], atol=1e-4)
    for x, y in zip(together[1:], some_end[1:]):
        np.testing.assert_array_equal(x[~ends], y[~ends])


@pytest.mark.parametrize("rows", [1, 3, 13])
def test_the_first_rows_do_not_depend_on_the_number_of_rows_or_the_maximum_length(rows):
    many, few = relaxed(no_row_ends(20)), relaxed(no_row_ends(rows), max_length=3)
    np.testing.assert_array_equal(many.ids[:rows, :3], few.ids)
    np.testing.assert_allclose(many.probabilities[:rows, :3], few.probabilities, atol=1e-5)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_a_temperature_that_is_not_above_0_is_an_error(temperature):
    with pytest.raises(ValueError, match="temperature must be above 0. Received: temperature="):
        gumbel_softmax(NETWORK.step, NETWORK.start(no_row_ends(2)), 2, 3, [1, 2], temperature)
    with pytest.raises(tf.errors.InvalidArgumentError, match="temperature"):
        graph_of()(no_row_ends(2), 3, [1, 2], temperature)


# Soft ids.


@settings(max_examples=25)
@given(rows=st.integers(1, 20), max_length=st.integers(1, MAX_LENGTH), seed=SEEDS, temperature=st.floats(0.1, 10))
def test_soft_ids_are_distributions_over_words_and_the_end(rows, max_length, seed, temperature):
    infills = relaxed(np.arange(rows) % 3 == 0, seed, max_length, temperature)
    assert infills.probabilities.shape == (rows, max_length, VOCAB)
    assert infills.ids.shape == (rows, max_length) and infills.ids.dtype == np.int32
    inside = np.arange(max_length) < infills.lengths[:, None]
    np.testing.assert_allclose(infills.probabilities.sum(axis=2), inside, atol=1e-5)
    assert infills.probabilities.min() >= 0 and not np.any(infills.probabilities[:, :, :EOB_ID])
    np.testing.assert_array_equal(infills.ids, np.where(inside, infills.probabilities.argmax(axis=2), PAD_ID))
    # The length ends at the first `<EOB>`, or is `max_length` without one.
    ends = infills.ids == EOB_ID
    assert np.all(infills.lengths[::3] == 1)
    np.testing.assert_array_equal(infills.lengths, np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, max_length))


def test_soft_ids_include_special_tokens_if_allowed():
    assert np.all(relaxed(no_row_ends(20), forbid_special=False).probabilities[:, 0] > 0)


def test_the_first_inputs_are_ids_and_later_ones_the_previous_soft_ids():
    seen = []

    def step(inputs, time, state):
        seen.append((int(time), inputs))
        return NETWORK.step(inputs, time, state)

    infills = gumbel_softmax(step, NETWORK.start(no_row_ends(4)), 4, MAX_LENGTH, [3, 3], 0.5)
    assert [time for time, _ in seen] == list(range(max(infills.lengths.numpy())))
    assert len(seen) > 2
    assert seen[0][1].dtype == tf.int32 and seen[0][1].shape == [4]
    for time, inputs in seen[1:]:
        unfinished = infills.lengths > time
        np.testing.assert_array_equal(inputs[unfinished], infills.probabilities[:, time - 1][unfinished])


def test_hard_samples_are_one_hot_and_have_the_gradient_of_soft_ones():
    """Straight-through, checked at the first token, whose logits do not depend on earlier tokens."""
    logits = tf.Variable(np.random.default_rng(4).normal(size=(1, VOCAB)), dtype=tf.float32)

    def step(ids, time, state):
        return tf.repeat(tf.identity(logits), 8, axis=0), state

    found = {}
    for hard in (False, True):
        with tf.GradientTape() as tape:
            infills = gumbel_softmax(step, {}, 8, 1, [1, 2], 0.7, hard=hard)
            loss = tf.reduce_sum(infills.probabilities[:, 0] * tf.range(VOCAB, dtype=tf.float32))
        found[hard] = infills, tf.convert_to_tensor(tape.gradient(loss, logits))
    np.testing.assert_array_equal(found[True][0].ids, found[False][0].ids)
    np.testing.assert_array_equal(found[True][0].probabilities, tf.one_hot(found[True][0].ids, VOCAB))
    np.testing.assert_allclose(found[True][1], found[False][1], rtol=1e-6)


def test_hard_samples_feed_words_to_the_next_step():
    infills = relaxed(no_row_ends(4), seed=(3, 3), hard=True)
    ids, state = tf.fill([4], BOB_ID), NETWORK.start(no_row_ends(4))
    for time in range(infills.ids.shape[1]):
        logits, state = NETWORK.step(ids, tf.constant(time), state)
        noisy = logits + gumbel_noise(4, VOCAB, [3, 3], time)
        there = time < infills.lengths
        ids = best_token(noisy, forbid_special=True)
        np.testing.assert_array_equal(ids.numpy()[there], infills.ids[there, time])


def test_the_temperature_divides_the_logits_with_their_noise():
    """Checks time 0, at which the logits and the noise are the same for every temperature."""
    one, three = (np.log(relaxed(no_row_ends(20), temperature=t).probabilities[:, 0, EOB_ID:]) for t in (1.0, 3.0))
    difference = three - one / 3
    np.testing.assert_allclose(difference, np.repeat(difference[:, :1], VOCAB - EOB_ID, axis=1), atol=1e-4)


def test_a_high_temperature_makes_all_tokens_equal():
    probabilities = relaxed(no_row_ends(20), temperature=1e5).probabilities[:, 0]
    np.testing.assert_allclose(probabilities[:, EOB_ID:], 1 / (VOCAB - EOB_ID), atol=1e-4)


def test_soft_ids_of_a_low_temperature_are_one_hot():
    infills = relaxed(no_row_ends(50), temperature=1e-4)
    assert len(set(infills.lengths)) > 2
    inside = infills.ids > 0
    np.testing.assert_allclose(infills.probabilities[inside], np.eye(VOCAB)[infills.ids[inside]], atol=1e-2)


def loss_of(temperature=1.0, times=slice(None)):
    """Returns a weighted sum of all soft ids of some time steps."""
    infills = graph_of()(tf.constant(no_row_ends(5)), MAX_LENGTH, [5, 2], temperature)
    part = tf.constant(np.random.default_rng(7).normal(size=(5, MAX_LENGTH, VOCAB)), tf.float32)
    return tf.reduce_sum((infills.probabilities * part)[:, times])


@pytest.mark.parametrize("name", list(NETWORK.weights))
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_the_gradient_equals_finite_differences(name, temperature):
    """Compares the gradient with finite differences, in its own direction and in another one."""
    variable = NETWORK.weights[name]
    with tf.GradientTape() as tape:
        loss = loss_of(temperature)
    gradient = tf.convert_to_tensor(tape.gradient(loss, variable)).numpy()
    kept = variable.numpy()
    random = np.random.default_rng(8).normal(size=gradient.shape)
    try:
        for direction in (gradient, gradient + random * np.std(gradient)):
            direction = direction / np.linalg.norm(direction)
            losses = []
            for size in (5e-3, -5e-3):
                variable.assign(kept + size * direction)
                losses.append(loss_of(temperature).numpy())
            slope = (losses[0] - losses[1]) / 1e-2
            np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-2, atol=1e-3)
    finally:
        variable.assign(kept)


def test_the_gradient_of_a_position_flows_through_all_earlier_ones():
    longest = int(max(relaxed(no_row_ends(5), (5, 2)).lengths))
    assert longest > 3
    for time in range(longest):
        with tf.GradientTape() as tape:
            loss = loss_of(times=time)
        reached = np.any(tape.gradient(loss, NETWORK.weights["bias"]).numpy(), axis=1)
        np.testing.assert_array_equal(reached, np.arange(MAX_LENGTH) <= time)


def test_positions_after_the_end_have_no_gradient():
    inside = np.arange(MAX_LENGTH) < relaxed(no_row_ends(20)).lengths[:, None]
    assert 20 < inside.sum() < inside.size
    for times, reached in ((inside, True), (~inside, False)):
        with tf.GradientTape() as tape:
            infills = graph_of()(tf.constant(no_row_ends(20)), MAX_LENGTH, [1, 2], 1.0)
            loss = tf.reduce_sum(tf.boolean_mask(infills.probabilities, times) ** 2)
        assert np.any(tape.gradient(loss, NETWORK.weights["output"])) == reached


def test_graph_and_eager_agree_and_training_is_repeatable():
    """Enables op determinism, as training does: every op of the gradient has a deterministic kernel."""
    tf.config.experimental.enable_op_determinism()

    def gradients(max_length, temperature):
        with tf.GradientTape() as tape:
            infills = gumbel_softmax(NETWORK.step, NETWORK.start(no_row_ends(5)), 5, max_length, [5, 2], temperature)
            loss = tf.reduce_sum(infills.probabilities**2)
        found = tape.gradient(loss, list(NETWORK.weights.values()))
        return [infills.probabilities, *(tf.convert_to_tensor(x) for x in found)]

    graph = tf.function(gradients, autograph=False)
    length, temperature = tf.constant(MAX_LENGTH), tf.Variable(0.7)
    one, again, eager = graph(length, temperature), graph(length, temperature), gradients(length, temperature)
    for x, y, z in zip(one, again, eager):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(x, z, atol=1e-4)


def test_other_arguments_cause_no_retracing():
    graph = graph_of()
    for rows, max_length, temperature in ((3, 2, 0.5), (7, MAX_LENGTH, 2.0)):
        graph(tf.constant(no_row_ends(rows)), max_length, [rows, 1], temperature)
    assert graph.experimental_get_tracing_count() == 1
