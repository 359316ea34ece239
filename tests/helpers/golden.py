"""Helpers for comparisons with golden vectors of the original modules."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from text_infilling.vocabulary import EOB_ID

FOLDER = Path(__file__).parents[1] / "data" / "golden"


def golden(name):
    """Returns the arrays of one golden file, which the original modules computed."""
    return np.load(FOLDER / f"{name}.npz")


def golden_spans(data):
    """Returns word ids, lengths and blanks of a golden batch (whose positions count `<BOS>`)."""
    lengths = data["length"] - 2
    ids = data["text_ids"][:, 1:-1] * (np.arange(data["text_ids"].shape[1] - 2)[None, :] < lengths[:, None])
    starts, ends = data["template0/start_positions"] - 1, data["template0/end_positions"] - 1
    return ids, lengths, starts, ends, np.full(len(ids), starts.shape[1])


def words_before_end(ids):
    """Returns the ids before the first `<EOB>`."""
    ids = list(ids)
    return ids[: ids.index(EOB_ID)] if EOB_ID in ids else ids


def check_close(ours, expected, tolerance, name=""):
    """Checks that two arrays of the same shape differ by at most `tolerance`, as ||ours - expected|| / ||expected||.

    The tolerances in use are about ten times the observed differences.
    """
    ours, expected = (np.asarray(array, np.float64) for array in (ours, expected))
    assert ours.shape == expected.shape, name
    assert np.linalg.norm(ours - expected) <= tolerance * np.linalg.norm(expected), name


def check_losses_and_gradients(data, model, examples, pairs):
    """Checks the training loss of every position, its mean, and the gradient of the mean for each weight.

    Args:
        data: golden arrays.
        model: model with the golden weights.
        examples: examples of the golden sentences.
        pairs: pairs of a variable and its golden gradient.
    """
    with tf.GradientTape() as tape:
        losses, _ = model.score(examples)
        mean = model.compute_loss(examples, training=False)
    check_close(np.reshape(losses[model.counted(examples)], data["loss"].shape), data["loss"], 2e-5)
    check_close(mean, data["mean_loss"], 2e-5)
    gradients = tape.gradient(mean, [variable.value for variable, _ in pairs])
    for gradient, (variable, expected) in zip(gradients, pairs, strict=True):
        check_close(tf.convert_to_tensor(gradient), expected, 1e-4, variable.path)
