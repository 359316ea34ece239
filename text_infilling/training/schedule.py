"""Learning-rate schedule."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import SCHEDULE, defaults
from text_infilling.hparams import merge


@keras.saving.register_keras_serializable("text_infilling")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning-rate schedule with linear warm-up, then decay.

    - "inverse_sqrt": `scale * dim^-0.5 * min(step / warmup^1.5, step^-0.5)` (paper, appendix A, "Optimizing").
    - "linear": linearly up to `peak`, then linearly down to 0 at `total_steps`.

    Args:
        dim: width of the model, read by "inverse_sqrt".
        total_steps: steps of the whole training run, read by "linear".
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        step: number of updates made so far; 0 at the first update.

    Raises:
        ValueError: a hyperparameter outside its range or choices.
    """

    def __init__(self, dim: int, total_steps: int, hparams: dict | None = None):
        super().__init__()
        self.dim, self.total_steps = dim, total_steps
        self.hparams = checked(hparams, SCHEDULE, "schedule")

    @staticmethod
    def default_hparams() -> dict:
        return defaults(SCHEDULE)

    def __call__(self, step: tf.Tensor | int) -> tf.Tensor:
        h = self.hparams
        step = ops.cast(step, "float32") + float(h["first_step"])
        warmup = float(h["warmup_steps"])
        if h["shape"] == "inverse_sqrt":
            rate = ops.minimum(step / warmup**1.5, ops.rsqrt(ops.maximum(step, 1.0)))
            return h["scale"] * self.dim**-0.5 * rate
        left = (self.total_steps + h["first_step"] - step) / max(self.total_steps - warmup, 1.0)
        return h["peak"] * ops.clip(ops.minimum(step / warmup, left), 0.0, 1.0)

    def get_config(self) -> dict:
        return {"dim": self.dim, "total_steps": self.total_steps, "hparams": merge(None, self.hparams)}
