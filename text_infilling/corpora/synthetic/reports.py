"""The embedded corpus of made-up basketball reports, for the NBA experiments without any data.

As in `reviews`, all slots of a frame are filled from one scene, a game: the larger number is the winner's and its
verb fits the margin; a player has a team, a position and the statistics of that position; a team has a city, an arena
and a place in its division. Teams and people are invented; names of more than one word are joined by underscores.

    Anton_Bulgar scored 39 points as the Anchors topped the Tinkers 109 - 97 .
"""

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

TASKS = ("lm",)
_GRAMMAR = Grammar("reports")
SHORTEST, LONGEST = 8, 14
# Checksums of the files that `write_corpus` writes for each task with SEED; a change of the grammar changes them.
SHA256 = {
    "lm": {
        "train": "57c84463c9f90affc7723ece5c2f769a687f80d820ff07da6149439f8570bf6d",
        "valid": "f92cce5dddad495e2b0c1a3bca30697329e86be4d2b69605094946c9ac4d74d2",
        "test": "9f8021b9ef7dfd1c5047f87d9ceb47342a407f54f3654584c09c8040300108fc",
    },
}


TEAMS = _GRAMMAR.rows("teams")
STATISTICS = _GRAMMAR.rows("statistics")
MARGINS = _GRAMMAR.rows("margins")
NIGHTS = _GRAMMAR.rows("nights")
GAMES = 46
PLACES = {place: wins for place, ((wins,),) in _GRAMMAR.columns("places").items()}
# Minimum and maximum of the numbers that do not depend on the rest of the scene.
_NUMBERS = {slot: limits for slot, ((limits,),) in _GRAMMAR.columns("numbers").items()}
_DAYS = _GRAMMAR.items("days")
_INJURIES = _GRAMMAR.items("injuries")
_QUARTERS = _GRAMMAR.items("quarters")
# Nouns that are kept together with the number before them.
UNITS = frozenset(_GRAMMAR.items("units"))
NAMES = frozenset(
    name
    for (city,), (team,), *_, guards, forwards, centers in TEAMS
    for player in guards + forwards + centers
    for name in (city, team, f"{city}_{team}", player, player.split("_")[1])
)


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[Masked]:
    """Yields `count` different sentences of 8 to 14 tokens, each with its three blanks; the seed determines which.

    The blanks of `lm` keep the first name of a team or player and the last number with its noun, or the last score.
    """
    for sentence in _GRAMMAR.sentences(_scene, SHORTEST, LONGEST, seed, count):
        words = sentence.split(" ")
        yield words, {"lm": _anchor_blanks(words)}


def write_corpus(folder: str | Path, task: str, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` masked lines into `folder`; all sentences are distinct.

    Raises:
        ValueError: `task` is not in `TASKS`.
    """
    write_masked(folder, sentences(seed), task, TASKS)


def _anchor_blanks(words: list[str]) -> Blanks:
    """Returns the blanks around the first name and the last number with its noun, or score, in either order."""
    name = next(i for i, word in enumerate(words) if word in NAMES)
    last = max(i for i, word in enumerate(words) if word.isdigit())
    first = last - 2 if words[last - 1] == "-" else last
    return blanks_around([(name, name + 1), (first, last + 1 + (words[last + 1] in UNITS))], len(words))


def _scene(draw: Draw) -> dict:
    """Returns a random game: the words for every slot of a sentence; `side` is 0 if `team` won and 1 if it lost."""
    side = int(draw() * 2)
    team = pick(draw, TEAMS)
    rival = pick(draw, [row for row in TEAMS if row is not team])
    scene = _team(draw, team) | {f"rival_{slot}": word for slot, word in _team(draw, rival).items()}
    scene |= {"side": side, "rival": scene["rival_team"], "foe": scene["rival_player"]}

    (margin,), wins, losses = pick(draw, MARGINS)
    scene |= {"won": pick(draw, wins), "lost": pick(draw, losses), "score": _score(draw, "82 105", margin)}
    scene |= {"met": scene["lost" if side else "won"], "overtime": _score(draw, "98 115", "1 4")}
    scene |= {"quarter": _score(draw, "15 24", "3 14"), "boards": _score(draw, "32 42", "4 15")}
    scene["run"] = _score(draw, "0 4", "9 14")

    (points,), scored, nights = pick(draw, NIGHTS)
    points = _number(draw, points)
    scene |= {"points": points, "scored": pick(draw, scored), "night": pick(draw, nights)}
    scene["made"] = max(1, points * 2 // 5)
    scene["tries"] = scene["made"] + _number(draw, "3 9")

    scene |= {slot: _number(draw, limits) for slot, limits in _NUMBERS.items()}
    return scene | {"day": pick(draw, _DAYS), "injury": pick(draw, _INJURIES), "ordinal": pick(draw, _QUARTERS)}


def _team(draw: Draw, row: tuple) -> dict:
    """Returns the slots of a team and of two of its players, one of them with position and statistics."""
    (city,), (team,), (arena,), (division,), (place,), *players = row
    wins = _number(draw, PLACES[place])
    names, ((position,), statistics) = pick(draw, list(zip(players, STATISTICS)))
    player = pick(draw, names)
    mate = pick(draw, [name for name in sum(players, ()) if name != player])
    did, statistic, limits = pick(draw, statistics).split(" / ")
    return {
        "city": city,
        "team": team,
        "full": f"{city}_{team}",
        "arena": arena,
        "division": division,
        "place": place,
        "wins": wins,
        "losses": GAMES - wins,
        "record": f"{wins} - {GAMES - wins}",
        "player": player,
        "surname": player.split("_")[1],
        "mate": mate,
        "mate_surname": mate.split("_")[1],
        "position": position,
        "did": did,
        "count": _number(draw, limits),
        "statistic": statistic,
        "tens": _number(draw, "10 14"),
        "tens_of": "assists" if position == "guard" else "rebounds",
    }


def _score(draw: Draw, loser: str, margin: str) -> str:
    """Returns a random score such as `99 - 88`, given the limits of the loser's points and of the margin."""
    less = _number(draw, loser)
    return f"{less + _number(draw, margin)} - {less}"


def _number(draw: Draw, limits: str) -> int:
    least, most = map(int, limits.split(" "))
    return least + int(draw() * (most - least + 1))
