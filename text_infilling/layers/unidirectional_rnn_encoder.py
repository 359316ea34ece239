"""Encoder of the seq2seq model."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import ENCODER, defaults
from text_infilling.hparams import merge
from text_infilling.layers.dropout import Dropout

_KEYS = {name: ENCODER[name] for name in ("units", "dropout")}  # "length" is read by the model


@keras.saving.register_keras_serializable("text_infilling")
class UnidirectionalRNNEncoder(keras.layers.Layer):
    """One left-to-right LSTM layer (paper, appendix B.1).

    The forget gate's bias starts at 0, not 1, as in the authors' cell.

    Args:
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        inputs: `[rows, template_length, dim]`, embedded templates.
        lengths: `[rows]`, number of positions to read in each row, at least 1.

    Returns:
        Outputs `[rows, template_length, units]`, and the state after the last position read: a list of hidden state
        and cell state, `[rows, units]` each.

    Raises:
        ValueError: a hyperparameter outside its range.

    >>> outputs, (hidden, cell) = UnidirectionalRNNEncoder({"units": 6})(ops.ones((2, 7, 4)), ops.array([7, 3]))
    >>> tuple(outputs.shape), tuple(hidden.shape)
    ((2, 7, 6), (2, 6))
    """

    def __init__(self, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.hparams = checked(hparams, _KEYS, "encoder")
        self.dropout = Dropout(self.hparams["dropout"], dtype=self.dtype_policy)
        self.lstm = keras.layers.LSTM(
            self.hparams["units"],
            return_sequences=True,
            return_state=True,
            unit_forget_bias=False,
            dtype=self.dtype_policy,
        )

    @staticmethod
    def default_hparams() -> dict:
        return defaults(_KEYS)

    def build(self, input_shape: tuple) -> None:
        self.lstm.build((None, None, input_shape[-1]))
        self.built = True

    def call(self, inputs: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, list[tf.Tensor]]:
        read = ops.arange(ops.shape(inputs)[1])[None, :] < lengths[:, None]
        outputs, hidden, cell = self.lstm(self.dropout(inputs, training=training), mask=read)
        return outputs, [hidden, cell]

    def get_config(self) -> dict:
        return {**super().get_config(), "hparams": merge(self.hparams, self.default_hparams())}
