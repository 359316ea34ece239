"""Estimates how long a training run takes on this machine."""

import time

import tensorflow as tf

from text_infilling.models.registry import MODELS
from text_infilling.training.cost import training_flop
from text_infilling.training.task import Task


def estimate_seconds(task: Task, hparams: dict, model_name: str) -> float:
    """Estimates the training time on this machine in seconds, at 60% of its matrix product rate."""
    cls, epochs = MODELS[model_name], hparams["train"]["epochs"]
    planned = (epochs, cls.adversarial_epochs(hparams, epochs))
    work = training_flop(cls, hparams, len(task.vocabulary), task.survey("train"), task.blanks, planned)
    return work / (0.6 * gemm_flops(1024, 3))


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


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])  # traced once per process
def _square(matrix: tf.Tensor) -> tf.Tensor:
    return tf.matmul(matrix, matrix)
