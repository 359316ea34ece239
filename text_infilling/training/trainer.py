"""Trains one model on one task; after an interruption, the same call resumes and gives the same result."""

import functools
import math
import os
import time
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams_api

from text_infilling.hparams import flatten
from text_infilling.models.registry import MODELS
from text_infilling.runs.checks import check_weights
from text_infilling.runs.layout import RESUME_POINT, TENSORBOARD, WEIGHTS
from text_infilling.templates import Protocol
from text_infilling.training.callbacks import (
    SELECTED_BY,
    AdversarialWatch,
    BestWeights,
    Progress,
    ResumePoint,
    Validation,
    without_optimizers,
)
from text_infilling.training.cost import flop_per_sentence, training_flop
from text_infilling.training.evaluation import Evaluator
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
    parts: int = 1,
) -> tuple[Evaluator, dict[str, float]]:
    """Trains a model and saves its selected weights to `folder/best.weights.h5`.

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
        parts: epochs per pass over the sentences; more than 1 validates a large corpus more often.

    Returns:
        The evaluator of the model with its selected weights, and a dict with `training_seconds` (over all processes),
        `epochs` and `steps`.

    Raises:
        ValueError: hyperparameters that do not fit the corpus or each other; a loss that is NaN or infinite.
        OSError: not enough space in `folder`.
    """
    task.check_positions(hparams)  # fail now, not after training
    for split in ("valid", "train"):  # the caller reports the test split
        found = task.survey(split)
        if found.left_out:
            log(f"{found.left_out} sentences of {split} left out: too short for {task.blanks} blanks")
    settings = hparams["train"]
    epochs = settings["epochs"]
    adversarial = MODELS[model_name].adversarial_epochs
    total = epochs + adversarial(hparams, epochs)
    pipeline = task.pipeline("train", Protocol.from_hparams(hparams), settings["batch_size"])
    steps = pipeline.steps(found.lines, parts)
    model = compiled_model(task, model_name, hparams, steps * total, mixed_precision)

    best = BestWeights(folder / WEIGHTS, settings["select"])
    stateful = [(best, ["best"])]
    stopping = []
    if settings["patience"]:
        stopping = [keras.callbacks.EarlyStopping(SELECTED_BY, patience=settings["patience"], mode="min")]
        stateful.append((stopping[0], ["best", "wait", "best_epoch", "stopped_epoch"]))
    point = ResumePoint(folder / RESUME_POINT, steps, settings["resume_seconds"], stateful)
    point.set_model(model)
    progress = Progress(point, total, steps, settings["batch_size"], log)
    if total > epochs:
        progress.later = (_adversarial_cost(task, model_name, hparams) - 1) * (total - epochs)
    board = folder / TENSORBOARD
    evaluator = Evaluator(model, task, hparams)
    always = [
        keras.callbacks.TerminateOnNaN(raise_error=True),
        Validation(evaluator, board, log),
        best,
    ]
    last = [
        keras.callbacks.TensorBoard(board, write_graph=False, profile_batch=0),
        point,  # after the callbacks whose state it saves
        progress,  # after the resume point, which counts the steps
    ]

    passes = f" ({parts} make a pass)" if parts > 1 else ""
    log(
        f"{model_name}: {model.count_params():,} parameters, {found.lines:,} sentences, {total} epochs of {steps} "
        f"steps{passes}, {found.mask_rate:.1%} of the words masked; needs "
        f"{_check_space(model, point, folder)} MiB on disk"
    )
    if resume and point.restore():
        log(f"going on from epoch {point.epoch + 1}, step {point.step} of {steps} ({folder / RESUME_POINT})")
    else:
        if begin:
            begin(model)
        _write_hparams(board, task, model_name, hparams)
    batches = functools.partial(
        pipeline.training,
        found.lines,
        task.seed,
        bucket_by_length=settings["bucket_by_length"],
        parts=parts,
        unknown_chances=task.unknown_chances(settings["word_dropout"]),
    )
    fit = functools.partial(_fit, model, batches, point, steps)
    try:
        if not point.pretraining_epochs:
            fit(epochs, [*always, *stopping, *last])
        if total > epochs:
            point.stateful = [(best, ["best"])]  # early stopping is for pre-training only
            if not point.pretraining_epochs:
                _begin_adversarial(model, point, best, log)
            model.begin_adversarial()
            progress.later = 0.0
            progress.epochs = point.pretraining_epochs + adversarial(hparams, point.pretraining_epochs)
            fit(progress.epochs, [*always, AdversarialWatch(point, log), *last])
    except KeyboardInterrupt:
        point.update_step()
        point.save()
        log(f"stopped in epoch {point.epoch + 1} at step {point.step}; the same command goes on from there")
        raise
    except RuntimeError as error:
        if "NaN or Inf" not in str(error):
            raise
        raise ValueError(
            f"The loss was no number any more at step {int(model.optimizer.iterations)}: lower the learning rate "
            "(--set schedule.peak=... or schedule.scale=...) or lengthen schedule.warmup_steps, and start afresh: "
            "with --noresume, or --overwrite of `text-infill fit`"
        ) from error
    made = int(model.optimizer.iterations)
    timing = {"training_seconds": point.seconds, "epochs": made // steps, "steps": made}
    if mixed_precision:  # evaluate in plain float32
        return Evaluator(load(task, model_name, hparams, folder), task, hparams), timing
    with without_optimizers(model):
        model.load_weights(best.path)
    return evaluator, timing


def new_optimizer(rate, hparams: dict) -> keras.optimizers.Optimizer:
    """Builds the optimizer that the hyperparameter group `optimizer` describes.

    Args:
        rate: the learning rate, or a learning-rate schedule.
        hparams: the group `optimizer`.
    """
    beta_1, beta_2, epsilon = hparams["beta_1"], hparams["beta_2"], hparams["epsilon"]
    if hparams["name"] == "adam":
        return keras.optimizers.Adam(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)
    return keras.optimizers.Muon(
        rate,
        adam_beta_1=beta_1,
        adam_beta_2=beta_2,
        epsilon=epsilon,
        adam_lr_ratio=hparams["adam_lr_ratio"],
        ns_steps=hparams["ns_steps"],
        weight_decay=hparams["weight_decay"] or None,
        adam_weight_decay=None,
        exclude_layers=["output_kernel"],  # one vector per word, as in embeddings, which Keras excludes itself
    )


def compiled_model(task: Task, model_name: str, hparams: dict, steps: int, mixed_precision: bool = False):
    """Builds a fresh model and its optimizer for a training run of `steps` updates; enables op determinism."""
    tf.config.experimental.enable_op_determinism()
    keep_freed_memory()
    keras.utils.set_random_seed(task.seed)
    model = new_model(task, model_name, hparams, dtype="mixed_bfloat16" if mixed_precision else "float32")
    schedule = WarmupSchedule(model.dim, steps, hparams["schedule"])
    model.compile(optimizer=new_optimizer(schedule, hparams["optimizer"]), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    return model


def load(task: Task, model_name: str, hparams: dict, folder: Path):
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


def estimate_seconds(task: Task, hparams: dict, model_name: str) -> float:
    """Estimates the training time on this machine in seconds, at 60% of its matrix product rate."""
    cls, epochs = MODELS[model_name], hparams["train"]["epochs"]
    planned = (epochs, cls.adversarial_epochs(hparams, epochs))
    work = training_flop(cls, hparams, len(task.vocabulary), task.survey("train"), task.blanks, planned)
    return work / (0.6 * gemm_flops(1024, 3))


def _adversarial_cost(task, model_name, hparams):
    """Returns the work of an adversarial step divided by that of a pre-training step."""
    cls, size, found = MODELS[model_name], len(task.vocabulary), task.survey("train")
    setting = (found.words / found.lines, found.mask_rate, task.blanks)
    adversarial = flop_per_sentence(cls.adversarial_multiply_adds(hparams, size), *setting)
    return adversarial / flop_per_sentence(cls.multiply_adds(hparams, size), *setting)


def gemm_flops(size: int, repeats: int) -> float:
    """Returns the best rate of `repeats` float32 products of `[size, size]` matrices, in operations per second."""
    matrix = tf.random.stateless_uniform([size, size], seed=[1, 2])
    product = tf.function(lambda: tf.matmul(matrix, matrix))
    product()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        product().numpy()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times)


def _begin_adversarial(model, point, best, log):
    """Loads the weights that pre-training selected and restarts the selection for the adversarial phase."""
    with without_optimizers(model):
        model.load_weights(best.path)
    best.best = math.inf
    point.begin_adversarial()
    log(f"pre-training is over after {point.epoch} epochs; the adversarial phase begins from its selected weights")


def _fit(model, batches, point, steps, epochs, callbacks):
    """Runs the remaining part of a phase: the rest of an interrupted epoch, then whole epochs."""

    def fit(first, last, skip):
        model.fit(
            batches(epochs=range(first, last), skip=skip),
            steps_per_epoch=steps - skip,
            initial_epoch=first,
            epochs=last,
            callbacks=callbacks,
            verbose=0,
            shuffle=False,  # the pipeline shuffles
        )

    if point.finished or point.epoch >= epochs:
        return
    epoch = point.epoch
    if point.step == steps:  # all batches of the epoch have run, its validation has not
        rest = keras.callbacks.CallbackList(callbacks, model=model)
        model.stop_training = False
        rest.on_train_begin()
        rest.on_epoch_begin(epoch)
        rest.on_epoch_end(epoch, {name: float(value) for name, value in model.get_metrics_result().items()})
        rest.on_train_end()
    elif point.step:
        fit(epoch, epoch + 1, point.step)
    if point.epoch < epochs and not point.finished:
        fit(point.epoch, epochs, 0)


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
