"""The run that training starts from: its sizes, vocabulary and weights become those of the new run.

It is the run that `init_from` names, or the base model if the text is small.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.app.fit_config import FitConfig
from text_infilling.corpora import own_texts
from text_infilling.corpora.source_texts import SourceFile
from text_infilling.hparams import flatten
from text_infilling.runs.run_folder import RunFolder, has_base_model, open_run
from text_infilling.utils.files import sha256
from text_infilling.vocabulary import Vocabulary

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.models.infilling_model import InfillingModel

# Hyperparameters and groups of them that the initial run determines.
_FORMATS = ("position", "template", "answer")
_SIZES = ("dim", "num_blocks", "num_heads", "ffn_dim", "units", "filters", "kernel_sizes", "discriminator_dim")

BASE_BELOW = 20_000  # sentences: a larger text is fitted from scratch


def open_initial(folder: str | Path, model: str) -> RunFolder:
    """Opens the run that `init_from` names.

    Raises:
        ValueError: the folder is not a run, or its model is another one.
    """
    run = open_run(folder)
    if run.model != model:
        raise ValueError(f"init_from={folder} holds a {run.model} model, not a {model} model: give model={run.model}")
    return run


def base_run(config: FitConfig, sources: Sequence[SourceFile]) -> tuple[RunFolder | None, str]:
    """Returns the base model if a fit without `init_from` starts from it, else None; and a line that says which.

    Training is from scratch if the options ask for another model, preset or size, to keep case although
    the base model lower-cases words; if the text has `BASE_BELOW` sentences or more, or one that exceeds the
    positions of the base model; or if the installation has no base model.

    Args:
        config: the options of the fit.
        sources: the texts.
    """
    base, reason = None, "from_scratch is set"
    if not config.from_scratch:
        base = open_run() if has_base_model() else None
        reason = _reason_against(base, config, sources) if base else "this installation has no base model"
    if reason:
        return None, f"training from scratch: {reason}"
    case = "lower-cases words" if base.tokenizer.lower else "keeps upper case"
    return base, f"starting from the base model, which {case}; from_scratch starts from fresh weights instead"


def _reason_against(base: RunFolder, config: FitConfig, sources: Sequence[SourceFile]) -> str:
    """Returns why a fit does not start from the base model; an empty string if it does."""
    for name in ("model", "preset"):
        given, has = getattr(config, name), base.config["cell"].get(name)
        if given != has:
            return f"the base model has {name}={has}, not {given}"
    for assignment in config.assignments:
        key = assignment.partition("=")[0]
        if key.rpartition(".")[2] in _SIZES or key.partition(".")[0] in _FORMATS:
            return f"{key} is set, which the base model determines"
    if config.keep_case and base.tokenizer.lower:
        return "keep_case is set, and the base model lower-cases words"
    lengths = own_texts.first_lengths(sources, config.reading(base.tokenizer, base.vocabulary.words), BASE_BELOW)
    if len(lengths) == BASE_BELOW:
        return f"the text has {BASE_BELOW:,} sentences or more"
    # An infill in decoding is up to twice as long as the longest answer.
    if lengths and 2 * (longest := max(lengths)) + 2 > base.hparams["position"]["base"]:
        return f"a sentence of {longest} words may exceed the positions of the base model"
    return ""


@dataclasses.dataclass(frozen=True)
class InitialRun:
    """The run that provides the initial weights.

    Attributes:
        checksum: sha256 of its weights.
        model: its model, with its weights.
        vocabulary: its vocabulary.
        sizes: the hyperparameters that the new run inherits; not the rates of dropout.
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
        sizes = {
            group: {key: value for key, value in values.items() if not key.endswith("dropout")}
            for group, values in model.hparams.items()
            if group != "loss"
        }
        return cls(sha256(run.weights), model, run.vocabulary, sizes)

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
