"""Runs the phases of training that a model class declares (`models.phase.Phase`), also from the middle of an epoch."""

from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from text_infilling.models.phase import Phase
from text_infilling.training.cost import flop_per_sentence
from text_infilling.training.resume import ResumePoint
from text_infilling.training.task import Task


def planned_epochs(phases: Sequence[Phase], before: int = 0) -> list[int]:
    """Returns the number of epochs of each phase if none stops early, after `before` epochs of earlier phases."""
    planned = []
    for phase in phases:
        planned.append(phase.epochs(before + sum(planned)))
    return planned


def extra_work(phases: Sequence[Phase], planned: Sequence[int], task: Task, hparams: dict) -> float:
    """Returns how much more work the later phases are than the same number of epochs of the first, in such epochs.

    It is 3 if two later epochs have 2.5 times the work of an epoch of the first phase each.

    Args:
        phases: the current phase and all later ones.
        planned: epochs of each.
        task: corpus and masking.
        hparams: of the run.
    """
    found, size = task.survey("train"), len(task.vocabulary)
    setting = (found.words / found.lines, found.mask_rate, task.blanks)
    first, *later = (flop_per_sentence(phase.multiply_adds(hparams, size), *setting) for phase in phases)
    return sum((work / first - 1) * epochs for work, epochs in zip(later, planned[1:], strict=True))


def run_phase(
    model: keras.Model,
    batches: Callable[..., tf.data.Dataset],
    point: ResumePoint,
    end: int,
    callbacks: list[keras.callbacks.Callback],
) -> None:
    """Runs the remaining part of a phase: the rest of an interrupted epoch, then whole epochs.

    Args:
        model: the compiled model.
        batches: `batches(epochs=range(first, last), skip=skip)` returns the batches of these epochs without the first
            `skip`.
        point: one of `callbacks`; knows where the phase is, and the number of updates per epoch.
        end: the epoch at which the phase ends, counted from 0 over all phases.
        callbacks: of the phase.
    """

    def fit(first, last, skip):
        model.fit(
            batches(epochs=range(first, last), skip=skip),
            steps_per_epoch=point.steps - skip,
            initial_epoch=first,
            epochs=last,
            callbacks=callbacks,
            verbose=0,
            shuffle=False,  # the pipeline shuffles
        )

    if point.finished or point.epoch >= end:
        return
    epoch = point.epoch
    if point.step == point.steps:  # all batches of the epoch have run, its validation has not
        rest = keras.callbacks.CallbackList(callbacks, model=model)
        model.stop_training = False
        rest.on_train_begin()
        rest.on_epoch_begin(epoch)
        rest.on_epoch_end(epoch, {name: float(value) for name, value in model.get_metrics_result().items()})
        rest.on_train_end()
    elif point.step:
        fit(epoch, epoch + 1, point.step)
    if point.epoch < end and not point.finished:
        fit(point.epoch, end, 0)
