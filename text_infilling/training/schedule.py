"""Learning-rate schedule."""

import keras
from keras import ops

from text_infilling.hparams import merge


@keras.saving.register_keras_serializable("text_infilling")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Learning-rate schedule with linear warm-up, then decay.

    - "inverse_sqrt": `constant * dim^-0.5 * min(step / warmup^1.5, step^-0.5)` (paper, appendix A, "Optimizing").
    - "linear": linearly up to `peak`, then linearly down to 0 at `total_steps`.

    Args:
        dim: width of the model, read by "inverse_sqrt".
        total_steps: steps of the whole training run, read by "linear".
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        step: number of updates made so far; 0 at the first update.

    Raises:
        ValueError: unknown `shape`, or `warmup_steps` below 1.
    """

    def __init__(self, dim: int, total_steps: int, hparams: dict | None = None):
        super().__init__()
        self.dim, self.total_steps = dim, total_steps
        self.hparams = merge(hparams, self.default_hparams())
        if self.hparams["shape"] not in ("inverse_sqrt", "linear"):
            raise ValueError(f"schedule.shape takes one of inverse_sqrt, linear. Received: {self.hparams['shape']!r}")
        if self.hparams["warmup_steps"] < 1:
            raise ValueError(f"schedule.warmup_steps must be at least 1. Received: {self.hparams['warmup_steps']}")

    @staticmethod
    def default_hparams() -> dict:
        return {
            "shape": "inverse_sqrt",  # or "linear"
            "constant": 0.3,  # of "inverse_sqrt"
            "peak": 1e-3,  # of "linear"
            "warmup_steps": 10000,
            "first_step": 1,  # the step that the first update counts as; 0: it has rate 0
        }

    def __call__(self, step):
        h = self.hparams
        step = ops.cast(step, "float32") + float(h["first_step"])
        warmup = float(h["warmup_steps"])
        if h["shape"] == "inverse_sqrt":
            rate = ops.minimum(step / warmup**1.5, ops.rsqrt(ops.maximum(step, 1.0)))
            return h["constant"] * self.dim**-0.5 * rate
        left = (self.total_steps + h["first_step"] - step) / max(self.total_steps - warmup, 1.0)
        return h["peak"] * ops.clip(ops.minimum(step / warmup, left), 0.0, 1.0)

    def get_config(self) -> dict:
        return {"dim": self.dim, "total_steps": self.total_steps, "hparams": self.hparams}
