"""What a user wants of the fill of a blank, checked and turned into `decoding.constrained.Constraints`."""

import dataclasses
import difflib
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.detokenize import shown
from text_infilling.tokenizer import Tokenizer
from text_infilling.vocabulary import SPECIAL_TOKENS, UNK_ID, Vocabulary

if TYPE_CHECKING:
    from text_infilling.decoding.constrained import Constraints

_MOST_ORDERED = 8  # phrases whose best order is looked for: the work doubles with each


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the fill of a blank must keep to. A word is a word of the corpus: a punctuation mark counts, `n't` too.

    Attributes:
        min_words, max_words: how many. Where `max_words` is None, as many as the run decodes at most; or fewer, where
            the text has many blanks and the run's protocol counts the positions of a whole text on (`released`).
        exact_words: both at once.
        prefix: text that it begins with, word by word; it comes out as it was typed, but for its spaces.
        banned_words: words that are not in it, whatever their case. To a model that has one word for all numbers, a
            number bans them all, but for other numbers that `prefix` and `must_include` ask for.
        must_include: words, or phrases of words that follow each other, each of which is somewhere in it; they may
            overlap.
    """

    min_words: int = 0
    max_words: int | None = None
    exact_words: int | None = None
    prefix: str = ""
    banned_words: Sequence[str] = ()
    must_include: Sequence[str] = ()

    @classmethod
    def of(cls, wish: "Limits | Mapping | None", where: str) -> "Limits":
        """Limits from what a user gave: limits, a dict of some of them, or None.

        Raises:
            ValueError: an unknown name, or a value of the wrong type.
        """
        if wish is None:
            return cls()
        if isinstance(wish, Mapping):
            names = [field.name for field in dataclasses.fields(cls)]
            for name in wish:
                if name not in names:
                    nearest = difflib.get_close_matches(str(name), names, n=1)
                    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are {', '.join(names)}"
                    raise ValueError(f"{where}: unknown limit {name!r}; {hint}")
            wish = cls(**wish)
        if not isinstance(wish, cls):
            raise ValueError(f"{where}: limits are a dict or Limits. Received: {wish!r}")
        for name in ("min_words", "max_words", "exact_words"):
            value = getattr(wish, name)
            if value is None and name != "min_words":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"{where}: {name} is a whole number from 0 on. Received: {name}={value!r}")
        if not isinstance(wish.prefix, str):
            raise ValueError(f"{where}: prefix is text. Received: prefix={wish.prefix!r}")
        for name in ("banned_words", "must_include"):
            value = getattr(wish, name)
            if isinstance(value, str):
                value = (value,)
                wish = dataclasses.replace(wish, **{name: value})
            if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(word, str) for word in value):
                raise ValueError(f"{where}: {name} is a list of words. Received: {name}={value!r}")
        return wish


@dataclasses.dataclass(frozen=True)
class BlankLimits:
    """The limits of one blank in ids; words that the vocabulary spells otherwise have their own, see `Constraints`.

    Attributes:
        min_words, max_words: of the fill.
        prefix, banned: ids.
        phrases: lists of ids, none of them in the prefix or in another; the shortest text with all has this order.
        prefix_words: as typed.
        typed: how the user typed a word of the phrases, or one with an id of its own, by its id.
        touching: of the prefix and of what was to be included, as far as typed without spaces: its ids, and the
            numbers of those that touched the one before.
    """

    min_words: int
    max_words: int
    prefix: list[int]
    banned: list[int]
    phrases: list[list[int]]
    prefix_words: list[str]
    typed: dict[int, str]
    touching: list[tuple[list[int], list[int]]] = dataclasses.field(default_factory=list)

    def touching_in(self, infill: Sequence[int]) -> set[int]:
        """Numbers of the words of an infill that touch the one before, as the user typed them."""
        return {start + i for ids, numbers in self.touching for start in _places(ids, infill) for i in numbers}


class LimitsReader:
    """Turns limits into ids.

    Args:
        tokenizer, vocabulary: of the run.
        longest: words that a fill has at most, if nothing else is asked for.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary, longest: int):
        self.tokenizer, self.vocabulary, self.longest = tokenizer, vocabulary, longest
        self.known = frozenset(vocabulary.words)

    def read(self, wish: Limits | Mapping | None, where: str, most: int | None = None) -> BlankLimits:
        """The limits of a blank.

        Args:
            wish: what the user gave.
            where: which blank, for messages.
            most: words that the model can take in at this blank; None: any number.

        Raises:
            ValueError: the limits contradict each other.
        """
        limits = Limits.of(wish, where)
        own: dict[tuple[str, int], int] = {}
        prefix_words, prefix, numbers = self._ids(limits.prefix, own, f"{where}: prefix")
        phrases, typed, touching = [], {}, [(prefix, numbers)]
        for phrase in limits.must_include:
            words, ids, numbers = self._ids(phrase, own, f"{where}: must_include")
            if not ids:
                raise ValueError(f"{where}: must_include has words. Received: {phrase!r}")
            phrases.append(ids)
            typed.update(zip(ids, words))
            touching.append((ids, numbers))
        banned = self._banned(limits.banned_words, own, where)
        for words, ids in ((prefix_words, prefix), *(([typed[i] for i in phrase], phrase) for phrase in phrases)):
            for word, i in zip(words, ids):
                if i in banned:
                    raise ValueError(f"{where}: {word!r} is in banned_words and in prefix or must_include")

        phrases = _in_order(prefix, _apart(prefix, phrases))
        least, asked = limits.min_words, limits.max_words
        if limits.exact_words is not None:
            if least or asked is not None:
                raise ValueError(f"{where}: exact_words stands without min_words and max_words. Received: {limits}")
            least = asked = limits.exact_words
        needed = len(prefix) + _missing(prefix, phrases)
        if asked is not None and asked < least:
            raise ValueError(f"{where}: min_words must not be above max_words. Received: {least} and {asked}")
        if asked is not None and asked < needed:
            name = "max_words" if limits.exact_words is None else "exact_words"
            raise ValueError(
                f"{where}: prefix and must_include take {needed} words (punctuation marks and n't count), more than "
                f"{name}. Received: {name}={asked}"
            )
        longest = max(self.longest if asked is None else asked, least, needed)
        if most is not None and longest > most:
            if asked is not None or max(least, needed) > most:
                raise ValueError(f"{where}: the model can take in {most} words here. Received: a wish for {longest}")
            longest = most
        banned = sorted(i for i in banned if i < len(self.vocabulary))
        if least > needed and len(banned) == len(self.vocabulary.words):
            raise ValueError(f"{where}: banned_words are all words there are, and {least} words are wanted")
        typed.update((i, word) for (word, _), i in own.items())
        touching = [(ids, numbers) for ids, numbers in touching if numbers]
        return BlankLimits(least, longest, prefix, banned, phrases, prefix_words, typed, touching)

    def _ids(self, text, own, where):
        """The words of a text as typed, their ids, and the numbers of those that touch the one before.

        Words that the vocabulary does not have, or not as they look here, such as a number that it has a word for all
        numbers for, get ids behind the vocabulary's, which `own` keeps by the word and by what the model reads it as.
        """
        try:
            pieces = self.tokenizer.split(text, self.known)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        if any(piece.word is None for piece in pieces):
            raise ValueError(f"{where} has no blanks. Received: {text!r}")
        words = [text[piece.start : piece.end] for piece in pieces]
        ids = self.vocabulary.encode(piece.word for piece in pieces)
        for k, (piece, word) in enumerate(zip(pieces, words)):
            if not piece.known or self._look(piece.word) != self._look(word):
                ids[k] = own.setdefault((word, ids[k]), len(self.vocabulary) * (1 + len(own)) + ids[k])
        touching = [k for k in range(1, len(pieces)) if pieces[k].start == pieces[k - 1].end]
        return words, ids, touching

    def _banned(self, words, own, where):
        """Ids of all words that a reader would take for one of these."""
        banned = set()
        for word in words:
            typed, ids, _ = self._ids(word, own, f"{where}: banned_words")
            if len(ids) != 1:
                parts = f" (here it is {', '.join(map(repr, typed))})" if typed else ""
                raise ValueError(f"{where}: banned_words takes single words. Received: {word!r}{parts}")
            banned.update(ids, self._by_look.get(self._look(word.strip()), []))
            read = ids[0] % len(self.vocabulary)
            if read != UNK_ID:
                banned.update(self._by_look[self._look(self.vocabulary.words[read - len(SPECIAL_TOKENS)])])
        return banned

    def _look(self, word):
        """What words of the same look in a text share, case aside."""
        return shown(self.tokenizer.plain(word)).lower()

    @functools.cached_property
    def _by_look(self):
        """Ids of the words of the vocabulary that look the same in a text, case aside."""
        looks = {}
        for i, word in enumerate(self.vocabulary.words, start=len(SPECIAL_TOKENS)):
            looks.setdefault(self._look(word), []).append(i)
        return looks


