"""The state of constrained search: hypotheses, the rows that are still computed, and the result."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling.decoding.constraints import Constraints
from text_infilling.vocabulary import EOB_ID, PAD_ID

NEVER = float("-inf")  # the key and the score of a missing hypothesis


class Search(NamedTuple):
    """What does not change during a search.

    Attributes:
        step, width, vocabulary_size, draw, no_repeat_ngram: the arguments of `constrained_search`.
        beams: scalar, beams per row, one for each number of phrase words matched.
    """

    step: Callable
    width: int | tf.Tensor
    vocabulary_size: int
    draw: Callable | None
    no_repeat_ngram: int | tf.Tensor
    beams: tf.Tensor


class NBest(NamedTuple):
    """The infills found for one blank of every row, best first.

    Attributes:
        ids: `[rows, width, longest]` words, then `<PAD>`.
        lengths: `[rows, width]` words.
        log_probs: `[rows, width, longest + 1]` of each word and then of `<EOB>` under the model, in nats; then 0.
        scores: `[rows, width]` sum of `log_probs`; minus infinity if fewer infills were found.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor


class Hypotheses(NamedTuple):
    """Open or ended hypotheses: the fields of `NBest`, with `keys`, the values that rank them, instead of `scores`."""

    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    keys: tf.Tensor

    @classmethod
    def missing(cls, rows: tf.Tensor, count: int | tf.Tensor, longest: tf.Tensor) -> "Hypotheses":
        """Returns `count` missing hypotheses for every row."""
        nothing = tf.fill([rows, count, longest], PAD_ID)
        lengths = tf.zeros([rows, count], tf.int32)
        return cls(nothing, lengths, tf.zeros([rows, count, longest + 1]), tf.fill([rows, count], NEVER))


class Rows(NamedTuple):
    """The rows that are still computed.

    Attributes:
        active: `[rows]` indices of the rows among all rows.
        done: `[rows]` whether each row is finished.
        constraints: of each row.
        words: `[rows, vocab]` whether each word is free, which means not banned.
        progress: `[rows, phrases, hypotheses]` words matched of each phrase.
        open: `[rows, hypotheses]` hypotheses without `<EOB>`: those of the first beam, best first, then of the second.
        ended: `[rows, width]` the best hypotheses with `<EOB>` so far, best first.
    """

    active: tf.Tensor
    done: tf.Tensor
    constraints: Constraints
    words: tf.Tensor
    progress: tf.Tensor
    open: Hypotheses
    ended: Hypotheses


class SearchState(NamedTuple):
    """The loop variables.

    Attributes:
        time: scalar, number of tokens of the open hypotheses.
        found: `[all rows, width]` the ended hypotheses of all rows.
        rows: the rows that are still computed.
        tokens: `[rows * hypotheses]` the last token of each open hypothesis.
        state: of `step`, `[rows * hypotheses, ...]`.
    """

    time: tf.Tensor
    found: Hypotheses
    rows: Rows
    tokens: tf.Tensor
    state: dict[str, Any]

    def in_prefix(self) -> tf.Tensor:
        """Returns whether the next token belongs to the prefix, `[rows, 1]`."""
        return (self.time < self.rows.constraints.prefix_lengths)[:, None]

    def may_continue(self) -> tf.Tensor:
        """Returns whether a word that is not of the prefix may follow, `[rows, 1]`."""
        return (self.time < self.rows.constraints.max_words)[:, None] & ~self.in_prefix()


class Continuations(NamedTuple):
    """Open hypotheses with one more token.

    Attributes:
        parents: `[rows, continuations]` indices of the open hypotheses.
        tokens: `[rows, continuations]` the new tokens.
        log_probs: `[rows, continuations]` of the new tokens under the model, in nats.
        keys: `[rows, continuations]` values that rank them; minus infinity for an excluded one.
        progress: `[rows, phrases, continuations]` words matched of each phrase, with the new token.
    """

    parents: tf.Tensor
    tokens: tf.Tensor
    log_probs: tf.Tensor
    keys: tf.Tensor
    progress: tf.Tensor

    def take(self, chosen: tf.Tensor, keys: tf.Tensor) -> "Continuations":
        """Returns the continuations `chosen`, `[rows, any]` indices, with new keys `[rows, any]`."""
        parents, tokens, log_probs = (tf.gather(x, chosen, batch_dims=1) for x in self[:3])
        return Continuations(parents, tokens, log_probs, keys, tf.gather(self.progress, chosen, batch_dims=1, axis=2))

    def hypotheses(self, now: SearchState) -> Hypotheses:
        """Returns the continuations of the open hypotheses of `now` as hypotheses; `<EOB>` is not one of their ids."""
        is_word = self.tokens != EOB_ID
        ids = tf.gather(now.rows.open.ids, self.parents, batch_dims=1)
        log_probs = tf.gather(now.rows.open.log_probs, self.parents, batch_dims=1)
        longest = tf.shape(ids)[2]
        is_new = tf.range(longest) == now.time
        return Hypotheses(
            ids=tf.where(is_new & is_word[:, :, None], self.tokens[:, :, None], ids),
            lengths=now.time + tf.cast(is_word, tf.int32),
            log_probs=tf.where(tf.range(longest + 1) == now.time, self.log_probs[:, :, None], log_probs),
            keys=self.keys,
        )
