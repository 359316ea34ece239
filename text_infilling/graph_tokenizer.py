"""`Tokenizer.split` for batches of texts inside a TensorFlow graph, for models that leave Python.

The same words and blanks, which the tests compare; but a letter that is so new that not all of Python, ICU and RE2
know it may be taken for another sign, and U+FDD0 to U+FDD2, which no text should have, become U+FFFD.

It goes from texts to stretches without white space, from these to tokens with one regular expression a step (RE2, which
has no look-ahead: what must not follow is matched and given back), and decides by lookups in the vocabulary, all texts
at once.
"""

from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from text_infilling.tokenizer import (
    ABBREVIATIONS,
    CLOSING,
    CONTRACTION,
    MERGED,
    NO_LETTERS,
    NUMBER_WORD,
    OPENING,
    OTHER_SPELLINGS,
    SYMBOLS,
    Tokenizer,
)
from text_infilling.vocabulary import UNK_ID, Vocabulary
from text_infilling.vocabulary_table import VocabularyTable

# Noncharacters, which no text may have.
_BLANK_MARK, _CUT, _NUL = "\ufdd0", "\ufdd1", "\ufdd2"  # the last one because many an operation ends at a NUL
SPACES = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WORD = r"\pL\pN"
_LETTERS = rf"[^{SPACES}{NO_LETTERS}]+"
_NO_LETTER = rf"(?:[{SPACES}{NO_LETTERS}].*)?"
_JOINED = rf"{_LETTERS}(?:[-./&]{_LETTERS})*"
_INITIALS = r"(?:[\pL\p{Nl}\p{No}]\.){2,}"
# The alternatives of `Tokenizer`, each with what is behind it. A word is cut at its contraction afterwards.
_FIRST_TOKEN = (
    rf"(?is)({ABBREVIATIONS}){_NO_LETTER}|({_INITIALS}).*"
    rf"|(\p{{Nd}}+(?:[.,:/]\p{{Nd}}+)+){_NO_LETTER}"
    rf"|({_JOINED}?)n['’]t{_NO_LETTER}|(n['’]t){_NO_LETTER}"
    rf"|({CONTRACTION}){_NO_LETTER}"
    rf"|({_LETTERS}(?:[-./&'’]{_LETTERS})*).*"
    rf"|(\.{{2,}}|-{{2,}}|``|''|[{SYMBOLS}]+|.).*"
)
_OF_FIRST_TOKEN = "".join(rf"\{group}" for group in range(1, 9))


def one_of(characters, negated=""):
    """A class of these characters for a regular expression; with `negated="^"` of all others."""
    return f"[{negated}" + "".join(rf"\x{{{ord(character):x}}}" for character in characters) + "]"


class Pieces(NamedTuple):
    """The words and blanks of texts, in order, and what stands between the blanks.

    Attributes:
        words: `[texts, (pieces)]` as the vocabulary has them, as typed where unknown; empty for a blank.
        ids: `[texts, (pieces)]` int32, `<UNK>`'s where unknown; -1 for a blank.
        between: `[texts, (blanks + 1)]` the text around and between the blanks, as typed.
    """

    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    between: tf.RaggedTensor


