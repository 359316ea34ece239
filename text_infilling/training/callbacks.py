"""Training callbacks: validation, best-weights selection, log of epochs, progress."""

import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from text_infilling.runs.checks import add_checksum
from text_infilling.training.evaluation import Evaluator
from text_infilling.training.optimizers import without_optimizers
from text_infilling.training.resume import ResumePoint
from text_infilling.utils.files import read_jsonl, write_jsonl, written_aside
from text_infilling.utils.progress import duration
from text_infilling.vocabulary import TEMPLATE_BLANK

SELECTED_BY = "val_ppl"


class Validation(keras.callbacks.Callback):
    """Adds the metrics of the validation split to the logs of each epoch, as `val_NAME`, and shows some infills.

    Args:
        evaluator: evaluates the model.
        folder: of TensorBoard's text panel, which shows the same sentences each epoch.
        log: receives one line of metrics per epoch.
        examples: number of sentences in the panel.
    """

    def __init__(self, evaluator: Evaluator, folder: Path, log: Callable[[str], None], examples: int = 10):
        super().__init__()
        self._evaluator, self._log, self._examples = evaluator, log, examples
        self._writer = tf.summary.create_file_writer(str(folder / "validation"))

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        start = time.perf_counter()
        metrics, predictions = self._evaluator("valid")
        shown = ("loss", "bleu_paper", "bleu", "ppl_paper", "ppl", "ppl_words")
        shown = (*shown, "distinct_1", "distinct_2", "largest_share", *self.model.DIAGNOSTICS)
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
            cells = (p["template"].replace(TEMPLATE_BLANK, "____"), " / ".join(p["infill"]), " / ".join(p["answer"]))
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(rows)


class BestWeights(keras.callbacks.Callback):
    """Keeps the weights with the lowest validation `ppl`, or with `select="last"` those of the last epoch.

    Unlike the file of `keras.callbacks.ModelCheckpoint`, the file is complete at any moment.

    Attributes:
        best: lowest validation `ppl` so far.

    Args:
        path: the file; its name ends in `.weights.h5`.
        select: "best" or "last", the hyperparameter train.select.

    Raises:
        ValueError: `select` is neither "best" nor "last".
    """

    def __init__(self, path: Path, select: str):
        super().__init__()
        if select not in ("best", "last"):
            raise ValueError(f"train.select takes one of best, last. Received: {select!r}")
        self.path, self._select, self.best = path, select, np.inf

    def load(self) -> None:
        """Loads the selected weights into the model."""
        with without_optimizers(self.model):
            self.model.load_weights(self.path)

    def restart(self) -> None:
        """Loads the selected weights into the model and restarts the selection, for the next phase."""
        self.load()
        self.best = np.inf

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        if self._select == "last" or logs[SELECTED_BY] < self.best:
            self.best = min(self.best, logs[SELECTED_BY])
            with written_aside(self.path) as aside, without_optimizers(self.model):
                self.model.save_weights(aside)
                add_checksum(aside)


class EpochLog(keras.callbacks.Callback):
    """Writes the time and the validation metrics of each epoch to a file, one JSON line per epoch.

    Args:
        path: the file. Lines of this and later epochs, from an interrupted run, are replaced.
        point: knows the training time.
    """

    def __init__(self, path: Path, point: ResumePoint):
        super().__init__()
        self._path, self._point = path, point

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        earlier = read_jsonl(self._path) if self._path.exists() else []
        line = {"epoch": epoch + 1, "steps": int(self.model.optimizer.iterations)}
        line |= {"seconds": round(self._point.seconds_so_far(), 1)}
        line |= {name: float(value) for name, value in logs.items() if name == "loss" or name.startswith("val_")}
        write_jsonl(self._path, [*(one for one in earlier if one["epoch"] <= epoch), line])


class Progress(keras.callbacks.Callback):
    """Logs every half minute the epoch, step, loss, speed and remaining time.

    Args:
        point: knows epoch, step, and the number of steps per epoch.
        epochs: planned number of epochs of the whole training run.
        later: additional work of later phases, in epochs of the current phase: an epoch that takes twice as long
            adds 1.
        batch_size: sentences per step.
        log: receives one line per call.
        seconds: time between two lines.
    """

    def __init__(
        self,
        point: ResumePoint,
        epochs: int,
        later: float,
        batch_size: int,
        log: Callable[[str], None],
        seconds: float = 30.0,
    ):
        super().__init__()
        self._point, self._epochs, self._later, self._batch_size = point, epochs, later, batch_size
        self._log, self._seconds = log, seconds
        self._validation = 0.0

    def on_train_begin(self, logs: dict | None = None) -> None:
        self._logged_at = self._start = time.monotonic()
        self._done, self._busy = 0, 0.0
        self._batch_start = None

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        self._batch_start = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        now = time.monotonic()
        if self._done:  # the first step traces the graph
            self._busy += now - self._batch_start
        self._done += 1
        if now - self._logged_at < self._seconds or self._done < 2:
            return
        self._logged_at = now
        per_step = self._busy / (self._done - 1)
        epoch, step, steps = self._point.epoch, self._point.step, self._point.steps
        left = (self._epochs + self._later - epoch) * (steps * per_step + self._validation) - step * per_step
        rate = self._batch_size / per_step
        self._log(
            f"epoch {epoch + 1}/{self._epochs}, step {step}/{steps}: loss {logs['loss']:.4f}, "
            f"{rate:.0f} sentences/s, {duration(left)} left"
        )

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        # All callbacks before this one have run since the last batch.
        self._validation = time.monotonic() - self._batch_start if self._batch_start else 0.0
