"""Constrained search equals brute force and the unconstrained searches."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from peaked import MAX_LENGTH, batch, peaked_model, search
from small_network import (
    ALL,
    EVERYTHING,
    LIKE_C,
    NETWORK,
    UNKNOWN,
    VOCAB,
    A,
    B,
    C,
    all_scores,
    arrays,
    keeps,
    limits,
    ranked,
    sampled,
    sampling_graph,
    wishes,
)

from text_infilling import templates
from text_infilling.decoding.constrained import constrained_search
from text_infilling.decoding.constraints import unconstrained

# Against brute force.


@settings(max_examples=25)
@given(st.lists(wishes(most_phrases=1), min_size=6, max_size=6))
def test_a_beam_as_wide_as_everything_ranks_all_infills_within_the_limits(rows):
    for row, (wish, found) in enumerate(zip(rows, ranked(rows, EVERYTHING))):
        expected = {infill: score for infill, score in all_scores(row).items() if keeps(infill, wish)}
        assert {infill for infill, _ in found} == expected.keys()
        for infill, log_probs in found:
            assert np.sum(log_probs) == pytest.approx(expected[infill], abs=1e-3)


@settings(max_examples=25)
@given(st.lists(wishes(most_phrases=2), min_size=6, max_size=6), st.sampled_from([1, 2, 5]))
def test_every_limit_holds_for_every_result(rows, width):
    for row, (wish, found) in enumerate(zip(rows, ranked(rows, width))):
        assert found
        assert len({infill for infill, _ in found}) == len(found)
        for infill, log_probs in found:
            assert keeps(infill, wish)
            assert np.sum(log_probs) == pytest.approx(all_scores(row)[infill], abs=1e-3)


@settings(max_examples=25)
@given(st.lists(wishes(most_phrases=2), min_size=6, max_size=6), st.integers(0, 2**40))
def test_every_limit_holds_for_every_sample(rows, seed):
    ids, lengths, _, scores = sampling_graph(*arrays(rows), [seed, 1], 2.0, 2**31 - 1, 2.0, 0)
    for row, wish in enumerate(rows):
        infill = tuple(ids[row, 0, : lengths[row, 0]].numpy())
        assert keeps(infill, wish)
        assert float(scores[row, 0]) == pytest.approx(all_scores(0)[infill], abs=1e-3)


def test_a_phrase_is_placed_where_it_fits_best():
    """Holds for any width: greedy search keeps one hypothesis per number of phrase words matched."""
    wish = limits(least=3, most=3, phrases=[[B]])
    rows = [wish] * 20
    best = [max((s, i) for i, s in all_scores(row).items() if keeps(i, wish))[1] for row in range(20)]
    greedy, beam = ([found[0][0] for found in ranked(rows, width)] for width in (1, 5))
    assert len({infill.index(B) for infill in greedy}) == 3
    assert np.mean([a == b for a, b in zip(greedy, best)]) >= 0.4
    assert np.mean([a == b for a, b in zip(beam, best)]) >= 0.8


def test_a_row_does_not_depend_on_the_others():
    rows = [limits(), limits(2, 3, [A], [B], [[C]]), limits(most=1), limits(most=4, phrases=[[A, B], [C]])]
    for row, (wish, together) in enumerate(zip(rows, ranked(rows, 3))):
        (alone,) = ranked([wish], 3, first=row)
        for one, other in zip(alone, together, strict=True):
            assert one[0] == other[0]
            np.testing.assert_allclose(one[1], other[1], atol=1e-5)


def test_finished_rows_are_no_longer_computed():
    words = tf.range(8)  # infill length of each row
    computed = []

    def step(ids, time, state):
        computed.append(len(ids))
        return NETWORK.step(ids, time, state)

    found = constrained_search(
        step, NETWORK.start(8), unconstrained(words)._replace(min_words=words), width=1, vocabulary_size=VOCAB
    )
    np.testing.assert_array_equal(found.lengths[:, 0], words)
    assert computed == [8, 8, 6, 6, 4, 3, 2, 1]  # dropped once they are at least a quarter


# Repeated words.


def repeats(infill, size):
    """Returns whether an infill has the same `size` consecutive words twice, or a word three times in a row."""
    grams = [infill[i : i + size] for i in range(len(infill) - size + 1)]
    return len(set(grams)) < len(grams) or any(a == b == c for a, b, c in zip(infill, infill[1:], infill[2:]))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_exactly_the_infills_without_repeats_are_found(size):
    (found,) = ranked([limits()], EVERYTHING, size=size)
    assert {infill for infill, _ in found} == {infill for infill in ALL if not repeats(infill, size)}
    for infill, log_probs in found:
        assert np.sum(log_probs) == pytest.approx(all_scores(0)[infill], abs=1e-3)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_sample_repeats_words(size):
    ids, lengths = sampled([limits()] * 300, temperature=3.0, size=size)
    assert not any(repeats(tuple(row[:n]), size) for row, n in zip(ids, lengths))


def test_prefix_and_phrases_may_repeat_words():
    rows = [limits(prefix=[A] * 4), limits(phrases=[[B, B, B]]), limits(prefix=[A, B], phrases=[[A, B, A, B]])]
    for wish, found in zip(rows, ranked(rows, 2, size=2)):
        assert found and all(keeps(infill, wish) for infill, _ in found)


def test_a_word_is_repeated_if_the_limits_leave_no_other():
    (found,) = ranked([limits(least=4, banned=[B, C])], 2, size=3)
    assert [infill for infill, _ in found] == [(A, A, A, A)]
    assert sampled([limits(least=4, banned=[B, C])], size=3)[0].tolist() == [[A, A, A, A]]


# Banned sequences.


def test_a_banned_sequence_is_excluded_even_if_phrases_contain_its_words():
    rows = [
        limits(phrases=[[A], [B]], sequences=[[[A], [B]]]),
        limits(prefix=[A], phrases=[[B, C]], sequences=[[[A], [B], [C]]]),
        limits(prefix=[A], least=2, sequences=[[[A, B], [A, B]]], banned=[C]),  # contradictory
    ]
    *possible, impossible = ranked(rows, 2)
    for wish, found in zip(rows, possible):
        assert found and all(keeps(infill, wish) for infill, _ in found)
    assert impossible == []


# Words with ids above the vocabulary's.


@pytest.mark.parametrize("typed", [UNKNOWN, LIKE_C])
def test_a_word_as_typed_appears_only_where_it_is_requested(typed):
    """It is as probable as the id that the model reads, which itself does not count as the word."""
    rows = [
        limits(prefix=[typed]),
        limits(least=2, phrases=[[typed]]),
        limits(prefix=[typed, A], phrases=[[typed + 2 * VOCAB, B], [typed]]),
        limits(phrases=[[typed], [typed + 2 * VOCAB]], banned=[C]),
    ]
    for row, (wish, found) in enumerate(zip(rows, ranked(rows, 4))):
        assert found
        for infill, log_probs in found:
            assert keeps(infill, wish)
            assert infill.count(typed) == 1  # once, even if it is in both the prefix and a phrase
            np.testing.assert_allclose(log_probs, NETWORK.log_probs(row, infill), atol=1e-4)


# Against the unconstrained searches.


@pytest.fixture(scope="module", params=["self_attention", "seq2seq"])
def model(request):
    return peaked_model(name=request.param, seed={"self_attention": 0, "seq2seq": 5}[request.param])


@pytest.mark.parametrize("width", [1, 4])
def test_without_limits_it_equals_greedy_and_beam_search(model, width):
    template = templates.initial_template(*batch(), model.template_format)
    expected = search(model, template, width)
    found = tf.function(
        lambda: constrained_search(
            model.step, model.start(template), unconstrained(tf.fill([12], MAX_LENGTH)), width, 19
        ),
        autograph=False,
    )()
    # An infill cut at the maximum length must end with `<EOB>` here, but not in the unconstrained search.
    ended = np.all(np.reshape(found.lengths, [12, -1]) < MAX_LENGTH, axis=1)
    ended &= np.all(np.reshape(expected.lengths, [12, -1]) < MAX_LENGTH, axis=1)
    assert np.sum(ended) >= 4
    for row in np.flatnonzero(ended):
        np.testing.assert_array_equal(found.ids[row], expected.ids[row])
        np.testing.assert_array_equal(found.lengths[row], expected.lengths[row])
        np.testing.assert_allclose(found.scores[row], expected.scores[row], atol=1e-4)
