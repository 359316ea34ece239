"""`tf.data` pipelines: from lines of text to templates and answers.

What is random is a function of (seed, epoch, line): the same seed gives the same batches, also when a run goes on in
the middle of an epoch. Memory of training is bounded by the two buffers below, not by the corpus.
"""

import dataclasses
import functools
import math
from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from text_infilling import masking, templates
from text_infilling.vocabulary import PAD_ID, UNK_ID, Vocabulary
from text_infilling.vocabulary_table import VocabularyTable

SHUFFLE_LINES = 100_000  # lines held for shuffling; a larger corpus is shuffled within a window of so many
SORT_BATCHES = 50  # batches that are sorted by length together
_READ_LINES = 4096
_TOKENIZER = tf_text.WhitespaceTokenizer()  # made once: that takes a third of a second
_WHITE_SPACE = r"[\p{Z}\x{85}\x1c-\x1f]"  # what Python's str.split knows beyond the tokenizer's ASCII
# Nothing here is Python control flow over tensors, and graphs are made much faster without that conversion.
_as_it_is = tf.autograph.experimental.do_not_convert
_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2  # its multiples lie evenly between whole numbers
_EVALUATION_SEED = 0  # of the masks of validation and test; no flag changes it


@dataclasses.dataclass(frozen=True)
class Masking:
    """Which blanks a sentence gets.

    Attributes:
        kind: "fixed", "random" or "any" (random ones of any number), see `masking`; or "given": each line has its
            blanks, see `masked_lines`.
        mask_rate: share of words masked, in (0, 1); None where they are given.
        blanks: of a sentence; with "any" at most.
    """

    kind: str
    mask_rate: float | None
    blanks: int

    def __post_init__(self):
        if self.kind not in ("fixed", "random", "any", "given"):
            raise ValueError(f"--masking takes one of fixed, random. Received: {self.kind!r}")
        if self.kind != "given":
            masking.check_mask_rate(self.mask_rate)
        elif self.mask_rate is not None:
            raise ValueError(f"--mask_rate has no meaning where blanks are given. Received: {self.mask_rate!r}")
        masking.check_blanks(self.blanks)

    def words_of(self, texts):
        """The words of a batch of lines `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
        return tokenize(tf.strings.regex_replace(texts, "\t.*", "") if self.kind == "given" else texts)

    def blanks_of(self, texts, lines, lengths, seed, epoch) -> masking.Blanks:
        """The blanks of a batch of lines, given their texts, numbers and lengths `[batch]`."""
        if self.kind == "given":
            places = tf.strings.regex_replace(tf.strings.regex_replace(texts, "^[^\t]*\t", ""), ":", " ")
            places = tf.strings.to_number(tf.strings.split(places).flat_values, tf.int32)
            places = tf.reshape(places, [tf.size(texts), self.blanks, 2])  # an error where a line has other blanks
            everywhere = tf.fill(tf.shape(texts), True)
            return masking.Blanks(places[:, :, 0], places[:, :, 1], everywhere, tf.fill(tf.shape(texts), self.blanks))
        if self.kind == "fixed":
            return masking.fixed_blanks(lengths, self.mask_rate, self.blanks)
        longest, draw, rows = tf.reduce_max(lengths), *self._random()
        spec = tf.TensorSpec([rows, None], tf.float32)
        uniforms = tf.map_fn(
            lambda line: masking.line_uniforms(seed, epoch, line, longest, rows), lines, fn_output_signature=spec
        )
        return draw(lengths, self.mask_rate, self.blanks, uniforms)

    def valid(self, lengths):
        """`[batch]` bool: whether a sentence is long enough for its blanks, which depends on its length alone."""
        return tf.fill(tf.shape(lengths), True) if self.kind == "given" else self.undrawn(None, lengths).valid

    def undrawn(self, texts, lengths) -> masking.Blanks:
        """As `blanks_of`, but where these are random as if all that is drawn were 0.

        That is much faster, and how many words are masked depends on the length alone; with "any" it is that of one
        blank, which more blanks than masked words exceed.
        """
        if self.kind in ("given", "fixed"):
            return self.blanks_of(texts, None, lengths, None, None)
        draw, rows = self._random()
        return draw(lengths, self.mask_rate, self.blanks, tf.zeros([tf.size(lengths), rows, tf.reduce_max(lengths)]))

    def _random(self):
        """What draws random blanks, and from how many uniform numbers a word."""
        return (masking.any_blanks, 3) if self.kind == "any" else (masking.random_blanks, 2)


@dataclasses.dataclass(frozen=True)
class Survey:
    """What one pass over a file of sentences found.

    Attributes:
        lines: sentences long enough for their blanks.
        left_out: sentences too short for them.
        longest: words of the longest sentence.
        longest_answer: words of the longest possible answer among those lines.
        words, masked_words: their sums over the lines; see `Masking.undrawn`.
    """

    lines: int
    left_out: int
    longest: int
    longest_answer: int
    words: int
    masked_words: int

    @property
    def mask_rate(self) -> float:
        """The real share of masked words."""
        return self.masked_words / max(self.words, 1)


@tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)  # one trace for all graphs
def tokenize(texts):
    """The white-space tokens of texts `[batch]`: a ragged tensor `[batch, (words)]` of strings."""
    # The tokenizer splits at one byte: white space of several would be cut in two, and leave bytes that are no text.
    return _TOKENIZER.tokenize(tf.strings.regex_replace(texts, _WHITE_SPACE, " "))


def survey(path: Path, masking_: Masking) -> Survey:
    """Counts a file's sentences, those too short for their blanks, and what a model must be ready for."""
    lines = left_out = longest = longest_answer = words = masked = 0
    count = _counter(masking_)
    for texts in tf.data.TextLineDataset(str(path)).batch(_READ_LINES):
        kept, all_, length, answer, words_, masked_ = (int(x) for x in count(texts))
        lines, left_out = lines + kept, left_out + all_ - kept
        longest, longest_answer = max(longest, length), max(longest_answer, answer)
        words, masked = words + words_, masked + masked_
    return Survey(lines, left_out, longest, longest_answer, words, masked)


