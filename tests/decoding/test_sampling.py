"""Sampling: its distribution, the inputs that a draw depends on, and the gradient through relaxed samples."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from peaked import FIRST_WORD, LovesSpecialTokens, batch, peaked_model, scores_of

from text_infilling import templates
from text_infilling.decoding.decode_blanks import fill_blanks
from text_infilling.decoding.greedy import greedy_search
from text_infilling.decoding.sampling import gumbel_softmax, sample, sampling_search
from text_infilling.vocabulary import EOB_ID, PAD_ID, UNK_ID

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
def graph_of(method, **static):
    """Returns `sample` or `gumbel_softmax` with `NETWORK` as a graph of (ends, max_length, seed, temperature).

    It is compiled once per method.
    """

    def run(ends, max_length, seed, temperature):
        rows = tf.size(ends)
        return method(NETWORK.step, NETWORK.start(ends), rows, max_length, seed, temperature, **static)

    shapes = ([None], tf.bool), ([], tf.int32), ([2], tf.int32), ([], tf.float32)
    return tf.function(run, input_signature=[tf.TensorSpec(*x) for x in shapes], autograph=False)


def sampled(ends, seed=(1, 2), max_length=MAX_LENGTH, temperature=1.0, **static):
    """Returns infills of `NETWORK` as arrays."""
    infills = graph_of(sample, **static)(tf.constant(ends), max_length, list(seed), temperature)
    return infills._make(x.numpy() for x in infills)


def relaxed(ends, seed=(1, 2), max_length=MAX_LENGTH, temperature=1.0, **static):
    """Returns soft infills of `NETWORK` as arrays."""
    infills = graph_of(gumbel_softmax, **static)(tf.constant(ends), max_length, list(seed), temperature)
    return infills._make(x.numpy() for x in infills)


def going(rows):
    return np.zeros(rows, bool)


def assert_frequencies(counts, probabilities):
    """Asserts that Pearson's chi-square is less than five standard deviations above its expected value."""
    expected = np.sum(counts) * np.asarray(probabilities)
    assert np.min(expected) > 10
    freedom = counts.size - 1
    assert np.sum((counts - expected) ** 2 / expected) < freedom + 5 * np.sqrt(2 * freedom)


# The distribution.


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("forbid_special", [True, False])
def test_token_frequencies_match_the_softmax(temperature, forbid_special):
    logits = np.random.default_rng(3).normal(size=VOCAB, scale=0.5).astype(np.float32)
    rows = 20000

    def step(ids, time, state):
        return tf.repeat(logits[None], tf.size(ids), axis=0), state

    infills = sample(step, {}, rows, 1, [5, 6], temperature, forbid_special)
    tokens = np.where(infills.lengths == 0, EOB_ID, infills.ids[:, 0])
    first = EOB_ID if forbid_special else 0
    assert tokens.min() >= first
    assert_frequencies(np.bincount(tokens, minlength=VOCAB)[first:], tf.nn.softmax(logits[first:] / temperature))


def test_the_tokens_of_one_row_are_drawn_independently():
    """Checks all pairs of the first two tokens, with a model whose second token does not depend on the first."""
    logits = np.random.default_rng(4).normal(size=VOCAB)
    logits[EOB_ID] = -50

    def step(ids, time, state):
        return tf.repeat(tf.constant(logits[None], tf.float32), tf.size(ids), axis=0), state

    ids = sample(step, {}, 40000, 2, [5, 6]).ids.numpy() - FIRST_WORD
    words = VOCAB - FIRST_WORD
    one = tf.nn.softmax(logits[FIRST_WORD:]).numpy()
    assert_frequencies(np.bincount(ids[:, 0] * words + ids[:, 1], minlength=words**2), np.outer(one, one).ravel())


