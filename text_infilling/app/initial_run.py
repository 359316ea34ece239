"""The run that `init_from` names: its sizes, vocabulary and weights become those of the new run."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.corpora.download import sha256
from text_infilling.hparams import flatten
from text_infilling.runs import layout
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.vocabulary import Vocabulary

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.models.infilling_model import InfillingModel

# Hyperparameters that the initial run determines.
_SIZES = ("dim", "num_blocks", "num_heads", "ffn_dim", "units", "filters", "kernel_sizes", "discriminator_dim")


def open_initial(folder: str | Path, model: str) -> RunFolder:
    """Opens the run that `init_from` names.

    Raises:
        ValueError: the folder is not a run, or its model is another one.
    """
    run = open_run(folder)
    if run.model != model:
        raise ValueError(f"init_from={folder} holds a {run.model} model, not a {model} model: give model={run.model}")
    return run


@dataclasses.dataclass(frozen=True)
class InitialRun:
    """The run that provides the initial weights.

    Attributes:
        checksum: sha256 of its weights.
        model: its model, with its weights.
        vocabulary: its vocabulary.
        sizes: the groups of hyperparameters that the new run inherits.
    """

    checksum: str
    model: "InfillingModel"
    vocabulary: Vocabulary
    sizes: dict[str, dict]

    @classmethod
    def load(cls, run: RunFolder) -> "InitialRun":
        """Loads the model of a run.

        Raises:
            ValueError: the weights do not fit the model of the run.
        """
        from text_infilling.inference.load_model import load_model  # TensorFlow: sentences are checked first

        model = load_model(run)
        sizes = {group: values for group, values in model.hparams.items() if group != "loss"}
        return cls(sha256(run.path / layout.WEIGHTS), model, run.vocabulary, sizes)

    def check_sizes(self, hparams: dict, folder: str) -> None:
        """Raises ValueError if `hparams` has other sizes than the run in `folder`."""
        given, kept = (flatten({group: h[group] for group in self.sizes}) for h in (hparams, self.sizes))
        for key in kept:
            if key.rpartition(".")[2] in _SIZES and given[key] != kept[key]:
                raise ValueError(
                    f"{key}={given[key]} cannot be combined with init_from={folder}, whose model has "
                    f"{key}={kept[key]}: leave it out"
                )

    def copy_weights(self, model: "InfillingModel") -> None:
        """Copies the weights into a fresh model; rows of new words keep their fresh values."""
        for weight, old in zip(model.weights, self.model.weights, strict=True):
            value = np.array(weight.numpy())
            value[tuple(map(slice, old.shape))] = old  # weights with one row per word may have more rows now
            weight.assign(value)
