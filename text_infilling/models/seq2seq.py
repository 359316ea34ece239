"""The paper's seq2seq model."""

import keras
import tensorflow as tf
from keras import ops

from text_infilling import templates
from text_infilling.configs.defaults import defaults, model_keys
from text_infilling.layers.basic_positional_rnn_decoder import BasicPositionalRNNDecoder
from text_infilling.layers.segment_position_encoding import SegmentPositionEncoding
from text_infilling.layers.unidirectional_rnn_encoder import UnidirectionalRNNEncoder
from text_infilling.layers.word_embedder import WordEmbedder
from text_infilling.models.infilling_model import Examples, InfillingModel


@keras.saving.register_keras_serializable("text_infilling")
class Seq2SeqModel(InfillingModel):
    """Encoder-decoder model: one LSTM reads the template, another writes the infill (paper, appendix B.1).

    The decoder starts from the encoder's last state, without attention. Template and answer share one word embedding,
    to which position encodings are added.
    Arguments and results: see `InfillingModel`.
    """

    def __init__(self, vocabulary_size: int, hparams: dict | None = None, **kwargs):
        super().__init__(vocabulary_size, hparams, **kwargs)
        h, dtype = self.hparams, self.dtype_policy
        if h["encoder"]["units"] != h["decoder"]["units"]:
            raise ValueError(
                "decoder.units must equal encoder.units, because the decoder starts from the encoder's state. "
                f"Received: encoder.units={h['encoder']['units']}, decoder.units={h['decoder']['units']}"
            )
        self.dim = h["embedder"]["dim"]
        position = {"layout": h["position"]["layout"], "base": h["position"]["base"]}
        self.embedder = WordEmbedder(vocabulary_size, h["embedder"], dtype=dtype)
        self.position_encoding = SegmentPositionEncoding(self.dim, position, dtype=dtype)
        encoder = {key: h["encoder"][key] for key in UnidirectionalRNNEncoder.default_hparams()}
        self.encoder = UnidirectionalRNNEncoder(encoder, dtype=dtype)
        self.decoder = BasicPositionalRNNDecoder(vocabulary_size, self.dim, h["decoder"], position, dtype=dtype)

    @classmethod
    def default_hparams(cls) -> dict:
        return defaults(model_keys("seq2seq"))

    @classmethod
    def multiply_adds(cls, hparams: dict, vocabulary_size: int) -> tuple[int, int]:
        """Returns the multiply-adds of the forward pass at one answer position and at one template position."""
        units, dim = hparams["encoder"]["units"], hparams["embedder"]["dim"]
        lstm = 4 * units * (dim + units)
        return lstm + vocabulary_size * units, lstm

    def build(self, input_shape: object = None) -> None:
        self.embedder.build()
        self.encoder.build((None, None, self.dim))
        self.decoder.build()
        self.built = True

    def answer_states(self, examples: Examples, training: bool = False) -> tf.Tensor:
        state = self.encode(
            examples["template_ids"],
            examples["template_segment_ids"],
            examples["template_offset_ids"],
            examples["template_lengths"],
            training=training,
        )
        answer = self.embed(examples["answer_ids"][:, :-1])
        return self.decoder(answer, examples["answer_segment_ids"], state, training=training)

    def output_weights(self) -> tuple[keras.Variable, keras.Variable | None]:
        return self.decoder.output_kernel, self.decoder.output_bias

    def start(self, template: templates.Template, template_format: templates.TemplateFormat | None = None) -> dict:
        template_format = template_format or self.template_format
        lengths = templates.read_lengths(template, template_format)
        return {
            "segments": templates.answer_segment_ids(template, template_format),
            "cache": self.encode(template.ids, template.segment_ids, template.offset_ids, lengths),
        }

    def step(self, ids: tf.Tensor, time: tf.Tensor, state: dict) -> tuple[tf.Tensor, dict]:
        """Like `InfillingModel.step`; `ids` may also be soft ids `[rows, vocab]`."""
        outputs, cache = self.decoder.step(self.embed(ids), state["segments"], time, state["cache"])
        return self.output(outputs), {**state, "cache": cache}

    def encode(
        self,
        ids: tf.Tensor,
        segment_ids: tf.Tensor,
        offset_ids: tf.Tensor,
        lengths: tf.Tensor,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the encoder's last state for templates `[rows, template_length]`."""
        inputs = self.embed(ids) + self.position_encoding(segment_ids, offset_ids)
        _, state = self.encoder(inputs, lengths, training=training)
        return state

    def embed(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns embeddings of ids or soft ids, without position encodings."""
        embedded = self.embedder(ids)
        return embedded * ops.cast(self.dim**0.5, embedded.dtype) if self.hparams["template"]["scale"] else embedded