def test_a_low_temperature_equals_greedy_search():
    model = peaked_model()
    template = templates.initial_template(*batch(), model.protocol)
    state = model.start(template)
    greedy = greedy_search(model.step, state, 12, MAX_LENGTH)
    for temperature in (1e-6, 1e-30):
        cold = sample(model.step, state, 12, MAX_LENGTH, [1, 2], temperature)
        np.testing.assert_array_equal(cold.ids, greedy.ids)
        np.testing.assert_array_equal(cold.lengths, greedy.lengths)
        np.testing.assert_allclose(cold.scores, greedy.scores, atol=1e-5)
        assert cold.positions == greedy.positions


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_scores_are_the_teacher_forced_log_probabilities_at_temperature_1(temperature):
    model = peaked_model()
    template = templates.initial_template(*batch(), model.protocol)
    infills = sample(model.step, model.start(template), 12, MAX_LENGTH, [1, 2], temperature)
    ids, lengths = infills.ids.numpy(), infills.lengths.numpy()
    ended = lengths < MAX_LENGTH
    assert ended.sum() >= 6
    expected = scores_of(model, template, ids[:, :-1], np.minimum(lengths, MAX_LENGTH - 1))
    np.testing.assert_allclose(infills.scores.numpy()[ended], expected[ended], atol=1e-4)


@settings(max_examples=15)
@given(seed=SEEDS, temperature=st.floats(0.1, 10))
def test_samples_contain_no_special_tokens(seed, temperature):
    step, state = LovesSpecialTokens().step, {"row": tf.range(8)}
    held = sample(step, state, 8, 4, seed, temperature)
    assert np.all((held.ids.numpy() >= FIRST_WORD) == (np.arange(4) < held.lengths[:, None]))
    assert np.all((held.ids.numpy() == PAD_ID) == (np.arange(4) >= held.lengths[:, None]))


def test_samples_contain_special_tokens_if_allowed():
    infills = sample(LovesSpecialTokens().step, {"row": tf.range(8)}, 8, 4, [1, 2], 0.5, forbid_special=False)
    assert UNK_ID in infills.ids.numpy()


@settings(max_examples=25)
@given(rows=st.integers(1, 30), max_length=st.integers(1, MAX_LENGTH), seed=SEEDS)
def test_an_infill_is_bounded_and_padded(rows, max_length, seed):
    infills = sampled(going(rows), seed, max_length)
    assert infills.ids.shape == (rows, max_length)
    words = np.arange(max_length) < infills.lengths[:, None]
    np.testing.assert_array_equal(infills.ids >= FIRST_WORD, words)
    np.testing.assert_array_equal(infills.ids == PAD_ID, ~words)
    assert np.all(infills.scores < 0)
    needed = np.minimum(infills.lengths + 1, max_length)
    assert needed.sum() <= infills.positions <= rows * needed.max()


# Inputs that a draw depends on.


@settings(max_examples=15)
@given(seed=SEEDS, temperature=st.floats(0.1, 3))
def test_the_same_seed_gives_the_same_infills(seed, temperature):
    one, other = (sampled(going(20), seed, temperature=temperature) for _ in range(2))
    for x, y in zip(one, other):
        np.testing.assert_array_equal(x, y)


def test_both_numbers_of_the_seed_matter():
    infills = [sampled(going(20), seed).ids for seed in ([1, 2], [1, 3], [2, 2], [2, 1])]
    for i, one in enumerate(infills):
        for other in infills[:i]:
            assert np.mean(np.any(one != other, axis=1)) > 0.5


@settings(max_examples=25)
@given(ends=st.lists(st.booleans(), min_size=20, max_size=20), seed=SEEDS)
def test_a_row_does_not_depend_on_which_others_are_finished(ends, seed):
    ends = np.array(ends)
    together, dropped = sampled(going(20), seed), sampled(ends, seed)
    assert not np.any(dropped.lengths[ends])
    for x, y in zip(together[:2], dropped[:2]):
        np.testing.assert_array_equal(x[~ends], y[~ends])
    np.testing.assert_allclose(together.scores[~ends], dropped.scores[~ends], atol=1e-4)


