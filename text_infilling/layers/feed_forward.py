"""Position-wise feed-forward network of a transformer block."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.layers.dropout import Dropout


@keras.saving.register_keras_serializable("text_infilling")
class FeedForward(keras.layers.Layer):
    """Two dense layers with a ReLU between them, applied at every position (Vaswani et al. 2017, section 3.3).

    Args:
        dim: size of inputs and outputs.
        hidden_dim: size of the hidden layer.
        dropout: dropout rate of the hidden layer.

    Call arguments:
        inputs: `[..., dim]`.

    Returns:
        `[..., dim]`.

    >>> tuple(FeedForward(dim=4, hidden_dim=16)(ops.ones((2, 3, 4))).shape)
    (2, 3, 4)
    """

    def __init__(self, dim: int, hidden_dim: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.hidden_dim, self.dropout = dim, hidden_dim, dropout
        self.expand = keras.layers.Dense(hidden_dim, dtype=self.dtype_policy, name="expand")
        self.contract = keras.layers.Dense(dim, dtype=self.dtype_policy, name="contract")
        self._dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: tuple | None = None) -> None:
        self.expand.build((None, self.dim))
        self.contract.build((None, self.hidden_dim))
        self.built = True

    def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        hidden = self._dropout(ops.relu(self.expand(inputs)), training=training)
        return self.contract(hidden)

    def get_config(self) -> dict:
        names = ("dim", "hidden_dim", "dropout")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
