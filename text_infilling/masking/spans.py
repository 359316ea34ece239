"""Chooses which words of a sentence become blanks: the fixed rule of the original, or random spans.

Positions count words from 0, without `<BOS>`; spans are half-open. All functions are batched tensor code and work
eagerly, in a `tf.function` and in `tf.data`. The blanks chosen here never touch and are never empty: each has at least
one word, and at least one kept word is between two of them.
"""

from typing import NamedTuple

import tensorflow as tf

from text_infilling.masking.checks import check_blanks, check_mask_rate, check_mask_rates
from text_infilling.masking.fixed_rule import fixed_places, fixed_rate

# Above every uniform number, so that an unavailable position is chosen last.
_NEVER = 2.0


class BlankTensors(NamedTuple):
    """The blanks of a batch of sentences, left to right.

    Attributes:
        starts: `[batch, blanks]` int32, first word of each blank.
        ends: `[batch, blanks]` int32, one past its last word; never equal to its start in a valid row.
        valid: `[batch]` bool. False for a sentence too short for its blanks, whose starts and ends are all 0.
        counts: `[batch]` int32, number of columns that are blanks of the sentence; ignore the other columns.
    """

    starts: tf.Tensor
    ends: tf.Tensor
    valid: tf.Tensor
    counts: tf.Tensor


def fixed_blanks(lengths: tf.Tensor, mask_rate: float, blanks: int) -> BlankTensors:
    """Returns the blanks of the original's rule, which depend only on the length of the sentence.

    The number of masked words is rounded down, so their share is at most `mask_rate`. It is computed in 32-bit floats
    as in the original, where 0.4 of 10 words is 3.
    Source: not in the paper; this rule reproduces the templates that its authors released (1,000 of 1,000 in each of
    six settings).

    Args:
        lengths: `[batch]` ints, words per sentence.
        mask_rate: fraction of words to mask, in (0, 1).
        blanks: blanks per sentence, at least 1.

    Raises:
        ValueError: `mask_rate` or `blanks` is out of range.
    """
    check_mask_rate(mask_rate)
    check_blanks(blanks)
    lengths = tf.cast(lengths, tf.int32)
    masked = tf.cast(tf.floor(tf.cast(lengths, tf.float32) * fixed_rate(mask_rate)), tf.int32)
    starts, sizes = zip(*fixed_places(lengths, masked, blanks), strict=True)
    return _blanks(tf.stack(starts, axis=1), tf.stack(sizes, axis=1), lengths, masked)


def random_blanks(lengths: tf.Tensor, mask_rate: float, blanks: int, uniforms: tf.Tensor) -> BlankTensors:
    """Returns blanks of random sizes at random positions that mask `mask_rate` of the words, rounded to nearest.

    Halves are rounded up, and every blank has at least one word. The sizes are uniform among the compositions of the
    number of masked words into `blanks` parts; the positions are uniform among those with a kept word between blanks.
    The first and the last word may be masked. The blanks of a sentence depend only on its length and its uniforms.
    Source: Paper, section 4.1 ("randomly"), which does not define the distribution.

    Args:
        lengths: `[batch]` ints, words per sentence.
        mask_rate: fraction of words to mask, in (0, 1).
        blanks: blanks per sentence, at least 1.
        uniforms: `[batch, 2, max_length]` float32 in [0, 1), as from `line_uniforms`; the first of the two rows draws
            the sizes, the second the positions.

    Raises:
        ValueError: `mask_rate` or `blanks` is out of range.
        tf.errors.InvalidArgumentError: a sentence has more than `max_length` words.
    """
    check_mask_rate(mask_rate)
    check_blanks(blanks)
    return _draw(lengths, mask_rate, blanks, uniforms)


def _draw(lengths, rates, blanks, uniforms):
    """Returns `random_blanks`; `rates` is a number or `[batch]` float64."""
    lengths = tf.cast(lengths, tf.int32)
    fits = tf.debugging.assert_less_equal(
        tf.reduce_max(lengths), tf.shape(uniforms)[2], "A sentence has more words than there are uniform numbers"
    )
    with tf.control_dependencies([fits] if fits is not None else []):
        uniforms = tf.identity(uniforms)
    # Rounds the decimal number that was meant: 0.29 * 50 is 14.499999999999998 in floats and is rounded up to 15.
    rounded = tf.floor(tf.cast(lengths, tf.float64) * rates + (0.5 + 1e-9))
    masked = tf.maximum(tf.cast(rounded, tf.int32), blanks)
    cuts = _choose(uniforms[:, 0], masked - 1, blanks - 1) + 1
    bounds = tf.concat([tf.zeros_like(masked)[:, None], cuts, masked[:, None]], axis=1)
    sizes = bounds[:, 1:] - bounds[:, :-1]
    # The gaps are before the first kept word, ..., and after the last; no two blanks share a gap.
    kept_before = _choose(uniforms[:, 1], lengths - masked + 1, blanks)
    return _blanks(kept_before + bounds[:, :-1], sizes, lengths, masked)