@functools.lru_cache(maxsize=64)
def survey_once(path: Path, masking_: Masking, checksum: str) -> Survey:
    """`survey` of a file in a corpus of this checksum: one pass for all that ask in this process."""
    return survey(path, masking_)


@functools.lru_cache(maxsize=64)
def _counter(masking_):
    """The function that counts a batch of lines for `survey`."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def count(texts):
        lengths = tf.cast(masking_.words_of(texts).row_lengths(), tf.int32)
        blanks = masking_.undrawn(texts, lengths)
        sizes = blanks.ends - blanks.starts  # all 0 where invalid
        masked = tf.reduce_sum(sizes, axis=1)
        # At random one blank may get all words but one for each of the others, and there may be no others.
        others = {"random": masking_.blanks - 1, "any": 0}.get(masking_.kind)
        largest = tf.reduce_max(sizes) if others is None else tf.reduce_max(masked) - others
        kept = tf.boolean_mask(lengths, blanks.valid)
        sums = (tf.reduce_sum(kept), tf.reduce_sum(masked))
        return tf.size(kept), tf.size(lengths), tf.reduce_max(lengths), largest, *sums

    return count.get_concrete_function()


def read(path: Path, masking_: Masking):
    """A file's sentences that are long enough for their blanks, one at least: their numbers and texts `[lines]`."""
    numbers, texts = zip(*_fixed(_lines(path, masking_).batch(_READ_LINES)))
    return tf.concat(numbers, axis=0), tf.concat(texts, axis=0)


def _lines(path, masking_):
    """(number, text) of every sentence that is long enough for its blanks, in file order."""

    @_as_it_is
    def long_enough(numbers, texts):
        valid = masking_.valid(tf.cast(masking_.words_of(texts).row_lengths(), tf.int32))
        return tf.boolean_mask(numbers, valid), tf.boolean_mask(texts, valid)

    lines = tf.data.TextLineDataset(str(path)).enumerate().batch(_READ_LINES)
    return lines.map(long_enough).unbatch()


