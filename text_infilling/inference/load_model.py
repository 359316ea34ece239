"""Builds the model of a trained run and loads its weights."""

import numpy as np

from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.registry import built_model
from text_infilling.runs.checks import DAMAGED
from text_infilling.runs.layout import CONFIG
from text_infilling.runs.run_folder import RunFolder


def load_model(run: RunFolder) -> InfillingModel:
    """Returns the model of a run, with its weights.

    Raises:
        ValueError: the config does not describe a model, or the weights belong to another model.
    """
    try:
        model = built_model(run.model, len(run.vocabulary), run.hparams)
    except ValueError as error:
        raise ValueError(f"{run.path / CONFIG} does not describe a run: {error}") from error
    try:
        if run.weights.suffix == ".npz":
            with np.load(run.weights, allow_pickle=False) as arrays:
                model.set_weights([arrays[f"{i:03}"].astype(np.float32) for i in range(len(arrays.files))])
        else:
            model.load_weights(run.weights)
    except DAMAGED as error:
        raise ValueError(
            f"{run.weights} does not hold the weights of the {run.model} model that {CONFIG} beside it describes"
        ) from error
    return model
