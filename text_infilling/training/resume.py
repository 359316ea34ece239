"""Resume points: the state that interrupted training needs to give the result of uninterrupted training."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np

from text_infilling.runs.checks import DAMAGED, check_types
from text_infilling.utils.files import parse_json, written_aside

# Names and types of the fields of a `ResumePoint` that it saves.
_FIELDS = {"epoch": int, "step": int, "phase": int, "phase_start": int, "finished": bool, "seconds": float}


class ResumePoint(keras.callbacks.Callback):
    """Saves the state that training needs to resume: weights, optimizers, dropout, metrics and callbacks.

    It must be after the callbacks whose state it saves, in the list of callbacks.

    Attributes:
        path: the file.
        steps: updates per epoch.
        epoch: the current epoch, or the next one between epochs; counted from 0 over all phases.
        step: updates made in this epoch.
        phase: index of the current phase.
        phase_start: epoch at which the current phase began.
        finished: whether early stopping has ended the current phase.
        seconds: training time so far, over all processes.

    Args:
        path: the file; its name ends in `.npz`.
        steps: updates per epoch.
        interval: longest time between two resume points while batches are running, in seconds.
        stateful: name in the file, callback, and names of its attributes to save.
    """

    def __init__(
        self,
        path: Path,
        steps: int,
        interval: float,
        stateful: Mapping[str, tuple[keras.callbacks.Callback, Sequence[str]]],
    ):
        super().__init__()
        self.path, self.steps, self._interval, self._stateful = path, steps, interval, stateful
        self.epoch = self.step = self.phase = self.phase_start = 0
        self.finished, self.seconds = False, 0.0
        self._callbacks, self._metrics = None, None
        self._since = self._saved_at = self._step_ended = time.monotonic()

    def restore(self) -> bool:
        """Restores the resume point on disk; returns False if it is missing.

        Raises:
            ValueError: it belongs to another model, or cannot be read.
        """
        if not self.path.exists():
            return False
        variables = self._variables()
        try:
            with np.load(self.path, allow_pickle=False) as point:
                state = parse_json(str(point["state"]))
                values = [point[f"variable_{i}"] for i in range(len(variables))]
                metrics = [point[f"metric_{i}"] for i in range(len(self.model.metrics_variables))]
            check_types(state, {**_FIELDS, "callbacks": (dict, type(None))})
            if state["callbacks"] is not None:
                check_types(state["callbacks"], dict.fromkeys(self._stateful, dict))
                for name, (_, fields) in self._stateful.items():
                    kinds = dict.fromkeys(fields, (bool, int, float, type(None)))
                    check_types(state["callbacks"][name], kinds, f"{name}.")
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        except DAMAGED as error:
            raise ValueError(
                f"{self.path} is not a resume point of this run ({error}): remove this file, "
                "and the same command starts from the first epoch"
            ) from error
        self._callbacks, self._metrics = state["callbacks"], metrics
        for name in _FIELDS:
            setattr(self, name, state[name])
        return True

    def next_phase(self) -> None:
        """Records the end of the current phase and saves the current weights and callbacks."""
        # One assignment for all, so that a signal cannot interrupt between them.
        self.__dict__.update(
            _callbacks=self._state_of_callbacks(), phase=self.phase + 1, phase_start=self.epoch, finished=False
        )
        self.save()

    def save(self) -> None:
        """Saves the current state of training."""
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        state = {**{name: getattr(self, name) for name in _FIELDS}, "callbacks": self._callbacks}
        arrays = {f"variable_{i}": np.asarray(v) for i, v in enumerate(self._variables())}
        # Between `restore` and the start of the epoch, the restored metrics are not yet in the model.
        metrics = self.model.metrics_variables if self._metrics is None else self._metrics
        arrays |= {f"metric_{i}": np.asarray(v) for i, v in enumerate(metrics)}
        with written_aside(self.path) as aside:
            np.savez(aside, state=json.dumps(state), **arrays)
        self._saved_at = time.monotonic()

    def seconds_so_far(self) -> float:
        """Returns the training time until now, over all processes."""
        return self.seconds + time.monotonic() - self._since

    def bytes(self) -> int:
        """Returns the approximate size of a resume point on disk, in bytes."""
        return sum(np.asarray(v).nbytes for v in self._variables())

    def on_train_begin(self, logs: dict | None = None) -> None:
        # Runs after `on_train_begin` of the other callbacks, which resets their state.
        if self._callbacks is not None:
            for name, (callback, fields) in self._stateful.items():
                for field in fields:
                    setattr(callback, field, self._callbacks[name][field])
        self._saved_at = self._since = self._step_ended = time.monotonic()

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        # A resume point inside an epoch holds the callbacks' state at its start: if validation is interrupted, all of
        # it is repeated.
        self._callbacks = self._state_of_callbacks()
        if epoch != self.epoch:
            self.epoch, self.step = epoch, 0
        if self.step and self._metrics is not None:  # `fit` has just reset the metrics
            for variable, value in zip(self.model.metrics_variables, self._metrics, strict=True):
                variable.assign(value)
        self._metrics = None

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self.update_step()
        now = time.monotonic()
        next_one, self._step_ended = 2 * now - self._step_ended, now  # `next_one`: expected end of the next step
        # Also save before validation, which may take long: after an interruption only validation is repeated.
        if self.step == self.steps or next_one - self._saved_at >= self._interval:
            self.save()

    def update_step(self) -> None:
        """Sets `step` from the optimizer's counter, which stays correct after an interruption."""
        self.step = int(self.model.optimizer.iterations) - self.epoch * self.steps

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        # One assignment for all, so that a signal cannot interrupt between them.
        self.__dict__.update(
            _callbacks=self._state_of_callbacks(), finished=self.model.stop_training, epoch=epoch + 1, step=0
        )
        self.save()

    def _variables(self):
        optimizers = (getattr(self.model, name) for name in self.model.OPTIMIZERS)
        return [*self.model.variables, *(variable for optimizer in optimizers for variable in optimizer.variables)]

    def _state_of_callbacks(self):
        return {
            name: {field: _plain(getattr(callback, field)) for field in fields}
            for name, (callback, fields) in self._stateful.items()
        }


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value