def stack(rows: Sequence[Sequence[BlankLimits]]) -> "Constraints":
    """The limits of all blanks of a batch of texts as arrays `[texts, blanks, ...]`; missing blanks are of no words."""
    from text_infilling.decoding.constrained import Constraints, borders_of  # TensorFlow; limits are checked without

    texts, blanks = len(rows), max(map(len, rows))
    limits = [(i, k, limits) for i, row in enumerate(rows) for k, limits in enumerate(row)]

    def widest(sizes):
        return max(sizes, default=0)

    prefix_length = widest(len(x.prefix) for _, _, x in limits)
    banned = widest(len(x.banned) for _, _, x in limits)
    phrases = widest(len(x.phrases) for _, _, x in limits)
    length = max(1, widest(len(phrase) for _, _, x in limits for phrase in x.phrases))
    c = Constraints(
        min_words=np.zeros([texts, blanks], np.int32),
        max_words=np.zeros([texts, blanks], np.int32),
        prefix=np.zeros([texts, blanks, prefix_length], np.int32),
        prefix_lengths=np.zeros([texts, blanks], np.int32),
        banned=np.zeros([texts, blanks, banned], np.int32),
        phrases=np.zeros([texts, blanks, phrases, length], np.int32),
        phrase_lengths=np.zeros([texts, blanks, phrases], np.int32),
        borders=np.zeros([texts, blanks, phrases, length + 1, length], bool),
        overlaps=np.zeros([texts, blanks, phrases], np.int32),
    )
    for i, k, x in limits:
        c.min_words[i, k], c.max_words[i, k], c.prefix_lengths[i, k] = x.min_words, x.max_words, len(x.prefix)
        c.prefix[i, k, : len(x.prefix)] = x.prefix
        c.banned[i, k, : len(x.banned)] = x.banned
        for j, phrase in enumerate(x.phrases):
            c.phrases[i, k, j, : len(phrase)], c.phrase_lengths[i, k, j] = phrase, len(phrase)
            c.borders[i, k, j] = borders_of(phrase, length)
        c.overlaps[i, k, 1 : len(x.phrases)] = [_overlap(*pair) for pair in itertools.pairwise(x.phrases)]
    return c


