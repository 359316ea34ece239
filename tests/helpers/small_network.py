"""A network of three words, small enough to try all infills, and constrained search on it."""

import functools
import itertools

import numpy as np
import tensorflow as tf
from hypothesis import strategies as st

from text_infilling.decoding.constrained import constrained_search, sampler
from text_infilling.decoding.constraints import Constraints
from text_infilling.inference.limit_arrays import stack
from text_infilling.inference.limits import BlankLimits
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID

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


def sampled(rows, seed=(1, 2), temperature=1.0, top_k=2**31 - 1, top_p=2.0, size=0):
    """Returns ids and lengths of a sample for every row; see `sampling_graph`."""
    found = sampling_graph(*arrays(rows), list(seed), temperature, top_k, top_p, size)
    return found.ids[:, 0].numpy(), found.lengths[:, 0].numpy()


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