def any_blanks(
    lengths: tf.Tensor, mask_rate: float | tuple[float, float], most: int, uniforms: tf.Tensor
) -> BlankTensors:
    """Returns 1 to `most` random blanks per sentence, so that a model learns any number of them.

    Draws the number first, uniformly, and lowers it if the sentence is too short; then works as `random_blanks`.

    Args:
        lengths: `[batch]` ints, words per sentence.
        mask_rate: fraction of words to mask, in (0, 1); a pair (low, high) draws it for each sentence, uniformly.
        most: maximum number of blanks per sentence.
        uniforms: `[batch, any_rows(mask_rate), max_length]`, as from `line_uniforms`; the third row draws the number,
            the fourth the mask rate.

    Raises:
        ValueError, tf.errors.InvalidArgumentError: as `random_blanks`.
    """
    check_mask_rates(mask_rate)
    check_blanks(most)
    if isinstance(mask_rate, tuple):
        low, high = mask_rate
        mask_rate = low + (high - low) * tf.cast(uniforms[:, 3, 0], tf.float64)
    candidates = list(range(1, most + 1))
    drawn = tf.cast(uniforms[:, 2, 0] * most, tf.int32) + 1
    found = [_draw(lengths, mask_rate, count, uniforms[:, :2]) for count in candidates]
    fits = tf.stack([blanks.valid for blanks in found], axis=1) & (tf.constant(candidates)[None, :] <= drawn[:, None])
    counts = tf.reduce_max(tf.where(fits, tf.constant(candidates)[None, :], 0), axis=1)

    def chosen(field):
        columns = [tf.pad(getattr(blanks, field), [[0, 0], [0, most - n]]) for n, blanks in zip(candidates, found)]
        return tf.gather(tf.stack(columns, axis=1), tf.maximum(counts - 1, 0), batch_dims=1)

    valid = counts > 0
    starts, ends = (tf.where(valid[:, None], chosen(field), 0) for field in ("starts", "ends"))
    return BlankTensors(starts, ends, valid, counts)


def any_rows(mask_rate: float | tuple[float, float]) -> int:
    """Returns the number of rows of uniform numbers that `any_blanks` takes."""
    return 4 if isinstance(mask_rate, tuple) else 3


def line_uniforms(seed: int, epoch: int, line: int, max_length: int, rows: int = 2) -> tf.Tensor:
    """Returns the `[rows, max_length]` float32 uniform numbers of one line in one epoch, for `random_blanks`.

    For a given `rows` they are a function of (seed, epoch, line); a smaller `max_length` gives the beginning of the
    same numbers. All arguments except `rows` may be tensors.
    """
    key = tf.random.fold_in(tf.stack([tf.cast(seed, tf.int64), tf.cast(epoch, tf.int64)]), tf.cast(line, tf.int64))
    # Drawn word by word and transposed afterwards, so that the numbers do not depend on max_length.
    return tf.transpose(tf.random.stateless_uniform([max_length, rows], key, alg="philox"))


def _choose(uniforms: tf.Tensor, available: tf.Tensor, count: int) -> tf.Tensor:
    """Returns distinct positions below `available`, `[batch, count]`: ascending, and uniform among all such choices.

    Rows with fewer than `count` available positions get arbitrary ones.
    """
    positions = tf.range(tf.shape(uniforms)[1])
    keys = tf.where(positions < available[:, None], uniforms, _NEVER)
    missing = tf.maximum(count - tf.shape(uniforms)[1], 0)
    keys = tf.pad(keys, [[0, 0], [0, missing]], constant_values=_NEVER)
    return tf.sort(tf.math.top_k(-keys, count).indices, axis=1)


def _blanks(starts: tf.Tensor, sizes: tf.Tensor, lengths: tf.Tensor, masked: tf.Tensor) -> BlankTensors:
    """Returns the blanks; all zero if a sentence has too few words to mask or too few kept words between blanks."""
    blanks = sizes.shape[1]
    valid = (masked >= blanks) & (lengths - masked + 1 >= blanks)
    starts = tf.where(valid[:, None], starts, 0)
    return BlankTensors(starts, tf.where(valid[:, None], starts + sizes, 0), valid, tf.where(valid, blanks, 0))
