"""Builds the model of a trained run and loads its weights."""

from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.registry import built_model
from text_infilling.runs.layout import CONFIG, WEIGHTS
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
        model.load_weights(run.path / WEIGHTS)
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(
            f"{run.path / WEIGHTS} does not hold the weights of the {run.model} model that {CONFIG} beside it describes"
        ) from error
    return model
