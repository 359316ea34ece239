"""Constraints on infills, and the ids that they require or exclude at each step of the search."""

from typing import NamedTuple

import tensorflow as tf

from text_infilling.vocabulary import EOB_ID, PAD_ID


class Constraints(NamedTuple):
    """Constraints on infills; a row is a blank.

    An id at or above the size of the vocabulary represents a word exactly as the user typed it. The model reads it as
    the id modulo that size, for example `<UNK>` or the one word for all numbers. The search produces such an id only if
    the prefix or a phrase contains it.

    Attributes:
        min_words, max_words: `[rows]`.
        prefix: `[rows, prefix_length]` ids that the infill begins with, padded.
        prefix_lengths: `[rows]`.
        banned: `[rows, banned]` ids that may appear only as part of the prefix or a phrase, padded.
        phrases: `[rows, phrases, phrase_length]` ids; the infill contains each phrase. `phrase_length` is at least 1.
        phrase_lengths: `[rows, phrases]`, 0 for a missing phrase.
        borders: `[rows, phrases, phrase_length + 1, phrase_length]`, from `borders_of`.
        overlaps: `[rows, phrases]` number of words at the start of each phrase that are also the end of the phrase
            before it.
        sequences: `[rows, sequences, sequence_length, variants]` banned sequences of words: for each word the padded
            set of its possible ids. A shorter sequence has empty sets before its first word. `sequence_length` is at
            least 1.
    """

    min_words: tf.Tensor
    max_words: tf.Tensor
    prefix: tf.Tensor
    prefix_lengths: tf.Tensor
    banned: tf.Tensor
    phrases: tf.Tensor
    phrase_lengths: tf.Tensor
    borders: tf.Tensor
    overlaps: tf.Tensor
    sequences: tf.Tensor


def unconstrained(max_words: tf.Tensor) -> Constraints:
    """Returns constraints that only limit the number of words to `max_words`, `[rows]` or of any other shape."""

    def none(*sizes):
        return tf.zeros(tf.concat([tf.shape(max_words), tf.constant(sizes, tf.int32)], axis=0), tf.int32)

    return Constraints(
        min_words=none(),
        max_words=max_words,
        prefix=none(0),
        prefix_lengths=none(),
        banned=none(0),
        phrases=none(0, 1),
        phrase_lengths=none(0),
        borders=tf.cast(none(0, 2, 1), tf.bool),
        overlaps=none(0),
        sequences=none(0, 1, 0),
    )


def borders_of(phrase: list[int], width: int) -> list[list[bool]]:
    """Returns for each s and m whether the first m words of a phrase equal the last m of its first s words.

    A hypothesis that has matched s words and does not continue with the next may still match m words (the failure
    function of Knuth-Morris-Pratt matching). With `so so good`, after `so so` another `so` still matches two words.

    Args:
        phrase: ids.
        width: number of columns; at least the length of the phrase.

    Returns:
        A list `[width + 1][width]`, indexed by s and m.
    """
    return [[m <= s <= len(phrase) and phrase[:m] == phrase[s - m : s] for m in range(width)] for s in range(width + 1)]


def words_needed(progress: tf.Tensor, lengths: tf.Tensor, overlaps: tf.Tensor) -> tf.Tensor:
    """Returns the number of words that suffices to complete the phrases: the best one first, then the others in order.

    Each of the others starts inside the phrase before it if the two overlap and that phrase is incomplete too.

    Args:
        progress: `[rows, phrases, hypotheses]` words matched of each phrase.
        lengths, overlaps: `[rows, phrases]`, as in `Constraints`.

    Returns:
        `[rows, hypotheses]`.
    """
    unmet = progress < lengths[:, :, None]
    after_unmet = tf.pad(unmet, [[0, 0], [1, 0], [0, 0]])[:, :-1]
    shared = tf.where(unmet & after_unmet, overlaps[:, :, None], 0)
    in_order = tf.reduce_sum(tf.where(unmet, lengths[:, :, None] - shared, 0), axis=1)
    # The phrase that is completed first saves its matched words instead of its overlap.
    return in_order - tf.maximum(tf.reduce_max(tf.where(unmet, progress - shared, 0), axis=1), 0)  # 0 without phrases


def free_words(constraints: Constraints, vocabulary_size: int) -> tf.Tensor:
    """Returns whether each word is neither a special token nor banned: `[rows, vocab]`."""
    banned = constraints.banned
    rows = tf.shape(banned)[0]
    places = tf.stack([tf.repeat(tf.range(rows), tf.shape(banned)[1]), tf.reshape(banned, [-1])], axis=1)
    words = tf.range(vocabulary_size) > EOB_ID  # `<EOB>` is the last special token
    words = tf.broadcast_to(words, [rows, vocabulary_size])
    return tf.tensor_scatter_nd_update(words, places, tf.zeros([tf.shape(places)[0]], tf.bool))


