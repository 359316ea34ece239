"""Which words of a sentence become blanks: the fixed rule of the original, or random spans.

Positions are word positions, from 0, half-open, `<BOS>` not counted. Everything is batched tensor code and works
eagerly, in a `tf.function` and in `tf.data`. Two blanks never touch: at least one kept word stands between them.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from text_infilling.mask_checks import check_blanks, check_mask_rate

# Above every uniform number, so that a place that is not to be had is chosen last.
_NEVER = 2.0


class Blanks(NamedTuple):
    """The blanks of a batch of sentences, left to right.

    Attributes:
        starts: `[batch, blanks]` int32, first word of each blank.
        ends: `[batch, blanks]` int32, one past its last word; never equal to its start in a valid row.
        valid: `[batch]` bool. False for a sentence too short for its blanks, whose starts and ends are all 0.
        counts: `[batch]` int32, how many of the columns are blanks of the sentence; the rest is to be ignored.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    valid: tf.Tensor
    counts: tf.Tensor


def fixed_blanks(lengths: tf.Tensor, mask_rate: float, blanks: int) -> Blanks:
    """Returns the blanks that the original's rule gives: all sentences of one length have the same.

    The share of masked words is below `mask_rate`, since their number is a floor; it is taken in 32-bit floats as in
    the original, where 0.4 of 10 words are 3.
    Source: not in the paper; the rule behind the templates that its authors released, 1,000 of 1,000 in six settings.

    Args:
        lengths: `[batch]` ints, words a sentence.
        mask_rate: share of the words to mask, in (0, 1).
        blanks: blanks a sentence, at least 1.

    Raises:
        ValueError: `mask_rate` or `blanks` out of range.
    """
    check_mask_rate(mask_rate)
    check_blanks(blanks)
    lengths = tf.cast(lengths, tf.int32)
    # Not mask_rate itself: the detour over its 32-bit complement decides where rate * words is whole.
    rate = np.float32(1) - np.float32(1 - mask_rate)
    masked = tf.cast(tf.floor(tf.cast(lengths, tf.float32) * rate), tf.int32)
    sizes = masked[:, None] // blanks + tf.cast(tf.range(blanks) < masked[:, None] % blanks, tf.int32)
    # Free places left and right of the blanks and between them, where one kept word each is taken already.
    free = lengths - masked - blanks + 2
    starts, next_start = [], tf.zeros_like(lengths)
    for blank in range(blanks):
        before = free // (blanks + 1)
        starts.append(next_start + before)
        next_start = starts[-1] + sizes[:, blank] + 1
        free -= before
    return _blanks(tf.stack(starts, axis=1), sizes, lengths, masked)


def random_blanks(lengths: tf.Tensor, mask_rate: float, blanks: int, uniforms: tf.Tensor) -> Blanks:
    """Returns blanks of random sizes at random places that mask `mask_rate` of the words, rounded to nearest.

    Halves are rounded up, and at least one word is masked a blank. The sizes are uniform among the compositions of that
    number into `blanks` parts, the places among those with a kept word between blanks; the first and the last word may
    be masked. A sentence's blanks depend on its own length and uniforms alone.
    Source: Paper, section 4.1 ("randomly"); how to draw is not said there.

    Args:
        lengths: `[batch]` ints, words a sentence.
        mask_rate: share of the words to mask, in (0, 1).
        blanks: blanks a sentence, at least 1.
        uniforms: `[batch, 2, max_length]` float32 in [0, 1), as of `line_uniforms`; the first of the two rows draws the
            sizes, the second the places.

    Raises:
        ValueError: `mask_rate` or `blanks` out of range.
        tf.errors.InvalidArgumentError: a sentence has more than `max_length` words.
    """
    check_mask_rate(mask_rate)
    check_blanks(blanks)
    lengths = tf.cast(lengths, tf.int32)
    fits = tf.debugging.assert_less_equal(
        tf.reduce_max(lengths), tf.shape(uniforms)[2], "A sentence has more words than there are uniform numbers"
    )
    with tf.control_dependencies([fits] if fits is not None else []):
        uniforms = tf.identity(uniforms)
    # The decimal that was meant: 0.29 * 50 is 14.499999999999998 in floats, and goes up.
    rounded = tf.floor(tf.cast(lengths, tf.float64) * mask_rate + (0.5 + 1e-9))
    masked = tf.maximum(tf.cast(rounded, tf.int32), blanks)
    cuts = _choose(uniforms[:, 0], masked - 1, blanks - 1) + 1
    bounds = tf.concat([tf.zeros_like(masked)[:, None], cuts, masked[:, None]], axis=1)
    sizes = bounds[:, 1:] - bounds[:, :-1]
    # A blank goes in front of the first kept word, ..., or behind the last; no two into the same gap.
    kept_before = _choose(uniforms[:, 1], lengths - masked + 1, blanks)
    return _blanks(kept_before + bounds[:, :-1], sizes, lengths, masked)


