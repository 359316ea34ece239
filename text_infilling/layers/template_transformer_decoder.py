"""Transformer decoder with attention over a template."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.configs.checks import checked
from text_infilling.configs.defaults import TRANSFORMER_DECODER, defaults
from text_infilling.hparams import merge
from text_infilling.layers.attention import MultiHeadAttention
from text_infilling.layers.dropout import Dropout
from text_infilling.layers.feed_forward import FeedForward


@keras.saving.register_keras_serializable("text_infilling")
class TemplateTransformerDecoder(keras.layers.Layer):
    """Stack of blocks: causal self-attention, attention over the template's embeddings, feed-forward network.

    Paper, appendix A.2.3 and B.1: no encoder; every block attends to the embeddings of the template itself. Layer
    normalization (epsilon 1e-8) comes before each part and after the last block; attention has no biases.

    Args:
        hparams: partial dict over `default_hparams()`.

    Call arguments:
        inputs: `[batch, answer_length, dim]`, embedded answers that begin with `<BOB>`.
        memories: result of `memories()` for the embedded templates.
        attended: `[batch, template_length]` bool, True at template positions that are attended.
        cache: keys and values of earlier positions, one pair per block, `[batch, heads, earlier, dim / heads]` each;
            None in training.
        return_attention_scores: whether to return the attention weights over the template too.

    Returns:
        Hidden states `[batch, answer_length, dim]`, and the cache extended by these positions; with
        `return_attention_scores` also the weights, `[batch, heads, answer_length, template_length]` per block.

    Raises:
        ValueError: a hyperparameter outside its range, or num_heads does not divide dim.

    >>> decoder = TemplateTransformerDecoder({"dim": 8, "num_blocks": 2, "num_heads": 2, "ffn_dim": 16})
    >>> memories = decoder.memories(ops.ones((1, 7, 8)))
    >>> states, cache = decoder(ops.ones((1, 5, 8)), memories, attended=ops.ones((1, 7), "bool"))
    >>> tuple(states.shape), len(cache)
    ((1, 5, 8), 2)
    """

    def __init__(self, hparams: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.hparams = h = checked(hparams, TRANSFORMER_DECODER, "decoder")
        self.blocks = [_Block(h, dtype=self.dtype_policy, name=f"block_{i}") for i in range(h["num_blocks"])]
        self.norm = keras.layers.LayerNormalization(epsilon=1e-8, dtype=self.dtype_policy)

    @staticmethod
    def default_hparams() -> dict:
        return defaults(TRANSFORMER_DECODER)

    def build(self, input_shape: tuple | None = None) -> None:
        for block in self.blocks:
            block.build()
        self.norm.build((None, None, self.hparams["dim"]))
        self.built = True

    def memories(self, template: tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Returns keys and values of embedded templates `[batch, template_length, dim]`, one pair per block."""
        if not self.built:
            self.build()
        return [block.template_attention.memory(template) for block in self.blocks]

    def empty_cache(self, batch: int | tf.Tensor) -> list[tuple[tf.Tensor, tf.Tensor]]:
        """Returns an empty cache, with which decoding starts."""
        heads = self.hparams["num_heads"]
        shape = (batch, heads, 0, self.hparams["dim"] // heads)
        return [(ops.zeros(shape, self.compute_dtype), ops.zeros(shape, self.compute_dtype)) for _ in self.blocks]

    def call(
        self,
        inputs: tf.Tensor,
        memories: list[tuple[tf.Tensor, tf.Tensor]],
        attended: tf.Tensor,
        cache: list[tuple[tf.Tensor, tf.Tensor]] | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]] | tuple[tf.Tensor, list, list[tf.Tensor]]:
        hidden, new_cache, scores = inputs, [], []
        for i, (block, memory) in enumerate(zip(self.blocks, memories, strict=True)):
            earlier = None if cache is None else cache[i]
            hidden, earlier, weights = block(hidden, memory, attended, earlier=earlier, training=training)
            new_cache.append(earlier)
            scores.append(weights)
        states = self.norm(hidden)
        return (states, new_cache, scores) if return_attention_scores else (states, new_cache)

    def get_config(self) -> dict:
        return {**super().get_config(), "hparams": merge(self.hparams, self.default_hparams())}


@keras.saving.register_keras_serializable("text_infilling")
class _Block(keras.layers.Layer):
    """One block of the decoder; same `hparams` and call arguments, `earlier` is the cache of this block.

    Returns hidden states, the extended cache of the block, and its attention weights over the template.
    """

    def __init__(self, hparams: dict, **kwargs):
        super().__init__(**kwargs)
        self.hparams = h = hparams
        policy = {"dtype": self.dtype_policy}
        attention = (h["dim"], h["num_heads"], h["attention_dropout"])
        self.norm_1 = keras.layers.LayerNormalization(epsilon=1e-8, **policy)
        self.self_attention = MultiHeadAttention(*attention, over="sequence", **policy)
        self.norm_2 = keras.layers.LayerNormalization(epsilon=1e-8, **policy)
        self.template_attention = MultiHeadAttention(*attention, over="template", **policy)
        self.norm_3 = keras.layers.LayerNormalization(epsilon=1e-8, **policy)
        self.feed_forward = FeedForward(h["dim"], h["ffn_dim"], h["residual_dropout"], **policy)
        self.dropout = Dropout(h["residual_dropout"], **policy)

    def build(self, input_shape: tuple | None = None) -> None:
        shape = (None, None, self.hparams["dim"])
        parts = (self.self_attention, self.template_attention, self.feed_forward)
        for layer in (self.norm_1, self.norm_2, self.norm_3, *parts):
            layer.build(shape)
        self.built = True

    def call(
        self,
        hidden: tf.Tensor,
        memory: tuple[tf.Tensor, tf.Tensor],
        attended: tf.Tensor,
        earlier: tuple[tf.Tensor, tf.Tensor] | None = None,
        training: bool = False,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor], tf.Tensor]:
        part, earlier = self.self_attention(self.norm_1(hidden), memory=earlier, training=training)
        hidden = hidden + self.dropout(part, training=training)
        part, weights = self.template_attention(
            self.norm_2(hidden), memory=memory, attended=attended, training=training, return_attention_scores=True
        )
        hidden = hidden + self.dropout(part, training=training)
        part = self.feed_forward(self.norm_3(hidden), training=training)
        return hidden + self.dropout(part, training=training), earlier, weights

    def get_config(self) -> dict:
        return {**super().get_config(), "hparams": merge(self.hparams, defaults(TRANSFORMER_DECODER))}
