"""Which words become blanks, decided by what the words are: anchors, word classes, or a rule of one's own.

    anchors_noun_verb     the miller laughed loudly .           ____ miller ____ laughed ____
    anchors_name_number   Ann_Lee had a game high 17 points .   ____ Ann_Lee ____ 17 points ____
    word_classes          he sat on the bench in the garden .   he sat ____ bench ____ garden ____ .

A masker makes the same number of blanks in every sentence, so a blank may be empty; a sentence that does not fit the
rule has none at all. Positions are word positions, from 0, half-open. Sources: Paper, section 4.2 and appendix C.3;
the exact rules are those that the templates released by its authors follow.
"""

import dataclasses
import functools
import importlib
import inspect
import itertools
import operator
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from text_infilling.tagging import tag

Blanks = list[tuple[int, int]]

# The built-in maskers: what `--masking` takes; a rule of one's own is `module:function` or `module:function:blanks`.
MASKINGS = ("anchors_noun_verb", "anchors_name_number", "word_classes", "word_classes_closed")
BLANKS = 3

# Penn tags. A verb in the third person (VBZ) is no anchor in the authors' templates.
NOUNS = {"NN", "NNS", "POS"}
VERBS = {"VB", "VBD", "VBG", "VBN", "VBP"}
CLASSES = {"DT", "IN", "TO", "RP", "UH", "''"}

# A stand-in for these classes without a tagger; words that are mostly of another class (her, so, back) are left out.
ARTICLES = "a all an another any both each every neither no some that the these this those"
PREPOSITIONS = """
about above across after against along although amid among amongst around as at because before behind below beneath
beside besides between beyond by despite during except for from if in inside into lest like near of on onto outside over
per since than though through throughout till to toward towards under underneath unless until unto upon whereas whether
while whilst with within without
"""
PARTICLES = "away down forth off out up"
CLOSED = frozenset(f"{ARTICLES} {PREPOSITIONS} {PARTICLES}".split())


@dataclasses.dataclass(frozen=True)
class Masker:
    """A rule that makes the blanks of a sentence.

    Attributes:
        name: as given to `--masking`.
        rule: from the tokens and their tags (None unless `needs_tags`) to the blanks, or None.
        needs_tags: whether it looks at tags.
        blanks: how many blanks it makes.
    """

    name: str
    rule: Callable[[Sequence[str], Sequence[str] | None], Blanks | None]
    needs_tags: bool
    blanks: int = BLANKS

    def __call__(self, tokens: Sequence[str], tags: Sequence[str] | None = None) -> Blanks | None:
        """The blanks of a sentence, left to right; None where it does not fit the rule.

        Raises:
            ValueError: the rule, one's own, fails or gives something else.
        """
        given = self.rule(tokens, tags)
        if given is None:
            return None
        try:
            blanks = [(operator.index(start), operator.index(end)) for start, end in given]
        except (TypeError, ValueError):
            blanks = None
        bounds = [0, *itertools.chain.from_iterable(blanks or []), len(tokens)]
        if blanks is None or len(blanks) != self.blanks or bounds != sorted(bounds):
            raise ValueError(
                f"--masking={self.name} must give None or {self.blanks} blanks (start, end), left to right, within the "
                f"{len(tokens)} words and not overlapping (of another number: --masking=module:function:number). "
                f"Received: {given!r} for {' '.join(tokens)!r}"
            )
        return blanks


def masker(name: str, *, names: Set[str] = frozenset(), seed: int = 0) -> Masker:
    """The masker of that name.

    Args:
        name: one of `MASKINGS`; or `module:function`, a function of one's own, imported here, that takes the tokens, or
            the tokens and their Penn tags, and returns three blanks or None; `module:function:2` returns two.
        names: for `anchors_name_number`: the names besides those joined by underscores, e.g. from `names_of`.
        seed: for `word_classes` and `word_classes_closed`: draws the places of the empty blanks.

    Raises:
        ValueError: an unknown name; a function that cannot be imported or takes other arguments; a number of blanks
            out of range.
    """
    if ":" in name:
        return _own(name)
    rules = {
        "anchors_noun_verb": anchors_noun_verb,
        "anchors_name_number": functools.partial(anchors_name_number, names=names),
        "word_classes": functools.partial(word_classes, seed=seed),
        "word_classes_closed": lambda tokens, tags: word_classes_closed(tokens, seed),
    }
    if name not in rules:
        raise ValueError(f"--masking must be one of {', '.join(MASKINGS)}, or module:function. Received: {name!r}")
    return Masker(name, rules[name], needs_tags=name != "word_classes_closed")


def mask(sentences: Iterable[Sequence[str]], masker: Masker) -> Iterator[Blanks | None]:
    """The blanks of each sentence, in order; None for those that do not fit. Tags where the masker needs tags.

    Raises:
        FileNotFoundError: the masker needs tags, and the tagger's data is missing.
        ValueError: a function of one's own gives blanks that are not valid.
    """
    sentences, same = itertools.tee(sentences)
    return map(masker, sentences, tag(same) if masker.needs_tags else itertools.repeat(None))


def masked(sentences: Iterable[Sequence[str]], masker: Masker) -> Iterator[tuple[Sequence[str], Blanks]]:
    """The sentences that fit the masker, in order, each with its blanks; raises as `mask` does."""
    sentences, same = itertools.tee(sentences)
    for tokens, blanks in zip(sentences, mask(same, masker), strict=True):
        if blanks is not None:
            yield tokens, blanks


