"""Decoding equals teacher forcing and brute force; infills do not depend on padding or contain special tokens."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from peaked import (
    FIRST_WORD,
    MAX_LENGTH,
    LovesSpecialTokens,
    batch,
    fill_graph,
    peaked_model,
    scores_of,
    search,
    teacher_forced,
)

from text_infilling import templates
from text_infilling.decoding.beam import beam_search
from text_infilling.decoding.decode_blanks import fill_blanks
from text_infilling.decoding.greedy import greedy_search
from text_infilling.decoding.loop import best_token
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID, UNK_ID


@pytest.fixture(scope="module")
def model():
    """The model for properties of a search that hold for any model."""
    return peaked_model()


@pytest.fixture(scope="module", params=["self_attention", "seq2seq"])
def each_model(request):
    """The models for properties that each one must have; the GAN uses the seq2seq model."""
    return peaked_model(name=request.param, seed={"self_attention": 0, "seq2seq": 5}[request.param])


@pytest.fixture(scope="module")
def template():
    return templates.initial_template(*batch(), templates.TemplateFormat())


def test_step_by_step_with_a_cache_equals_teacher_forcing(each_model, template):
    ids = tf.constant(np.random.default_rng(1).integers(FIRST_WORD, 19, (12, 5)), tf.int32)
    expected = teacher_forced(each_model, template, ids)
    assert np.max(tf.nn.softmax(expected), axis=2).mean() > 0.4  # over 19 tokens, so the model is peaked
    state = each_model.start(template)
    for time in range(6):
        token = ids[:, time - 1] if time else tf.fill([12], BOB_ID)
        logits, state = each_model.step(token, tf.constant(time), state)
        np.testing.assert_allclose(logits, expected[:, time], atol=1e-4)


def test_greedy_takes_the_best_token_of_every_step(each_model, template):
    """A search that drops finished rows gives the same result as a plain loop over all rows."""
    state, token = each_model.start(template), tf.fill([12], BOB_ID)
    ids, ended, scores = [], np.zeros(12, bool), np.zeros(12)
    for time in range(MAX_LENGTH):
        logits, state = each_model.step(token, tf.constant(time), state)
        token = best_token(logits, True)
        log_probs = tf.gather(tf.nn.log_softmax(logits), token, batch_dims=1).numpy()
        scores += np.where(ended, 0, log_probs)
        ended |= token.numpy() == EOB_ID
        ids.append(np.where(ended, PAD_ID, token))
    infills = search(each_model, template, 0)
    np.testing.assert_array_equal(infills.ids, np.stack(ids, axis=1))
    np.testing.assert_array_equal(infills.lengths, np.sum(np.stack(ids, axis=1) != PAD_ID, axis=1))
    np.testing.assert_allclose(infills.scores, scores, atol=1e-4)
    # Rows finished at different times, and finished rows were no longer computed.
    assert len(set(infills.lengths.numpy())) > 2
    assert infills.positions < 12 * MAX_LENGTH


def test_a_beam_of_one_is_greedy(model, template):
    greedy, beam = search(model, template, 0), search(model, template, 1)
    np.testing.assert_array_equal(beam.ids[:, 0], greedy.ids)
    np.testing.assert_array_equal(beam.lengths[:, 0], greedy.lengths)
    np.testing.assert_allclose(beam.scores[:, 0], greedy.scores, atol=1e-4)


@pytest.mark.parametrize("beam_width", [0, 4])
def test_scores_are_the_teacher_forced_log_probabilities(each_model, template, beam_width):
    infills = search(each_model, template, beam_width)
    ids, lengths, scores = (x.numpy() for x in infills[:3])
    if beam_width:
        ids, lengths, scores = ids[:, 0], lengths[:, 0], scores[:, 0]
    ended = lengths < MAX_LENGTH
    assert ended.sum() >= 6
    expected = scores_of(each_model, template, ids[:, :-1], np.minimum(lengths, MAX_LENGTH - 1))
    np.testing.assert_allclose(scores[ended], expected[ended], atol=1e-4)


def test_a_beam_as_wide_as_all_continuations_is_brute_force():
    """With 4 words, the beam finds and orders all infills that end within three tokens."""
    model = peaked_model(words=4, seed=1)
    template = templates.initial_template(*batch(rows=4, words=4, seed=1), model.template_format)
    words = range(FIRST_WORD, FIRST_WORD + 4)
    infills = [infill for length in range(3) for infill in itertools.product(words, repeat=length)]
    assert len(infills) == 1 + 4 + 16

    ids = np.array([(*infill, PAD_ID, PAD_ID)[:2] for infill in infills], np.int32)
    lengths = np.array([len(infill) for infill in infills])
    everything = []
    for row in range(4):
        one = templates.Template(*(tf.repeat(x[row : row + 1], len(infills), axis=0) for x in template))
        everything.append(scores_of(model, one, ids, lengths))
    everything = np.stack(everything)  # [rows, infills]

    # 80: 16 open infills of two words with five continuations each.
    found = search(model, template, 80, max_length=3)
    for row in range(4):
        order = np.argsort(-everything[row])
        np.testing.assert_allclose(found.scores[row, :21], everything[row][order], atol=1e-3)
        best = order[0]
        assert tuple(found.ids[row, 0, : found.lengths[row, 0]].numpy()) == infills[best]
        ranked = [tuple(found.ids[row, rank, : found.lengths[row, rank]].numpy()) for rank in range(21)]
        assert sorted(ranked) == sorted(infills)
        assert np.all(found.scores[row, 21:] < -1e8)  # no more infills exist


def test_a_wider_beam_finds_no_worse_infills(model):
    template = templates.initial_template(*batch(rows=40, seed=5), model.template_format)
    greedy = search(model, template, 0)
    beam = search(model, template, 4)
    assert np.all(np.diff(beam.scores, axis=1) <= 1e-5)  # best first
    assert np.mean(beam.scores[:, 0]) > np.mean(greedy.scores)


@pytest.mark.parametrize("beam_width", [0, 1, 4])
def test_infills_contain_no_special_tokens(beam_width):
    state = {"row": tf.range(5), "cache": tf.zeros([5, 1])}
    method = functools.partial(beam_search, beam_width=beam_width) if beam_width else greedy_search
    step = LovesSpecialTokens().step
    free = method(step, state, 5, 4, forbid_special=False)
    held = method(step, state, 5, 4, forbid_special=True)
    best = (slice(None), 0) if beam_width else (slice(None),)
    assert UNK_ID in free.ids[best].numpy()
    ids, lengths = held.ids[best].numpy(), held.lengths[best].numpy()
    assert lengths.tolist() == [4] * 5
    assert ids.tolist() == [[FIRST_WORD + row % 3] * 4 for row in range(5)]
    for words, size in zip(np.reshape(held.ids, [-1, 4]), np.ravel(held.lengths)):
        assert np.all(words[:size] >= FIRST_WORD) and np.all(words[size:] == PAD_ID)


@pytest.mark.parametrize("beam_width", [0, 4])
def test_the_length_is_bounded(model, template, beam_width):
    """An infill without `<EOB>` is cut at the maximum length and counts as complete."""
    for max_length in (2, MAX_LENGTH):
        infills = search(model, template, beam_width, max_length=max_length)
        assert infills.ids.shape[-1] == max_length
        assert np.max(infills.lengths) <= max_length
        assert np.max(infills.scores[..., 0]) <= 0 and np.min(infills.scores[..., 0]) > -1e3
        words = np.arange(max_length) < infills.lengths.numpy()[..., None]
        np.testing.assert_array_equal(infills.ids.numpy() != PAD_ID, words)
        assert infills.positions <= 12 * max(beam_width, 1) * max_length


@pytest.mark.parametrize("beam_width", [1, 4])
def test_a_row_does_not_depend_on_padding_or_other_rows(each_model, beam_width):
    """Every row has the same result alone, without padding, as in a batch with longer rows and more blanks."""
    together = fill_graph(each_model, beam_width)(*batch())
    ids, lengths, starts, ends, counts = batch()
    text_lengths = together.template.lengths
    for row in range(len(ids)):
        blanks, length = int(counts[row]), int(lengths[row])
        one = (x[row : row + 1] for x in (ids[:, :length], lengths, starts, ends, counts))
        alone = fill_graph(each_model, beam_width)(*one)
        np.testing.assert_array_equal(alone.ids[0], together.ids[row])
        np.testing.assert_array_equal(alone.lengths[0], together.lengths[row])
        np.testing.assert_allclose(alone.scores[0], together.scores[row], atol=1e-5)
        assert not np.any(together.lengths[row, blanks:]) and not np.any(together.scores[row, blanks:])
        np.testing.assert_array_equal(alone.template.lengths[0], text_lengths[row])
        np.testing.assert_array_equal(alone.template.ids[0], together.template.ids[row, : text_lengths[row]])


def test_words_inside_a_blank_are_ignored(each_model):
    ids, lengths, starts, ends, counts = batch()
    position = tf.range(ids.shape[1])[None, :, None]
    real = tf.range(2)[None, None, :] < counts[:, None, None]
    inside = tf.reduce_any((position >= starts[:, None]) & (position < ends[:, None]) & real, axis=2)
    changed = tf.where(inside, FIRST_WORD, ids)
    assert np.any(changed != ids)
    one = fill_graph(each_model, 1)(ids, lengths, starts, ends, counts)
    other = fill_graph(each_model, 1)(changed, lengths, starts, ends, counts)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.template.ids, other.template.ids)


def test_a_later_blank_is_decoded_with_the_infill_of_the_earlier_one(each_model):
    arguments = batch(rows=8, seed=2)
    arguments[4] = tf.fill([8], 2)
    filled = fill_graph(each_model, 1)(*arguments)
    template = templates.initial_template(*arguments, each_model.template_format)
    template = templates.fill_blank(template, filled.ids[:, 0], filled.lengths[:, 0], each_model.template_format)
    second = search(each_model, template, 0)
    np.testing.assert_array_equal(filled.ids[:, 1], second.ids)
    np.testing.assert_allclose(filled.scores[:, 1], second.scores, atol=1e-5)
    assert filled.positions > second.positions


@pytest.mark.parametrize("beam_width", [1, 4])
def test_eager_and_graph_agree_without_retracing(each_model, beam_width):
    graph = fill_graph(each_model, beam_width)
    for arguments in (batch(), batch(rows=2, seed=4, longest=6)):
        compiled = graph(*arguments)
    eager = fill_blanks(each_model, *arguments, MAX_LENGTH, beam_width)
    np.testing.assert_array_equal(eager.ids, compiled.ids)
    np.testing.assert_array_equal(eager.lengths, compiled.lengths)
    np.testing.assert_allclose(eager.scores, compiled.scores, atol=1e-5)
    np.testing.assert_array_equal(eager.template.ids, compiled.template.ids)
    assert graph.experimental_get_tracing_count() == 1


def test_a_beam_width_of_0_is_an_error(model):
    with pytest.raises(ValueError, match="beam_width must be at least 1. Received: beam_width=0"):
        fill_blanks(model, *batch(), MAX_LENGTH, beam_width=0)


def test_the_loss_of_a_sentence_does_not_depend_on_the_rest_of_its_batch(each_model):
    ids, lengths, starts, ends, counts = batch(rows=6)
    examples = templates.build_examples(ids, lengths, starts, ends, counts, each_model.template_format)._asdict()
    together, _ = each_model.score(examples)
    for row in range(6):
        length = int(lengths[row])
        one = (x[row : row + 1] for x in (ids[:, :length], lengths, starts, ends, counts))
        alone, _ = each_model.score(templates.build_examples(*one, each_model.template_format)._asdict())
        np.testing.assert_allclose(alone[0], together[row, :, : alone.shape[2]], atol=1e-5)
        assert not np.any(together[row, :, alone.shape[2] :])
