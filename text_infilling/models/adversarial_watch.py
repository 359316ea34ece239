"""Callback of the GAN's adversarial phase: temperature, and warnings if training collapses."""

from collections.abc import Callable

import keras

from text_infilling.models.phase import Span


class AdversarialWatch(keras.callbacks.Callback):
    """Sets the temperature of each adversarial step, and warns if the discriminator wins or the infills collapse.

    Args:
        span: epochs and steps of the adversarial phase.
        log: receives one line per call.
    """

    WON = 0.99  # accuracy of the discriminator on true answers and on hard infills, above which it has won
    COLLAPSED = 0.5  # share of the most frequent infill in the validation split, above which they have collapsed

    def __init__(self, span: Span, log: Callable[[str], None]):
        super().__init__()
        self._span, self._log = span, log
        self._epoch = span.first_epoch

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        # A call of `fit` that resumes inside an epoch has fewer steps, and counts them from 0.
        step = batch + self._span.steps - self.params["steps"]
        self.model.set_temperature(self._epoch - self._span.first_epoch, step, self._span)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        truth, soft, hard = (logs[f"val_d_accuracy_{name}"] for name in ("truth", "soft", "hard"))
        self._log(
            f"epoch {epoch + 1}: d_loss {logs['d_loss']:.4f}, g_loss {logs['g_loss']:.4f}; on validation the "
            f"discriminator is right on {truth:.1%} of truth, {soft:.1%} of soft and {hard:.1%} of hard infills; "
            f"distinct-1 {logs['val_distinct_1']:.4f}, distinct-2 {logs['val_distinct_2']:.4f}"
        )
        if min(truth, hard) > self.WON:
            self._log(
                f"warning: the discriminator has won ({truth:.1%} and {hard:.1%}): the generator no longer learns "
                "from it; lower gan.discriminator_rate or raise gan.weight"
            )
        if logs["val_largest_share"] > self.COLLAPSED:
            self._log(
                f"warning: {logs['val_largest_share']:.1%} of all infills are the same: they have collapsed into one; "
                "lower gan.weight"
            )
