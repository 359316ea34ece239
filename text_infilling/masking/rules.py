"""Word rules, which choose the blanks by the words themselves: anchors, word classes, or a custom function.

    anchors_noun_verb     the miller laughed loudly .           ____ miller ____ laughed ____
    anchors_name_number   Ann_Lee had a game high 17 points .   ____ Ann_Lee ____ 17 points ____
    word_classes          he sat on the bench in the garden .   he sat ____ bench ____ garden ____ .

A rule makes the same number of blanks in every sentence, so a blank may be empty; a sentence that does not fit the rule
gets no blanks. Positions count words from 0; spans are half-open. Sources: Paper, section 4.2 and appendix C.3;
the exact rules are inferred from the templates released by its authors.
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

from text_infilling.masking.tagging import tag

Blanks = list[tuple[int, int]]

# The built-in values of `masking`; a custom rule is `module:function` or `module:function:blanks`.
MASKINGS = ("anchors_noun_verb", "anchors_name_number", "word_classes", "word_classes_closed")
BLANKS_PER_SENTENCE = 3

# Penn tags. Third-person verbs (VBZ) are not anchors in the authors' templates.
NOUNS = {"NN", "NNS", "POS"}
VERBS = {"VB", "VBD", "VBG", "VBN", "VBP"}
CLASSES = {"DT", "IN", "TO", "RP", "UH", "''"}

# Approximates these classes without a tagger; excludes words that usually have another class (her, so, back).
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
class WordRule:
    """A rule that makes the blanks of a sentence.

    Attributes:
        name: the value of `masking`.
        function: maps the tokens and their tags (None unless `needs_tags`) to the blanks, or None.
        needs_tags: whether the function uses tags.
        blanks: number of blanks per sentence.
    """

    name: str
    function: Callable[[Sequence[str], Sequence[str] | None], Blanks | None]
    needs_tags: bool
    blanks: int = BLANKS_PER_SENTENCE

    def __call__(self, tokens: Sequence[str], tags: Sequence[str] | None = None) -> Blanks | None:
        """Returns the blanks of a sentence, left to right; None if it does not fit the rule.

        Raises:
            ValueError: a custom rule fails or returns anything else.
        """
        returned = self.function(tokens, tags)
        if returned is None:
            return None
        try:
            blanks = [(operator.index(start), operator.index(end)) for start, end in returned]
        except (TypeError, ValueError):
            blanks = None
        bounds = [0, *itertools.chain.from_iterable(blanks or []), len(tokens)]
        if blanks is None or len(blanks) != self.blanks or bounds != sorted(bounds):
            raise ValueError(
                f"masking={self.name} must return None or {self.blanks} blanks (start, end), left to right, within "
                f"the {len(tokens)} words and not overlapping (for another number: masking=module:function:number). "
                f"Received: {returned!r} for {' '.join(tokens)!r}"
            )
        return blanks


def load_rule(name: str, *, names: Set[str] = frozenset(), seed: int = 0) -> WordRule:
    """Returns the rule with that name.

    Args:
        name: one of `MASKINGS`; or `module:function`, a custom function, imported here, that takes the tokens, or the
            tokens and their Penn tags, and returns three blanks or None; `module:function:2` returns two.
        names: for `anchors_name_number`: names in addition to tokens joined by underscores, e.g. from `names_of`.
        seed: for `word_classes` and `word_classes_closed`: draws the positions of the empty blanks.

    Raises:
        ValueError: the name is unknown, the function cannot be imported or takes other arguments, or the number of
            blanks is out of range.
    """
    if ":" in name:
        return _custom_rule(name)
    rules = {
        "anchors_noun_verb": WordRule(name, anchors_noun_verb, needs_tags=True),
        "anchors_name_number": WordRule(name, functools.partial(anchors_name_number, names=names), needs_tags=True),
        "word_classes": WordRule(name, functools.partial(word_classes, seed=seed), needs_tags=True),
        "word_classes_closed": WordRule(name, lambda tokens, _: word_classes_closed(tokens, seed), needs_tags=False),
    }
    if name not in rules:
        raise ValueError(f"masking must be one of {', '.join(MASKINGS)}, or module:function. Received: {name!r}")
    return rules[name]


def choose_blanks(sentences: Iterable[Sequence[str]], rule: WordRule) -> Iterator[Blanks | None]:
    """Returns the blanks of each sentence, in order; None for one that does not fit. Runs the tagger only if needed.

    Raises:
        FileNotFoundError: the rule needs tags, and the tagger's data is missing.
        ValueError: a custom function returns invalid blanks.
    """
    sentences, same = itertools.tee(sentences)
    return map(rule, sentences, tag(same) if rule.needs_tags else itertools.repeat(None))


def masked_sentences(sentences: Iterable[Sequence[str]], rule: WordRule) -> Iterator[tuple[Sequence[str], Blanks]]:
    """Yields the sentences that fit the rule, in order, each with its blanks; raises the errors of `choose_blanks`."""
    sentences, same = itertools.tee(sentences)
    for tokens, blanks in zip(sentences, choose_blanks(same, rule), strict=True):
        if blanks is not None:
            yield tokens, blanks


def anchors_noun_verb(tokens: Sequence[str], tags: Sequence[str]) -> Blanks | None:
    """Keeps the first noun and the last verb; the rest becomes three blanks, some possibly empty.

    Returns None without a noun or without a verb. Source: Paper, section 4.2 (Grimm).
    """
    noun = next((i for i, label in enumerate(tags) if label in NOUNS), None)
    verb = next((i for i in reversed(range(len(tags))) if tags[i] in VERBS), None)
    if noun is None or verb is None:
        return None
    return _around((noun, noun + 1), (verb, verb + 1), len(tokens))


def anchors_name_number(tokens: Sequence[str], tags: Sequence[str], names: Set[str] = frozenset()) -> Blanks | None:
    """Keeps the first name and the last group of numbers; the rest becomes three blanks.

    A name is a token joined by underscores (`Toronto_Raptors`) or one of `names`. A group is one or more consecutive
    numbers, each with the noun or dash after it: `17 points`, `95 - 88`, `five three -`. Returns None without a name
    outside the group or without a number. Source: Paper, section 4.2 (NBA).
    """
    group = _last_group_of_numbers(tags)
    if group is None:
        return None
    start, end = group
    outside = itertools.chain(range(start), range(end, len(tokens)))
    name = next((i for i in outside if tokens[i] in names or _is_joined(tokens[i])), None)
    return None if name is None else _around((name, name + 1), group, len(tokens))


def names_of(sentences: Iterable[Iterable[str]]) -> frozenset[str]:
    """Returns the names of a corpus for `anchors_name_number`: tokens joined by underscores, and their parts.

    `Toronto_Raptors` gives itself, `Toronto` and `Raptors`. Initials (`J.J.`) do not count as names.
    """
    joined = {token for sentence in sentences for token in sentence if _is_joined(token)}
    parts = {part for token in joined for part in token.split("_") if part and "." not in part}
    return frozenset(joined | parts)


def word_classes(tokens: Sequence[str], tags: Sequence[str], seed: int = 0) -> Blanks | None:
    """Masks the first three runs of determiners, prepositions, particles and interjections.

    With fewer runs, empty blanks are added to make three. They are after the second word at the earliest and before the
    last word at the latest, with a kept word between them and any other blank. Their positions are a function of
    (seed, sentence), uniform among all choices. Returns None if there are not enough positions.
    Source: Paper, appendix C.3 (prepositions and articles).
    """
    return _first_runs(tokens, [label in CLASSES for label in tags], seed)


def word_classes_closed(tokens: Sequence[str], seed: int = 0) -> Blanks | None:
    """Masks as `word_classes`, without tags: the words of `CLOSED`, in any case and as any part of speech."""
    return _first_runs(tokens, [token.lower() in CLOSED for token in tokens], seed)


def _around(one: tuple[int, int], other: tuple[int, int], length: int) -> Blanks:
    """Returns the three blanks before, between and after two kept spans."""
    (start, end), (next_start, next_end) = sorted((one, other))
    return [(0, start), (end, next_start), (next_end, length)]


def _last_group_of_numbers(tags: Sequence[str]) -> tuple[int, int] | None:
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
    return "_" in token.strip("_")  # `_num_` in the Yelp sentences is not a name.


def _first_runs(tokens: Sequence[str], masked: Sequence[bool], seed: int) -> Blanks | None:
    """Returns the first three runs of masked tokens, completed to three by empty blanks; see `word_classes`."""
    runs = [list(run) for is_masked, run in itertools.groupby(range(len(tokens)), masked.__getitem__) if is_masked]
    blanks = [(run[0], run[-1] + 1) for run in runs[:BLANKS_PER_SENTENCE]]
    missing = BLANKS_PER_SENTENCE - len(blanks)
    free = [i for i in range(2, len(tokens)) if all(not start <= i <= end for start, end in blanks)]
    if missing > len(free):
        return None
    # Sorts by random keys, since only `random()` gives the same numbers in every Python version.
    draw = random.Random(f"{seed} {' '.join(tokens)}").random
    drawn = sorted(free, key=lambda _: draw())[:missing]
    return sorted(blanks + [(i, i) for i in drawn])


def _custom_rule(name: str) -> WordRule:
    """Returns the rule `module:function` or `module:function:blanks`; see `load_rule`."""
    module, attribute, *blanks = name.split(":", 2)
    try:
        function = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # Importing the module may raise anything.
        raise ValueError(f"masking={name} cannot be imported, is it on PYTHONPATH? {_reason(error)}") from error
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    required = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if required not in (1, 2):
        raise ValueError(f"masking={name} must be a function of (tokens) or (tokens, tags). Received: {function!r}")
    if blanks and not re.fullmatch("[1-9][0-9]?", blanks[0]):
        raise ValueError(f"masking={name} must end with a number of blanks from 1 to 99. Received: {blanks[0]!r}")

    def guarded(tokens, tags):
        try:
            return function(tokens, tags) if required == 2 else function(tokens)
        except Exception as error:  # A custom function may raise anything.
            raise ValueError(f"masking={name} failed for {' '.join(tokens)!r}: {_reason(error)}") from error

    count = int(blanks[0]) if blanks else BLANKS_PER_SENTENCE
    return WordRule(name, guarded, needs_tags=required == 2, blanks=count)


def _reason(error: Exception) -> str:
    """Returns the type and the message of an error, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())
