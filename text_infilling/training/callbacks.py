"""Training callbacks: validation, best-weights selection, resume points, progress."""

import contextlib
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from text_infilling.masking.masked_lines import BLANK
from text_infilling.runs.checks import check_types
from text_infilling.utils.files import parse_json, written_aside
from text_infilling.utils.progress import duration

SELECTED_BY = "val_ppl"
_STATE = {"epoch": int, "step": int, "pretraining_epochs": int, "finished": bool, "seconds": float}  # in a resume point


@contextlib.contextmanager
def without_optimizers(model):
    """Detaches the optimizers within the block, so that weights are saved and loaded without optimizer state."""
    optimizers = {name: getattr(model, name) for name in model.OPTIMIZERS}
    try:
        for name in optimizers:
            setattr(model, name, None)
        yield
    finally:
        for name, optimizer in optimizers.items():
            setattr(model, name, optimizer)


class Validation(keras.callbacks.Callback):
    """Adds the metrics of the validation split to the logs of each epoch, as `val_NAME`, and shows some infills.

    Args:
        evaluator: evaluates the model.
        folder: of TensorBoard's text panel, which shows the same sentences each epoch.
        log: receives one line of metrics per epoch.
        examples: number of sentences in the panel.
    """

    def __init__(self, evaluator, folder: Path, log: Callable[[str], None], examples: int = 10):
        super().__init__()
        self._evaluator, self._log, self._examples = evaluator, log, examples
        self._writer = tf.summary.create_file_writer(str(folder / "validation"))

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        metrics, predictions = self._evaluator("valid")
        shown = ("loss", "bleu_paper", "bleu", "ppl_paper", "ppl", "ppl_words")
        shown = (*shown, "distinct_1", "distinct_2", "largest_share")
        logs.update({f"val_{name}": metrics[name] for name in shown})
        summary = ", ".join(f"{name} {logs[f'val_{name}']:.2f}" for name in ("bleu_paper", "bleu", "ppl_paper", "ppl"))
        self._log(
            f"epoch {epoch + 1}: loss {logs['loss']:.4f}; validation {summary} ({time.perf_counter() - start:.0f} s)"
        )
        with self._writer.as_default():
            tf.summary.text("infills", self._panel(predictions), step=epoch)
        self._writer.flush()

    def _panel(self, predictions):
        rows = ["| template | infill | answer |", "|---|---|---|"]
        for p in predictions[:: max(1, len(predictions) // self._examples)][: self._examples]:
            cells = (p["template"].replace(BLANK, "____"), " / ".join(p["infill"]), " / ".join(p["answer"]))
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(rows)


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights with the lowest validation `ppl`, or with `select="last"` those of the last epoch.

    Unlike the file of `keras.callbacks.ModelCheckpoint`, the file is complete at any moment.

    Raises:
        ValueError: `select` is neither "best" nor "last".
    """

    def __init__(self, path: Path, select: str):
        super().__init__()
        if select not in ("best", "last"):
            raise ValueError(f"train.select takes one of best, last. Received: {select!r}")
        self.path, self._select, self.best = path, select, np.inf

    def on_epoch_end(self, epoch, logs=None):
        if self._select == "last" or logs[SELECTED_BY] < self.best:
            self.best = min(self.best, logs[SELECTED_BY])
            with written_aside(self.path) as aside, without_optimizers(self.model):
                self.model.save_weights(aside)


class ResumePoint(keras.callbacks.Callback):
    """Saves the state that training needs to resume: weights, optimizers, dropout, metrics and callbacks.

    Args:
        path: the file; its name ends in `.npz`.
        steps: updates per epoch.
        seconds: longest time between two resume points while batches are running.
        stateful: callbacks, each with the names of its attributes to save.
    """

    def __init__(self, path: Path, steps: int, seconds: float, stateful: list[tuple[keras.callbacks.Callback, list]]):
        super().__init__()
        self.path, self.stateful, self._steps, self._seconds = path, stateful, steps, seconds
        self.epoch = 0  # the current epoch, or the next one between epochs
        self.step = 0  # updates made in this epoch
        self.pretraining_epochs = 0  # number of epochs run; 0 until the adversarial phase begins
        self.finished = False  # early stopping has ended the current phase
        self.seconds = 0.0  # training time so far, over all processes
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
                self._metrics = [point[f"metric_{i}"] for i in range(len(self.model.metrics_variables))]
            check_types(state, {**_STATE, "callbacks": (list, type(None))})
            for (_, names), kept in zip(self.stateful, state["callbacks"] or [], strict=False):
                check_types(kept, dict.fromkeys(names, (bool, int, float, type(None))))
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.path} is no resume point of this run ({error}): start afresh with --noresume, or with "
                "--overwrite of `text-infill fit`"
            ) from error
        self._callbacks = state["callbacks"]
        for name in _STATE:
            setattr(self, name, state[name])
        return True

    def begin_adversarial(self):
        """Records the end of pre-training and saves the current weights and callbacks."""
        self._callbacks = self._state_of_callbacks()
        self.pretraining_epochs, self.finished = self.epoch, False
        self.save()

    def save(self):
        """Saves the current state of training."""
        now = time.monotonic()
        self.seconds, self._since = self.seconds + now - self._since, now
        state = {**{name: getattr(self, name) for name in _STATE}, "callbacks": self._callbacks}
        arrays = {f"variable_{i}": np.asarray(v) for i, v in enumerate(self._variables())}
        # Between `restore` and the start of the epoch, the restored metrics are not yet in the model.
        metrics = self.model.metrics_variables if self._metrics is None else self._metrics
        arrays |= {f"metric_{i}": np.asarray(v) for i, v in enumerate(metrics)}
        with written_aside(self.path) as aside:
            np.savez(aside, state=json.dumps(state), **arrays)
        self._saved_at = time.monotonic()

    def bytes(self) -> int:
        """Returns the approximate size of a resume point on disk, in bytes."""
        return sum(np.asarray(v).nbytes for v in self._variables())

    def on_train_begin(self, logs=None):
        # Runs after `on_train_begin` of the other callbacks, which resets their state.
        for (callback, names), values in zip(self.stateful, self._callbacks or [], strict=False):
            for name in names:
                setattr(callback, name, values[name])
        self._saved_at = self._since = self._step_ended = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        # A resume point inside an epoch holds the callbacks' state at its start: if validation is interrupted, all of
        # it is repeated.
        self._callbacks = self._state_of_callbacks()
        if epoch != self.epoch:
            self.epoch, self.step = epoch, 0
        if self.step and self._metrics is not None:  # `fit` has just reset the metrics
            for variable, value in zip(self.model.metrics_variables, self._metrics, strict=True):
                variable.assign(value)
        self._metrics = None

    def on_train_batch_end(self, batch, logs=None):
        self.update_step()
        now = time.monotonic()
        next_one, self._step_ended = 2 * now - self._step_ended, now  # `next_one`: expected end of the next step
        # Also save before validation, which may take long: after an interruption only validation is repeated.
        if self.step == self._steps or next_one - self._saved_at >= self._seconds:
            self.save()

    def update_step(self):
        """Sets `step` from the optimizer's counter, which stays correct after an interruption."""
        self.step = int(self.model.optimizer.iterations) - self.epoch * self._steps

    def on_epoch_end(self, epoch, logs=None):
        # One assignment for all, so that a signal cannot interrupt between them.
        self.__dict__.update(
            _callbacks=self._state_of_callbacks(), finished=self.model.stop_training, epoch=epoch + 1, step=0
        )
        self.save()

    def _variables(self):
        optimizers = (getattr(self.model, name) for name in self.model.OPTIMIZERS)
        return [*self.model.variables, *(variable for optimizer in optimizers for variable in optimizer.variables)]

    def _state_of_callbacks(self):
        return [{name: _plain(getattr(callback, name)) for name in names} for callback, names in self.stateful]


class AdversarialWatch(keras.callbacks.Callback):
    """Sets the temperature of each adversarial epoch, and warns if the discriminator wins or the infills collapse.

    Args:
        point: knows when pre-training ended.
        log: receives one line per call.
    """

    WON = 0.99  # accuracy of the discriminator on true answers and on infills, above which it has won
    COLLAPSED = 0.5  # share of the most frequent infill in the validation split, above which they have collapsed

    def __init__(self, point: ResumePoint, log: Callable[[str], None]):
        super().__init__()
        self._point, self._log = point, log

    def on_epoch_begin(self, epoch, logs=None):
        self.model.set_adversarial_epoch(epoch - self._point.pretraining_epochs)

    def on_epoch_end(self, epoch, logs=None):
        truth, infills = logs["d_accuracy_truth"], logs["d_accuracy_infills"]
        self._log(
            f"epoch {epoch + 1}: d_loss {logs['d_loss']:.4f}, g_loss {logs['g_loss']:.4f}; the discriminator is right "
            f"on {truth:.1%} of truth, {infills:.1%} of infills; validation distinct-1 {logs['val_distinct_1']:.4f}, "
            f"distinct-2 {logs['val_distinct_2']:.4f}"
        )
        if min(truth, infills) > self.WON:
            self._log(
                f"warning: the discriminator has won ({truth:.1%} and {infills:.1%}): the generator learns nothing "
                "from it any more; lower gan.discriminator_rate or raise gan.weight"
            )
        if logs["val_largest_share"] > self.COLLAPSED:
            self._log(
                f"warning: {logs['val_largest_share']:.1%} of all infills are the same: they have collapsed into one; "
                "lower gan.weight"
            )


class Progress(keras.callbacks.Callback):
    """Logs every half minute the epoch, step, loss, speed and remaining time.

    Args:
        point: knows epoch and step.
        epochs: number of epochs of the whole training.
        steps: steps per epoch.
        batch_size: sentences per step.
        log: receives one line per call.
        seconds: time between two lines.
    """

    def __init__(self, point: ResumePoint, epochs: int, steps: int, batch_size: int, log, seconds: float = 30.0):
        super().__init__()
        self.later = 0.0  # work after `epochs`, in units of a current epoch
        self._point, self.epochs, self._steps, self._batch_size = point, epochs, steps, batch_size
        self._log, self._seconds = log, seconds
        self._validation = 0.0

    def on_train_begin(self, logs=None):
        self._said_at = self._start = time.monotonic()
        self._done, self._busy = 0, 0.0
        self._batch_start = None

    def on_train_batch_begin(self, batch, logs=None):
        self._batch_start = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        if self._done:  # the first step traces the graph
            self._busy += now - self._batch_start
        self._done += 1
        if now - self._said_at < self._seconds or self._done < 2:
            return
        self._said_at = now
        per_step = self._busy / (self._done - 1)
        epoch, step = self._point.epoch, self._point.step
        left = (self.epochs + self.later - epoch) * (self._steps * per_step + self._validation) - step * per_step
        rate = self._batch_size / per_step
        self._log(
            f"epoch {epoch + 1}/{self.epochs}, step {step}/{self._steps}: loss {logs['loss']:.4f}, "
            f"{rate:.0f} sentences/s, {duration(left)} left"
        )

    def on_epoch_end(self, epoch, logs=None):
        # All callbacks before this one have run since the last batch.
        self._validation = time.monotonic() - self._batch_start if self._batch_start else 0.0


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value