def completing(past: tf.Tensor, sequences: tf.Tensor) -> tf.Tensor:
    """Returns the ids that would complete a banned sequence.

    With the sequences `new york` and `the new york`, whose words have two ids each, the result for the hypothesis
    `in the new` has the two ids of `york` twice; that for the hypothesis `new in` has no ids.

    Args:
        past: `[rows, hypotheses, time]` ids of the hypotheses.
        sequences: as in `Constraints`.

    Returns:
        `[rows, hypotheses, sequences * variants]`, `<PAD>` for a sequence that no id would complete.
    """
    rows, hypotheses, _ = tf.unstack(tf.shape(past))
    beginnings, ends = sequences[:, None, :, :-1], sequences[:, None, :, -1]
    length = tf.shape(beginnings)[3]
    last = tf.pad(past, [[0, 0], [0, 0], [length, 0]], constant_values=-1)  # -1 is in no set of ids
    last = last[:, :, tf.shape(last)[2] - length :]  # [rows, hypotheses, length]
    is_word = tf.reduce_any(tf.equal(last[:, :, None, :, None], beginnings), axis=4)
    is_any = tf.reduce_all(tf.equal(beginnings, PAD_ID), axis=4)
    begun = tf.reduce_all(is_word | is_any, axis=3)  # [rows, hypotheses, sequences]
    ids = tf.where(begun[:, :, :, None], ends, PAD_ID)
    return tf.reshape(ids, [rows, hypotheses, tf.reduce_prod(tf.shape(ends)[2:])])


def repeats(past: tf.Tensor, size: int | tf.Tensor) -> tf.Tensor:
    """Returns the ids that would repeat an n-gram of an infill, or would be the same word a third time in a row.

    With a size of 3, the hypothesis `so good and so good` must not continue with `and`, and `so so` not with `so`.

    Args:
        past: `[rows, hypotheses, time]` ids of the hypotheses.
        size: words per n-gram; 0 turns the rule off.

    Returns:
        `[rows, hypotheses, time + 1]`, `<PAD>` for a position of the past that excludes no id.
    """
    time = tf.shape(past)[2]
    back = tf.range(1, tf.clip_by_value(size, 1, time + 1))  # distances from a word to those before it in its n-gram
    places = tf.range(time)[:, None] - back  # positions of the words before each: [time, size - 1]
    before = tf.gather(past, tf.maximum(places, 0), axis=2)
    same = tf.equal(before, tf.gather(past, time - back, axis=2)[:, :, None, :]) & (places >= 0)
    again = tf.where(tf.reduce_all(same, axis=3) & (tf.range(time) + 1 >= size), past, PAD_ID)
    last = tf.pad(past, [[0, 0], [0, 0], [2, 0]])[:, :, -2:]
    thrice = tf.where(tf.equal(last[:, :, :1], last[:, :, 1:]), last[:, :, 1:], PAD_ID)
    return tf.where(size > 0, tf.concat([again, thrice], axis=2), PAD_ID)


def without(allowed: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Returns `allowed` `[rows, hypotheses, vocab]` with False at `ids` `[rows, hypotheses, any]`."""
    shape, count = tf.shape(allowed), tf.shape(ids)[2]
    flat = tf.reshape(allowed, [shape[0] * shape[1], shape[2]])
    ids = tf.reshape(tf.where(ids < shape[2], ids, PAD_ID), [-1])  # ids as typed are never free words
    places = tf.stack([tf.repeat(tf.range(shape[0] * shape[1]), count), ids], axis=1)
    return tf.reshape(tf.tensor_scatter_nd_update(flat, places, tf.zeros_like(ids, tf.bool)), shape)


def advance(progress: tf.Tensor, tokens: tf.Tensor, constraints: Constraints) -> tf.Tensor:
    """Returns `[rows, phrases, any]`: the words matched of each phrase after `tokens` `[rows, any]` are appended."""
    phrases, lengths = constraints.phrases, constraints.phrase_lengths[:, :, None]
    border = tf.gather(constraints.borders, progress, batch_dims=2, axis=2)  # [rows, phrases, any, phrase_length]
    # Not `==`, which loses its static shape if an axis may have size 0.
    hit = border & tf.equal(tokens[:, None, :, None], phrases[:, :, None, :])
    reached = tf.reduce_max(tf.where(hit, tf.range(1, tf.shape(phrases)[2] + 1), 0), axis=3)
    return tf.where(tf.equal(progress, lengths), lengths, reached)
