"""What the comparisons with the original modules' golden vectors share."""

import numpy as np
import tensorflow as tf

from text_infilling.vocabulary import EOB_ID


def golden(shared, name):
    """The arrays of one golden file."""
    return np.load(shared / "original" / "golden" / f"{name}.npz")


def golden_spans(data):
    """Word ids, lengths and blanks of a golden batch (positions there count `<BOS>`)."""
    lengths = data["length"] - 2
    ids = data["text_ids"][:, 1:-1] * (np.arange(data["text_ids"].shape[1] - 2)[None, :] < lengths[:, None])
    starts, ends = data["template0/start_positions"] - 1, data["template0/end_positions"] - 1
    return ids, lengths, starts, ends, np.full(len(ids), starts.shape[1])


def words_before_end(ids):
    """The ids in front of the first `<EOB>`."""
    ids = list(ids)
    return ids[: ids.index(EOB_ID)] if EOB_ID in ids else ids


def check_losses_and_gradients(data, model, examples, pairs):
    """The training loss of every position, its mean, and the gradient of that with regard to each weight.

    Args:
        data: golden arrays.
        model: with the golden weights.
        examples: of the golden sentences.
        pairs: each variable with its golden gradient.
    """
    with tf.GradientTape() as tape:
        losses = model(examples)
        mean = model.compute_loss(examples, None, losses)
    np.testing.assert_allclose(np.reshape(losses[model.counted(examples)], data["loss"].shape), data["loss"], atol=2e-3)
    np.testing.assert_allclose(mean, data["mean_loss"], atol=2e-3)
    gradients = tape.gradient(mean, [variable.value for variable, _ in pairs])
    for gradient, (variable, expected) in zip(gradients, pairs, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, atol=2e-3, err_msg=variable.path)
