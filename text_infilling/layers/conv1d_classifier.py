"""The discriminator of the GAN."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import CLASSIFIER, defaults
from text_infilling.hparams import merge
from text_infilling.layers.dropout import Dropout


@keras.saving.register_keras_serializable("text_infilling")
class Conv1DClassifier(keras.layers.Layer):
    """Classifier of true answers and infills: convolutions of several widths, ReLU, max over time, one bias-free unit.

    Paper, appendix B.1, "GAN-based model". As in the authors' code, embedded padding enters the convolutions as 0, and
    padding positions take part in the maximum. The content of the padding and the other rows never matter. The number
    of padding positions matters while it is below `(largest kernel size + 1) // 2`, because the windows around them see
    the end of the row, or only the bias; beyond that the logit is constant. The classifier must not recognize truth and
    infills by their padding, so pad both to one length, or each by at least that number of positions.

    A row of length 0 has a finite logit too: it depends on the biases only, and is 0 while no bias is positive. Kernel
    sizes may exceed the length.

    Args:
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        inputs: `[rows, length, dim]`, embedded tokens; for soft ids, their mean embeddings. At least one row and
            one position: on empty inputs the convolution fails on some CPUs.
        lengths: `[rows]` integers, number of tokens in each row; the rest is padding.
        training: whether dropout is active.

    Returns:
        Logits `[rows]`, positive for rows classified as true answers.

    Raises:
        ValueError: a hyperparameter outside its range, or inputs that are not `[rows, length, dim]`.

    >>> classifier = Conv1DClassifier({"filters": 4})
    >>> tuple(classifier(ops.ones((2, 9, 6)), ops.array([9, 4])).shape)
    (2,)
    """

    def __init__(self, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.hparams = h = checked(hparams, CLASSIFIER, "classifier")
        policy = {"dtype": self.dtype_policy}
        self.convolutions = [
            keras.layers.Conv1D(h["filters"], size, padding="same", name=f"convolution_{i}", **policy)
            for i, size in enumerate(h["kernel_sizes"])
        ]
        self.dropout = Dropout(h["dropout"], **policy)
        self.logit = keras.layers.Dense(1, use_bias=False, name="logit", **policy)

    @staticmethod
    def default_hparams() -> dict:
        return defaults(CLASSIFIER)

    def build(self, input_shape: tuple) -> None:
        if len(input_shape) != 3 or input_shape[-1] is None:
            raise ValueError(
                "inputs must be embedded tokens [rows, length, dim] with dim known. "
                f"Received: input_shape={tuple(input_shape)}"
            )
        for convolution in self.convolutions:
            convolution.build((None, None, input_shape[-1]))
        self.logit.build((None, len(self.convolutions) * self.hparams["filters"]))
        self.built = True

    def call(self, inputs: tf.Tensor, lengths: tf.Tensor, training: bool = False) -> tf.Tensor:
        is_token = ops.arange(ops.shape(inputs)[1])[None, :] < ops.cast(lengths, "int32")[:, None]
        # `where`, not a product: padding may contain NaN or infinity.
        inputs = ops.where(is_token[..., None], inputs, ops.zeros((), inputs.dtype))
        # ReLU after the maximum: same result as before it, but computed once per filter; so `initial=0.0` is harmless.
        maxima = [ops.max(convolution(inputs), axis=1, initial=0.0) for convolution in self.convolutions]
        features = ops.relu(ops.concatenate(maxima, axis=-1))
        return ops.squeeze(self.logit(self.dropout(features, training=training)), axis=-1)

    def compute_output_shape(self, inputs_shape: tuple, lengths_shape: tuple | None = None) -> tuple:
        return (inputs_shape[0],)

    def get_config(self) -> dict:
        return {**super().get_config(), "hparams": merge(self.hparams, self.default_hparams())}