def anchors_noun_verb(tokens: Sequence[str], tags: Sequence[str]) -> Blanks | None:
    """Keeps the first noun and the last verb, in their order; all else are three blanks, some maybe empty.

    None without a noun or without a verb. Source: Paper, section 4.2 (Grimm).
    """
    noun = next((i for i, label in enumerate(tags) if label in NOUNS), None)
    verb = next((i for i in reversed(range(len(tags))) if tags[i] in VERBS), None)
    if noun is None or verb is None:
        return None
    return _around((noun, noun + 1), (verb, verb + 1), len(tokens))


def anchors_name_number(tokens: Sequence[str], tags: Sequence[str], names: Set[str] = frozenset()) -> Blanks | None:
    """Keeps the first name and the last group of numbers, in their order; all else are three blanks.

    A name is a token joined by underscores (`Toronto_Raptors`) or one of `names`. A group is one or more numbers in a
    row, each with the noun or dash behind it: `17 points`, `95 - 88`, `five three -`. None without a name outside the
    group or without a number. Source: Paper, section 4.2 (NBA).
    """
    group = _last_numbers(tags)
    if group is None:
        return None
    start, end = group
    outside = itertools.chain(range(start), range(end, len(tokens)))
    name = next((i for i in outside if tokens[i] in names or _is_joined(tokens[i])), None)
    return None if name is None else _around((name, name + 1), group, len(tokens))


def names_of(sentences: Iterable[Iterable[str]]) -> frozenset[str]:
    """The names of a corpus for `anchors_name_number`: tokens joined by underscores, and their parts.

    `Toronto_Raptors` gives itself, `Toronto` and `Raptors`. Initials (`J.J.`) are parts that name nobody.
    """
    joined = {token for sentence in sentences for token in sentence if _is_joined(token)}
    parts = {part for token in joined for part in token.split("_") if part and "." not in part}
    return frozenset(joined | parts)


def word_classes(tokens: Sequence[str], tags: Sequence[str], seed: int = 0) -> Blanks | None:
    """Masks the first three runs of determiners, prepositions, particles and interjections.

    With fewer runs, empty blanks make up three. They stand behind the second word at the earliest and before the last
    one at the latest, with a kept word between them and any other blank; which of these places they take is a function
    of (seed, sentence), uniform among all choices. None where there are not enough places.
    Source: Paper, appendix C.3 (prepositions and articles).
    """
    return _first_runs(tokens, [label in CLASSES for label in tags], seed)


def word_classes_closed(tokens: Sequence[str], seed: int = 0) -> Blanks | None:
    """As `word_classes`, without tags: masks the words of `CLOSED`, whatever their case and their part of speech."""
    return _first_runs(tokens, [token.lower() in CLOSED for token in tokens], seed)


def _around(one: tuple[int, int], other: tuple[int, int], length: int) -> Blanks:
    """The three blanks before, between and after two kept spans."""
    (start, end), (next_start, next_end) = sorted((one, other))
    return [(0, start), (end, next_start), (next_end, length)]


def _last_numbers(tags: Sequence[str]) -> tuple[int, int] | None:
    def is_glue(label: str) -> bool:
        return label.startswith("NN") or label == ":"  # Dashes are tagged ":".

    last = next((i for i in reversed(range(len(tags))) if tags[i] == "CD"), None)
    if last is None:
        return None
    start, end = last, last + 1
    while start > 0:
        if tags[start - 1] == "CD":
            start -= 1
        elif start > 1 and is_glue(tags[start - 1]) and tags[start - 2] == "CD":
            start -= 2
        else:
            break
    return start, end + (end < len(tags) and is_glue(tags[end]))


def _is_joined(token: str) -> bool:
    return "_" in token.strip("_")  # `_num_` of the Yelp sentences is no name.


def _first_runs(tokens: Sequence[str], masked: Sequence[bool], seed: int) -> Blanks | None:
    runs = [list(run) for is_masked, run in itertools.groupby(range(len(tokens)), masked.__getitem__) if is_masked]
    blanks = [(run[0], run[-1] + 1) for run in runs[:BLANKS]]
    missing = BLANKS - len(blanks)
    places = [place for place in range(2, len(tokens)) if all(not start <= place <= end for start, end in blanks)]
    if missing > len(places):
        return None
    # By random keys, since `random()` alone gives the same numbers in every Python version.
    draw = random.Random(f"{seed} {' '.join(tokens)}").random
    drawn = sorted(places, key=lambda _: draw())[:missing]
    return sorted(blanks + [(place, place) for place in drawn])


def _own(name: str) -> Masker:
    module, attribute, *number = name.split(":", 2)
    try:
        function = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # Whatever the module does when it is imported.
        raise ValueError(f"--masking={name} cannot be imported, is it on PYTHONPATH? {_reason(error)}") from error
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    required = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if required not in (1, 2):
        raise ValueError(f"--masking={name} must be a function of (tokens) or (tokens, tags). Received: {function!r}")
    if number and not re.fullmatch("[1-9][0-9]?", number[0]):
        raise ValueError(f"--masking={name} ends with the number of its blanks, from 1 to 99. Received: {number[0]!r}")

    def rule(tokens, tags):
        try:
            return function(tokens, tags) if required == 2 else function(tokens)
        except Exception as error:  # Whatever it does.
            raise ValueError(f"--masking={name} failed for {' '.join(tokens)!r}: {_reason(error)}") from error

    return Masker(name, rule, needs_tags=required == 2, blanks=int(number[0]) if number else BLANKS)


def _reason(error: Exception) -> str:
    """What it says, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