class GraphTokenizer(tf.Module):
    """The words and blanks of texts.

    Args:
        tokenizer: whose words they are.
        vocabulary: decides between ways to split and to spell.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary):
        super().__init__()
        self.lower = tokenizer.lower
        self._words = VocabularyTable(vocabulary)
        self._table = self._words.table  # a saved module has to hold the table
        known = frozenset(vocabulary.words)

        def first_known(spellings):
            return next(iter(vocabulary.encode([word for word in spellings if word in known])), UNK_ID)

        others = {plain: first_known(spellings) for plain, spellings in OTHER_SPELLINGS.items()}
        self._others = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(others)), tf.constant(list(others.values()), tf.int32)
            ),
            UNK_ID,
        )
        self._quotes = [first_known([quote, *OTHER_SPELLINGS[quote]]) for quote in "“”"]
        self._patterns = [
            (r"\.\.+", first_known(["..."])),
            (r"--+", first_known(["--", "-"])),
            (r"\p{Nd}+(?:[.,]\p{Nd}+)*", first_known([NUMBER_WORD])),
        ]

    def __call__(self, texts: tf.Tensor, most: int) -> Pieces:
        """The words and blanks of `texts` `[texts]`, in UTF-8; see `Tokenizer.split`.

        Args:
            texts: `[texts]`.
            most: pieces of a text that are of use. Of a longer one at least `most + 1` are found, but maybe not all,
                which bounds the time that it takes.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8.
        """
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="strict", replace_control_characters=False)
        texts = tf.strings.regex_replace(texts, f"[{_BLANK_MARK}{_CUT}{_NUL}]", "\ufffd")
        texts = tf.strings.regex_replace(texts, r"\x00", _NUL)
        marked = texts
        for word, blank in ((rf"{_WORD}_", "__m__|__+"), (_WORD, r"\[blank\]")):
            for _ in range(2):  # neighbours share what stands between them
                marked = tf.strings.regex_replace(
                    marked, rf"(^|[^{word}])(?:{blank})($|[^{word}])", rf"\1{_BLANK_MARK}\2"
                )
        between = tf.strings.split(marked, _BLANK_MARK)
        chunks, starts, ends = tf_text.regex_split_with_offsets(
            marked, rf"{_BLANK_MARK}|[{SPACES}]+", keep_delim_regex_pattern=_BLANK_MARK
        )
        rows, chunk = chunks.value_rowids(), chunks.flat_values
        beside = (starts.flat_values[1:] == ends.flat_values[:-1]) & (rows[1:] == rows[:-1])
        after_blank, before_blank = _shifted(chunk, False, beside), _shifted(chunk, beside, False)

        typed, of_chunk = self._tokens(chunk, most)
        ids = self.ids(typed)
        same = of_chunk[1:] == of_chunk[:-1]
        first, last = _shifted(typed, True, ~same), _shifted(typed, ~same, True)
        behind_opening = _shifted(typed, False, tf.strings.regex_full_match(typed[:-1], f"(?s).*{one_of(OPENING)}"))
        opens = tf.where(first, ~tf.gather(after_blank, of_chunk), behind_opening)  # a quotation, if it is a quote
        opens &= ~last | tf.gather(before_blank, of_chunk)
        ids = tf.where(typed == '"', tf.where(opens, *self._quotes), ids)
        words = tf.where(ids == UNK_ID, _with_nul(self._plain(typed)), self._words.tokens(ids))
        is_blank = tf.gather(chunk == _BLANK_MARK, of_chunk)
        texts_of_pieces = tf.gather(rows, of_chunk)
        words, ids = (
            tf.RaggedTensor.from_value_rowids(x, texts_of_pieces, chunks.nrows())
            for x in (tf.where(is_blank, "", words), tf.where(is_blank, -1, ids))
        )
        return Pieces(words, ids, tf.ragged.map_flat_values(_with_nul, between))

    def _tokens(self, chunks, most):
        """Tokens as typed `[tokens]` of the stretches `[chunks]`, and their stretches `[tokens]`."""
        no_closing = one_of(CLOSING, "^")
        whole = tf.strings.regex_full_match(chunks, f"(?s).|{one_of(CLOSING)}.*|.*{no_closing}")
        whole = (whole & (self.ids(chunks) != UNK_ID)) | (chunks == _BLANK_MARK)
        opening = tf.strings.regex_replace(chunks, f"(?s)^({one_of(OPENING)}*).*$", r"\1")
        closing = tf.strings.regex_replace(chunks, f"(?s)^(?:.*{no_closing})?({one_of(CLOSING)}*)$", r"\1")
        size, begin, end = (tf.strings.length(x) for x in (chunks, opening, closing))
        core = tf.strings.substr(chunks, tf.minimum(begin, size), tf.maximum(size - begin - end, 0))
        short = tf.strings.join([core, "."])  # dr. and the like
        is_short = tf.strings.regex_full_match(short, f"(?i){ABBREVIATIONS}|{_INITIALS}")
        is_short &= tf.strings.regex_full_match(closing, r"(?s)\..*") & (self.ids(short) != UNK_ID)
        core = tf.where(is_short, short, core)
        closing = tf.where(is_short, tf.strings.substr(closing, tf.minimum(1, end), end), closing)
        inside = ~whole & (begin + end < size) & (self.ids(core) != UNK_ID)

        regions = [tf.where(inside, opening, ""), tf.where(inside, core, chunks), tf.where(inside, closing, "")]
        one_token = [tf.zeros_like(whole), whole | inside, tf.zeros_like(whole)]
        regions, one_token = (tf.reshape(tf.stack(x, axis=1), [-1]) for x in (regions, one_token))
        tokens = _tokens_of(regions, one_token, most)
        of_chunk = tokens.value_rowids() // 3
        parts = self._parts(tokens.flat_values, tf.gather(~whole & ~inside, of_chunk))
        return parts.flat_values, tf.gather(of_chunk, parts.value_rowids())

    def _parts(self, tokens, may_be_cut):
        """Each token, or its parts if only these are known: `[tokens, (parts)]`."""
        cut = tf.strings.regex_replace(tokens, "([-./&])", rf"{_CUT}\1{_CUT}")
        cut = tf.strings.regex_replace(cut, f"{_CUT}({_CUT})|^{_CUT}|{_CUT}$", r"\1")
        for word, place in MERGED.items():
            cut = tf.strings.regex_replace(cut, f"(?i)^({word[:place]})({word[place:]})$", rf"\1{_CUT}\2")
        parts = tf.strings.split(cut, _CUT)
        known = tf.RaggedTensor.from_row_splits(self.ids(parts.flat_values) != UNK_ID, parts.row_splits)
        may_be_cut &= (self.ids(tokens) == UNK_ID) & tf.reduce_all(known, axis=1)
        return tf.strings.split(tf.where(may_be_cut, cut, tokens), _CUT)

    def ids(self, typed: tf.Tensor) -> tf.Tensor:
        """The id of the first known spelling of each word `[words]`, `UNK_ID` for an unknown one."""
        plain = self._plain(typed)
        ids = self._table.lookup(plain)
        others = [self._table.lookup(tf.strings.lower(plain, encoding="utf-8")), self._others.lookup(plain)]
        others += [
            tf.where(tf.strings.regex_full_match(plain, pattern), known, UNK_ID) for pattern, known in self._patterns
        ]
        for other in others:
            ids = tf.where(ids == UNK_ID, other, ids)
        return ids

    def _plain(self, typed):
        plain = tf.strings.regex_replace(tf_text.normalize_utf8(typed, "NFC"), "[’‘]", "'")
        return tf.strings.lower(plain, encoding="utf-8") if self.lower else plain


def _with_nul(texts):
    return tf.strings.regex_replace(texts, _NUL, tf.constant("\x00"))  # a Python string would end at it


def _tokens_of(texts, one_token, most):
    """Tokens of texts without white space `[texts, (tokens)]`, at most `most + 1` of each; some are one token."""

    def body(time, rest, tokens):
        token = tf.strings.regex_replace(rest, f"^(?:{_FIRST_TOKEN})$", _OF_FIRST_TOKEN)
        token = tf.strings.regex_replace(token, rf"(?is)^(.+?){CONTRACTION}{_NO_LETTER}$", r"\1")
        token = tf.where(one_token, rest, token)
        rest = tf.strings.substr(rest, tf.strings.length(token), tf.strings.length(rest))
        return time + 1, rest, tokens.write(time, token)

    tokens = tf.TensorArray(tf.string, 0, dynamic_size=True, element_shape=texts.shape)
    _, _, tokens = tf.while_loop(
        lambda time, rest, _: (time == 0) | ((time <= most) & tf.reduce_any(rest != "")), body, (0, texts, tokens)
    )
    tokens = tf.transpose(tokens.stack())
    return tf.RaggedTensor.from_tensor(tokens, tf.math.count_nonzero(tokens != "", axis=1))


def _shifted(like, *parts):
    """As many values as `like` has, of the parts one behind the other."""
    return tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)[: tf.size(like)]
