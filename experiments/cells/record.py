"""The training record in timing.json: size of the model, cost of the training, machine and code."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from text_infilling.runs.layout import TIMING
from text_infilling.utils import files, machine

if TYPE_CHECKING:  # These import TensorFlow.
    import keras

    from text_infilling.data.pipeline import Survey
    from text_infilling.training.task import Task

GEMM_SIZE, GEMM_REPEATS = 2048, 2


class Machine(NamedTuple):
    """The machine on which a model was trained."""

    processor: str
    cores: int | None


class Trained(NamedTuple):
    """How a model was trained and at what cost; values that its record lacks are None.

    Attributes:
        optimizer: e.g. `Adam`.
        batch_size: sentences per batch.
        epochs: passes over the training sentences in all phases.
        parameters: number of weights, trainable and not.
        tflop: useful work of the training, see `text_infilling.training.cost`.
        minutes: training time without evaluation.
        machine: the machine that it ran on.
        gemm_gflops: rates of a product of two 2048 x 2048 float32 matrices before and after the training, in GFLOP/s.
        commit: Git commit of the code.
        budget: work that was planned, in TFLOP; None if the number of epochs was given.
    """

    optimizer: str
    batch_size: int
    epochs: float | None = None
    parameters: int | None = None
    tflop: float | None = None
    minutes: float | None = None
    machine: Machine | None = None
    gemm_gflops: tuple[float, ...] = ()
    commit: str | None = None
    budget: float | None = None


def of_training(
    model: "keras.Model", task: "Task", hparams: dict, epochs: int, epochs_per_pass: int = 1
) -> dict[str, float]:
    """Returns `epochs_per_pass`, `parameters` and `train_tflop` (useful work) of a finished training.

    Args:
        model: the trained model.
        task: the `Task` that it was trained on.
        hparams: hyperparameters of the run.
        epochs: epochs of all phases.
        epochs_per_pass: as in `trainer.train`.
    """
    found, size = task.survey("train"), len(task.vocabulary)
    return {
        "epochs_per_pass": epochs_per_pass,
        "parameters": model.count_params(),
        "train_tflop": train_tflop(type(model), hparams, size, found, task.blanks, epochs) / epochs_per_pass,
    }


def train_tflop(cls: type, hparams: dict, vocabulary_size: int, found: "Survey", blanks: int, epochs: int) -> float:
    """Returns the useful work of a finished training in TFLOP; arguments as in `cost.training_flop`."""
    from text_infilling.training.cost import phases, training_flop

    return training_flop(cls, hparams, vocabulary_size, found, blanks, phases(cls, hparams, epochs)) / 1e12


def of_machine() -> dict:
    """Returns the processor, the number of cores and the commit of the code."""
    return {"processor": machine.processor(), "cores": files.cores(), "commit": machine.commit()}


def gemm_gflops() -> float:
    """Measures a float32 product of two 2048 x 2048 matrices on this machine, in GFLOP/s."""
    from text_infilling.training.estimate import gemm_flops

    return gemm_flops(GEMM_SIZE, GEMM_REPEATS) / 1e9


def read(folder: Path, config: dict) -> Trained:
    """Returns the training record of a finished cell; values that its timing.json lacks are None.

    Args:
        folder: folder of the cell.
        config: content of its config.json.
    """
    path = folder / TIMING
    timing = files.read_json(path) if path.exists() else {}
    hparams, seconds = config["hparams"], timing.get("training_seconds")
    rates = [timing[key] for key in ("gemm_gflops_before", "gemm_gflops_after") if key in timing]
    return Trained(
        optimizer=hparams["optimizer"].get("name", "adam").capitalize(),  # old configs have no name
        batch_size=hparams["train"]["batch_size"],
        epochs=timing["epochs"] / timing.get("epochs_per_pass", 1) if "epochs" in timing else None,
        parameters=timing.get("parameters"),
        tflop=timing.get("train_tflop"),
        minutes=None if seconds is None else seconds / 60,
        machine=Machine(timing["processor"], timing.get("cores")) if "processor" in timing else None,
        gemm_gflops=tuple(rates),
        commit=timing.get("commit"),
        budget=config.get("budget"),
    )