@pytest.mark.parametrize("rows", [1, 3, 13])
def test_the_first_rows_do_not_depend_on_the_number_of_rows(rows):
    """Holds for soft ids too, and for any `max_length`."""
    many, few = sampled(going(20)), sampled(going(rows), max_length=3)
    np.testing.assert_array_equal(many.ids[:rows, :3], few.ids)
    many, few = relaxed(going(20)), relaxed(going(rows), max_length=3)
    np.testing.assert_array_equal(many.ids[:rows, :3], few.ids)
    np.testing.assert_allclose(many.probabilities[:rows, :3], few.probabilities, atol=1e-5)


def test_finished_rows_are_no_longer_computed():
    infills = sampled(np.arange(20) < 15)
    assert infills.positions <= 20 + 5 * (MAX_LENGTH - 1)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan")])
def test_a_temperature_that_is_not_above_0_is_an_error(temperature):
    for method in (sample, gumbel_softmax):
        with pytest.raises(ValueError, match="temperature must be above 0. Received: temperature="):
            method(NETWORK.step, NETWORK.start(going(2)), 2, 3, [1, 2], temperature)
        with pytest.raises(tf.errors.InvalidArgumentError, match="temperature"):
            graph_of(method)(going(2), 3, [1, 2], temperature)
    with pytest.raises(ValueError, match="temperature must be above 0"):
        sampling_search([1, 2], temperature)


# Several blanks.


def test_each_blank_is_sampled_with_different_noise():
    search = sampling_search([1, 2])
    ids = [search(NETWORK.step, NETWORK.start(going(20)), 20, MAX_LENGTH, k).ids.numpy() for k in range(3)]
    for one, other in (ids[:2], ids[1:], ids[::2]):
        assert np.mean(np.any(one != other, axis=1)) > 0.5


def test_the_blanks_of_a_text_are_sampled_from_left_to_right():
    """A later blank is sampled from the template with the infill of the earlier one."""
    model, search = peaked_model(), sampling_search([1, 2], 1.5)
    arguments = batch(rows=8, seed=2)
    arguments[4] = tf.fill([8], 2)
    filled = fill_blanks(model, *arguments, MAX_LENGTH, search=search)
    template = templates.initial_template(*arguments, model.protocol)
    for k in range(2):
        infills = search(model.step, model.start(template), 8, MAX_LENGTH, k)
        np.testing.assert_array_equal(filled.ids[:, k], infills.ids)
        np.testing.assert_allclose(filled.scores[:, k], infills.scores, atol=1e-5)
        template = templates.fill_blank(template, infills.ids, infills.lengths, model.protocol)


def test_a_beam_with_a_custom_search_is_an_error():
    with pytest.raises(ValueError, match="beam_width must be 1 if a custom search is given. Received: beam_width=4"):
        fill_blanks(peaked_model(), *batch(), MAX_LENGTH, beam_width=4, search=sampling_search([1, 2]))


# Relaxed samples.


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
    assert np.all(relaxed(going(20), forbid_special=False).probabilities[:, 0] > 0)


def test_the_first_inputs_are_ids_and_later_ones_the_previous_soft_ids():
    seen = []

    def step(inputs, time, state):
        seen.append((int(time), inputs))
        return NETWORK.step(inputs, time, state)

    infills = gumbel_softmax(step, NETWORK.start(going(4)), 4, MAX_LENGTH, [3, 3], 0.5)
    assert [time for time, _ in seen] == list(range(max(infills.lengths.numpy())))
    assert len(seen) > 2
    assert seen[0][1].dtype == tf.int32 and seen[0][1].shape == [4]
    for time, inputs in seen[1:]:
        going_on = infills.lengths > time
        np.testing.assert_array_equal(inputs[going_on], infills.probabilities[:, time - 1][going_on])


