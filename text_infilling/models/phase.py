"""Training phases as data; a model class lists its own in `phases`."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import keras


class Span(NamedTuple):
    """When a phase runs.

    Attributes:
        first_epoch: its first epoch, counted from 0 over all phases.
        epochs: its number of epochs.
        steps: updates per epoch.
    """

    first_epoch: int
    epochs: int
    steps: int


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of training with its own number of epochs and its own callbacks.

    The first phase starts from the initial weights, each later one from the selected weights of the phase before it.
    A phase is defined here and not in `training`, because the models do not import `training`.

    Attributes:
        name: for log lines.
        epochs: `epochs(before)` returns the number of epochs after `before` epochs of all earlier phases.
        multiply_adds: `multiply_adds(hparams, vocabulary_size)` returns the multiply-adds of the forward pass at one
            answer position and at one template position.
        early_stopping: whether `train.patience` may end the phase.
        begin: `begin(model)` prepares the compiled model; it also runs when training resumes inside the phase.
        callbacks: `callbacks(span, log)` returns further callbacks of the phase, see `Span`.

    >>> phase = Phase("pre-training", epochs=lambda before: 3, multiply_adds=lambda hparams, size: (size, 1))
    >>> phase.epochs(0), phase.callbacks(Span(first_epoch=0, epochs=3, steps=100), print)
    (3, [])
    """

    name: str
    epochs: Callable[[int], int]
    multiply_adds: Callable[[dict, int], tuple[int, int]]
    early_stopping: bool = True
    begin: Callable[[keras.Model], None] = lambda model: None
    callbacks: Callable[[Span, Callable[[str], None]], list[keras.callbacks.Callback]] = lambda span, log: []
