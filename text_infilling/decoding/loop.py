"""Parts that the decoding loops share: their result, choosing a token, dropping finished rows."""

from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling.vocabulary import EOB_ID


class Infills(NamedTuple):
    """The infills found for one blank of every row.

    Attributes:
        ids: `[rows, max_length]` words, then `<PAD>`.
        lengths: `[rows]` words, without `<EOB>`.
        scores: `[rows]` log probability of the words and their `<EOB>`, in nats.
        positions: scalar, decoder positions computed in total; a measure of the work done.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor
    positions: tf.Tensor


def drop_finished(
    finished: tf.Tensor, of_rows: Any, of_hypotheses: Any = (), hypotheses: int | tf.Tensor = 1
) -> tuple[Any, Any]:
    """Drops finished rows once at least a quarter of the rows are finished; drops nothing before that.

    With 8 rows, nothing is dropped when 1 is finished; when 2 are, the remaining 6 are kept.

    Args:
        finished: `[rows]` bool.
        of_rows: a nest of tensors `[rows, ...]`.
        of_hypotheses: a nest of tensors `[rows * hypotheses, ...]`, all hypotheses of the first row first.
        hypotheses: hypotheses per row.

    Returns:
        Both nests, `[kept rows, ...]` and `[kept rows * hypotheses, ...]`.
    """

    def fewer():
        kept = tf.where(~finished)[:, 0]
        numbers = tf.reshape(tf.range(tf.size(finished) * hypotheses), [-1, hypotheses])
        theirs = tf.reshape(tf.gather(numbers, kept), [-1])
        return (
            tf.nest.map_structure(lambda x: tf.gather(x, kept), of_rows),
            tf.nest.map_structure(lambda x: tf.gather(x, theirs), of_hypotheses),
        )

    left = tf.reduce_sum(tf.cast(~finished, tf.int32))
    return tf.cond(4 * left <= 3 * tf.size(finished), fewer, lambda: (of_rows, of_hypotheses))


def best_token(logits: tf.Tensor, forbid_special: bool) -> tf.Tensor:
    """Returns the id of the largest logit of each row, `[rows]`.

    Args:
        logits: `[rows, vocab]`.
        forbid_special: whether to exclude all special tokens except `<EOB>`.
    """
    if not forbid_special:
        return tf.argmax(logits, axis=1, output_type=tf.int32)
    return tf.argmax(logits[:, EOB_ID:], axis=1, output_type=tf.int32) + EOB_ID  # `<EOB>` is the last special token


def any_rows(tensor: tf.Tensor) -> tf.TensorShape:
    """Returns the shape of a loop variable of the same rank whose axes may all change size."""
    return tf.TensorShape([None] * tf.convert_to_tensor(tensor).shape.rank)