def test_the_temperature_divides_the_logits_with_their_noise():
    """Checks time 0, at which the logits and the noise are the same for every temperature."""
    one, three = (np.log(relaxed(going(20), temperature=t).probabilities[:, 0, EOB_ID:]) for t in (1.0, 3.0))
    difference = three - one / 3
    np.testing.assert_allclose(difference, np.repeat(difference[:, :1], VOCAB - EOB_ID, axis=1), atol=1e-4)


def test_a_high_temperature_makes_all_tokens_equal():
    probabilities = relaxed(going(20), temperature=1e5).probabilities[:, 0]
    np.testing.assert_allclose(probabilities[:, EOB_ID:], 1 / (VOCAB - EOB_ID), atol=1e-4)


def test_soft_ids_of_a_low_temperature_equal_the_samples_of_the_same_seed():
    soft, hard = relaxed(going(50), temperature=1e-4), sampled(going(50))
    assert len(set(hard.lengths)) > 2
    np.testing.assert_array_equal(np.where(soft.ids == EOB_ID, PAD_ID, soft.ids), hard.ids)
    words = hard.ids > 0
    np.testing.assert_allclose(soft.probabilities[words], np.eye(VOCAB)[hard.ids[words]], atol=1e-2)


def loss_of(temperature=1.0, times=slice(None)):
    """Returns a weighted sum of all soft ids of some time steps."""
    infills = graph_of(gumbel_softmax)(tf.constant(going(5)), MAX_LENGTH, [5, 2], temperature)
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
    longest = int(max(relaxed(going(5), (5, 2)).lengths))
    assert longest > 3
    for time in range(longest):
        with tf.GradientTape() as tape:
            loss = loss_of(times=time)
        reached = np.any(tape.gradient(loss, NETWORK.weights["bias"]).numpy(), axis=1)
        np.testing.assert_array_equal(reached, np.arange(MAX_LENGTH) <= time)


def test_positions_after_the_end_have_no_gradient():
    inside = np.arange(MAX_LENGTH) < relaxed(going(20)).lengths[:, None]
    assert 20 < inside.sum() < inside.size
    for times, reached in ((inside, True), (~inside, False)):
        with tf.GradientTape() as tape:
            infills = graph_of(gumbel_softmax)(tf.constant(going(20)), MAX_LENGTH, [1, 2], 1.0)
            loss = tf.reduce_sum(tf.boolean_mask(infills.probabilities, times) ** 2)
        assert np.any(tape.gradient(loss, NETWORK.weights["output"])) == reached


def test_graph_and_eager_agree_and_training_is_repeatable():
    """Enables op determinism, as training does: every op of the gradient has a deterministic kernel."""
    tf.config.experimental.enable_op_determinism()

    def gradients(max_length, temperature):
        with tf.GradientTape() as tape:
            infills = gumbel_softmax(NETWORK.step, NETWORK.start(going(5)), 5, max_length, [5, 2], temperature)
            loss = tf.reduce_sum(infills.probabilities**2)
        found = tape.gradient(loss, list(NETWORK.weights.values()))
        return [infills.probabilities, *(tf.convert_to_tensor(x) for x in found)]

    graph = tf.function(gradients, autograph=False)
    length, temperature = tf.constant(MAX_LENGTH), tf.Variable(0.7)
    one, again, eager = graph(length, temperature), graph(length, temperature), gradients(length, temperature)
    for x, y, z in zip(one, again, eager):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(x, z, atol=1e-4)


@pytest.mark.parametrize("method", [sample, gumbel_softmax])
def test_other_arguments_cause_no_retracing(method):
    graph = graph_of(method)
    for rows, max_length, temperature in ((3, 2, 0.5), (7, MAX_LENGTH, 2.0)):
        graph(tf.constant(going(rows)), max_length, [rows, 1], temperature)
    assert graph.experimental_get_tracing_count() == 1
