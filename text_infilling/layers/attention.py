"""Multi-head attention over a sequence or over a template."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling.layers.dropout import Dropout


@keras.saving.register_keras_serializable("text_infilling")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention without biases (paper, appendix A.2.3).

    With `over="sequence"` one product of the inputs gives queries, keys and values, and the mask is causal. With
    `over="template"` one product of the template gives keys and values; `memory` computes it once for all steps.

    Args:
        dim: size of inputs and outputs.
        num_heads: number of heads; must divide dim.
        dropout: dropout rate of the attention weights.
        over: "sequence" or "template".

    Call arguments:
        inputs: `[batch, length, dim]`.
        memory: for "template", the result of `memory()`; for "sequence", keys and values of earlier positions,
            `[batch, heads, earlier, dim / heads]` each (a decoding cache), or None.
        attended: for "template", `[batch, template_length]` bool, True where attended.
        return_attention_scores: for "template", whether to return the attention weights too.

    Returns:
        `[batch, length, dim]`; for "sequence" also keys and values of the earlier and the current positions; with
        `return_attention_scores` also the weights `[batch, heads, length, template_length]`.

    Raises:
        ValueError: num_heads does not divide dim, or `over` is unknown.

    >>> attention = MultiHeadAttention(dim=8, num_heads=2)
    >>> outputs, (keys, values) = attention(ops.ones((2, 5, 8)))
    >>> tuple(outputs.shape), tuple(keys.shape)
    ((2, 5, 8), (2, 2, 5, 4))
    """

    def __init__(self, dim: int, num_heads: int, dropout: float = 0.0, over: str = "sequence", **kwargs):
        super().__init__(**kwargs)
        if dim % num_heads:
            raise ValueError(f"num_heads must divide dim. Received: dim={dim}, num_heads={num_heads}")
        if over not in ("sequence", "template"):
            raise ValueError(f"over must be one of sequence, template. Received: over={over!r}")
        self.dim, self.num_heads, self.dropout, self.over = dim, num_heads, dropout, over
        self._dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape: tuple | None = None) -> None:
        def kernel(name: str, columns: int) -> keras.Variable:
            # The scale makes the kernel Glorot-uniform for each of its square projections, which lie side by side.
            initializer = keras.initializers.VarianceScaling((1 + columns) / 2, "fan_avg", "uniform")
            return self.add_weight(name=name, shape=(self.dim, columns * self.dim), initializer=initializer)

        if self.over == "sequence":
            self.query_key_value = kernel("query_key_value", 3)
        else:
            self.query = kernel("query", 1)
            self.key_value = kernel("key_value", 2)
        self.output_transform = kernel("output_transform", 1)
        self.built = True

    def memory(self, template: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns keys and values of a template `[batch, template_length, dim]` for all steps: two tensors
        `[batch, heads, template_length, dim / heads]`."""
        if not self.built:
            self.build()
        return self._heads(ops.matmul(template, self.key_value), 2)

    def call(
        self,
        inputs: tf.Tensor,
        memory: tuple[tf.Tensor, tf.Tensor] | None = None,
        attended: tf.Tensor | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor | tuple[tf.Tensor, tf.Tensor]]:
        length = ops.shape(inputs)[1]
        if self.over == "sequence":
            query, key, value = self._heads(ops.matmul(inputs, self.query_key_value), 3)
            if memory is not None:
                key, value = (ops.concatenate(pair, axis=2) for pair in zip(memory, (key, value), strict=True))
            memory = key, value
            total = ops.shape(key)[2]
            # Position i of these inputs comes after total - length earlier ones.
            visible = ops.arange(total)[None, :] <= ops.arange(length)[:, None] + (total - length)
            visible = visible[None, None]
        else:
            (query,) = self._heads(ops.matmul(inputs, self.query), 1)
            key, value = memory
            visible = attended[:, None, None, :]
        query = query * (self.dim // self.num_heads) ** -0.5
        weights = ops.matmul(query, ops.swapaxes(key, 2, 3))  # [batch, heads, length, total]
        weights = ops.softmax(ops.where(visible, weights, ops.cast(-1e9, weights.dtype)), axis=-1)
        weights = self._dropout(weights, training=training)
        context = ops.swapaxes(ops.matmul(weights, value), 1, 2)
        outputs = ops.matmul(ops.reshape(context, (-1, length, self.dim)), self.output_transform)
        if self.over == "template":
            return (outputs, weights) if return_attention_scores else outputs
        return outputs, memory

    def _heads(self, projected: tf.Tensor, parts: int) -> tuple[tf.Tensor, ...]:
        """Splits `[batch, length, parts * dim]` into its projections, and each of those into heads."""
        # Split, not sliced: the gradient of a slice is a tensor of zeros as large as the full input.
        parts = ops.split(projected, parts, axis=-1) if parts > 1 else [projected]
        shape = (-1, ops.shape(projected)[1], self.num_heads, self.dim // self.num_heads)
        return tuple(ops.swapaxes(ops.reshape(x, shape), 1, 2) for x in parts)  # [batch, heads, length, dim / heads]

    def get_config(self) -> dict:
        names = ("dim", "num_heads", "dropout", "over")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
