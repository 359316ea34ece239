"""Trains one model on one task; after an interruption, the same call resumes and gives the same result."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams_api

from text_infilling.data.pipeline import SplitStats
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


def train(
    task: Task,
    model_name: str,
    hparams: dict,
    folder: Path,
    resume: bool = True,
    mixed_precision: bool = False,
    log: Callable[[str], None] = print,
    begin: Callable | None = None,
    epochs_per_pass: int = 1,
) -> tuple[Evaluator, dict[str, float]]:
    """Trains a model, saves its selected weights to `folder/best.weights.h5` and the validations to `epochs.jsonl`.

    A GAN has two phases: pre-training, which early stopping may end, and the adversarial phase, which starts from the
    selected weights. The final weights are selected from the adversarial phase only.

    With `resume`, training resumes from a resume point in `folder`. A new one is saved at least every
    `train.resume_seconds` while batches run, and on an interruption. It is kept after the last step: the caller
    removes it once the results are saved. On the CPU, without mixed precision, interrupted and uninterrupted
    training give bitwise identical weights.

    Args:
        task: corpus, masking and seed.
        model_name: key of `registry.MODELS`.
        hparams: all hyperparameters of the run.
        folder: existing folder of the run.
        resume: whether to resume from a resume point.
        mixed_precision: 16-bit computation in bfloat16, which needs no loss scaling.
        log: receives the log lines.
        begin: called as `begin(model)` on the fresh model, unless training resumes.
        epochs_per_pass: epochs per pass over the sentences; more than 1 validates a large corpus more often.

    Returns:
        The evaluator of the model with its selected weights, and a dict with `training_seconds` (over all processes),
        `epochs` and `steps`.

    Raises:
        ValueError: hyperparameters that do not fit the corpus or each other; a loss that is NaN or infinite.
        OSError: not enough space in `folder`.
    """
    found = _checked(task, hparams, log)
    settings, phases = hparams["train"], MODELS[model_name].phases(hparams)
    batch_size, total = settings["batch_size"], sum(planned_epochs(phases))
    pipeline = task.pipeline("train", TemplateFormat.from_hparams(hparams), batch_size)
    steps = pipeline.steps(found.lines, epochs_per_pass)
    model = compiled_model(task, model_name, hparams, steps * total, mixed_precision)
    batches = functools.partial(
        pipeline.training,
        found.lines,
        task.seed,
        bucket_by_length=settings["bucket_by_length"],
        epochs_per_pass=epochs_per_pass,
        unknown_chances=task.unknown_chances(settings["word_dropout"]),
    )

    evaluator, board = Evaluator(model, task, hparams), folder / TENSORBOARD
    best = BestWeights(folder / WEIGHTS, settings["select"])
    stopping = keras.callbacks.EarlyStopping(SELECTED_BY, patience=settings["patience"], mode="min")
    stopping.on_train_begin()  # sets the fields that `point` saves, also in a phase that does not use it
    point = ResumePoint(
        folder / RESUME_POINT,
        steps,
        settings["resume_seconds"],
        {
            "best_weights": (best, ["best"]),
            "early_stopping": (stopping, ["best", "wait", "best_epoch", "stopped_epoch"]),
        },
    )
    before = [keras.callbacks.TerminateOnNaN(raise_error=True), Validation(evaluator, board, log), best]
    after = [
        keras.callbacks.TensorBoard(board, write_graph=False, profile_batch=0),
        EpochLog(folder / EPOCHS, point),
        point,  # after the callbacks whose state it saves
    ]
    for callback in (best, point):
        callback.set_model(model)

    passes = f" ({epochs_per_pass} make a pass)" if epochs_per_pass > 1 else ""
    log(
        f"{model_name}: {model.count_params():,} parameters, {found.lines:,} sentences, {total} epochs of {steps} "
        f"steps{passes}, {found.mask_rate:.1%} of the words masked; needs "
        f"{_check_space(model, point, folder)} MiB on disk"
    )
    if resume and point.restore():
        log(f"resuming at epoch {point.epoch + 1}, step {point.step} of {steps} ({point.path})")
    else:
        if begin:
            begin(model)
        _write_hparams(board, task, model_name, hparams)
    with _reported(point, log):
        for number in range(point.phase, len(phases)):
            phase = phases[number]
            if number > point.phase:
                best.restart()
                point.next_phase()
                name = phases[number - 1].name
                log(f"{name} is over after {point.epoch} epochs; {phase.name} begins from its selected weights")
            phase.begin(model)
            first, planned = point.phase_start, planned_epochs(phases[number:], point.phase_start)
            later = extra_work(phases[number:], planned, task, hparams)
            callbacks = [
                *before,
                *([stopping] if phase.early_stopping and settings["patience"] else []),
                *phase.callbacks(Span(first, planned[0], steps), log),
                *after,
                Progress(point, first + sum(planned), later, steps, batch_size, log),  # after `point`, which counts
            ]
            run_phase(model, batches, point, steps, first + planned[0], callbacks)
    updates = int(model.optimizer.iterations)
    timing = {"training_seconds": point.seconds, "epochs": updates // steps, "steps": updates}
    if mixed_precision:  # evaluate in plain float32
        return Evaluator(load(task, model_name, hparams, folder), task, hparams), timing
    best.load()
    return evaluator, timing


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


def _checked(task: Task, hparams: dict, log: Callable[[str], None]) -> SplitStats:
    """Checks the corpus before training, logs which sentences are left out, and returns the survey of train."""
    task.check_positions(hparams)
    for split in ("valid", "train"):  # the caller reports the test split
        found = task.survey(split)
        if found.left_out:
            log(f"{found.left_out} sentences of {split} left out: too short for {task.blanks} blanks")
    return found


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


def _check_space(model, point, folder):
    needed = 2 * point.bytes() + 2 * 4 * model.count_params()  # old and new files exist together for a moment
    status = os.statvfs(folder)
    there = sum(path.stat().st_size for path in (folder / WEIGHTS, folder / RESUME_POINT) if path.exists())
    free = status.f_bavail * status.f_frsize + there
    if free < needed:
        raise OSError(
            f"{folder} needs {needed >> 20} MiB, {free >> 20} MiB are free: make room, or give a folder on another disk"
        )
    return needed >> 20


def _write_hparams(board, task, model_name, hparams):
    cell = {"model": model_name, "corpus": task.corpus.name, "seed": task.seed}
    cell |= {"masking": task.masking, "mask_rate": task.mask_rate, "blanks": task.blanks}
    with tf.summary.create_file_writer(str(board)).as_default():
        hparams_api.hparams({name: _scalar(value) for name, value in {**cell, **flatten(hparams)}.items()})


def _scalar(value):
    return value if isinstance(value, bool | int | float | str) else str(value)
