"""Estimates how long a training run takes on this machine."""

import time

import keras
import tensorflow as tf

from text_infilling.models.registry import MODELS
from text_infilling.training.cost import Plan, flop, flop_per_sentence, training_flop
from text_infilling.training.phases import planned_epochs
from text_infilling.training.task import Task
from text_infilling.training.trainer import compiled_model

SHORT = 120.0  # seconds; a shorter training is not measured, which would take as long
WARMUP, STEPS = 3, 8


def work_seconds(task: Task, hparams: dict, plan: Plan, model_name: str) -> float:
    """Estimates the training time in seconds from the work alone, at 60% of the machine's matrix product rate.

    It is right within a factor of 2, and costs no time.
    """
    cls = MODELS[model_name]
    planned = (plan.epochs, cls.adversarial_epochs(hparams, plan.epochs))
    work = training_flop(cls, hparams, len(task.vocabulary), task.survey("train"), task.blanks, planned)
    return work / plan.epochs_per_pass / (0.6 * gemm_flops(1024, 3))


def estimate_seconds(task: Task, hparams: dict, plan: Plan, model_name: str) -> float:
    """Estimates the training time in seconds, with validations, from a few steps of each phase on this machine.

    It takes about 10 s per phase; a training below `SHORT` is estimated by `work_seconds` instead.

    Args:
        task: corpus, masking and seed.
        hparams: all hyperparameters of the run.
        plan: length of the training.
        model_name: key of `registry.MODELS`.
    """
    quick = work_seconds(task, hparams, plan, model_name)
    if quick < SHORT:
        return quick
    found, cls = task.survey("train"), MODELS[model_name]
    hparams = {**hparams, "train": {**hparams["train"], "epochs": plan.epochs}}
    phases = cls.phases(hparams)
    model = compiled_model(task, model_name, hparams, 1000)
    pipeline = task.pipeline("train", model.template_format, hparams["train"]["batch_size"])
    bucket = hparams["train"]["bucket_by_length"]
    batches = pipeline.training(found.lines, task.seed, range(1), bucket_by_length=bucket).take(WARMUP + STEPS).cache()
    setting, total = (found.words / found.lines, found.mask_rate, task.blanks), 0.0
    for phase, epochs in zip(phases, planned_epochs(phases), strict=True):
        phase.begin(model)
        per_position = phase.multiply_adds(hparams, len(task.vocabulary))
        work = [
            flop(per_position, *(float(tf.reduce_sum(batch[f"{name}_lengths"])) for name in ("answer", "template")))
            for batch in batches
        ]
        ends = _ends_of_steps(model, batches)
        rate = sum(work[WARMUP:]) / (ends[-1] - ends[WARMUP - 1])
        # A validation also decodes, and takes about as long as training on as many sentences.
        lines = found.lines / plan.epochs_per_pass + task.survey("valid").lines
        total += epochs * lines * flop_per_sentence(per_position, *setting) / rate
    keras.utils.clear_session()
    return total


def gemm_flops(size: int, repeats: int) -> float:
    """Returns the best rate of `repeats` float32 products of `[size, size]` matrices, in operations per second."""
    matrix = tf.random.stateless_uniform([size, size], seed=[1, 2])
    _square(matrix)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        _square(matrix).numpy()
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times)


def _ends_of_steps(model: keras.Model, batches: tf.data.Dataset) -> list[float]:
    """Trains on the batches and returns the time at the end of each step."""
    ends: list[float] = []

    def end(batch: int, logs: dict) -> None:
        float(logs["loss"])  # waits for the device
        ends.append(time.perf_counter())

    model.fit(batches, callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=end)], verbose=0, shuffle=False)
    return ends


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])  # traced once per process
def _square(matrix: tf.Tensor) -> tf.Tensor:
    return tf.matmul(matrix, matrix)
