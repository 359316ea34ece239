"""The embedded corpus of made-up fairy-tale sentences, for the Grimm and preposition experiments without any data.

As in `reviews`, all slots of a frame are filled from one scene, so the words on both sides of a blank determine its
answer: the craftsman and his tool, the animal and its cry, the place and its preposition, the person and the pronoun,
the gift and its magic, the virtue and the reward.

No tagger is needed, because letter case marks the word classes in the tables and frames: Nouns start with a capital,
VERBS are all capitals, as in `the {hero} FREED the Fox`. The corpus itself is in lower case.

    the mermaid turned the prince into a frog , and he croaked all day long .
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

from text_infilling.corpora.synthetic.grammar import (
    SEED,
    SIZES,
    Draw,
    Grammar,
    Masked,
    blanks_around,
    pick,
    write_masked,
)
from text_infilling.masking.rules import Blanks

TASKS = ("lm", "prepositions")
_GRAMMAR = Grammar("tales")
SHORTEST, LONGEST = 10, 17
# Checksums of the files that `write_corpus` writes for each task with SEED; a change of the grammar changes them.
SHA256 = {
    "lm": {
        "train": "a6e8016aeeba631c474b75745dd8d0770472d5872c4db4f128cb1b50beb2c206",
        "valid": "ad23e2f1645e4ae0f96e338310cbae9204d735dc4266ecd78ed290d5cfeb22e6",
        "test": "faba3bc5f69bee163f163de27edbb182d28aa16eaa7e67809842ba97620cec8f",
    },
    "prepositions": {
        "train": "6e890362b6893d0b505cca7f34733b55b8e78f29b7385fdadfb17af54b52c899",
        "valid": "d03827c4b48a87535d39b4615471858b9fdbd97dc1c35024164970dd8bcb0014",
        "test": "d9c754509725041265ad2144c77c8d52c2e9d0458f6c8b762ca549a27f654607",
    },
}
# Words that the `prepositions` task masks: prepositions, particles, articles and the like.
PREPOSITIONS = frozenset(_GRAMMAR.items("prepositions"))

HEROES = _GRAMMAR.rows("heroes")
ROYALS = _GRAMMAR.rows("royals")
ELDERS = _GRAMMAR.rows("elders")
WITCHES = _GRAMMAR.rows("witches")
ANIMALS = _GRAMMAR.rows("animals")
PLACES = _GRAMMAR.rows("places")
MOODS = _GRAMMAR.rows("moods")
GIFTS = _GRAMMAR.rows("gifts")
TIMES = _GRAMMAR.rows("times")
SEASONS = _GRAMMAR.rows("seasons")
CHARACTERS = _GRAMMAR.columns("characters")
_NUMBERS = _GRAMMAR.items("numbers")
_PRISONS = _GRAMMAR.items("prisons")
# pronoun: possessive form, object form, and form of "to be" that agrees
_FORMS = {"he": ("his", "him", "WAS"), "she": ("her", "her", "WAS"), "they": ("their", "them", "WERE")}


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[Masked]:
    """Yields `count` different sentences of 10 to 17 tokens, with three blanks per task; the seed determines which.

    The blanks of `lm` keep the first noun and the last verb; those of `prepositions` are `preposition_blanks`.
    """
    for marked in _GRAMMAR.sentences(_scene, SHORTEST, LONGEST, seed, count):
        words = marked.lower().split(" ")
        yield words, {"lm": _anchor_blanks(marked.split(" ")), "prepositions": preposition_blanks(words)}


def write_corpus(folder: str | Path, task: str, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` masked lines into `folder`; all sentences are distinct.

    Raises:
        ValueError: `task` is not in `TASKS`.
    """
    write_masked(folder, sentences(seed), task, TASKS)


def preposition_blanks(words: list[str]) -> Blanks:
    """Returns blanks at the first three runs of `PREPOSITIONS`; adds empty blanks if there are fewer runs.

    An empty blank is not at the start or end of the sentence, nor next to another blank; a hash of the words chooses
    its place. Source: Paper, appendix C.3 ("Empty masks that remove nothing will be added").
    """
    hits = [word in PREPOSITIONS for word in words]
    starts = [i for i, hit in enumerate(hits) if hit and not (i and hits[i - 1])]
    ends = [i + 1 for i, hit in enumerate(hits) if hit and not (i + 1 < len(hits) and hits[i + 1])]
    blanks = list(zip(starts, ends))[:3]
    while len(blanks) < 3:
        places = [i for i in range(1, len(words)) if all(i < start or end < i for start, end in blanks)]
        # Not hash(), which differs between processes.
        place = places[zlib.crc32(" ".join(words).encode()) % len(places)]
        blanks = sorted([*blanks, (place, place)])
    return blanks


def _anchor_blanks(marked: list[str]) -> Blanks:
    """Returns the blanks around the first noun and the last verb, in either order."""
    noun = next(i for i, word in enumerate(marked) if word.istitle())
    verb = max(i for i, word in enumerate(marked) if word.isupper())
    return blanks_around([(noun, noun + 1), (verb, verb + 1)], len(marked))


def _scene(draw: Draw) -> dict:
    """Returns a random scene: the words for every slot of a sentence; `side` is 0 for the good and 1 for the wicked."""
    side = int(draw() * 2)
    scene = {slot: pick(draw, words[side]) for slot, words in CHARACTERS.items()}
    scene |= {"side": side, "contrast": pick(draw, CHARACTERS["virtue"][1 - side])}

    (hero,), (pronoun,), (workplace,), tools, makes = pick(draw, HEROES)
    scene |= _person("hero", hero, pronoun)
    scene |= {"workplace": workplace, "tool": pick(draw, tools), "made": pick(draw, makes)}
    (royal,), (pronoun,), treasures, (throne,) = pick(draw, ROYALS)
    scene |= _person("royal", royal, pronoun) | {"treasure": pick(draw, treasures), "throne": throne}
    (elder,), (pronoun,), children = pick(draw, ELDERS)
    scene |= _person("elder", elder, pronoun) | _person("child", *pick(draw, children).split(" "))
    (witch,), looks = pick(draw, WITCHES)
    scene |= {"witch": witch, "looks": pick(draw, looks)}

    columns = {
        ANIMALS: "animal manner home cried went food",
        PLACES: "place into at out find",
        MOODS: "mood acted wish",
        GIFTS: "gift used effect",
        TIMES: "time sky",
        SEASONS: "season nature seasonal",
    }
    for table, slots in columns.items():
        scene |= {slot: pick(draw, words) for slot, words in zip(slots.split(), pick(draw, table))}
    return scene | {"number": pick(draw, _NUMBERS), "prison": pick(draw, _PRISONS)}


def _person(slot: str, noun: str, they: str) -> dict[str, str]:
    """Returns the noun and the words that agree with it.

    For example `{"hero": "Cook", "they_hero": "she", "their_hero": "her", ...}`.
    """
    their, them, was = _FORMS[they]
    return {slot: noun, f"they_{slot}": they, f"their_{slot}": their, f"them_{slot}": them, f"was_{slot}": was}
