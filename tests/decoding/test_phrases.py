"""Phrases that an infill must contain: how far one is matched, and the fewest words that complete all."""

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from small_network import ALL, MOST, A, B, C, contains, keeps, limits, ranked

from text_infilling.decoding.constraints import borders_of, words_needed
from text_infilling.inference.limits import LimitsReader
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary


@given(st.lists(st.integers(A, B), min_size=1, max_size=4), st.lists(st.integers(A, B), max_size=12))
def test_borders_give_the_longest_beginning_of_a_phrase_that_is_matched(phrase, words):
    """Advances step by step as the search does; a phrase that was completed once stays complete."""
    borders, reached = borders_of(phrase, len(phrase) + 1), 0
    for end in range(1, len(words) + 1):
        if reached < len(phrase):
            going_on = [m + 1 for m in range(len(phrase)) if borders[reached][m] and words[end - 1] == phrase[m]]
            reached = max(going_on, default=0)
            ends = [n for n in range(min(end, len(phrase)) + 1) if words[end - n : end] == phrase[:n]]
            assert reached == max(ends)
    assert (reached == len(phrase)) == contains(tuple(words), phrase)


def test_words_needed_complete_one_phrase_first_and_the_others_in_order():
    lengths = tf.constant([[3, 1]])
    progress = tf.constant([[[2, 3, 3, 0], [0, 0, 1, 0]]])  # two phrases, four hypotheses
    assert words_needed(progress, lengths, tf.zeros_like(lengths)).numpy().tolist() == [[2, 1, 0, 4]]
    lengths, overlaps = tf.constant([[3, 2]]), tf.constant([[0, 1]])
    progress = tf.constant([[[0, 2, 3, 0], [0, 0, 1, 1]]])
    assert words_needed(progress, lengths, overlaps).numpy().tolist() == [[4, 2, 1, 4]]
    nothing = words_needed(tf.zeros([2, 0, 3], tf.int32), *[tf.zeros([2, 0], tf.int32)] * 2)
    assert nothing.numpy().tolist() == [[0] * 3] * 2


LETTERS = Vocabulary(["a", "b", "c"])
READER = LimitsReader(Tokenizer(lower=True), LETTERS, MOST)


@st.composite
def overlapping(draw):
    """Draws a satisfiable prefix and phrases for at most `MOST` words, with the length of the shortest infill."""
    infill = draw(st.lists(st.sampled_from([A, A, B, C]), max_size=MOST))
    prefix, phrases = infill[: draw(st.integers(0, 2))], []
    for _ in range(draw(st.integers(1, 3)) if infill else 0):
        start = draw(st.integers(0, len(infill) - 1))
        phrases.append(infill[start : draw(st.integers(start + 1, len(infill)))])
    return prefix, phrases, min(len(other) for other in ALL if keeps(other, limits(prefix=prefix, phrases=phrases)))


@settings(max_examples=40)
@given(st.lists(overlapping(), min_size=6, max_size=6), st.sampled_from([1, 3]))
def test_overlapping_phrases_fit_in_the_fewest_possible_words(cases, width):
    rows = []
    for prefix, phrases, shortest in cases:
        wish = {"prefix": " ".join(LETTERS.decode(prefix))}
        wish["must_include"] = [" ".join(LETTERS.decode(phrase)) for phrase in phrases]
        rows.append(READER.read({**wish, "exact_words": shortest}, "blank 1"))
        if shortest:
            with pytest.raises(ValueError, match=f"take {shortest} words"):
                READER.read({**wish, "exact_words": shortest - 1}, "blank 1")
    for (prefix, phrases, shortest), found in zip(cases, ranked(rows, width)):
        assert found
        for infill, _ in found:
            assert keeps(infill, limits(shortest, shortest, prefix, phrases=phrases))