def _fixed(dataset):
    """The dataset as it is written.

    There is no parallelism to tune, and the thread that would can hold up the end of a training for half a minute: it
    sleeps longer each time, and is not always woken when the iterator is deleted. To rewrite the graph takes as long as
    to make it, and the result is slower.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


class Pipeline:
    """Batches of one file of sentences.

    Args:
        path: text file, one tokenised sentence a line.
        vocabulary: of the run.
        masking_: which blanks.
        protocol: how templates are numbered and padded.
        batch_size: sentences a batch.
    """

    def __init__(self, path, vocabulary: Vocabulary, masking_: Masking, protocol: templates.Protocol, batch_size: int):
        if batch_size < 1:
            raise ValueError(f"train.batch_size must be at least 1. Received: batch_size={batch_size}")
        self.path, self.vocabulary, self.masking, self.protocol = Path(path), vocabulary, masking_, protocol
        self.batch_size, self._table = batch_size, VocabularyTable(vocabulary)

    def training(
        self,
        lines: int,
        seed: int,
        epochs: range,
        skip: int = 0,
        bucket_by_length: bool = True,
        parts: int = 1,
        unknown_chances=None,
    ):
        """Shuffled batches of `epochs`, one epoch after the other, as dicts of the fields of `templates.Examples`.

        Args:
            lines: how many sentences the file has (`Survey.lines`).
            seed: of the shuffling and the random masks.
            epochs: which epochs.
            skip: batches of the first epoch that are left out, as if they had been taken.
            bucket_by_length: sentences of about one length share a batch, so that there is little padding.
            parts: epochs that one pass over the file makes; the next pass has another order. All are equally long, so
                fewer than `parts` batches at the end of a pass are left out.
            unknown_chances: `[vocab]` the chance of each word to be read as `<UNK>`, or None; see `sentences`.
        """
        steps = self.steps(lines, parts)

        @_as_it_is
        def pass_of(number):
            key = tf.random.fold_in(tf.constant([seed, 0x7E47], tf.int64), number)
            # Not key[0]: that is the same in every pass, the number folded in stands in key[1] alone.
            order = tf.random.stateless_uniform([], key, minval=None, maxval=None, dtype=tf.int64)
            # Of this graph: else the order depended on the process's seed too, and a seed of 0 were an error.
            tf.random.set_seed(1)
            texts = _lines(self.path, self.masking).shuffle(
                min(lines, SHUFFLE_LINES), seed=order, reshuffle_each_iteration=False
            )
            window = SORT_BATCHES * self.batch_size
            first = tf.where(number == passes.start, tf.constant(epochs.start % parts * steps + skip, tf.int64), 0)
            windows = texts.batch(window).enumerate().skip(first // SORT_BATCHES)
            batches = windows.flat_map(_as_it_is(lambda n, rows: self._batches(n, *rows, key, bucket_by_length)))
            places = tf.data.Dataset.range(first, parts * steps)
            with_epoch = _as_it_is(lambda place, rows: (number * parts + place // steps, *rows))
            return tf.data.Dataset.zip(places, batches.skip(first % SORT_BATCHES)).map(with_epoch)

        passes = range(epochs.start // parts, math.ceil(epochs.stop / parts))
        total = steps * len(epochs) - skip
        dataset = tf.data.Dataset.range(passes.start, passes.stop).flat_map(pass_of).take(total)
        dataset = dataset.map(
            _as_it_is(lambda epoch, *lines: self.examples(*lines, seed, epoch, unknown_chances)._asdict()),
            num_parallel_calls=2,
            deterministic=True,
        )
        return _fixed(dataset.apply(tf.data.experimental.assert_cardinality(total)).prefetch(8))

    def steps(self, lines: int, parts: int = 1) -> int:
        """Batches of an epoch, of which `parts` are a pass over so many sentences."""
        return math.ceil(lines / self.batch_size) // parts

    def sentences(self, numbers, texts, seed=_EVALUATION_SEED, epoch=0, unknown_chances=None):
        """Ids, lengths, starts, ends and counts of a batch, as `templates.initial_template` takes them.

        A word is `<UNK>` in a share of its lines, `unknown_chances` `[vocab]`; which ones, changes with the epoch.
        """
        ids = self._table.lookup(self.masking.words_of(texts))
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

    def examples(self, numbers, texts, seed=_EVALUATION_SEED, epoch=0, unknown_chances=None) -> templates.Examples:
        """Templates and answers of a batch of lines, given their numbers and texts `[batch]`; see `sentences`."""
        return templates.build_examples(*self.sentences(numbers, texts, seed, epoch, unknown_chances), self.protocol)

    def _batches(self, window, numbers, texts, key, bucket_by_length):
        """The batches of one window, sorted by length and then put in a random order; a last short one stays last."""
        size = tf.size(numbers)
        if bucket_by_length:
            order = tf.argsort(tf.cast(self.masking.words_of(texts).row_lengths(), tf.int32), stable=True)
            full = size // self.batch_size
            draws = tf.random.stateless_uniform([full], tf.random.fold_in(key, window))
            blocks = tf.reshape(order[: full * self.batch_size], [full, self.batch_size])
            blocks = tf.gather(blocks, tf.argsort(draws, stable=True))
            order = tf.concat([tf.reshape(blocks, [-1]), order[full * self.batch_size :]], axis=0)
            numbers, texts = tf.gather(numbers, order), tf.gather(texts, order)
        return tf.data.Dataset.from_tensor_slices((numbers, texts)).batch(self.batch_size)