def _places(phrase, words):
    """Where in the words a phrase begins."""
    return [start for start in range(len(words) - len(phrase) + 1) if words[start : start + len(phrase)] == phrase]


def _overlap(one, other):
    """How many words of the end of one list the other begins with, but not all of it."""
    return max(n for n in range(min(len(one) + 1, len(other))) if one[len(one) - n :] == other[:n])


def _apart(prefix, phrases):
    """The phrases that are neither in the prefix nor in another phrase, each once."""
    apart = []
    for phrase in sorted(phrases, key=len, reverse=True):
        if not any(_places(phrase, other) for other in (prefix, *apart)):
            apart.append(phrase)
    return apart


def _in_order(prefix, phrases):
    """The phrases, none of them in another, in the order of the shortest text that has them all behind the prefix.

    Of more than `_MOST_ORDERED` phrases the first come in that order, then the others.
    """
    phrases, others = phrases[:_MOST_ORDERED], phrases[_MOST_ORDERED:]
    overlaps = [[_overlap(one, other) for other in phrases] for one in (*phrases, prefix)]

    @functools.cache
    def best(last, left):
        """The most words that overlap in an order of those left, and that order."""
        ways = [(overlaps[last][i], i, *best(i, left - {i})) for i in left]
        return max(((here + there, (i, *order)) for here, i, there, order in ways), default=(0, ()))

    _, order = best(len(phrases), frozenset(range(len(phrases))))
    return [phrases[i] for i in order] + others


def _missing(prefix, phrases):
    """How many words complete the phrases behind a prefix, in their order; as the search counts, see `words_needed`."""
    pairs = itertools.pairwise([prefix, *phrases])
    return sum(len(other) - _overlap(one, other) for one, other in pairs)
