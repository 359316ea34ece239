"""Decoder of the seq2seq model."""

import keras
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import RNN_DECODER, defaults
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding


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
    """

    def __init__(self, vocabulary_size, dim, hparams=None, position_hparams=None, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.hparams = checked(hparams, RNN_DECODER, "decoder")
        self.position_encoding = SegmentPositionEncoding(dim, position_hparams, dtype=self.dtype_policy)
        self.dropout = keras.layers.Dropout(self.hparams["dropout"], dtype=self.dtype_policy)
        self.lstm = keras.layers.LSTM(
            self.hparams["units"], return_sequences=True, unit_forget_bias=False, dtype=self.dtype_policy
        )

    @staticmethod
    def default_hparams() -> dict:
        return defaults(RNN_DECODER)

    def build(self, *input_shapes):
        units = self.hparams["units"]
        self.lstm.build((None, None, self.dim))
        # Words on the first axis, so that the rows of a few words can be gathered without a pass over all.
        self.output_kernel = self.add_weight(
            name="output_kernel", shape=(self.vocabulary_size, units), initializer="glorot_uniform"
        )
        self.output_bias = self.add_weight(name="output_bias", shape=(self.vocabulary_size,), initializer="zeros")
        self.built = True

    def call(self, inputs, segment_ids, state, training=False):
        times = ops.arange(ops.shape(inputs)[1])
        inputs = self._positioned(inputs, segment_ids[:, None], times[None, :])
        outputs = self.lstm(self.dropout(inputs, training=training), initial_state=state)
        return self.dropout(outputs, training=training)

    def step(self, inputs, segment_ids, time, state):
        """Returns outputs `[rows, units]` and the new state for the inputs `[rows, dim]` at position `time`."""
        inputs = self._positioned(inputs, segment_ids, time)
        outputs, state = self.lstm.cell(inputs, state)
        return outputs, list(state)

    def _positioned(self, inputs, segment_ids, times):
        if self.hparams["position"] == "own":
            return inputs + self.position_encoding(segment_ids, times + ops.zeros_like(segment_ids))
        encoding = self.position_encoding(ops.ones_like(segment_ids), times - 1 + ops.zeros_like(segment_ids))
        has_position = ops.cast(times > 0, inputs.dtype)
        return inputs + encoding * has_position[..., None]

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "hparams": self.hparams,
            "position_hparams": self.position_encoding.hparams,
        }
