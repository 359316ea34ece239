"""Sinusoidal position encoding of (segment, offset) pairs."""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import POSITION, defaults
from text_infilling.hparams import merge

_KEYS = {name: POSITION[name] for name in ("layout", "base")}


@keras.saving.register_keras_serializable("text_infilling")
class SegmentPositionEncoding(keras.layers.Layer):
    """Sinusoidal encoding of the position `segment_id * base + offset_id` (paper, appendix A.2.2).

    Args:
        dim: size of an encoding; even, at least 4.
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        segment_ids, offset_ids: integer tensors of the same shape `[...]`.

    Returns:
        `[..., dim]`. With layout "interleaved" sines and cosines alternate, wavelengths 10000^(2i/dim); with "halves"
        all sines come before all cosines, wavelengths 10000^(i/(dim/2 - 1)) (the authors' code).

    Raises:
        ValueError: dim is odd or less than 4, or a hyperparameter outside its range or choices.

    >>> encoding = SegmentPositionEncoding(dim=4)
    >>> tuple(encoding(ops.array([[0, 0, 1]]), ops.array([[1, 2, 0]])).shape)
    (1, 3, 4)
    """

    def __init__(self, dim: int, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.hparams = checked(hparams, _KEYS, "position")
        if dim % 2 or dim < 4:
            raise ValueError(f"dim must be even and at least 4. Received: dim={dim}")
        half = np.arange(dim // 2)
        if self.hparams["layout"] == "interleaved":
            self._frequencies = (10000.0 ** (-2 * half / dim)).astype("float32")
        else:
            # Same op and single precision as the authors' code: from positions of about 1,000 on, rounding is visible.
            step = np.float32(-np.log(10000.0) / (dim // 2 - 1))
            self._frequencies = ops.convert_to_numpy(ops.exp(half.astype("float32") * step))

    @staticmethod
    def default_hparams() -> dict:
        return defaults(_KEYS)

    def build(self, input_shape: tuple | None = None) -> None:
        self.built = True

    def call(self, segment_ids: tf.Tensor, offset_ids: tf.Tensor) -> tf.Tensor:
        position = ops.cast(segment_ids * self.hparams["base"] + offset_ids, "float32")
        angles = position[..., None] * self._frequencies  # always float32: positions reach the thousands
        if self.hparams["layout"] == "halves":
            encoding = ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
        else:
            encoding = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
            encoding = ops.reshape(encoding, (*ops.shape(angles)[:-1], self.dim))
        return ops.cast(encoding, self.compute_dtype)

    def compute_output_shape(self, segment_ids_shape: tuple, offset_ids_shape: tuple | None = None) -> tuple:
        return (*segment_ids_shape, self.dim)

    def get_config(self) -> dict:
        return {**super().get_config(), "dim": self.dim, "hparams": merge(self.hparams, self.default_hparams())}
