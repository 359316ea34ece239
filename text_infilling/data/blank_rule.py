"""The blanks of a batch of lines: chosen by a rule of `masking.spans`, or read from the lines."""

import dataclasses

import tensorflow as tf
import tensorflow_text as tf_text

from text_infilling.masking import checks, spans

_TOKENIZER = tf_text.WhitespaceTokenizer()  # built once, since that takes a third of a second
_WHITE_SPACE = r"[\p{Z}\x{85}\x1c-\x1f]"  # split by Python's str.split, but not by the tokenizer
KINDS = ("fixed", "random", "any", "given")  # see `BlankRule`


@dataclasses.dataclass(frozen=True)
class BlankRule:
    """How the lines of a corpus get their blanks.

    Attributes:
        kind: "fixed", "random" or "any" (a random number of random blanks), see `masking.spans`; or "given": the lines
            include their blanks, see `masked_lines`.
        mask_rate: fraction of words masked, in (0, 1); for "any" it may be a pair (low, high), from which each sentence
            draws its own; None if the blanks are given.
        blanks: number of blanks per sentence; the maximum for "any".

    Raises:
        ValueError: an attribute is out of range, or `mask_rate` is given together with "given" blanks.
    """

    kind: str
    mask_rate: float | tuple[float, float] | None
    blanks: int

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"masking must be one of {', '.join(KINDS)}. Received: {self.kind!r}")
        if self.kind == "any":
            checks.check_mask_rates(self.mask_rate)
        elif self.kind != "given":
            checks.check_mask_rate(self.mask_rate)
        elif self.mask_rate is not None:
            raise ValueError(f"mask_rate cannot be combined with given blanks. Received: {self.mask_rate!r}")
        checks.check_blanks(self.blanks)

    def words_of(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of a batch of lines `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
        return tokenize(self.without_blanks(texts))

    def without_blanks(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns lines `[batch]` without the blanks that they may include."""
        return tf.strings.regex_replace(texts, "\t.*", "") if self.kind == "given" else texts

    def blanks_of(self, texts, line_numbers, lengths, seed, epoch) -> spans.BlankTensors:
        """Returns the blanks of a batch of lines, given their texts, line numbers and lengths `[batch]`."""
        if self.kind == "given":
            bounds = tf.strings.regex_replace(tf.strings.regex_replace(texts, "^[^\t]*\t", ""), ":", " ")
            bounds = tf.strings.to_number(tf.strings.split(bounds).flat_values, tf.int32)
            bounds = tf.reshape(bounds, [tf.size(texts), self.blanks, 2])  # an error if the number of blanks differs
            valid = tf.fill(tf.shape(texts), True)
            return spans.BlankTensors(bounds[:, :, 0], bounds[:, :, 1], valid, tf.fill(tf.shape(texts), self.blanks))
        if self.kind == "fixed":
            return spans.fixed_blanks(lengths, self.mask_rate, self.blanks)
        longest, draw, rows = tf.reduce_max(lengths), *self._random()
        uniforms = tf.map_fn(
            lambda line: spans.line_uniforms(seed, epoch, line, longest, rows),
            line_numbers,
            fn_output_signature=tf.TensorSpec([rows, None], tf.float32),
        )
        return draw(lengths, self.mask_rate, self.blanks, uniforms)

    def valid(self, lengths: tf.Tensor) -> tf.Tensor:
        """Returns `[batch]` bool: whether each sentence is long enough for its blanks, given its length."""
        if self.kind == "given":
            return tf.fill(tf.shape(lengths), True)
        return self.blanks_without_draws(None, lengths).valid

    def blanks_without_draws(self, texts, lengths) -> spans.BlankTensors:
        """Returns `blanks_of`, but with all random draws replaced by 0.

        This is much faster, and the number of masked words depends only on the length. With "any" it is the number for
        one blank, at the middle of a range of mask rates; the real one is larger if there are more blanks than that.
        """
        if self.kind in ("given", "fixed"):
            return self.blanks_of(texts, None, lengths, None, None)
        draw, rows = self._random()
        rate = sum(self.mask_rate) / 2 if isinstance(self.mask_rate, tuple) else self.mask_rate
        return draw(lengths, rate, self.blanks, tf.zeros([tf.size(lengths), rows, tf.reduce_max(lengths)]))

    def longest_answer(self, lengths, blanks: spans.BlankTensors) -> tf.Tensor:
        """Returns the length in words of the longest possible answer of sentences with these `blanks_without_draws`."""
        if isinstance(self.mask_rate, tuple):
            blanks = dataclasses.replace(self, mask_rate=self.mask_rate[1]).blanks_without_draws(None, lengths)
        sizes = blanks.ends - blanks.starts  # all 0 in invalid rows
        # A random blank may get all masked words except one for each other blank; with "any" it may be the only blank.
        others = {"random": self.blanks - 1, "any": 0}.get(self.kind)
        return tf.reduce_max(sizes) if others is None else tf.reduce_max(tf.reduce_sum(sizes, axis=1)) - others

    def _random(self):
        """Returns the function that draws random blanks, and how many uniform numbers per word it takes."""
        return (spans.any_blanks, spans.any_rows(self.mask_rate)) if self.kind == "any" else (spans.random_blanks, 2)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)  # one trace for all graphs
def tokenize(texts):
    """Returns the white-space tokens of texts `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
    # The tokenizer splits at single bytes, so it would cut a multi-byte space and leave invalid bytes.
    return _TOKENIZER.tokenize(tf.strings.regex_replace(texts, _WHITE_SPACE, " "))
