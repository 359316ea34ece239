"""Callback of the GAN's adversarial phase: temperature, and warnings if training collapses."""

from collections.abc import Callable

import keras


class AdversarialWatch(keras.callbacks.Callback):
    """Sets the temperature of each adversarial epoch, and warns if the discriminator wins or the infills collapse.

    Args:
        first_epoch: the first adversarial epoch, counted from 0 over all phases.
        log: receives one line per call.
    """

    WON = 0.99  # accuracy of the discriminator on true answers and on infills, above which it has won
    COLLAPSED = 0.5  # share of the most frequent infill in the validation split, above which they have collapsed

    def __init__(self, first_epoch: int, log: Callable[[str], None]):
        super().__init__()
        self._first_epoch, self._log = first_epoch, log

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        self.model.set_adversarial_epoch(epoch - self._first_epoch)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        truth, infills = logs["d_accuracy_truth"], logs["d_accuracy_infills"]
        self._log(
            f"epoch {epoch + 1}: d_loss {logs['d_loss']:.4f}, g_loss {logs['g_loss']:.4f}; the discriminator is right "
            f"on {truth:.1%} of truth, {infills:.1%} of infills; validation distinct-1 {logs['val_distinct_1']:.4f}, "
            f"distinct-2 {logs['val_distinct_2']:.4f}"
        )
        if min(truth, infills) > self.WON:
            self._log(
                f"warning: the discriminator has won ({truth:.1%} and {infills:.1%}): the generator no longer learns "
                "from it; lower gan.discriminator_rate or raise gan.weight"
            )
        if logs["val_largest_share"] > self.COLLAPSED:
            self._log(
                f"warning: {logs['val_largest_share']:.1%} of all infills are the same: they have collapsed into one; "
                "lower gan.weight"
            )
