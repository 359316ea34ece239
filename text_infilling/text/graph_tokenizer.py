"""`Tokenizer.split` for batches of texts inside a TensorFlow graph, for exported models that run without Python.

The words and blanks are the same, as the tests verify, with two exceptions: a letter so new that not all of Python, ICU
and RE2 know it may be read as another character, and the noncharacters U+FDD0 to U+FDD2 become U+FFFD.

The steps, for all texts at once: split texts into chunks without white space; split chunks into tokens, one regular
expression per step (RE2 has no look-ahead, so text that must not follow is matched and put back); decide by vocabulary
lookups.
"""

from collections.abc import Iterable
from typing import NamedTuple

import tensorflow as tf
import tensorflow_text as tf_text

from text_infilling.text.rules import (
    ABBREVIATIONS,
    AFTER_CLOSING_QUOTE,
    BEFORE_OPENING_QUOTE,
    BRACKETED_BLANK,
    CLOSING,
    CLOSING_QUOTES,
    CONTRACTION,
    CURLY_APOSTROPHES,
    CUT,
    EMOTICON,
    INVISIBLE,
    JOINED_TO_NEXT,
    JOINERS,
    MERGED,
    NO_LETTERS,
    NOT,
    OPENING,
    OPENING_QUOTES,
    OTHER_SPELLINGS,
    PUNCTUATION,
    SHORTENED,
    UNDERSCORES,
    Patterns,
    spellings_of_patterns,
)
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.text.vocabulary_table import VocabularyTable
from text_infilling.vocabulary import UNK_ID, Vocabulary

# Noncharacters, which do not occur in valid text.
_BLANK_MARK, _CUT, _NUL = "\ufdd0", "\ufdd1", "\ufdd2"  # _NUL: many operations end a string at a NUL
SPACES = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WORD = r"\pL\pN"
_LETTER = rf"[^{SPACES}{NO_LETTERS}]"
_DIGIT = r"\p{Nd}"
_NO_LETTER = rf"(?:[{SPACES}{NO_LETTERS}].*)?"
_NO_HYPHEN = NO_LETTERS.replace("!-/", "!-,./")
_NO_JOINT = rf"(?:-|--.*|-?[{SPACES}{_NO_HYPHEN}].*)?"
_INITIALS = r"(?:[\pL\p{Nl}\p{No}]\.){2,}"


def _first_token(starts: bool) -> str:
    """Builds the pattern of the first token, with the alternatives of `Tokenizer` and the text that may follow each.

    A word is cut at its contraction afterwards.

    Args:
        starts: whether the token is at the start of the text or after white space.
    """
    p = Patterns.of(_LETTER, _DIGIT, SPACES, "['’]")
    emoticon, option = (f"|{EMOTICON}", f"{p.option}|’{_LETTER}+|") if starts else ("", "")
    return (
        rf"(?is)^(?:({ABBREVIATIONS}|{_INITIALS}|{SHORTENED}{emoticon}){_NO_LETTER}|({CONTRACTION}|{NOT}){_NO_JOINT}"
        rf"|({option}{p.link}).*|({p.negated}){NOT}{_NO_JOINT}"
        rf"|({p.word}{p.suffix})(?:[{p.after_suffix}].*)?|({p.word}).*|({p.other}|.\x{{fe0f}}?).*)$"
    )


_OF_FIRST_TOKEN = "".join(rf"\{group}" for group in range(1, 8))


def one_of(characters: Iterable[str], negated: str = "") -> str:
    """Returns a regular-expression class of these characters; with `negated="^"`, of all others."""
    return f"[{negated}" + "".join(rf"\x{{{ord(character):x}}}" for character in characters) + "]"


class Pieces(NamedTuple):
    """The words and blanks of texts, in order, and the text between the blanks.

    Attributes:
        words: `[texts, (pieces)]` in the spelling of the vocabulary, as typed if unknown; empty for a blank.
        ids: `[texts, (pieces)]` int32, `UNK_ID` for unknown words; -1 for a blank.
        between: `[texts, (blanks + 1)]` the text before, between and after the blanks, as typed.
    """

    words: tf.RaggedTensor
    ids: tf.RaggedTensor
    between: tf.RaggedTensor


