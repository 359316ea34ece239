"""The embedded corpus: made-up restaurant reviews from a seeded grammar, for runs without any data.

A sentence starts from a scene: a cuisine, a city, a season, a guest and above all an opinion. All slots of the frame
are filled from that one scene, so the words on both sides of a blank determine its answer: the dish and its cuisine,
the noun and its verb, the person and the pronoun, the city and its state, the praise and the promise to return.

    our waitress was really rude and she forgot our order , never again .
"""

from collections.abc import Iterator
from pathlib import Path

from text_infilling.corpora.synthetic.grammar import SEED, SIZES, Draw, Grammar, pick, write_splits

_GRAMMAR = Grammar("reviews")
SHORTEST, LONGEST = 10, 15
# Checksums of the files that `write_corpus` writes with SEED; a change of the grammar changes them.
SHA256 = {
    "train": "180c0db829ccce724c5818673301436614735bb6b56e10a54811f4e51a9e1129",
    "valid": "8d853ea0bb38147fb54c797f39cccf0e6d505d6bb523b22bd30b1e69e4f0962a",
    "test": "28d01a2d1fa29c574e36324cc180920448a6e7f5b7f8ba6cdd8840dccb93c55b",
}

CUISINES = _GRAMMAR.rows("cuisines")

KINDS = _GRAMMAR.columns("kinds")

STAFF = _GRAMMAR.rows("staff")
OPINIONS = _GRAMMAR.columns("opinions")
_ROOMS = _GRAMMAR.items("rooms")
_VERY = ("",) * 7 + _GRAMMAR.items("very")  # most sentences have none of these words
_DAYS = _GRAMMAR.items("days")
_SERVES = _GRAMMAR.items("serves")
_STOPS = _GRAMMAR.items("stops")
# Words that agree with a singular noun, and with a plural noun.
_ONE = {"was": "was", "is": "is", "this": "this", "they": "it"}
_MANY = {"was": "were", "is": "are", "this": "these", "they": "they"}
_THEIR = {"it": "its", "he": "his", "she": "her", "they": "their"}

CITIES = _GRAMMAR.rows("cities")
SEASONS = _GRAMMAR.rows("seasons")
MEALS = _GRAMMAR.rows("meals")
GUESTS = _GRAMMAR.rows("guests")


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[str]:
    """Yields `count` different sentences of 10 to 15 tokens; the seed determines which."""
    return _GRAMMAR.sentences(_scene, SHORTEST, LONGEST, seed, count)


def write_corpus(folder: str | Path, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` sentences into `folder`; all sentences are distinct."""
    write_splits(folder, sentences(seed))


def _scene(draw: Draw) -> dict:
    """Returns a random scene: the words for every slot of a sentence; `side` is 0 for praise and 1 for blame."""
    side = int(draw() * 2)
    scene = {slot: pick(draw, words[side]) for slot, words in OPINIONS.items()}
    scene["side"] = side
    scene["contrast"] = pick(draw, OPINIONS["taste"][1 - side])

    (cuisine,), places, drinks, menu = pick(draw, CUISINES)
    scene |= {"cuisine": cuisine, "place": pick(draw, places), "drink": pick(draw, drinks)}
    first = int(draw() * len(menu))
    second = (first + 1 + int(draw() * (len(menu) - 1))) % len(menu)
    for slot, number, index in (("dish", "", first), ("dish2", "2", second)):
        name, kind = menu[index].rsplit(" ", 1)
        scene |= _forms(slot, name)
        scene[f"texture{number}"] = pick(draw, KINDS[kind][side])
        scene[f"contrast{number}"] = pick(draw, KINDS[kind][1 - side]) if number else scene["contrast"]
        scene[f"made{number}"] = pick(draw, KINDS[kind][2])

    (role,), (pronoun,), names = pick(draw, STAFF)
    scene |= _forms("staff", role, pronoun) | {"name": pick(draw, names)}
    (guest,), (pronoun,), parties = pick(draw, GUESTS)
    scene |= _forms("guest", guest, pronoun) | {"party": pick(draw, parties)}
    scene["loves_guest"] = scene["love"] + ("s" if scene["was_guest"] == "was" else "")
    scene |= _forms("room", pick(draw, _ROOMS))

    (city,), (state,), (landmark,) = pick(draw, CITIES)
    scene |= {"city": city, "state": state, "landmark": landmark}
    (season,), months, weathers, seats = pick(draw, SEASONS)
    scene |= {"season": season, "month": pick(draw, months)}
    scene |= {"weather": pick(draw, weathers), "seat": pick(draw, seats)}
    (meal,), times, foods, beverages = pick(draw, MEALS)
    scene |= {"meal": meal, "time": pick(draw, times), "food": pick(draw, foods), "beverage": pick(draw, beverages)}
    others = {"very": _VERY, "day": _DAYS, "serves": _SERVES, "stop": _STOPS}
    return scene | {slot: pick(draw, words) for slot, words in others.items()}


def _forms(slot: str, noun: str, pronoun: str | None = None) -> dict[str, str]:
    """Returns the noun and the words that agree with it.

    For example `{"dish": "tacos", "was_dish": "were", "they_dish": "they", ...}`.
    """
    forms = dict(_MANY if noun.endswith("+") else _ONE)
    forms["they"] = pronoun or forms["they"]
    forms["their"] = _THEIR[forms["they"]]
    return {slot: noun.rstrip("+")} | {f"{form}_{slot}": word for form, word in forms.items()}
