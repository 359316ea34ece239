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

from text_infilling import templates
from text_infilling.data.blank_rule import BlankRule
from text_infilling.text.vocabulary_table import VocabularyTable
from text_infilling.vocabulary import PAD_ID, UNK_ID, Vocabulary

SHUFFLE_LINES = 100_000  # lines in the shuffle buffer; a larger corpus is shuffled within a window of this size
SORT_BATCHES = 50  # number of batches that are sorted by length together
_READ_LINES = 4096
# A parsed line has one Unicode character per word: the word's id plus this, after the code points UTF-8 cannot encode.
_FIRST_CHARACTER = 0x10000
MOST_IDS = 0x110000 - _FIRST_CHARACTER  # 1,048,576: Unicode ends there
# No function here has Python control flow over tensors, and graphs are built much faster without AutoGraph.
_no_autograph = tf.autograph.experimental.do_not_convert
_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2  # the fractional parts of its multiples are evenly spread over [0, 1)
_EVALUATION_SEED = 0  # seed of the masks of validation and test; no flag changes it


@dataclasses.dataclass(frozen=True)
class SplitStats:
    """The counts from one pass over a file of sentences.

    Attributes:
        lines: number of sentences long enough for their blanks.
        left_out: number of sentences too short for their blanks.
        longest: length of the longest sentence in words.
        longest_answer: length in words of the longest possible answer in `lines`.
        words: total number of words in `lines`.
        masked_words: total number of masked words in `lines`; see `BlankRule.blanks_without_draws`.
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


def split_stats(path: Path, rule: BlankRule) -> SplitStats:
    """Counts a file's sentences, including those too short for their blanks, and the maximum lengths a model needs."""
    lines = left_out = longest = longest_answer = words = masked = 0
    count = _counter(rule)
    for texts in tf.data.TextLineDataset(str(path)).batch(_READ_LINES):
        kept, total, length, answer, word_count, masked_count = (int(x) for x in count(texts))
        lines, left_out = lines + kept, left_out + total - kept
        longest, longest_answer = max(longest, length), max(longest_answer, answer)
        words, masked = words + word_count, masked + masked_count
    return SplitStats(lines, left_out, longest, longest_answer, words, masked)


@functools.lru_cache(maxsize=64)
def cached_split_stats(path: Path, rule: BlankRule, checksum: str) -> SplitStats:
    """Returns `split_stats` of a file in a corpus with this checksum; caches the result for the process."""
    return split_stats(path, rule)


@functools.lru_cache(maxsize=64)
def _counter(rule):
    """Returns the function that counts a batch of lines for `split_stats`."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def count(texts):
        lengths = tf.cast(rule.words_of(texts).row_lengths(), tf.int32)
        blanks = rule.blanks_without_draws(texts, lengths)
        largest = rule.longest_answer(lengths, blanks)
        kept = tf.boolean_mask(lengths, blanks.valid)
        sums = (tf.reduce_sum(kept), tf.reduce_sum(blanks.ends - blanks.starts))
        return tf.size(kept), tf.size(lengths), tf.reduce_max(lengths), largest, *sums

    return count.get_concrete_function()


def read(path: Path, rule: BlankRule) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the line numbers and texts `[lines]` of a file's sentences that are long enough for their blanks.

    The file must have at least one such sentence.
    """
    line_numbers, texts, _ = zip(*_fixed(_lines(path, rule).batch(_READ_LINES)))
    return tf.concat(line_numbers, axis=0), tf.concat(texts, axis=0)


