"""The paper's self-attention model."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling import templates
from text_infilling.configs.defaults import defaults, model_keys
from text_infilling.layers.dropout import Dropout
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding
from text_infilling.layers.template_transformer_decoder import TemplateTransformerDecoder
from text_infilling.models.infilling_model import Examples, InfillingModel


@keras.saving.register_keras_serializable("text_infilling")
class SelfAttentionModel(InfillingModel):
    """Fills blanks with a `TemplateTransformerDecoder` (paper, section 3.2 and appendices A and B.1).

    Template and answer share one word embedding, which is also the kernel of the output layer (no bias).
    Arguments and results: see `InfillingModel`.
    """

    def __init__(self, vocabulary_size: int, hparams: dict | None = None, **kwargs):
        super().__init__(vocabulary_size, hparams, **kwargs)
        decoder, position = self.hparams["decoder"], self.hparams["position"]
        self.dim = decoder["dim"]
        self.position_encoding = SegmentPositionEncoding(
            self.dim, {"layout": position["layout"], "base": position["base"]}, dtype=self.dtype_policy
        )
        self.decoder = TemplateTransformerDecoder(decoder, dtype=self.dtype_policy)
        self._dropout = Dropout(decoder["embedding_dropout"], dtype=self.dtype_policy)

    @classmethod
    def default_hparams(cls) -> dict:
        return defaults(model_keys("self_attention"))

    @classmethod
    def multiply_adds(cls, hparams: dict, vocabulary_size: int) -> tuple[int, int]:
        """Returns the multiply-adds of the forward pass at one answer position and at one template position."""
        h = hparams["decoder"]
        d = h["dim"]
        # Four projections over the sequence, query and output over the template, feed-forward network, output layer.
        answer = h["num_blocks"] * (6 * d * d + 2 * d * h["ffn_dim"]) + vocabulary_size * d
        return answer, h["num_blocks"] * 2 * d * d

    def build(self, input_shape: object = None) -> None:
        self.embedding = self.add_weight(
            name="embedding",
            shape=(self.vocabulary_size, self.dim),
            initializer=keras.initializers.RandomNormal(stddev=self.dim**-0.5),
        )
        self.decoder.build()
        self.built = True

    def answer_states(self, examples: Examples, training: bool = False) -> tf.Tensor:
        template = self._dropout(
            self._embed(
                examples["template_ids"],
                examples["template_segment_ids"],
                examples["template_offset_ids"],
                self.hparams["template"]["scale"],
            ),
            training=training and self.hparams["decoder"]["drop_template"],
        )
        attended = tf.sequence_mask(examples["template_lengths"], tf.shape(examples["template_ids"])[1])
        answer = self._embed_answer(examples["answer_ids"][:, :-1], examples["answer_segment_ids"])
        answer = self._dropout(answer, training=training)
        states, _ = self.decoder(answer, self.decoder.memories(template), attended, training=training)
        return states

    def output_weights(self) -> tuple[keras.Variable, keras.Variable | None]:
        return self.embedding, None

    def start(self, template: templates.Template, template_format: templates.TemplateFormat | None = None) -> dict:
        template_format = template_format or self.template_format
        embedded = self._embed(
            template.ids, template.segment_ids, template.offset_ids, self.hparams["template"]["scale"]
        )
        rows = tf.shape(template.ids)[0]
        return {
            "memories": self.decoder.memories(embedded),
            "attended": tf.sequence_mask(templates.read_lengths(template, template_format), tf.shape(template.ids)[1]),
            "segments": templates.answer_segment_ids(template, template_format),
            "cache": self.decoder.empty_cache(rows),
        }

    def step(self, ids: tf.Tensor, time: tf.Tensor, state: dict) -> tuple[tf.Tensor, dict]:
        offsets = tf.fill(tf.shape(ids), time)
        inputs = self._embed(ids[:, None], state["segments"][:, None], offsets[:, None], True)
        states, cache = self.decoder(inputs, state["memories"], state["attended"], cache=state["cache"])
        return self.output(states[:, 0]), {**state, "cache": cache}

    def template_attention(self, ids: tf.Tensor, state: dict) -> tf.Tensor:
        """Returns the attention weights of whole infills over their templates.

        Args:
            ids: `[rows, length]` `<BOB>` and the words of an infill.
            state: of `start`.

        Returns:
            `[blocks, rows, heads, length, template_length]`; each sums to 1 over the template.
        """
        inputs = self._embed_answer(ids, state["segments"])
        *_, weights = self.decoder(inputs, state["memories"], state["attended"], return_attention_scores=True)
        return tf.stack(weights)

    def _embed_answer(self, ids, segments):
        """Returns embeddings of `<BOB>` and the words of infills in their segments `[rows]`."""
        offsets = tf.broadcast_to(tf.range(tf.shape(ids)[1])[None, :], tf.shape(ids))
        return self._embed(ids, tf.broadcast_to(segments[:, None], tf.shape(ids)), offsets, True)

    def _embed(self, ids, segment_ids, offset_ids, scale):
        embedded = ops.cast(ops.take(self.embedding, ids, axis=0), self.compute_dtype)
        if scale:
            embedded = embedded * self.dim**0.5
        return embedded + self.position_encoding(segment_ids, offset_ids)
