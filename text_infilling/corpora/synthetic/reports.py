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
    Masked,
    blanks_around,
    distinct,
    items,
    pick,
    rows,
    spell,
    write_masked,
)
from text_infilling.masking.rules import Blanks

TASKS = ("lm",)
SHORTEST, LONGEST = 8, 14
# Checksums of the files that `write_corpus` writes for each task with SEED; a change of the grammar changes them.
SHA256 = {
    "lm": {
        "train": "57c84463c9f90affc7723ece5c2f769a687f80d820ff07da6149439f8570bf6d",
        "valid": "f92cce5dddad495e2b0c1a3bca30697329e86be4d2b69605094946c9ac4d74d2",
        "test": "9f8021b9ef7dfd1c5047f87d9ceb47342a407f54f3654584c09c8040300108fc",
    },
}


# city | team | arena | division | place | guards | forwards | centers
TEAMS = rows("""
Velmora | Otters | Tide Hall | North | first | Nilo_Brandt, Dashan_Pellow | Tavik_Orrin, Marlo_Quist | Bram_Hollard
Dunmarrow | Lanterns | Quarry Dome | North | second | Rico_Vantell, Jorrin_Sabe | Eldo_Fenwright, Cass_Murrow | \
Otto_Grell
Skarholm | Herons | Fjord Arena | North | third | Lasse_Tindal, Kip_Arvane | Ruben_Oskay, Dario_Welch | Magnar_Stroud
Frostwick | Badgers | Birch Pavilion | North | last | Teo_Marsk, Levon_Crade | Hollis_Pruett, Amos_Deklin | Ivo_Thorsby
Port_Calder | Anchors | Pier Coliseum | South | first | Zane_Corvel, Malik_Ostrow | Jules_Tamber, Deion_Farrick | \
Anton_Bulgar
Solenna_Bay | Divers | Coral Gardens | South | second | Mateo_Rivard, Cruz_Halloran | Tariq_Benlow, Silas_Monteg | \
Bruno_Acard
Marrowgate | Foxes | Ember Hall | South | third | Jalen_Wick, Pio_Serrat | Kellan_Dray, Omar_Vesk | Tobin_Gault
Harbor_Glen | Tinkers | Copper Dome | South | last | Desmo_Lark, Yuri_Campion | Nash_Oberly, Elias_Trenn | Gunther_Moll
Orvanna_Falls | Millers | Cascade Arena | East | first | Wendell_Shay, Ravi_Okundo | Marcus_Ebbing, Tyro_Langlois | \
Conrad_Uhl
Brackenford | Stags | Heath Pavilion | East | second | Corey_Ashmont, Luca_Ferris | Damon_Yarrow, Ike_Sunderby | \
Pavel_Knott
Quillhaven | Scribes | Paper Coliseum | East | third | Felix_Inkster, Andre_Sollow | Monty_Greaves, Troy_Addick | \
Hugo_Barsten
Lowmere | Owls | Moonlight Gardens | East | last | Simon_Tarrow, Jace_Nimmo | Ross_Eldergill, Vance_Holm | Boris_Pickard
Kestrel_City | Pilots | Runway Hall | West | first | Darnell_Voss, Remy_Achard | Isaac_Thule, Bo_Carrigan | \
Stellan_Roark
Redmesa | Scorpions | Canyon Dome | West | second | Tomas_Arroyal, Quinn_Dever | Lamar_Pike, Joss_Brennick | \
Viktor_Salk
Amberton | Ramblers | Prairie Arena | West | third | Clay_Hadwin, Nico_Paloma | Everett_Moss, Dirk_Jansom | Leif_Gundry
Silverpine | Sawyers | Timber Pavilion | West | last | Gabe_Winslet, Kofi_Larue | Ansel_Roper, Mick_Dunavan | \
Rafe_Colter
""")
# position | verb / statistic / minimum and maximum
STATISTICS = rows("""
guard | handed out / assists / 5 14, dished out / assists / 5 14, came up with / steals / 3 6
forward | grabbed / rebounds / 6 13, pulled down / rebounds / 6 13, came away with / steals / 3 5
center | hauled in / rebounds / 9 19, recorded / blocks / 3 7, tallied / blocks / 3 7
""")
# minimum and maximum margin in points | verbs for winning by it | verbs for losing by it
MARGINS = rows("""
1 4 | edged, outlasted, survived, nipped | fell just short against, lost narrowly to
5 13 | beat, defeated, topped, downed | lost to, fell to
14 25 | routed, crushed, hammered, thrashed | lost badly to, collapsed against
""")
# minimum and maximum points of a player | verbs for scoring them | adjectives for such a night
NIGHTS = rows("""
2 8 | managed only, settled for, had just | quiet, rough, cold
9 24 | scored, added, collected | solid, steady, decent
25 39 | poured in, exploded for, erupted for | huge, brilliant, sensational
""")
GAMES = 46
# place in the division | minimum and maximum number of wins
_PLACES = rows("""
first | 32 38
second | 26 31
third | 17 23
last | 8 14
""")
PLACES = {place: wins for (place,), (wins,) in _PLACES}
# Minimum and maximum of the numbers that do not depend on the rest of the scene.
_NUMBERS = {
    "lead": "20 39",
    "many": "25 39",
    "few": "2 8",
    "bench": "8 18",
    "sum": "35 60",
    "average": "18 29",
    "deficit": "3 15",
    "several": "2 7",
    "seconds": "2 9",
    "minutes": "26 41",
    "spell": "12 24",
    "double": "10 29",
    "good_percent": "48 58",
    "bad_percent": "33 42",
    "good_turnovers": "6 10",
    "bad_turnovers": "16 22",
}
_DAYS = items("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
_INJURIES = items("knee, ankle, back, wrist, hip, shoulder")
_QUARTERS = items("first, second, third, fourth")
# Nouns that are kept together with the number before them.
UNITS = frozenset(
    items("points, assists, steals, rebounds, blocks, minutes, seconds, games, days, percent, turnovers, wins, losses")
)
NAMES = frozenset(
    name
    for (city,), (team,), *_, guards, forwards, centers in TEAMS
    for player in guards + forwards + centers
    for name in (city, team, f"{city}_{team}", player, player.split("_")[1])
)

# A {slot} is filled from the scene; (a|b) is a random choice; [a|b] is a if {team} won and b if it lost.
_FRAMES = tuple(
    """
The {full} {met} the {rival_full} {score} on {day} .
The {full} {met} the {rival_full} {score} .
The {full} {won} the visiting {rival} {score} at the {arena} .
The {team} {met} the {rival} {score} at the {rival_arena} .
The {place} - place {team} {met} the {rival} {score} .
{city} {met} {rival_city} {score} (at home|on the road) on {day} .
{city} [edged|lost to] {rival_city} {overtime} in overtime at the {arena} .
On {day} the {team} {met} the {rival} of {rival_city} {score} .
{player} scored {many} points as the {team} {won} the {rival} {score} .
The {team} {won} the {rival} {score} despite {many} points from {foe} .
The {team} [improved|dropped] to {record} with a [win|loss] [over|against] the {rival} .
The {team} sit {place} in the {division} with {wins} wins and {losses} losses .
The {team} have [won|lost] {several} games in a row against the {rival} .
The {team} [led|trailed] the {rival} {quarter} after the first quarter .
The {team} [won|lost] the {ordinal} quarter {quarter} against the {rival} .
The {team} [won|lost] the rebounding battle with the {rival} {boards} .
The {team} shot [{good_percent}|{bad_percent}] percent from the field in the [win|loss] at {rival_city} .
The {team} committed [{good_turnovers}|{bad_turnovers}] turnovers in [beating|losing to] the {rival} on {day} .
The {team} [trailed|led] by {deficit} points at halftime but {met} the {rival} .
A {run} run late carried the {team} past the {rival} .
The {team} will face the {rival} at the {arena} in {several} days .
{player} led the {team} with {lead} points and {count} {statistic} on {day} .
{player} {scored} {points} points in {minutes} minutes for {city} on {day} .
{player} {scored} {points} points against {foe} and the {rival} on {day} .
Starting {position} {player} {did} {count} {statistic} for the {team} in the [win|loss] .
{player} , the {position} from {city} , {did} {count} {statistic} on {day} .
{player} {scored} {points} points for the {team} .
{player} led the {team} with {lead} points .
{surname} {scored} {points} points and {did} {count} {statistic} .
{surname} , the {team} {position} , played {minutes} minutes on {day} .
{surname} finished with a double - double of {double} points and {tens} {tens_of} .
{player} made {made} of {tries} shots and finished with {points} points for {city} .
{player} and {mate} combined for {sum} points in the [win|loss] for {city} .
{surname} and {mate_surname} gave the {team} {sum} points between them on {day} .
{player} came off the bench to score {bench} points in {spell} minutes .
The {team} got {bench} points from reserve {position} {player} in the [win|loss] .
The {rival} held {player} to {few} points and {count} {statistic} in {minutes} minutes .
The {rival} had no answer for {player} , who {did} {count} {statistic} .
{player} [hit the winning|missed the tying] shot for the {team} with {seconds} seconds left .
With {lead} points , {player} led all scorers for the {team} on {day} .
After {several} games without {player} , the {team} {met} the {rival} .
It was a {night} night for {player} , who {scored} {points} points .
{player} returned to the {team} after missing {several} games with a sore {injury} .
{player} leads the {team} with an average of {average} points a game .
{player} outscored {foe} by {deficit} points as {city} {met} {rival_city} .
""".strip().splitlines()
)


def sentences(seed: int = SEED, count: int = sum(SIZES.values())) -> Iterator[Masked]:
    """Yields `count` different sentences of 8 to 14 tokens, each with its three blanks; the seed determines which.

    The blanks of `lm` keep the first name of a team or player and the last number with its noun, or the last score.
    """
    for sentence in distinct(_sentence, SHORTEST, LONGEST, seed, count):
        words = sentence.split(" ")
        yield words, {"lm": _anchor_blanks(words)}


def write_corpus(folder: str | Path, task: str, seed: int = SEED) -> None:
    """Writes train.txt, valid.txt and test.txt with `SIZES` masked lines into `folder`; all sentences are distinct.

    Raises:
        ValueError: `task` is not in `TASKS`.
    """
    if task not in TASKS:
        raise ValueError(f"the synthetic reports support only the task {', '.join(TASKS)}. Received: {task!r}")
    write_masked(folder, sentences(seed), task)


def _anchor_blanks(words: list[str]) -> Blanks:
    """Returns the blanks around the first name and the last number with its noun, or score, in either order."""
    name = next(i for i, word in enumerate(words) if word in NAMES)
    last = max(i for i, word in enumerate(words) if word.isdigit())
    first = last - 2 if words[last - 1] == "-" else last
    return blanks_around([(name, name + 1), (first, last + 1 + (words[last + 1] in UNITS))], len(words))


def _sentence(draw: Draw) -> str:
    """Returns a sentence of any length: a frame with its slots filled from a game."""
    return spell(draw, pick(draw, _FRAMES), _scene(draw))


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
