"""`tf.data` pipelines: from lines of text to templates and answers.

All randomness is a function of (seed, epoch, line): the same seed gives the same batches, even if a run resumes in the
middle of an epoch. The memory used in training is bounded by the two buffers below, not by the size of the corpus.

In training each line is read and looked up in the vocabulary once per pass. The ids of its words then travel through
the buffers as a string of one character per word, since `tf.data` buffers strings but no ragged rows of a batch. On
98,298 Yelp sentences with fixed masks this takes about 2.2 s of user CPU time per epoch, and buffering the text and
splitting it again takes 2.5 s and 3 MiB more; with random masks the difference is within the noise.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from text_infilling import templates
from text_infilling.masking import spans
from text_infilling.text.vocabulary_table import VocabularyTable
from text_infilling.vocabulary import PAD_ID, UNK_ID, Vocabulary

SHUFFLE_LINES = 100_000  # lines in the shuffle buffer; a larger corpus is shuffled within a window of this size
SORT_BATCHES = 50  # number of batches that are sorted by length together
_READ_LINES = 4096
# A parsed line has one Unicode character per word: the word's id plus this, after the code points UTF-8 cannot encode.
_FIRST_CHARACTER = 0x10000
_TOKENIZER = tf_text.WhitespaceTokenizer()  # built once, since that takes a third of a second
_WHITE_SPACE = r"[\p{Z}\x{85}\x1c-\x1f]"  # split by Python's str.split, but not by the tokenizer
# No function here has Python control flow over tensors, and graphs are built much faster without AutoGraph.
_no_autograph = tf.autograph.experimental.do_not_convert
_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2  # the fractional parts of its multiples are evenly spread over [0, 1)
_EVALUATION_SEED = 0  # seed of the masks of validation and test; no flag changes it
KINDS = ("fixed", "random", "any", "given")  # see `Masking`


@dataclasses.dataclass(frozen=True)
class Masking:
    """The rule that chooses the blanks of a sentence.

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
            spans.check_mask_rates(self.mask_rate)
        elif self.kind != "given":
            spans.check_mask_rate(self.mask_rate)
        elif self.mask_rate is not None:
            raise ValueError(f"mask_rate cannot be combined with given blanks. Received: {self.mask_rate!r}")
        spans.check_blanks(self.blanks)

    def words_of(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Returns the words of a batch of lines `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
        return tokenize(self.without_blanks(texts))

    def without_blanks(self, texts: tf.Tensor) -> tf.Tensor:
        """Returns lines `[batch]` without the blanks that they may include."""
        return tf.strings.regex_replace(texts, "\t.*", "") if self.kind == "given" else texts

    def blanks_of(self, texts, lines, lengths, seed, epoch) -> spans.Blanks:
        """Returns the blanks of a batch of lines, given their texts, numbers and lengths `[batch]`."""
        if self.kind == "given":
            places = tf.strings.regex_replace(tf.strings.regex_replace(texts, "^[^\t]*\t", ""), ":", " ")
            places = tf.strings.to_number(tf.strings.split(places).flat_values, tf.int32)
            places = tf.reshape(places, [tf.size(texts), self.blanks, 2])  # an error if the number of blanks differs
            everywhere = tf.fill(tf.shape(texts), True)
            return spans.Blanks(places[:, :, 0], places[:, :, 1], everywhere, tf.fill(tf.shape(texts), self.blanks))
        if self.kind == "fixed":
            return spans.fixed_blanks(lengths, self.mask_rate, self.blanks)
        longest, draw, rows = tf.reduce_max(lengths), *self._random()
        spec = tf.TensorSpec([rows, None], tf.float32)
        uniforms = tf.map_fn(
            lambda line: spans.line_uniforms(seed, epoch, line, longest, rows), lines, fn_output_signature=spec
        )
        return draw(lengths, self.mask_rate, self.blanks, uniforms)

    def valid(self, lengths: tf.Tensor) -> tf.Tensor:
        """Returns `[batch]` bool: whether each sentence is long enough for its blanks, given its length."""
        return tf.fill(tf.shape(lengths), True) if self.kind == "given" else self.undrawn(None, lengths).valid

    def undrawn(self, texts, lengths) -> spans.Blanks:
        """Returns `blanks_of`, but with all random draws replaced by 0.

        This is much faster, and the number of masked words depends only on the length. With "any" it is the number for
        one blank, at the middle of a range of mask rates; the real one is larger if there are more blanks than that.
        """
        if self.kind in ("given", "fixed"):
            return self.blanks_of(texts, None, lengths, None, None)
        draw, rows = self._random()
        rate = sum(self.mask_rate) / 2 if isinstance(self.mask_rate, tuple) else self.mask_rate
        return draw(lengths, rate, self.blanks, tf.zeros([tf.size(lengths), rows, tf.reduce_max(lengths)]))

    def longest_answer(self, lengths, blanks: spans.Blanks) -> tf.Tensor:
        """Returns the length in words of the longest possible answer of sentences, given `undrawn` of them."""
        if isinstance(self.mask_rate, tuple):
            blanks = dataclasses.replace(self, mask_rate=self.mask_rate[1]).undrawn(None, lengths)
        sizes = blanks.ends - blanks.starts  # all 0 in invalid rows
        # A random blank may get all masked words except one for each other blank; with "any" it may be the only blank.
        others = {"random": self.blanks - 1, "any": 0}.get(self.kind)
        return tf.reduce_max(sizes) if others is None else tf.reduce_max(tf.reduce_sum(sizes, axis=1)) - others

    def _random(self):
        """Returns the function that draws random blanks, and how many uniform numbers per word it takes."""
        return (spans.any_blanks, spans.any_rows(self.mask_rate)) if self.kind == "any" else (spans.random_blanks, 2)


@dataclasses.dataclass(frozen=True)
class SplitStats:
    """The counts from one pass over a file of sentences.

    Attributes:
        lines: number of sentences long enough for their blanks.
        left_out: number of sentences too short for their blanks.
        longest: length of the longest sentence in words.
        longest_answer: length in words of the longest possible answer in `lines`.
        words, masked_words: total numbers of words and of masked words in `lines`; see `Masking.undrawn`.
    """

    lines: int
    left_out: int
    longest: int
    longest_answer: int
    words: int
    masked_words: int

    @property
    def mask_rate(self) -> float:
        """The actual fraction of masked words."""
        return self.masked_words / max(self.words, 1)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)  # one trace for all graphs
def tokenize(texts):
    """Returns the white-space tokens of texts `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
    # The tokenizer splits at single bytes, so it would cut a multi-byte space and leave invalid bytes.
    return _TOKENIZER.tokenize(tf.strings.regex_replace(texts, _WHITE_SPACE, " "))


def split_stats(path: Path, masking_: Masking) -> SplitStats:
    """Counts a file's sentences, including those too short for their blanks, and the maximum lengths a model needs."""
    lines = left_out = longest = longest_answer = words = masked = 0
    count = _counter(masking_)
    for texts in tf.data.TextLineDataset(str(path)).batch(_READ_LINES):
        kept, all_, length, answer, words_, masked_ = (int(x) for x in count(texts))
        lines, left_out = lines + kept, left_out + all_ - kept
        longest, longest_answer = max(longest, length), max(longest_answer, answer)
        words, masked = words + words_, masked + masked_
    return SplitStats(lines, left_out, longest, longest_answer, words, masked)


@functools.lru_cache(maxsize=64)
def cached_split_stats(path: Path, masking_: Masking, checksum: str) -> SplitStats:
    """Returns `split_stats` of a file in a corpus with this checksum; caches the result for the process."""
    return split_stats(path, masking_)


@functools.lru_cache(maxsize=64)
def _counter(masking_):
    """Returns the function that counts a batch of lines for `split_stats`."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def count(texts):
        lengths = tf.cast(masking_.words_of(texts).row_lengths(), tf.int32)
        blanks = masking_.undrawn(texts, lengths)
        largest = masking_.longest_answer(lengths, blanks)
        kept = tf.boolean_mask(lengths, blanks.valid)
        sums = (tf.reduce_sum(kept), tf.reduce_sum(blanks.ends - blanks.starts))
        return tf.size(kept), tf.size(lengths), tf.reduce_max(lengths), largest, *sums

    return count.get_concrete_function()


def read(path: Path, masking_: Masking) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the numbers and texts `[lines]` of a file's sentences that are long enough for their blanks.

    The file must have at least one such sentence.
    """
    numbers, texts, _ = zip(*_fixed(_lines(path, masking_).batch(_READ_LINES)))
    return tf.concat(numbers, axis=0), tf.concat(texts, axis=0)


def _lines(path, masking_, parsed=lambda texts, words: texts):
    """Returns the dataset of (number, text, length in words) of every sentence long enough for its blanks, in order.

    The text is replaced by `parsed(texts, words)`.
    """

    @_no_autograph
    def long_enough(numbers, texts):
        words = masking_.words_of(texts)
        lengths = tf.cast(words.row_lengths(), tf.int32)
        valid = masking_.valid(lengths)
        return tuple(tf.boolean_mask(column, valid) for column in (numbers, parsed(texts, words), lengths))

    lines = tf.data.TextLineDataset(str(path)).enumerate().batch(_READ_LINES)
    return lines.map(long_enough).unbatch()


def _fixed(dataset):
    """Returns the dataset with autotuning and graph optimization off.

    There is no parallelism to tune, and the autotune thread can delay the end of training by half a minute: its sleeps
    get longer, and deleting the iterator does not always wake it. Optimizing the graph takes as long as building it,
    and the result is slower.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


class Pipeline:
    """Batches of one file of sentences.

    Args:
        path: text file, one tokenised sentence per line.
        vocabulary: vocabulary of the run.
        masking_: rule that chooses the blanks.
        template_format: how templates are numbered and padded.
        batch_size: sentences per batch.

    Raises:
        ValueError: `batch_size` is less than 1.
    """

    def __init__(
        self,
        path,
        vocabulary: Vocabulary,
        masking_: Masking,
        template_format: templates.TemplateFormat,
        batch_size: int,
    ):
        if batch_size < 1:
            raise ValueError(f"train.batch_size must be at least 1. Received: batch_size={batch_size}")
        self.path, self.vocabulary, self.masking, self.template_format = (
            Path(path),
            vocabulary,
            masking_,
            template_format,
        )
        self.batch_size, self._table = batch_size, VocabularyTable(vocabulary)

    def training(
        self,
        lines: int,
        seed: int,
        epochs: range,
        skip: int = 0,
        bucket_by_length: bool = True,
        epochs_per_pass: int = 1,
        unknown_chances: Sequence[float] | None = None,
    ) -> tf.data.Dataset:
        """Returns the shuffled batches of `epochs`, in order, as dicts of the fields of `templates.Examples`.

        Args:
            lines: number of sentences in the file (`SplitStats.lines`).
            seed: seed of the shuffling and the random masks.
            epochs: the epochs to generate.
            skip: number of batches to skip at the start of the first epoch, to resume a run.
            bucket_by_length: whether to put sentences of similar length into the same batch, to reduce padding.
            epochs_per_pass: number of epochs per pass over the file; each pass has its own order. All epochs are
                equally long, so fewer than `epochs_per_pass` batches at the end of a pass are dropped.
            unknown_chances: `[vocab]`, probability of each word to be read as `<UNK>`, or None; see `_sentences`.

        Returns:
            A `tf.data.Dataset` of known cardinality.
        """
        steps = self.steps(lines, epochs_per_pass)

        @_no_autograph
        def pass_of(number):
            key = tf.random.fold_in(tf.constant([seed, 0x7E47], tf.int64), number)
            # Not key[0], which is the same in every pass: `fold_in` changes only key[1].
            order = tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64)
            # Seed of this graph: without it the order would also depend on the process's seed, and a seed of 0 fails.
            tf.random.set_seed(1)
            rows = _lines(self.path, self.masking, self._parsed).shuffle(
                min(lines, SHUFFLE_LINES), seed=order, reshuffle_each_iteration=False
            )
            window = SORT_BATCHES * self.batch_size
            first = tf.where(
                number == passes.start, tf.constant(epochs.start % epochs_per_pass * steps + skip, tf.int64), 0
            )
            windows = rows.batch(window).enumerate().skip(first // SORT_BATCHES)
            batches = windows.flat_map(_no_autograph(lambda n, rows: self._batches(n, *rows, key, bucket_by_length)))
            places = tf.data.Dataset.range(first, epochs_per_pass * steps)
            with_epoch = _no_autograph(lambda place, rows: (number * epochs_per_pass + place // steps, *rows))
            return tf.data.Dataset.zip(places, batches.skip(first % SORT_BATCHES)).map(with_epoch)

        passes = range(epochs.start // epochs_per_pass, math.ceil(epochs.stop / epochs_per_pass))
        total = steps * len(epochs) - skip
        dataset = tf.data.Dataset.range(passes.start, passes.stop).flat_map(pass_of).take(total)
        dataset = dataset.map(
            _no_autograph(lambda epoch, *rows: self._parsed_examples(*rows, seed, epoch, unknown_chances)._asdict()),
            num_parallel_calls=2,
            deterministic=True,
        )
        return _fixed(dataset.apply(tf.data.experimental.assert_cardinality(total)).prefetch(8))

    def steps(self, lines: int, epochs_per_pass: int = 1) -> int:
        """Returns the number of batches per epoch, if a pass over `lines` sentences is `epochs_per_pass` epochs."""
        return math.ceil(lines / self.batch_size) // epochs_per_pass

    def sentences(self, numbers: tf.Tensor, texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns ids, lengths, starts, ends and counts of a batch, as `templates.initial_template` takes them."""
        return self._sentences(numbers, texts, self._table.lookup(self.masking.words_of(texts)))

    def examples(self, numbers: tf.Tensor, texts: tf.Tensor) -> templates.Examples:
        """Returns templates and answers of a batch of lines with numbers and texts `[batch]`; see `sentences`."""
        return templates.build_examples(*self.sentences(numbers, texts), self.template_format)

    def _parsed(self, texts, words):
        """Returns lines `[batch]` with one character per word, given their texts and words; keeps given blanks."""
        ids = self._table.lookup(words)
        parsed = tf.strings.unicode_encode(ids + _FIRST_CHARACTER, "UTF-8", errors="strict")
        given = self.masking.kind == "given"
        return tf.strings.join([parsed, tf.strings.regex_replace(texts, "^[^\t]*", "")]) if given else parsed

    def _parsed_examples(self, numbers, parsed, seed, epoch, unknown_chances):
        """Returns `examples` of parsed lines `[batch]` in an epoch; see `training`."""
        ids = tf.strings.unicode_decode(self.masking.without_blanks(parsed), "UTF-8") - _FIRST_CHARACTER
        sentences = self._sentences(numbers, parsed, ids, seed, epoch, unknown_chances)
        return templates.build_examples(*sentences, self.template_format)

    def _sentences(self, numbers, texts, ids, seed=_EVALUATION_SEED, epoch=0, unknown_chances=None):
        """Returns `sentences`, given the ids of the words `[batch, (words)]`.

        With `unknown_chances` `[vocab]`, a word becomes `<UNK>` in that fraction of its lines; the lines chosen change
        with the epoch. Of `texts` only given blanks are read.
        """
        if unknown_chances is not None:
            key = tf.random.fold_in(tf.constant([seed, 0x0B5C], tf.int64), epoch)
            of_words = tf.random.stateless_uniform([len(self.vocabulary)], key)
            of_lines = tf.cast(tf.math.floormod(tf.cast(numbers, tf.float64) * _GOLDEN_RATIO, 1), tf.float32)
            draws = tf.gather(of_words, ids.values) + tf.gather(of_lines, ids.value_rowids())
            unknown = tf.math.floormod(draws, 1) < tf.gather(unknown_chances, ids.values)
            ids = ids.with_values(tf.where(unknown, UNK_ID, ids.values))
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        blanks = self.masking.blanks_of(texts, numbers, lengths, seed, epoch)
        return ids.to_tensor(PAD_ID), lengths, blanks.starts, blanks.ends, blanks.counts

    def _batches(self, window, numbers, texts, lengths, key, bucket_by_length):
        """Returns the batches of one window, sorted by length, in random order; an incomplete batch stays last."""
        size = tf.size(numbers)
        if bucket_by_length:
            order = tf.argsort(lengths, stable=True)
            full = size // self.batch_size
            draws = tf.random.stateless_uniform([full], tf.random.fold_in(key, window))
            blocks = tf.reshape(order[: full * self.batch_size], [full, self.batch_size])
            blocks = tf.gather(blocks, tf.argsort(draws, stable=True))
            order = tf.concat([tf.reshape(blocks, [-1]), order[full * self.batch_size :]], axis=0)
            numbers, texts = tf.gather(numbers, order), tf.gather(texts, order)
        return tf.data.Dataset.from_tensor_slices((numbers, texts)).batch(self.batch_size)
