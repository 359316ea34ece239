"""Decoder of the seq2seq model."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import RNN_DECODER, defaults
from text_infilling.hparams import merge
from text_infilling.layers.dropout import Dropout
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding


@keras.saving.register_keras_serializable("text_infilling")
class BasicPositionalRNNDecoder(keras.layers.Layer):
    """One LSTM layer over embedded answers with added position encodings, and an output layer.

    Paper, appendix B.1. Teacher forcing runs over whole answers (`call`); all other strategies (greedy, beam, sampling,
    Gumbel-softmax: package `decoding`) call `step`.

    Args:
        vocabulary_size: number of words and special tokens.
        dim: size of the inputs.
        hparams: partial dict over `default_hparams()`.
        position_hparams: partial dict over the defaults of `SegmentPositionEncoding`.

    Call arguments:
        inputs: `[rows, answer_length, dim]`, embedded answers that begin with `<BOB>`.
        segment_ids: `[rows]`, segment ids of the blanks.
        state: hidden state and cell state, `[rows, units]` each.

    Returns:
        LSTM outputs `[rows, answer_length, units]`; `output_kernel` `[vocab, units]` and `output_bias` `[vocab]` turn
        them into logits.

    Raises:
        ValueError: a hyperparameter outside its range or choices.

    >>> decoder = BasicPositionalRNNDecoder(vocabulary_size=9, dim=4, hparams={"units": 6})
    >>> outputs = decoder(ops.ones((2, 5, 4)), ops.array([1, 3]), [ops.zeros((2, 6)), ops.zeros((2, 6))])
    >>> tuple(outputs.shape), tuple(decoder.output_kernel.shape)
    ((2, 5, 6), (9, 6))
    """

    def __init__(
        self,
        vocabulary_size: int,
        dim: int,
        hparams: dict | None = None,
        position_hparams: dict | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.hparams = checked(hparams, RNN_DECODER, "decoder")
        self.position_encoding = SegmentPositionEncoding(dim, position_hparams, dtype=self.dtype_policy)
        self.dropout = Dropout(self.hparams["dropout"], dtype=self.dtype_policy)
        self.lstm = keras.layers.LSTM(
            self.hparams["units"], return_sequences=True, unit_forget_bias=False, dtype=self.dtype_policy
        )

    @staticmethod
    def default_hparams() -> dict:
        return defaults(RNN_DECODER)

    def build(self, input_shape: tuple | None = None) -> None:
        units = self.hparams["units"]
        self.lstm.build((None, None, self.dim))
        # Words on the first axis, so that the rows of a few words can be gathered without a pass over all.
        self.output_kernel = self.add_weight(
            name="output_kernel", shape=(self.vocabulary_size, units), initializer="glorot_uniform"
        )
        self.output_bias = self.add_weight(name="output_bias", shape=(self.vocabulary_size,), initializer="zeros")
        self.built = True

    def call(
        self, inputs: tf.Tensor, segment_ids: tf.Tensor, state: list[tf.Tensor], training: bool = False
    ) -> tf.Tensor:
        times = ops.arange(ops.shape(inputs)[1])
        inputs = self._positioned(inputs, segment_ids[:, None], times[None, :])
        inputs = self.dropout(inputs, training=training and self.hparams["drop_inputs"])
        outputs = self.lstm(inputs, initial_state=state)
        return self.dropout(outputs, training=training)

    def step(
        self, inputs: tf.Tensor, segment_ids: tf.Tensor, time: tf.Tensor, state: list[tf.Tensor]
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns outputs `[rows, units]` and the new state for the inputs `[rows, dim]` at position `time`."""
        inputs = self._positioned(inputs, segment_ids, time)
        outputs, state = self.lstm.cell(inputs, state)
        return outputs, list(state)

    def _positioned(self, inputs: tf.Tensor, segment_ids: tf.Tensor, times: tf.Tensor) -> tf.Tensor:
        if self.hparams["position"] == "own":
            return inputs + self.position_encoding(segment_ids, times + ops.zeros_like(segment_ids))
        encoding = self.position_encoding(ops.ones_like(segment_ids), times - 1 + ops.zeros_like(segment_ids))
        has_position = ops.cast(times > 0, inputs.dtype)
        return inputs + encoding * has_position[..., None]

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "hparams": merge(self.hparams, self.default_hparams()),
            "position_hparams": self.position_encoding.get_config()["hparams"],
        }
