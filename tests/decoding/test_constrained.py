"""Constrained search equals brute force and the unconstrained searches; samples depend only on seed and number."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from peaked import MAX_LENGTH, batch, peaked_model, search
from test_sampling import assert_frequencies

from text_infilling import templates
from text_infilling.decoding.constrained import constrained_search, sampler
from text_infilling.decoding.constraints import Constraints, borders_of, unconstrained, words_needed
from text_infilling.inference.limits import BlankLimits, LimitsReader, stack
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID, Vocabulary

FIRST_WORD = len(SPECIAL_TOKENS)
WORDS = 3
VOCAB = FIRST_WORD + WORDS
A, B, C = range(FIRST_WORD, VOCAB)
UNKNOWN, LIKE_C = VOCAB + UNK_ID, 2 * VOCAB + C  # words as typed, read by the model as `<UNK>` and as C
MOST = 4  # maximum words per infill
EVERYTHING = 125  # beam width above the number of possible infills


class Network:
    """A small recurrent network; every row starts in a different state."""

    def __init__(self, seed=0, dim=4, scale=1.5):
        random = np.random.default_rng(seed)
        self.embedding, self.recurrent, self.output = (
            random.normal(size=size, scale=scale).astype(np.float32)
            for size in ((VOCAB, dim), (dim, dim), (dim, VOCAB))
        )

    def start(self, rows, first=0):
        """Returns the start state of rows `first` to `first + rows - 1`."""
        cells = np.random.default_rng(9).normal(size=(40, len(self.recurrent))).astype(np.float32)
        return {"cache": [tf.gather(cells, (tf.range(rows) + first) % 40)]}

    def step(self, ids, time, state):
        cell = tf.tanh(tf.gather(self.embedding, ids) + state["cache"][0] @ self.recurrent)
        return cell @ self.output, {**state, "cache": [cell]}

    def log_probs(self, row, infill):
        """Returns the log probability of each word of an infill and of its end, in nats, computed word by word."""
        state, found = self.start(1, row), []
        for token, label in zip([BOB_ID, *infill], [*infill, EOB_ID]):
            logits, state = self.step(tf.constant([token % VOCAB]), None, state)
            found.append(float(tf.nn.log_softmax(logits)[0, label % VOCAB]))
        return found


NETWORK = Network()
CONSTRAINTS = Constraints(
    *(tf.TensorSpec([None] * rank, tf.int32) for rank in (1, 1, 2, 1, 2, 3, 2)),
    tf.TensorSpec([None] * 4, tf.bool),
    tf.TensorSpec([None] * 2, tf.int32),
    tf.TensorSpec([None] * 4, tf.int32),
)


@tf.function(input_signature=[*CONSTRAINTS, *[tf.TensorSpec([], tf.int32)] * 3], autograph=False)
def graph(*arguments):
    *constraints, width, first, size = arguments
    rows, constraints = tf.shape(constraints[0])[0], Constraints(*constraints)
    start = NETWORK.start(rows, first)
    return constrained_search(NETWORK.step, start, constraints, width, VOCAB, no_repeat_ngram=size)


@tf.function(
    input_signature=[
        *CONSTRAINTS,
        tf.TensorSpec([2], tf.int64),
        tf.TensorSpec([], tf.float32),
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([], tf.float32),
        tf.TensorSpec([], tf.int32),
    ],
    autograph=False,
)
def sampling_graph(*arguments):
    """Returns a sample for every row, each with a different number; all start from the state of row 0."""
    constraints, (seed, temperature, top_k, top_p, size) = Constraints(*arguments[:-5]), arguments[-5:]
    rows = tf.shape(constraints[0])[0]
    draw = sampler(seed, tf.range(rows), rows, temperature, top_k, top_p)
    state = tf.nest.map_structure(lambda x: tf.repeat(x, rows, axis=0), NETWORK.start(1))
    return constrained_search(NETWORK.step, state, constraints, 1, VOCAB, draw, size)


def limits(least=0, most=MOST, prefix=(), banned=(), phrases=(), sequences=()):
    return BlankLimits(
        least,
        most,
        list(prefix),
        list(banned),
        [list(phrase) for phrase in phrases],
        [],
        {},
        sequences=[[list(word) for word in sequence] for sequence in sequences],
    )


def arrays(rows):
    """Returns the limits of the rows as constraints, one blank per row."""
    return [tf.constant(x[0]) for x in stack([rows])]


def ranked(rows, width, first=0, size=0):
    """Returns for every row its infills, best first, with their log probabilities: `[(infill, log_probs), ...]`."""
    found = graph(*arrays(rows), width, first, size)
    ids, lengths, log_probs, scores = (x.numpy() for x in found)
    result = []
    for row in range(len(rows)):
        assert list(scores[row]) == sorted(scores[row], reverse=True)
        there = np.flatnonzero(scores[row] > -np.inf)
        for w in there:
            n = lengths[row, w]
            assert np.all(ids[row, w, n:] == PAD_ID) and np.all(ids[row, w, :n] != PAD_ID)
            assert not np.any(log_probs[row, w, n + 1 :])
            np.testing.assert_allclose(scores[row, w], np.sum(log_probs[row, w]), atol=1e-4)
        result.append(
            [(tuple(ids[row, w, : lengths[row, w]]), log_probs[row, w, : lengths[row, w] + 1]) for w in there]
        )
    return result


def contains(infill, phrase):
    return any(infill[i : i + len(phrase)] == tuple(phrase) for i in range(len(infill) - len(phrase) + 1))


def begins(infill, sequence):
    return len(infill) >= len(sequence) and all(i in alike for i, alike in zip(infill, sequence))


def keeps(infill, wish):
    """Returns whether an infill is within limits."""
    return (
        wish.min_words <= len(infill) <= wish.max_words
        and infill[: len(wish.prefix)] == tuple(wish.prefix)
        and all(contains(infill, phrase) for phrase in wish.phrases)
        and not set(infill) & set(wish.banned)
        and not any(begins(infill[i:], sequence) for sequence in wish.sequences for i in range(len(infill)))
    )


@st.composite
def wishes(draw, most_phrases):
    """Draws satisfiable limits of at most `MOST` words."""
    phrase = st.lists(st.integers(A, C), min_size=1, max_size=2)
    phrases = draw(st.lists(phrase, max_size=most_phrases, unique_by=tuple))
    prefix = draw(st.lists(st.integers(A, C), max_size=max(0, min(1, MOST - sum(map(len, phrases))))))
    needed = len(prefix) + sum(map(len, phrases))
    most = draw(st.integers(needed, MOST))
    asked = {i for phrase in phrases for i in phrase} | set(prefix)
    others = [i for i in (A, B, C) if i not in asked]
    banned = draw(st.lists(st.sampled_from(others or [PAD_ID]), max_size=1))
    alike = st.lists(st.integers(A, C), min_size=1, max_size=2, unique=True)
    # Each contains a word that nothing else requires, so that the limits are satisfiable.
    sequences = draw(st.lists(st.lists(alike, min_size=1, max_size=2), max_size=2)) if others else []
    sequences = [[*sequence, [others[-1]]] for sequence in sequences]
    least = draw(st.integers(0, needed if sequences else most))
    return limits(least, most, prefix, [i for i in banned if i], phrases, sequences)


ALL = [infill for n in range(MOST + 1) for infill in itertools.product((A, B, C), repeat=n)]


@functools.cache
def all_scores(row):
    """Returns the log probability of every infill of at most `MOST` words, by teacher forcing all of them at once."""
    state = {"cache": [tf.repeat(NETWORK.start(1, row)["cache"][0], len(ALL), axis=0)]}
    ids = np.full((len(ALL), MOST + 2), EOB_ID)
    for line, infill in zip(ids, ALL):
        line[0], line[1 : 1 + len(infill)] = BOB_ID, infill
    total = np.zeros(len(ALL))
    for time in range(MOST + 1):
        logits, state = NETWORK.step(tf.constant(ids[:, time], tf.int32), None, state)
        each = tf.gather(tf.nn.log_softmax(logits), ids[:, time + 1], batch_dims=1).numpy()
        total += np.where(time <= np.array([len(infill) for infill in ALL]), each, 0)
    return dict(zip(ALL, total))


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


# Samples.


def sampled(rows, seed=(1, 2), temperature=1.0, top_k=2**31 - 1, top_p=2.0, size=0):
    found = sampling_graph(*arrays(rows), list(seed), temperature, top_k, top_p, size)
    return found.ids[:, 0].numpy(), found.lengths[:, 0].numpy()


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


# Phrases.


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