def _lines(path, rule, parsed=lambda texts, words: texts):
    """Returns the dataset of (line number, text, length) of every sentence long enough for its blanks, in order.

    The length is in words; the text is replaced by `parsed(texts, words)`.
    """

    @_no_autograph
    def long_enough(line_numbers, texts):
        words = rule.words_of(texts)
        lengths = tf.cast(words.row_lengths(), tf.int32)
        valid = rule.valid(lengths)
        return tuple(tf.boolean_mask(column, valid) for column in (line_numbers, parsed(texts, words), lengths))

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
        blank_rule: how the lines get their blanks.
        template_format: how templates are numbered and padded.
        batch_size: sentences per batch.

    Raises:
        ValueError: `batch_size` is less than 1, or the vocabulary has more than `MOST_IDS` ids.
    """

    def __init__(
        self,
        path,
        vocabulary: Vocabulary,
        blank_rule: BlankRule,
        template_format: templates.TemplateFormat,
        batch_size: int,
    ):
        if batch_size < 1:
            raise ValueError(f"train.batch_size must be at least 1. Received: batch_size={batch_size}")
        if len(vocabulary) > MOST_IDS:
            raise ValueError(
                f"the vocabulary has {len(vocabulary):,} words and special tokens, at most {MOST_IDS:,} are supported: "
                "raise train.min_count"
            )
        self.path, self.vocabulary, self.blank_rule, self.template_format = (
            Path(path),
            vocabulary,
            blank_rule,
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
        def pass_of(pass_index):
            key = tf.random.fold_in(tf.constant([seed, 0x7E47], tf.int64), pass_index)
            # Not key[0], which is the same in every pass: `fold_in` changes only key[1].
            order = tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64)
            # Seed of this graph: without it the order would also depend on the process's seed, and a seed of 0 fails.
            tf.random.set_seed(1)
            rows = _lines(self.path, self.blank_rule, self._parsed).shuffle(
                min(lines, SHUFFLE_LINES), seed=order, reshuffle_each_iteration=False
            )
            window = SORT_BATCHES * self.batch_size
            first = tf.where(
                pass_index == passes.start, tf.constant(epochs.start % epochs_per_pass * steps + skip, tf.int64), 0
            )
            windows = rows.batch(window).enumerate().skip(first // SORT_BATCHES)
            batches = windows.flat_map(_no_autograph(lambda n, rows: self._batches(n, *rows, key, bucket_by_length)))
            steps_of_pass = tf.data.Dataset.range(first, epochs_per_pass * steps)
            with_epoch = _no_autograph(lambda step, rows: (pass_index * epochs_per_pass + step // steps, *rows))
            return tf.data.Dataset.zip(steps_of_pass, batches.skip(first % SORT_BATCHES)).map(with_epoch)

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

    def sentences(self, line_numbers: tf.Tensor, texts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Returns ids, lengths, starts, ends and counts of a batch, as `templates.initial_template` takes them."""
        return self._sentences(line_numbers, texts, self._table.lookup(self.blank_rule.words_of(texts)))

    def examples(self, line_numbers: tf.Tensor, texts: tf.Tensor) -> templates.Examples:
        """Returns templates and answers of a batch, given line numbers and texts `[batch]`; see `sentences`."""
        return templates.build_examples(*self.sentences(line_numbers, texts), self.template_format)

    def _parsed(self, texts, words):
        """Returns lines `[batch]` with one character per word, given their texts and words; keeps given blanks."""
        ids = self._table.lookup(words)
        parsed = tf.strings.unicode_encode(ids + _FIRST_CHARACTER, "UTF-8", errors="strict")
        given = self.blank_rule.kind == "given"
        return tf.strings.join([parsed, tf.strings.regex_replace(texts, "^[^\t]*", "")]) if given else parsed

    def _parsed_examples(self, line_numbers, parsed, seed, epoch, unknown_chances):
        """Returns `examples` of parsed lines `[batch]` in an epoch; see `training`."""
        ids = tf.strings.unicode_decode(self.blank_rule.without_blanks(parsed), "UTF-8") - _FIRST_CHARACTER
        sentences = self._sentences(line_numbers, parsed, ids, seed, epoch, unknown_chances)
        return templates.build_examples(*sentences, self.template_format)

    def _sentences(self, line_numbers, texts, ids, seed=_EVALUATION_SEED, epoch=0, unknown_chances=None):
        """Returns `sentences`, given the ids of the words `[batch, (words)]`.

        With `unknown_chances` `[vocab]`, a word becomes `<UNK>` in that fraction of its lines; the lines chosen change
        with the epoch. Of `texts` only given blanks are read.
        """
        if unknown_chances is not None:
            key = tf.random.fold_in(tf.constant([seed, 0x0B5C], tf.int64), epoch)
            of_words = tf.random.stateless_uniform([len(self.vocabulary)], key)
            of_lines = tf.cast(tf.math.floormod(tf.cast(line_numbers, tf.float64) * _GOLDEN_RATIO, 1), tf.float32)
            draws = tf.gather(of_words, ids.values) + tf.gather(of_lines, ids.value_rowids())
            unknown = tf.math.floormod(draws, 1) < tf.gather(unknown_chances, ids.values)
            ids = ids.with_values(tf.where(unknown, UNK_ID, ids.values))
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        blanks = self.blank_rule.blanks_of(texts, line_numbers, lengths, seed, epoch)
        return ids.to_tensor(PAD_ID), lengths, blanks.starts, blanks.ends, blanks.counts

    def _batches(self, window, line_numbers, texts, lengths, key, bucket_by_length):
        """Returns the batches of one window, sorted by length, in random order; an incomplete batch stays last."""
        size = tf.size(line_numbers)
        if bucket_by_length:
            order = tf.argsort(lengths, stable=True)
            full = size // self.batch_size
            draws = tf.random.stateless_uniform([full], tf.random.fold_in(key, window))
            blocks = tf.reshape(order[: full * self.batch_size], [full, self.batch_size])
            blocks = tf.gather(blocks, tf.argsort(draws, stable=True))
            order = tf.concat([tf.reshape(blocks, [-1]), order[full * self.batch_size :]], axis=0)
            line_numbers, texts = tf.gather(line_numbers, order), tf.gather(texts, order)
        return tf.data.Dataset.from_tensor_slices((line_numbers, texts)).batch(self.batch_size)
