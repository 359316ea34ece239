"""Trains one model on one task; after an interruption, the same call resumes and gives the same result."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams_api

from text_infilling.hparams import flatten
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.phase import Span
from text_infilling.models.registry import MODELS
from text_infilling.runs.checks import check_weights
from text_infilling.runs.layout import EPOCHS, RESUME_POINT, TENSORBOARD, WEIGHTS
from text_infilling.templates import TemplateFormat
from text_infilling.training.callbacks import SELECTED_BY, BestWeights, EpochLog, Progress, Validation
from text_infilling.training.evaluation import Evaluator
from text_infilling.training.optimizers import new_optimizer
from text_infilling.training.phases import extra_work, planned_epochs, run_phase
from text_infilling.training.resume import ResumePoint
from text_infilling.training.schedule import WarmupSchedule
from text_infilling.training.task import Task, new_model
from text_infilling.utils.malloc import keep_freed_memory


@dataclasses.dataclass(frozen=True)
class TrainingRun:
    """What to train, and where and how.

    Attributes:
        task: corpus, masking and seed.
        model_name: key of `registry.MODELS`.
        hparams: all hyperparameters of the run.
        folder: existing folder of the run.
        log: receives the log lines.
        resume: whether to resume from a resume point in `folder`.
        mixed_precision: 16-bit computation in bfloat16, which needs no loss scaling.
        epochs_per_pass: epochs per pass over the sentences; more than 1 validates a large corpus more often.
        initialize: `initialize(model)` changes the fresh model before its first step.
    """

    task: Task
    model_name: str
    hparams: dict
    folder: Path
    log: Callable[[str], None] = print
    resume: bool = True
    mixed_precision: bool = False
    epochs_per_pass: int = 1
    initialize: Callable[[InfillingModel], None] = lambda model: None


def train(run: TrainingRun) -> tuple[Evaluator, dict[str, float]]:
    """Trains a model; saves its selected weights to best.weights.h5 and its validations to epochs.jsonl.

    A GAN has two phases: pre-training, which early stopping may end, and the adversarial phase, which starts from the
    selected weights. The final weights are selected from the adversarial phase only.

    A resume point is saved at least every `train.resume_seconds` while batches run, and on an interruption. It is kept
    after the last step: the caller removes it once the results are saved. On the CPU, without mixed precision,
    interrupted and uninterrupted training give bitwise identical weights.

    Returns:
        The evaluator of the model with its selected weights, and a dict with `training_seconds` (over all processes),
        `epochs` and `steps`.

    Raises:
        ValueError: hyperparameters that do not fit the corpus or each other; a loss that is NaN or infinite.
        OSError: not enough space in the folder.
    """
    _check_corpus(run)
    training = _Training(run)
    training.log_plan()
    training.start()
    with _reported(training.point, run.log):
        for number in range(training.point.phase, len(training.phases)):
            training.run_phase(number)
    timing = training.timing()
    return training.selected(), timing


class _Training:
    """The model, batches and callbacks of a run, and the steps of `train`, in their order."""

    def __init__(self, run: TrainingRun):
        task, hparams, settings = run.task, run.hparams, run.hparams["train"]
        self.run, self.phases = run, MODELS[run.model_name].phases(hparams)
        pipeline = task.pipeline("train", TemplateFormat.from_hparams(hparams), settings["batch_size"])
        lines = task.survey("train").lines
        self.steps = pipeline.steps(lines, run.epochs_per_pass)
        self.epochs = sum(planned_epochs(self.phases))
        self.model = compiled_model(task, run.model_name, hparams, self.steps * self.epochs, run.mixed_precision)
        self.batches = functools.partial(
            pipeline.training,
            lines,
            task.seed,
            bucket_by_length=settings["bucket_by_length"],
            epochs_per_pass=run.epochs_per_pass,
            unknown_chances=task.unknown_chances(settings["word_dropout"]),
        )
        self.evaluator, self.board = Evaluator(self.model, task, hparams), run.folder / TENSORBOARD
        self.best = BestWeights(run.folder / WEIGHTS, settings["select"])
        self.stopping = keras.callbacks.EarlyStopping(SELECTED_BY, patience=settings["patience"], mode="min")
        self.stopping.on_train_begin()  # sets the fields that `point` saves, also in a phase that does not use it
        stateful = {
            "best_weights": (self.best, ["best"]),
            "early_stopping": (self.stopping, ["best", "wait", "best_epoch", "stopped_epoch"]),
        }
        self.point = ResumePoint(run.folder / RESUME_POINT, self.steps, settings["resume_seconds"], stateful)
        self.validation = Validation(self.evaluator, self.board, run.log)
        self.tensorboard = keras.callbacks.TensorBoard(self.board, write_graph=False, profile_batch=0)
        for callback in (self.best, self.point):
            callback.set_model(self.model)

    def log_plan(self) -> None:
        """Logs the size of the training.

        Raises:
            OSError: not enough space in the folder.
        """
        run, found = self.run, self.run.task.survey("train")
        passes = f" ({run.epochs_per_pass} make a pass)" if run.epochs_per_pass > 1 else ""
        run.log(
            f"{run.model_name}: {self.model.count_params():,} parameters, {found.lines:,} sentences, {self.epochs} "
            f"epochs of {self.steps} steps{passes}, {found.mask_rate:.1%} of the words masked; needs "
            f"{_check_space(self.model, self.point, run.folder)} MiB on disk"
        )

    def start(self) -> None:
        """Restores the resume point; without one, initializes the model and records the hyperparameters."""
        run, point = self.run, self.point
        if run.resume and point.restore():
            run.log(f"resuming at epoch {point.epoch + 1}, step {point.step} of {self.steps} ({point.path})")
        else:
            run.initialize(self.model)
            _write_hparams(self.board, run)

    def run_phase(self, number: int) -> None:
        """Runs what is left of a phase, which is the current one or the one after it."""
        point = self.point
        if number > point.phase:
            self.best.restart()
            point.next_phase()
            over, begins = self.phases[number - 1].name, self.phases[number].name
            self.run.log(f"{over} is over after {point.epoch} epochs; {begins} begins from its selected weights")
        self.phases[number].begin(self.model)
        planned = planned_epochs(self.phases[number:], point.phase_start)
        end = point.phase_start + planned[0]
        run_phase(self.model, self.batches, point, end, self._callbacks(number, planned))

    def _callbacks(self, number: int, planned: Sequence[int]) -> list[keras.callbacks.Callback]:
        """Returns the callbacks of a phase, in their order; `planned` has the epochs of it and of each later phase."""
        run, point, phase, settings = self.run, self.point, self.phases[number], self.run.hparams["train"]
        later = extra_work(self.phases[number:], planned, run.task, run.hparams)
        return [
            keras.callbacks.TerminateOnNaN(raise_error=True),
            self.validation,
            self.best,
            *([self.stopping] if phase.early_stopping and settings["patience"] else []),
            *phase.callbacks(Span(point.phase_start, planned[0], self.steps), run.log),
            self.tensorboard,
            EpochLog(run.folder / EPOCHS, point),
            point,  # after the callbacks whose state it saves
            # After `point`, which counts.
            Progress(point, point.phase_start + sum(planned), later, settings["batch_size"], run.log),
        ]

    def selected(self) -> Evaluator:
        """Returns the evaluator of the model with its selected weights."""
        run = self.run
        if run.mixed_precision:  # evaluate in plain float32
            return Evaluator(load(run.task, run.model_name, run.hparams, run.folder), run.task, run.hparams)
        self.best.load()
        return self.evaluator

    def timing(self) -> dict[str, float]:
        updates = int(self.model.optimizer.iterations)
        return {"training_seconds": self.point.seconds, "epochs": updates // self.steps, "steps": updates}


def compiled_model(
    task: Task, model_name: str, hparams: dict, steps: int, mixed_precision: bool = False
) -> InfillingModel:
    """Builds a fresh model and its optimizer for a training run of `steps` updates; enables op determinism."""
    tf.config.experimental.enable_op_determinism()
    keep_freed_memory()
    keras.utils.set_random_seed(task.seed)
    model = new_model(task, model_name, hparams, dtype="mixed_bfloat16" if mixed_precision else "float32")
    schedule = WarmupSchedule(model.dim, steps, hparams["schedule"])
    model.compile(optimizer=new_optimizer(schedule, hparams["optimizer"]), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def load(task: Task, model_name: str, hparams: dict, folder: Path) -> InfillingModel:
    """Loads the model that `train` saved in a folder.

    Raises:
        ValueError: the weights are missing, or belong to another model.
    """
    tf.config.experimental.enable_op_determinism()
    keep_freed_memory()
    path = Path(folder) / WEIGHTS
    if not path.exists():
        raise ValueError(f"{path} does not exist: the cell has not been trained to the end of an epoch")
    check_weights(path, model_name, len(task.vocabulary), hparams)
    model = new_model(task, model_name, hparams)
    model.load_weights(path)
    return model


def _check_corpus(run: TrainingRun) -> None:
    """Checks the corpus before training, and logs how many sentences are left out."""
    run.task.check_positions(run.hparams)
    for split in ("valid", "train"):  # the caller reports the test split
        if left_out := run.task.survey(split).left_out:
            run.log(f"{left_out} sentences of {split} left out: too short for {run.task.blanks} blanks")


@contextlib.contextmanager
def _reported(point: ResumePoint, log: Callable[[str], None]) -> Iterator[None]:
    """Saves a resume point if the block is interrupted, and explains a loss that is NaN or infinite."""
    try:
        yield
    except KeyboardInterrupt:
        point.update_step()
        point.save()
        log(f"stopped in epoch {point.epoch + 1} at step {point.step}; run the same command to resume")
        raise
    except RuntimeError as error:
        if "NaN or Inf" not in str(error):
            raise
        raise ValueError(
            f"The loss became NaN or infinite at step {int(point.model.optimizer.iterations)}: lower the learning rate "
            "(--set schedule.peak=... or schedule.scale=...) or lengthen schedule.warmup_steps, and start afresh"
        ) from error


def _check_space(model: InfillingModel, point: ResumePoint, folder: Path) -> int:
    """Returns the space in MiB that training needs in a folder.

    Raises:
        OSError: there is less.
    """
    needed = 2 * point.bytes() + 2 * 4 * model.count_params()  # old and new files exist together for a moment
    status = os.statvfs(folder)
    there = sum(path.stat().st_size for path in (folder / WEIGHTS, folder / RESUME_POINT) if path.exists())
    free = status.f_bavail * status.f_frsize + there
    if free < needed:
        raise OSError(
            f"{folder} needs {needed >> 20} MiB, {free >> 20} MiB are free: make room, or give a folder on another disk"
        )
    return needed >> 20


def _write_hparams(board: Path, run: TrainingRun) -> None:
    """Writes the hyperparameters to TensorBoard's folder `board`."""
    task = run.task
    cell = {"model": run.model_name, "corpus": task.corpus.name, "seed": task.seed}
    cell |= {"masking": task.masking, "mask_rate": task.mask_rate, "blanks": task.blanks}
    with tf.summary.create_file_writer(str(board)).as_default():
        hparams_api.hparams({name: _scalar(value) for name, value in {**cell, **flatten(run.hparams)}.items()})


def _scalar(value):
    return value if isinstance(value, bool | int | float | str) else str(value)
