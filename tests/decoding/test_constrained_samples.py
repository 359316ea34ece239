"""Samples within limits have the model's frequencies and depend only on seed and number."""

import numpy as np
import pytest
import tensorflow as tf
from small_network import FIRST_WORD, MOST, NETWORK, WORDS, A, B, limits, ranked, sampled
from test_sampling import assert_frequencies

from text_infilling.vocabulary import BOB_ID


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_word_frequencies_match_the_softmax(temperature):
    ids, lengths = sampled([limits(1, 1)] * 30000, temperature=temperature)
    assert np.all(lengths == 1)
    logits, _ = NETWORK.step(tf.constant([BOB_ID]), None, NETWORK.start(1))
    assert_frequencies(
        np.bincount(ids[:, 0] - FIRST_WORD, minlength=WORDS), tf.nn.softmax(logits[0, FIRST_WORD:] / temperature)
    )


def test_top_k_and_top_p_restrict_samples_to_the_most_probable_words():
    logits, _ = NETWORK.step(tf.constant([BOB_ID]), None, NETWORK.start(1))
    order = np.argsort(-logits[0, FIRST_WORD:].numpy()) + FIRST_WORD
    share = tf.nn.softmax(logits[0, FIRST_WORD:]).numpy()[order - FIRST_WORD]
    rows = [limits(1, 1)] * 300
    for k in (1, 2, 3):
        assert set(sampled(rows, top_k=k, temperature=5.0)[0][:, 0]) == set(order[:k])
        assert set(sampled(rows, top_p=sum(share[:k]) - 1e-4)[0][:, 0]) == set(order[:k])
    both = sampled(rows, top_k=2, top_p=share[0] / sum(share[:2]) - 1e-4)
    assert set(both[0][:, 0]) == {order[0]}  # top_p applies to the tokens that top_k keeps


@pytest.mark.parametrize("settings_", [{"temperature": 1e-9}, {"top_k": 1}, {"top_p": 1e-9}])
def test_samples_of_low_temperature_top_k_or_top_p_equal_greedy_search(settings_):
    ids, lengths = sampled([limits()] * 3, **settings_)
    (infill, _), *_ = ranked([limits()], 1)[0]
    assert all(tuple(row[:n]) == infill for row, n in zip(ids, lengths))


def test_samples_are_a_function_of_seed_and_number():
    rows = [limits(2, MOST)] * 30
    one, other = sampled(rows), sampled([limits(2, MOST)] * 50 + [limits(phrases=[[A, B]])])
    np.testing.assert_array_equal(one[0], other[0][:30])
    assert len({tuple(row) for row in one[0]}) > 5
    assert np.any(one[0] != sampled(rows, seed=(1, 3))[0])
    assert np.any(one[0] != sampled(rows, seed=(2, 2))[0])
