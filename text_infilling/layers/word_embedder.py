"""Word embeddings."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import EMBEDDER, defaults
from text_infilling.hparams import merge


@keras.saving.register_keras_serializable("text_infilling")
class WordEmbedder(keras.layers.Layer):
    """Embedding with one vector per word, looked up by id or averaged over a distribution of words.

    Args:
        vocabulary_size: number of words and special tokens.
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        inputs: integer ids `[...]`, or soft ids `[..., vocab]`: probabilities of the words.

    Returns:
        `[..., dim]`.

    Raises:
        ValueError: a hyperparameter outside its range.

    >>> tuple(WordEmbedder(vocabulary_size=9, hparams={"dim": 4})(ops.array([[1, 8, 0]])).shape)
    (1, 3, 4)
    """

    def __init__(self, vocabulary_size: int, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.hparams = checked(hparams, EMBEDDER, "embedder")
        self.dim = self.hparams["dim"]

    @staticmethod
    def default_hparams() -> dict:
        return defaults(EMBEDDER)

    def build(self, input_shape: tuple | None = None) -> None:
        self.embedding = self.add_weight(
            name="embedding",
            shape=(self.vocabulary_size, self.dim),
            initializer=keras.initializers.RandomNormal(stddev=self.dim**-0.5),
        )
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        embedding = ops.cast(self.embedding, self.compute_dtype)
        if keras.backend.is_float_dtype(keras.backend.standardize_dtype(inputs.dtype)):
            return ops.matmul(ops.cast(inputs, self.compute_dtype), embedding)
        return ops.take(embedding, inputs, axis=0)

    def get_config(self) -> dict:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hparams": merge(self.hparams, self.default_hparams()),
        }