def any_blanks(lengths: tf.Tensor, mask_rate: float, most: int, uniforms: tf.Tensor) -> Blanks:
    """Returns 1 to `most` random blanks a sentence, so that a model learns any number of them.

    The number is drawn first, uniformly, and lowered for a sentence too short for it; then it is as in `random_blanks`.

    Args:
        lengths: `[batch]` ints, words a sentence.
        mask_rate: share of the words to mask, in (0, 1).
        most: blanks a sentence, at most.
        uniforms: `[batch, 3, max_length]`, as of `line_uniforms`; the third row draws the number.

    Raises:
        ValueError, tf.errors.InvalidArgumentError: as `random_blanks`.
    """
    check_blanks(most)
    numbers = list(range(1, most + 1))
    drawn = tf.cast(uniforms[:, 2, 0] * most, tf.int32) + 1
    found = [random_blanks(lengths, mask_rate, number, uniforms[:, :2]) for number in numbers]
    fits = tf.stack([blanks.valid for blanks in found], axis=1) & (tf.constant(numbers)[None, :] <= drawn[:, None])
    counts = tf.reduce_max(tf.where(fits, tf.constant(numbers)[None, :], 0), axis=1)

    def chosen(field):
        columns = [tf.pad(getattr(blanks, field), [[0, 0], [0, most - n]]) for n, blanks in zip(numbers, found)]
        return tf.gather(tf.stack(columns, axis=1), tf.maximum(counts - 1, 0), batch_dims=1)

    valid = counts > 0
    starts, ends = (tf.where(valid[:, None], chosen(field), 0) for field in ("starts", "ends"))
    return Blanks(starts, ends, valid, counts)


def line_uniforms(seed: int, epoch: int, line: int, max_length: int, rows: int = 2) -> tf.Tensor:
    """Returns the `[rows, max_length]` float32 uniform numbers of one line in one epoch, for `random_blanks`.

    They are a function of (seed, epoch, line) for a number of rows; a smaller `max_length` gives the beginning of the
    same numbers. All but `rows` may be tensors.
    """
    key = tf.random.fold_in(tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)]), tf.cast(line, tf.int64))
    # One column a word, transposed only afterwards: so the numbers do not depend on max_length.
    return tf.transpose(tf.random.stateless_uniform([max_length, rows], key, alg="philox"))


def _choose(uniforms: tf.Tensor, available: tf.Tensor, count: int) -> tf.Tensor:
    """Returns `[batch, count]`: distinct places below `available`, rising, uniform among all such choices.

    Rows with less than `count` available places get arbitrary ones.
    """
    places = tf.range(tf.shape(uniforms)[1])
    keys = tf.where(places < available[:, None], uniforms, _NEVER)
    missing = tf.maximum(count - tf.shape(uniforms)[1], 0)
    keys = tf.pad(keys, [[0, 0], [0, missing]], constant_values=_NEVER)
    return tf.sort(tf.math.top_k(-keys, count).indices, axis=1)


def _blanks(starts: tf.Tensor, sizes: tf.Tensor, lengths: tf.Tensor, masked: tf.Tensor) -> Blanks:
    """Returns the blanks, zeroed where a sentence has too few words to mask or too few kept ones to stand between."""
    blanks = sizes.shape[1]
    valid = (masked >= blanks) & (lengths - masked + 1 >= blanks)
    starts = tf.where(valid[:, None], starts, 0)
    return Blanks(starts, tf.where(valid[:, None], starts + sizes, 0), valid, tf.where(valid, blanks, 0))
