"""Builds the optimizer of a run, and detaches optimizers while weights are saved or loaded."""

import contextlib
from collections.abc import Iterator

import keras


def new_optimizer(
    rate: float | keras.optimizers.schedules.LearningRateSchedule, hparams: dict
) -> keras.optimizers.Optimizer:
    """Builds the optimizer that the hyperparameter group `optimizer` describes.

    Source: Adam is the paper's optimizer (appendix A, "Optimizing"); Muon is Jordan 2024, "Muon: an optimizer for
    hidden layers in neural networks".

    Args:
        rate: the learning rate, or a learning-rate schedule.
        hparams: the group `optimizer`.
    """
    beta_1, beta_2, epsilon = hparams["beta_1"], hparams["beta_2"], hparams["epsilon"]
    if hparams["name"] == "adam":
        return keras.optimizers.Adam(rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon)
    return keras.optimizers.Muon(
        rate,
        adam_beta_1=beta_1,
        adam_beta_2=beta_2,
        epsilon=epsilon,
        adam_lr_ratio=hparams["adam_lr_ratio"],
        ns_steps=hparams["ns_steps"],
        weight_decay=hparams["weight_decay"] or None,
        adam_weight_decay=None,
        exclude_layers=["output_kernel"],  # one vector per word, as in embeddings, which Keras excludes itself
    )


@contextlib.contextmanager
def without_optimizers(model: keras.Model) -> Iterator[None]:
    """Detaches the optimizers within the block, so that weights are saved and loaded without optimizer state."""
    # Keras 3.15: `save_weights` and `load_weights` walk all attributes of a compiled model and have no option that
    # leaves its optimizers out. A second, uncompiled model would need all weights in memory twice.
    optimizers = {name: getattr(model, name) for name in model.OPTIMIZERS}
    try:
        for name in optimizers:
            setattr(model, name, None)
        yield
    finally:
        for name, optimizer in optimizers.items():
            setattr(model, name, optimizer)
