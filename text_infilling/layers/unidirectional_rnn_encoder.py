"""Encoder of the seq2seq model."""

import keras
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import ENCODER, defaults

_KEYS = {name: ENCODER[name] for name in ("units", "dropout")}  # "length" is read by the model


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
        ValueError: units is less than 1.
    """

    def __init__(self, hparams=None, **kwargs):
        super().__init__(**kwargs)
        self.hparams = checked(hparams, _KEYS, "encoder")
        self.dropout = keras.layers.Dropout(self.hparams["dropout"], dtype=self.dtype_policy)
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

    def build(self, inputs_shape, *more):
        self.lstm.build((None, None, inputs_shape[-1]))
        self.built = True

    def call(self, inputs, lengths, training=False):
        read = ops.arange(ops.shape(inputs)[1])[None, :] < lengths[:, None]
        outputs, hidden, cell = self.lstm(self.dropout(inputs, training=training), mask=read)
        return outputs, [hidden, cell]

    def get_config(self):
        return {**super().get_config(), "hparams": self.hparams}
