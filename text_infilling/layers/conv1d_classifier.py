"""The discriminator of the GAN."""

import keras
from keras import ops

from text_infilling.hparams import merge


class Conv1DClassifier(keras.layers.Layer):
    """Tells true answers from infills: convolutions of several widths, ReLU, maximum over time, one unit without bias.

    Paper, appendix B.1, "GAN-based model". As in the authors' code, embedded padding is 0 where it enters a
    convolution, and positions of padding take part in the maximum. So what stands in the padding never matters, nor
    does any other row, but the number of positions of padding does while it is less than
    `(largest kernel size + 1) // 2`: the windows around them see the end of the row, or nothing but the bias. From that
    number on the logit stays the same. Truth and infills must not be told apart by their padding, so pad both to one
    length, or each by that many positions.

    A row of length 0 has a finite logit too, that of windows which see nothing; it follows from the biases alone and is
    0 while none is positive. Kernel sizes may be larger than the length.

    Args:
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        inputs: `[rows, length, dim]`, embedded tokens; of soft ids, their mean embeddings. At least one row and
            one position: without any, the convolution fails on some CPUs.
        lengths: `[rows]` integers, tokens of each row; what stands behind them is padding.
        training: whether dropout acts.

    Returns:
        Logits `[rows]`, positive for what is taken for the truth.

    Raises:
        ValueError: a hyperparameter out of its range, or inputs that are not `[rows, length, dim]`.
    """

    def __init__(self, hparams=None, **kwargs):
        super().__init__(**kwargs)
        self.hparams = h = merge(hparams, self.default_hparams())
        if not h["kernel_sizes"] or min(h["kernel_sizes"]) < 1:
            raise ValueError(
                f"kernel_sizes must be one or more sizes from 1. Received: kernel_sizes={h['kernel_sizes']}"
            )
        if h["filters"] < 1:
            raise ValueError(f"filters must be at least 1. Received: filters={h['filters']}")
        if not 0 <= h["dropout"] < 1:
            raise ValueError(f"dropout must be at least 0 and less than 1. Received: dropout={h['dropout']}")
        policy = {"dtype": self.dtype_policy}
        self.convolutions = [
            keras.layers.Conv1D(h["filters"], size, padding="same", name=f"convolution_{i}", **policy)
            for i, size in enumerate(h["kernel_sizes"])
        ]
        self.dropout = keras.layers.Dropout(h["dropout"], **policy)
        self.logit = keras.layers.Dense(1, use_bias=False, name="logit", **policy)

    @staticmethod
    def default_hparams():
        return {
            "kernel_sizes": [3, 4, 5],
            "filters": 128,  # of each kernel size
            "dropout": 0.5,  # of the maxima over time
        }

    def build(self, inputs_shape, lengths_shape=None):
        if len(inputs_shape) != 3 or inputs_shape[-1] is None:
            raise ValueError(
                "inputs must be embedded tokens [rows, length, dim] with dim known. "
                f"Received: inputs_shape={tuple(inputs_shape)}"
            )
        for convolution in self.convolutions:
            convolution.build((None, None, inputs_shape[-1]))
        self.logit.build((None, len(self.convolutions) * self.hparams["filters"]))
        self.built = True

    def call(self, inputs, lengths, training=False):
        is_token = ops.arange(ops.shape(inputs)[1])[None, :] < ops.cast(lengths, "int32")[:, None]
        # Chosen and not multiplied: whatever stands in the padding, also what is no number.
        inputs = ops.where(is_token[..., None], inputs, ops.zeros((), inputs.dtype))
        # ReLU behind the maximum: the same as before it, at one position instead of all, and 0 may be the least of all.
        maxima = [ops.max(convolution(inputs), axis=1, initial=0.0) for convolution in self.convolutions]
        features = ops.relu(ops.concatenate(maxima, axis=-1))
        return ops.squeeze(self.logit(self.dropout(features, training=training)), axis=-1)

    def compute_output_shape(self, inputs_shape, lengths_shape=None):
        return (inputs_shape[0],)

    def get_config(self):
        return {**super().get_config(), "hparams": self.hparams}
