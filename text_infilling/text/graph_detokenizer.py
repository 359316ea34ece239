"""`detokenizer.fill_in` for batches of texts inside a TensorFlow graph, for exported models."""

import tensorflow as tf

from text_infilling.text.graph_tokenizer import SPACES, Pieces, one_of
from text_infilling.text.rules import (
    CLOSING_WORDS,
    ENDS,
    OPENING_WORDS,
    QUOTES,
    SECOND_HALVES,
    is_closing,
    is_dots,
    is_opening,
    shown,
)
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary

# Upper-case letters, and other characters that `str.isupper` accepts.
_CAPITAL = r"[\p{Lu}\x{2160}-\x{216f}\x{24b6}-\x{24cf}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}]"
_OPENING_CHARACTER, _CLOSING_CHARACTER = (
    one_of(sorted(word for word in words if len(word) == 1)) for words in (OPENING_WORDS, CLOSING_WORDS)
)
_NOTHING = -1  # id of the previous word if there is none


class GraphDetokenizer(tf.Module):
    """Fills the blanks of texts inside a graph.

    Args:
        vocabulary: the words of the ids.
    """

    def __init__(self, vocabulary: Vocabulary):
        super().__init__()
        words = ("",) * len(SPECIAL_TOKENS) + vocabulary.words

        def each(value):
            return tf.constant([value(word) for word in words])

        self._shown = each(shown)
        self._capital = each(lambda word: shown(word[:1].upper() + word[1:]))
        self._is_closing, self._is_opening = each(is_closing), each(is_opening)
        self._is_dots = each(is_dots)
        self._is_single_quote = each(lambda word: shown(word) == "'")
        self._is_plain_quote = each(lambda word: word == '"')
        self._is_opening_quote, self._is_closing_quote = (
            each(lambda word: word == "``"),
            each(lambda word: word == "''"),
        )
        self._is_low_quote, self._is_high_quote = each(lambda word: word == "„"), each(lambda word: word == "“")
        self._is_quote = each(lambda word: word in QUOTES)
        self._is_end = each(lambda word: word in ENDS)
        self._is_i = each(lambda word: word == "i")
        second_of = dict(SECOND_HALVES)
        seconds = sorted(set(second_of.values()))
        self._half = each(lambda word: seconds.index(word.lower()) if word.lower() in seconds else -1)
        self._half_after = each(
            lambda word: seconds.index(second_of[word.lower()]) if word.lower() in second_of else -2
        )

    def __call__(
        self, pieces: Pieces, ids: tf.Tensor, lengths: tf.Tensor, counts: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the filled texts `[texts]`, and the infills as written in them `[texts, blanks]`.

        Args:
            pieces: the texts, split by `GraphTokenizer`.
            ids: `[texts, blanks, answer_length]` the words of each infill.
            lengths: `[texts, blanks]` number of words of each infill.
            counts: `[texts]` number of blanks.
        """
        texts, blanks = tf.shape(lengths)[0], tf.shape(lengths)[1]
        between = pieces.between.to_tensor("", shape=[None, None])
        between = tf.pad(between, [[0, 0], [0, tf.maximum(blanks + 1 - tf.shape(between)[1], 0)]], constant_values="")
        begins_after, is_known = self._kept(pieces, texts, blanks)
        kept = tf.strings.reduce_join(between, axis=1)
        capitals = tf.strings.regex_full_match(kept, f"(?s).*{_CAPITAL}.*")

        def fill_one(k, out, begins, glue, fills):
            there, count = k < counts, lengths[:, k]
            before, after = between[:, k], between[:, k + 1]
            begins = tf.where(is_known[:, k], begins_after[:, k], begins)
            new = tf.strings.join([out, tf.where(glue, _without_left_spaces(before), before)])
            joined, begins, first, last = self._join(ids[:, k], count, begins, capitals, new)
            spaced = tf.strings.regex_full_match(new, f"(?s)(?:.*[{SPACES}])?")
            no_words = count == 0
            nothing_follows = (after == "") & (k + 1 >= counts)
            closing_follows = tf.strings.regex_full_match(after, f"(?s){_CLOSING_CHARACTER}.*")
            strips = tf.where(no_words, nothing_follows | closing_follows, first)
            space = ~no_words & ~first & (k > 0) & (before == "") & ~glue & ~spaced
            opened = glue | spaced | tf.strings.regex_full_match(new, f"(?s).*{_OPENING_CHARACTER}")
            new = tf.where(strips, tf.strings.regex_replace(new, " +$", ""), new)
            new = tf.strings.join([new, tf.where(space, " ", ""), joined])
            glue = tf.where(there, tf.where(no_words, opened, last), glue)
            return k + 1, tf.where(there, new, out), begins, glue, tf.concat([fills, joined[:, None]], axis=1)

        no = tf.zeros([texts], tf.bool)
        start = (tf.constant(0), tf.fill([texts], ""), ~no, no, tf.fill([texts, 0], ""))
        invariants = (*(x.shape for x in start[:-1]), tf.TensorShape([None, None]))
        _, out, _, glue, fills = tf.while_loop(lambda k, *_: k < blanks, fill_one, start, invariants)
        rest = tf.gather(between, counts, batch_dims=1)
        out = tf.strings.join([out, tf.where(glue, _without_left_spaces(rest), rest)])
        return out, fills

    def _kept(self, pieces, texts, blanks):
        """Returns whether a sentence begins after the kept words before each blank, and whether these words decide it
        (quotation marks do not): `[texts, blanks + 1]` each."""
        is_blank = pieces.ids.flat_values == -1
        rows, indices = pieces.ids.value_rowids(), tf.range(tf.size(is_blank))
        before = tf.cumsum(tf.cast(is_blank, tf.int32), exclusive=True)
        before -= tf.gather(tf.pad(before, [[0, 1]]), tf.gather(tf.cast(pieces.ids.row_starts(), tf.int32), rows))
        words = pieces.words.flat_values
        tells = ~is_blank & ~_is_one_of(words, QUOTES)
        last = tf.math.unsorted_segment_max(
            tf.where(tells, indices, -1), tf.cast(rows, tf.int32) * (blanks + 1) + before, texts * (blanks + 1)
        )
        is_end = tf.concat([_is_one_of(words, ENDS), [False]], axis=0)
        last = tf.reshape(last, [texts, blanks + 1])
        return tf.gather(is_end, tf.where(last >= 0, last, tf.size(words))), last >= 0

    def _join(self, ids, lengths, begins, capitals, before):
        """Joins and capitalizes the words of infills as `detokenizer.fill_in` does.

        Args:
            ids: `[texts, answer_length]` the words.
            lengths: `[texts]` number of words.
            begins: `[texts]` whether the first word begins a sentence.
            capitals: `[texts]` whether the text has capitals.
            before: `[texts]` the text before the words.

        Returns:
            `[texts]` each: the words as text, whether a sentence begins after them, whether they touch the text before
            and the text after them.
        """
        there = tf.sequence_mask(lengths, tf.shape(ids)[1])
        two_quotes = tf.reduce_any(tf.gather(self._is_closing_quote, ids) & there, axis=1)
        quoted = tf.strings.length(tf.strings.regex_replace(before, '[^"]', "")) % 2 == 1
        low = tf.strings.regex_full_match(before, "(?s).*„[^“]*")

        def add(i, text, quoted, low, previous, opened, closes, begins):
            word, there = ids[:, i], i < lengths
            closing, opening = tf.gather(self._is_closing, word), tf.gather(self._is_opening, word)
            plain_quote, opening_quote = tf.gather(self._is_plain_quote, word), tf.gather(self._is_opening_quote, word)
            both_sides = plain_quote | (opening_quote & ~two_quotes)
            closes_low = tf.gather(self._is_high_quote, word) & low
            closing = tf.where(both_sides, quoted, closing | closes_low)
            opening = tf.where(both_sides, ~quoted, opening & ~closes_low) & ((i > 0) | (before != "") | ~closing)
            opening |= opened & tf.gather(self._is_dots, word)
            merged = tf.gather(self._half_after, tf.maximum(previous, 0)) == tf.gather(self._half, word)
            single_quotes = [tf.gather(self._is_single_quote, x) for x in (tf.maximum(previous, 0), word)]
            no_space = (closing | opened | (previous == _NOTHING) | merged) & ~tf.reduce_all(single_quotes, axis=0)
            capital = capitals & (begins | tf.gather(self._is_i, word))
            shown_word = tf.where(capital, tf.gather(self._capital, word), tf.gather(self._shown, word))
            longer = tf.strings.join([text, tf.where(no_space, "", " "), shown_word])
            new_begins = tf.where(tf.gather(self._is_quote, word), begins, tf.gather(self._is_end, word))
            double = plain_quote | opening_quote | tf.gather(self._is_closing_quote, word)
            new_low = tf.gather(self._is_low_quote, word) | (low & ~tf.gather(self._is_high_quote, word))
            new = (longer, quoted ^ double, new_low, word, opening, (closing & (i == 0)) | closes, new_begins)
            old = (text, quoted, low, previous, opened, closes, begins)
            return (i + 1, *(tf.where(there, x, y) for x, y in zip(new, old)))

        no = tf.zeros_like(begins)
        start = (0, tf.fill(tf.shape(lengths), ""), quoted, low, tf.fill(tf.shape(lengths), _NOTHING), no, no, begins)
        most = tf.reduce_max(tf.concat([[0], lengths], axis=0))
        _, text, _, _, _, opened, closes, begins = tf.while_loop(lambda i, *_: i < most, add, start)
        return text, begins, closes, opened


def _is_one_of(words, some):
    return tf.reduce_any(words[:, None] == tf.constant(sorted(some))[None, :], axis=1)


def _without_left_spaces(texts):
    return tf.strings.regex_replace(texts, "^ +", "")