class GraphTokenizer(tf.Module):
    """Splits texts into words and blanks inside a graph.

    Args:
        tokenizer: the tokenizer to reproduce.
        vocabulary: the known words, which decide how to split and spell.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary):
        super().__init__()
        self.lower = tokenizer.lower
        self._words = VocabularyTable(vocabulary)
        self._table = self._words.table  # a saved module must hold a reference to the table
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
        self._patterns = [(pattern, first_known(others)) for pattern, others in spellings_of_patterns(_DIGIT)]

    def __call__(self, texts: tf.Tensor, most: int) -> Pieces:
        """Splits texts; see `Tokenizer.split`.

        Args:
            texts: `[texts]`, UTF-8.
            most: number of pieces to find per text. For a longer text at least `most + 1` pieces are returned, but
                maybe not all, which bounds the run time.

        Raises:
            tf.errors.InvalidArgumentError: a text is not UTF-8.
        """
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="strict", replace_control_characters=False)
        texts = tf.strings.regex_replace(texts, f"[{_BLANK_MARK}{_CUT}{_NUL}]", "\ufffd")
        texts = tf.strings.regex_replace(texts, r"\x00", _NUL)
        marked = texts
        for word, blank in ((rf"{_WORD}_", UNDERSCORES), (_WORD, BRACKETED_BLANK)):
            for _ in range(2):  # twice, since adjacent blanks share the character between them
                marked = tf.strings.regex_replace(
                    marked, rf"(^|[^{word}])(?:{blank})((?:{NOT})?(?:$|[^{word}]))", rf"\1{_BLANK_MARK}\2"
                )
        between = tf.strings.split(marked, _BLANK_MARK)
        chunks, starts, ends = tf_text.regex_split_with_offsets(
            _visible(marked), rf"{_BLANK_MARK}|[{SPACES}]+", keep_delim_regex_pattern=_BLANK_MARK
        )
        rows, chunk = chunks.value_rowids(), chunks.flat_values
        beside = (starts.flat_values[1:] == ends.flat_values[:-1]) & (rows[1:] == rows[:-1])
        after_blank, before_blank = _shifted(chunk, False, beside), _shifted(chunk, beside, False)

        typed, of_chunk = self._tokens(chunk, before_blank, most)
        quotes = tf.cumsum(tf.strings.length(tf.strings.regex_replace(chunk, '[^"]', "")), exclusive=True)
        quotes -= tf.gather(tf.pad(quotes, [[0, 1]]), tf.gather(chunks.row_starts(), rows))
        typed = _directed(typed, of_chunk, after_blank, before_blank, quotes % 2 == 0)
        ids = self.ids(typed)
        words = tf.where(ids == UNK_ID, _with_nul(self._plain(typed)), self._words.tokens(ids))
        is_blank = tf.gather(chunk == _BLANK_MARK, of_chunk)
        texts_of_pieces = tf.gather(rows, of_chunk)
        words, ids = (
            tf.RaggedTensor.from_value_rowids(x, texts_of_pieces, chunks.nrows())
            for x in (tf.where(is_blank, "", words), tf.where(is_blank, -1, ids))
        )
        return Pieces(words, ids, tf.ragged.map_flat_values(_with_nul, between))

    def _tokens(self, chunks, before_blank, most):
        """Returns the tokens `[tokens]` of `chunks` `[chunks]`, as typed, and the index of their chunk `[tokens]`."""
        no_closing = one_of(CLOSING, "^")
        whole = tf.strings.regex_full_match(chunks, f"(?s).|{one_of(CLOSING)}.*|.*{no_closing}")
        whole = (whole & (self.ids(chunks) != UNK_ID)) | (chunks == _BLANK_MARK)
        opening = tf.strings.regex_replace(chunks, f"(?s)^({one_of(OPENING)}*).*$", r"\1")
        closing = tf.strings.regex_replace(chunks, f"(?s)^(?:.*{no_closing})?({one_of(CLOSING)}*)$", r"\1")
        size, begin, end = (tf.strings.length(x) for x in (chunks, opening, closing))
        core = tf.strings.substr(chunks, tf.minimum(begin, size), tf.maximum(size - begin - end, 0))
        short = tf.strings.join([core, "."])  # dr. etc.
        is_short = tf.strings.regex_full_match(short, f"(?i){ABBREVIATIONS}|{_INITIALS}")
        is_short &= tf.strings.regex_full_match(closing, r"(?s)\..*") & (self.ids(short) != UNK_ID)
        core = tf.where(is_short, short, core)
        closing = tf.where(is_short, tf.strings.substr(closing, tf.minimum(1, end), end), closing)
        inside = ~whole & (begin + end < size) & (self.ids(core) != UNK_ID)

        regions = [tf.where(inside, opening, ""), tf.where(inside, core, chunks), tf.where(inside, closing, "")]
        one_token = [tf.zeros_like(whole), whole | inside, tf.zeros_like(whole)]
        regions, one_token = (tf.reshape(tf.stack(x, axis=1), [-1]) for x in (regions, one_token))
        tokens = _tokens_of(regions, one_token, most)
        tokens, of_chunk = tokens.flat_values, tokens.value_rowids() // 3
        joined = before_blank & tf.strings.regex_full_match(chunks, rf"(?s).*{_LETTER}{JOINED_TO_NEXT}")
        joined = tf.gather(joined & ~whole & ~inside, of_chunk) & _shifted(tokens, of_chunk[1:] != of_chunk[:-1], True)
        cut = tf.strings.regex_replace(tokens, rf"(?s)^(.+)({JOINED_TO_NEXT})$", rf"\1{_CUT}\2")
        tokens = tf.strings.split(tf.where(joined, cut, tokens), _CUT)
        tokens, of_chunk = tokens.flat_values, tf.gather(of_chunk, tokens.value_rowids())
        parts = self._parts(tokens, tf.gather(~whole & ~inside, of_chunk))
        return parts.flat_values, tf.gather(of_chunk, parts.value_rowids())

    def _parts(self, tokens, may_be_cut):
        """Returns each token, or its parts if only the parts are known: `[tokens, (parts)]`."""
        cut = tf.strings.regex_replace(tokens, f"({CUT.format(digit=_DIGIT)})", rf"{_CUT}\1{_CUT}")
        cut = tf.strings.regex_replace(cut, f"{_CUT}({_CUT})|^{_CUT}|{_CUT}$", r"\1")
        for word, cut_at in MERGED.items():
            cut = tf.strings.regex_replace(cut, f"(?i)^({word[:cut_at]})({word[cut_at:]})$", rf"\1{_CUT}\2")
        parts = tf.strings.split(cut, _CUT)
        known = tf.RaggedTensor.from_row_splits(self.ids(parts.flat_values) != UNK_ID, parts.row_splits)
        may_be_cut &= (self.ids(tokens) == UNK_ID) & tf.reduce_all(known, axis=1)
        return tf.strings.split(tf.where(may_be_cut, cut, tokens), _CUT)

    def ids(self, typed: tf.Tensor) -> tf.Tensor:
        """Returns the id of the first known spelling of each word `[words]`; `UNK_ID` for an unknown word."""
        plain = self._plain(typed)
        ids = self._table.lookup(plain)
        straight, curly = (tf.strings.regex_replace(plain, *x) for x in ((f"[{CURLY_APOSTROPHES}]", "'"), ("'", "’")))
        spellings = [plain, straight, curly]
        others = [self._table.lookup(y) for x in spellings for y in (x, tf.strings.lower(x, encoding="utf-8"))]
        others.append(self._others.lookup(plain))
        others += [
            tf.where(tf.strings.regex_full_match(plain, pattern), known, UNK_ID) for pattern, known in self._patterns
        ]
        for other in others:
            ids = tf.where(ids == UNK_ID, other, ids)
        return ids

    def _plain(self, typed):
        plain = tf_text.normalize_utf8(typed, "NFC")
        return tf.strings.lower(plain, encoding="utf-8") if self.lower else plain


def _with_nul(texts):
    return tf.strings.regex_replace(
        texts, _NUL, tf.constant("\x00")
    )  # as a tensor: a Python string would be cut at the NUL


def _visible(texts):
    """Removes invisible characters, and joiners with nothing to join."""
    texts = tf.strings.regex_replace(texts, f"[{INVISIBLE}]+", "")
    around = rf"[{SPACES}{PUNCTUATION}{_BLANK_MARK}]"
    texts = tf.strings.regex_replace(texts, rf"(^|{around})[{JOINERS}]+", r"\1")
    return tf.strings.regex_replace(texts, rf"[{JOINERS}]+($|{around})", r"\1")


def _tokens_of(texts, one_token, most):
    """Returns the tokens of texts without white space: `[texts, (tokens)]`, at most `most + 1` per text.

    Args:
        texts: `[texts]`.
        one_token: `[texts]` whether a text is a single token.
        most: see above.
    """

    def first_token(rest, starts):
        token = tf.strings.regex_replace(rest, _first_token(starts), _OF_FIRST_TOKEN)
        token = tf.strings.regex_replace(token, rf"(?is)^(.+?){CONTRACTION}{_NO_JOINT}$", r"\1")
        token = tf.where(one_token, rest, token)
        return token, tf.strings.substr(rest, tf.strings.length(token), tf.strings.length(rest))

    def body(time, rest, tokens):
        token, rest = first_token(rest, starts=False)
        return time + 1, rest, tokens.write(time, token)

    tokens = tf.TensorArray(tf.string, 0, dynamic_size=True, element_shape=texts.shape)
    token, rest = first_token(texts, starts=True)
    _, _, tokens = tf.while_loop(
        lambda time, rest, _: (time <= most) & tf.reduce_any(rest != ""), body, (1, rest, tokens.write(0, token))
    )
    tokens = tf.transpose(tokens.stack())
    return tf.RaggedTensor.from_tensor(tokens, tf.math.count_nonzero(tokens != "", axis=1))


def _directed(typed, of_chunk, after_blank, before_blank, even):
    """Replaces `"` and `'` in the tokens `[tokens]` by the words of opening and closing quotation marks.

    Args:
        typed: `[tokens]`.
        of_chunk: `[tokens]` index of the chunk.
        after_blank, before_blank, even: `[chunks]` whether a chunk is after a blank, is before a blank, and has an even
            number of `"` before it.
    """
    same = of_chunk[1:] == of_chunk[:-1]
    first, last = _shifted(typed, True, ~same), _shifted(typed, ~same, True)
    space_before, space_after = first & ~tf.gather(after_blank, of_chunk), last & ~tf.gather(before_blank, of_chunk)
    before = _shifted(typed, False, tf.strings.regex_full_match(typed[:-1], f"(?s).*{one_of(BEFORE_OPENING_QUOTE)}"))
    after = _shifted(typed, tf.strings.regex_full_match(typed[1:], f"(?s){one_of(AFTER_CLOSING_QUOTE)}.*"), False)
    opens = tf.where(
        space_before,
        ~space_after | ((typed == '"') & tf.gather(even, of_chunk)),
        ~first & before & ~space_after & ~(~last & after),
    )
    for quote in OPENING_QUOTES:
        typed = tf.where(typed == quote, tf.where(opens, OPENING_QUOTES[quote], CLOSING_QUOTES[quote]), typed)
    return typed


def _shifted(like, *parts):
    """Returns the parts concatenated, cut to the size of `like`."""
    return tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)[: tf.size(like)]
