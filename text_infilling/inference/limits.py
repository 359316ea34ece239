"""Checks the limits that a user sets on infills, and converts them to ids; `limit_arrays.py` makes arrays of them."""

import dataclasses
import difflib
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from text_infilling.text.detokenizer import join
from text_infilling.text.rules import MERGED, STRAIGHT, shown
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import SPECIAL_TOKENS, UNK_ID, Vocabulary

_MOST_ORDERED = 8  # phrases whose best order is searched for; the work doubles with each


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits on the infill of a blank, in words of the corpus: punctuation marks and `n't` count as words.

    >>> Limits(max_words=3, banned_words=["don't", "New York"]).max_words
    3

    Attributes:
        min_words: minimum number of words. None: 1, or 0 for a run whose training answers include empty ones; but
            never more than `max_words`.
        max_words: maximum number of words. None: `decoding.max_length` of the run; or fewer, if the text has many
            blanks and the protocol of the run numbers the positions of the whole text continuously (`released`).
        exact_words: sets `min_words` and `max_words` to the same number.
        prefix: text that the infill begins with, in whole words. It is returned as typed, except for its spaces.
        banned_words: words and phrases that the infill must not contain, in any case and with any apostrophe: `soup`,
            `don't`, `U.S.`, `New York`. The words of a phrase are banned as a sequence, and only inside the infill:
            with `New York` banned, `New ____` may still get `York`. For a model that has one word for all numbers, a
            number bans all numbers, except other numbers in `prefix` and `must_include`.
        must_include: words, or phrases of consecutive words, that the infill must contain; they may overlap.
    """

    min_words: int | None = None
    max_words: int | None = None
    exact_words: int | None = None
    prefix: str = ""
    banned_words: Sequence[str] = ()
    must_include: Sequence[str] = ()

    @classmethod
    def of(cls, limits: "Limits | Mapping | None", where: str) -> "Limits":
        """Returns checked limits, which can be hashed, given limits, a dict of some of them, or None.

        Args:
            limits: from a user.
            where: name of the blank, for messages.

        Raises:
            ValueError: a name is unknown, or a value has the wrong type.
        """
        if limits is None:
            return cls()
        if isinstance(limits, Mapping):
            _check_names(limits, [field.name for field in dataclasses.fields(cls)], where)
            limits = cls(**limits)
        if not isinstance(limits, cls):
            raise ValueError(f"{where}: limits must be a dict or Limits. Received: {limits!r}")
        for name in ("min_words", "max_words", "exact_words"):
            _check_number(getattr(limits, name), name, where)
        if not isinstance(limits.prefix, str):
            raise ValueError(f"{where}: prefix must be a string. Received: prefix={limits.prefix!r}")
        banned_words = _words(limits.banned_words, "banned_words", where)
        must_include = _words(limits.must_include, "must_include", where)
        return dataclasses.replace(limits, banned_words=banned_words, must_include=must_include)


def _check_names(given, names, where):
    """Raises ValueError if a limit has none of the names."""
    for name in given:
        if name not in names:
            nearest = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known limits: {', '.join(names)}"
            raise ValueError(f"{where}: unknown limit {name!r}; {hint}")


def _check_number(value, name, where):
    """Raises ValueError if a number of words is neither None nor a whole number of at least 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"{where}: {name} must be a whole number of at least 0. Received: {name}={value!r}")


def _words(value, name, where):
    """Returns a word or a list of words as a tuple; raises ValueError for other values."""
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{where}: {name} must be a list of words. Received: {name}={value!r}")
    return tuple(value)


@dataclasses.dataclass(frozen=True)
class BlankLimits:
    """The limits of one blank in ids; a word that the vocabulary spells differently has a separate id.

    Such ids are above the vocabulary's, see `Constraints`.

    Attributes:
        min_words, max_words: of the infill.
        prefix, banned: ids.
        phrases: lists of ids, none contained in the prefix or in another, in the order of the shortest text with all.
        prefix_words: the words of the prefix as typed.
        typed: the spelling that the user typed, by id, for words of the phrases and words with a separate id.
        touching: for the prefix and each phrase that has words typed without a space between them: its ids, and the
            indices of the words that touch the one before.
        sequences: banned sequences of two words or more; each word is a list of ids that look the same in a text.
    """

    min_words: int
    max_words: int
    prefix: list[int]
    banned: list[int]
    phrases: list[list[int]]
    prefix_words: list[str]
    typed: dict[int, str]
    touching: list[tuple[list[int], list[int]]] = dataclasses.field(default_factory=list)
    sequences: list[list[list[int]]] = dataclasses.field(default_factory=list)

    def touching_in(self, infill: Sequence[int]) -> set[int]:
        """Returns the indices of the words of an infill that touch the one before, because the user typed them so."""
        return {start + i for ids, numbers in self.touching for start in _places(ids, infill) for i in numbers}


class _Phrase(NamedTuple):
    """A prefix or a required phrase.

    Attributes:
        words: as typed.
        ids: of the words.
        touching: indices of the words that touch the one before.
    """

    words: list[str]
    ids: list[int]
    touching: list[int]


class LimitsReader:
    """Converter from limits to ids.

    Args:
        tokenizer, vocabulary: those of the run.
        longest: maximum number of words of an infill whose limits do not set `max_words`.
        least: minimum number of words of an infill whose limits do not set `min_words`.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, longest: int, least: int = 0):
        self.tokenizer, self.vocabulary, self.longest, self.least = tokenizer, vocabulary, longest, least
        self.known = frozenset(vocabulary.words)

    def read(self, limits: Limits | Mapping | None, where: str, most: int | None = None) -> BlankLimits:
        """Returns the limits of a blank in ids.

        Args:
            limits: from a user.
            where: name of the blank, for messages.
            most: maximum number of words that the model's positions allow in this blank; None: no maximum.

        Raises:
            ValueError: the limits are not valid, contradict each other, or exceed `most`.
        """
        limits = Limits.of(limits, where)
        own: dict[tuple[str, int], int] = {}
        prefix = _Phrase(*self._ids(limits.prefix, own, f"{where}: prefix"))
        phrases = [self._required(text, own, f"{where}: must_include") for text in limits.must_include]
        banned, sequences = self._banned(limits.banned_words, own, where)
        for phrase in (prefix, *phrases):
            _check_not_banned(phrase, [[banned], *sequences], where)

        in_order = _in_order(prefix.ids, _apart(prefix.ids, [phrase.ids for phrase in phrases]))
        needed = len(prefix.ids) + _missing(prefix.ids, in_order)
        least, longest = self._numbers(limits, needed, most, where)
        banned = sorted(i for i in banned if i < len(self.vocabulary))
        if least > needed and len(banned) == len(self.vocabulary.words):
            raise ValueError(
                f"{where}: banned_words has all words of the vocabulary, but an infill needs {least} (min_words)"
            )
        typed = {i: word for phrase in phrases for i, word in zip(phrase.ids, phrase.words)}
        typed.update((i, word) for (word, _), i in own.items())
        touching = [(phrase.ids, phrase.touching) for phrase in (prefix, *phrases) if phrase.touching]
        return BlankLimits(least, longest, prefix.ids, banned, in_order, prefix.words, typed, touching, sequences)

    def _required(self, text, own, where):
        """Returns a text that must be included as a phrase."""
        phrase = _Phrase(*self._ids(text, own, where))
        if not phrase.ids:
            raise ValueError(f"{where} must have words. Received: {text!r}")
        return phrase

    def _numbers(self, limits, needed, most, where):
        """Returns the minimum and the maximum number of words of an infill whose prefix and phrases need `needed`."""
        least, asked, name = limits.min_words, limits.max_words, "max_words"
        if limits.exact_words is not None:
            if least or asked is not None:
                raise ValueError(
                    f"{where}: exact_words cannot be combined with min_words or max_words. Received: {limits}"
                )
            least, asked, name = limits.exact_words, limits.exact_words, "exact_words"
        if least is None:
            least = self.least if asked is None else min(self.least, asked)
        if asked is not None and asked < least:
            raise ValueError(f"{where}: min_words must not be above max_words. Received: {least} and {asked}")
        if asked is not None and asked < needed:
            raise ValueError(
                f"{where}: prefix and must_include take {needed} words (punctuation marks and n't count), more than "
                f"{name}. Received: {name}={asked}"
            )
        longest = max(self.longest if asked is None else asked, least, needed)
        if most is not None and longest > most:
            if asked is not None or max(least, needed) > most:
                raise ValueError(f"{where}: the model has room for {most} words here. Received: {longest} words")
            longest = most
        return least, longest

    def _ids(self, text, own, where, known=None):
        """Returns the words of a text as typed, their ids, and the indices of those that touch the one before.

        A word that the vocabulary lacks or spells differently, such as a number if the vocabulary has one word for all
        numbers, gets an id above the vocabulary's. `own` maps (word, id that the model reads) to these ids.
        The text is split as if the vocabulary had only the words `known`; default: all its words.
        """
        try:
            pieces = self.tokenizer.split(text, self.known if known is None else known)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if any(piece.word is None for piece in pieces):
            raise ValueError(f"{where} must not contain blanks. Received: {text!r}")
        words = [text[piece.start : piece.end] for piece in pieces]
        ids = self.vocabulary.encode(piece.word for piece in pieces)
        for k, (piece, word) in enumerate(zip(pieces, words)):
            if not piece.known or self._look(piece.word) != self._look(word):
                ids[k] = own.setdefault((word, ids[k]), len(self.vocabulary) * (1 + len(own)) + ids[k])
        touching = [k for k in range(1, len(pieces)) if pieces[k].start == pieces[k - 1].end]
        return words, ids, touching

    def _banned(self, words, own, where):
        """Returns the ids of banned words, and banned sequences of words, each word as a list of ids.

        A text that is one word of the vocabulary is also banned as several words if the vocabulary has its parts: the
        model may write `gonna` as one word or as two.
        """
        banned, sequences = set(), []
        for text in words:
            typed, ids, _ = self._ids(text, own, f"{where}: banned_words")
            if not ids:
                raise ValueError(f"{where}: banned_words must have words. Received: {text!r}")
            whole = self._by_look.get(self._look(text.strip()), ())
            banned.update(whole)
            spellings = [(typed, ids)]
            if len(ids) == 1 and (not typed[0].isalnum() or typed[0].lower() in MERGED):
                parts, of_parts, _ = self._ids(text, own, where, self.known.difference(self.vocabulary.decode(whole)))
                spellings += [(parts, of_parts)] * (len(parts) > 1)
            for typed, ids in spellings:
                alike = [sorted(self._alike(word, i, own)) for word, i in zip(typed, ids)]
                if len(alike) == 1:
                    banned.update(alike[0])
                else:
                    sequences.append(alike)
        return banned, sequences

    def _alike(self, word, i, own):
        """Returns the ids of all words that look the same to a reader as `word`, whose id is `i`."""
        look = self._look(word)
        alike = {i, *self._by_look.get(look, ()), *(j for (other, _), j in own.items() if self._look(other) == look)}
        read = i % len(self.vocabulary)
        if read != UNK_ID:
            alike.update(self._by_look[self._look(self.vocabulary.words[read - len(SPECIAL_TOKENS)])])
        return alike

    def _look(self, word):
        """Returns the word as displayed in a text, in lower case, with straight apostrophes."""
        return shown(self.tokenizer.plain(word)).lower().translate(STRAIGHT)

    @functools.cached_property
    def _by_look(self):
        """The ids of the words of the vocabulary, by `_look`."""
        looks = {}
        for i, word in enumerate(self.vocabulary.words, start=len(SPECIAL_TOKENS)):
            looks.setdefault(self._look(word), []).append(i)
        return looks


def _places(phrase, words):
    """Returns the positions at which a phrase begins in the words."""
    return [start for start in range(len(words) - len(phrase) + 1) if words[start : start + len(phrase)] == phrase]


def _first_place(sequence, ids):
    """Returns the first position in a list of ids at which a sequence of sets of ids begins, or None."""
    for start in range(len(ids) - len(sequence) + 1):
        if all(i in alike for i, alike in zip(ids[start:], sequence)):
            return start
    return None


def _check_not_banned(phrase, sequences, where):
    """Raises ValueError if a phrase contains a banned sequence of sets of ids."""
    for sequence in sequences:
        if (start := _first_place(sequence, phrase.ids)) is not None:
            named = join(phrase.words[start : start + len(sequence)])
            raise ValueError(f"{where}: {named!r} is in banned_words and in prefix or must_include")


def overlap(one: list[int], other: list[int]) -> int:
    """Returns the length of the longest proper beginning of `other` that `one` ends with."""
    return max(n for n in range(min(len(one) + 1, len(other))) if one[len(one) - n :] == other[:n])


def _apart(prefix, phrases):
    """Returns the distinct phrases that are contained in neither the prefix nor another phrase."""
    apart = []
    for phrase in sorted(phrases, key=len, reverse=True):
        if not any(_places(phrase, other) for other in (prefix, *apart)):
            apart.append(phrase)
    return apart


def _in_order(prefix, phrases):
    """Returns the phrases in the order of the shortest text that has all of them after the prefix.

    No phrase may contain another. With more than `_MOST_ORDERED` phrases, only the first `_MOST_ORDERED` are reordered.
    """
    phrases, others = phrases[:_MOST_ORDERED], phrases[_MOST_ORDERED:]
    overlaps = [[overlap(one, other) for other in phrases] for one in (*phrases, prefix)]

    @functools.cache
    def best(last, left):
        """Returns the largest total overlap, in words, of any order of the phrases `left`, and that order."""
        ways = [(overlaps[last][i], i, *best(i, left - {i})) for i in left]
        return max(((here + there, (i, *order)) for here, i, there, order in ways), default=(0, ()))

    _, order = best(len(phrases), frozenset(range(len(phrases))))
    return [phrases[i] for i in order] + others


def _missing(prefix, phrases):
    """Returns the number of words that complete the phrases after the prefix, in order; see `words_needed`."""
    pairs = itertools.pairwise([prefix, *phrases])
    return sum(len(other) - overlap(one, other) for one, other in pairs)
