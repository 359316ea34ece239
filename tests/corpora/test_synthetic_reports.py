"""The made-up reports are deterministic, their blanks keep names and numbers, and the facts of a game agree."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.corpora.synthetic import reports

COUNT = 5000
SCORE = r"(\d+) - (\d+)"


@pytest.fixture(scope="module")
def corpus():
    return list(reports.sentences(count=COUNT))


@pytest.fixture(scope="module")
def lines(corpus):
    return [" ".join(words) for words, _ in corpus]


def matches(pattern, lines):
    found = [match for line in lines if (match := re.fullmatch(pattern, line))]
    assert len(found) > 20, pattern
    return found


def rows_by(column):
    """Returns the rows of `TEAMS` by the value of a column, such as city, team or arena."""
    return {row[column][0]: row for row in reports.TEAMS}


def players_of(row):
    return set(row[5] + row[6] + row[7])


def within(limits, number):
    least, most = map(int, limits.split(" "))
    return least <= number <= most


def test_text_has_capitals_and_each_name_is_one_token(lines):
    token = r"([A-Z][a-z]+(_[A-Z][a-z]+)*|[A-Z]|[a-z]+|\d+|-|,)"
    assert all(re.fullmatch(rf"{token}( {token})* \.", line) for line in lines)
    assert not [line for line in lines if re.search(r"\b[Aa] ([aeiou8]|1[18] )|\b[Aa]n [^aeiou18]", line)]


@given(st.integers(0, 2**32))
def test_each_sentence_has_three_blanks_in_order_within_it(seed):
    for words, blanks in reports.sentences(seed, count=3):
        bounds = [bound for span in blanks["lm"] for bound in span]
        assert set(blanks) == set(reports.TASKS) and len(blanks["lm"]) == 3
        assert [0, *bounds, len(words)] == sorted([0, *bounds, len(words)])


def test_lm_keeps_the_first_name_and_the_last_number_with_its_noun_or_the_last_score(corpus):
    groups = Counter()
    for words, blanks in corpus:
        (start, first), (first_end, second), (second_end, end) = blanks["lm"]
        kept = sorted([words[first:first_end], words[second:second_end]], key=lambda run: run[0] not in reports.NAMES)
        (name,), number = kept
        groups[re.sub(r"\d+", "0", " ".join(number))] += 1

        assert (start, end) == (0, len(words))
        assert name == next(word for word in words if word in reports.NAMES)
        # All other numbers of the sentence are before the kept one.
        index = first if words[first].isdigit() else second
        assert not [word for word in words[index + len(number) :] if word.isdigit()]
    assert set(groups) == {"0 - 0", *(f"0 {noun}" for noun in reports.UNITS - {"wins"})}


def test_lm_has_empty_blanks_and_sentences_with_the_number_before_the_name(corpus):
    spans = [blanks["lm"] for _, blanks in corpus]

    assert any(start == end for (start, end), _, _ in spans)
    assert any(words[blanks["lm"][0][1]].isdigit() for words, blanks in corpus)


def test_the_mask_rate_is_near_the_papers(corpus):
    masked = sum(end - start for _, blanks in corpus for start, end in blanks["lm"])

    assert 0.72 <= masked / sum(len(words) for words, _ in corpus) <= 0.82


def test_the_larger_number_of_a_score_comes_first_except_in_a_record(lines):
    scores = [match for line in lines for match in re.finditer(SCORE, line)]
    records = matches(rf"The \w+ (?:improved|dropped) to {SCORE} with .+", lines)

    assert len(scores) > 1000
    assert all(int(match[1]) + int(match[2]) == reports.GAMES for match in records)
    not_won = [match for match in scores if int(match[1]) <= int(match[2])]
    assert all(int(match[1]) + int(match[2]) == reports.GAMES for match in not_won)


def test_the_verb_fits_the_margin(lines):
    limits = {verb: row[0][0] for row in reports.MARGINS for verb in row[1] + row[2]}
    found = matches(rf"The [A-Z]\w+_[A-Z]\w+ (.+) the [A-Z]\w+ {SCORE} on \w+ \.", lines)

    assert {limits[match[1]] for match in found} == set(limits.values())
    assert all(within(limits[match[1]], int(match[2]) - int(match[3])) for match in found)


def test_player_and_team_agree(lines):
    teams = rows_by(1)
    found = matches(r"(\w+) led the (\w+) with \d+ points(?: and \d+ \w+ on \w+)? \.", lines)
    assert all(match[1] in players_of(teams[match[2]]) for match in found)

    found = matches(r"The (\w+) .+ the (\w+) \d+ - \d+ despite \d+ points from (\w+) \.", lines)
    assert all(match[3] in players_of(teams[match[2]]) and match[1] != match[2] for match in found)


def test_player_and_city_agree_and_the_two_players_are_from_the_same_team(lines):
    cities = rows_by(0)
    found = matches(r"(\w+) and (\w+) combined for \d+ points in the (?:win|loss) for (\w+) \.", lines)

    assert all({match[1], match[2]} <= players_of(cities[match[3]]) and match[1] != match[2] for match in found)


def test_player_position_and_statistics_agree(lines):
    positions = [row[0][0] for row in reports.STATISTICS]
    statistics = {row[0][0]: [tuple(entry.split(" / ")) for entry in row[1]] for row in reports.STATISTICS}
    of_player = {
        player: position for row in reports.TEAMS for position, players in zip(positions, row[5:]) for player in players
    }
    found = matches(r"Starting (\w+) (\w+) (.+) (\d+) (\w+) for the .+", lines)

    assert {match[1] for match in found} == set(positions)
    for match in found:
        assert of_player[match[2]] == match[1]
        (limits,) = {limits for did, what, limits in statistics[match[1]] if (did, what) == (match[3], match[5])}
        assert within(limits, int(match[4]))


def test_the_verb_for_scoring_fits_the_number_of_points(lines):
    limits = {verb: row[0][0] for row in reports.NIGHTS for verb in row[1]}
    nights = {verb: row[2] for row in reports.NIGHTS for verb in row[1]}
    found = matches(r"It was an? (\w+) night for \w+ , who (.+) (\d+) points \.", lines)

    assert all(match[1] in nights[match[2]] and within(limits[match[2]], int(match[3])) for match in found)


def test_shots_made_are_fewer_than_tries_and_consistent_with_the_points(lines):
    found = matches(r"\w+ made (\d+) of (\d+) shots and finished with (\d+) points for \w+ \.", lines)

    assert all(int(match[1]) < int(match[2]) for match in found)
    assert all(2 * int(match[1]) <= max(2, int(match[3])) for match in found)


def test_team_city_and_arena_agree(lines):
    cities, arenas = rows_by(0), rows_by(2)
    found = matches(rf"The (\w+)_(\w+) \w+ the visiting \w+ {SCORE} at the (\w+ \w+) \.", lines)

    assert all(cities[match[1]][1][0] == match[2] == arenas[match[5]][1][0] for match in found)


def test_team_place_division_and_record_agree(lines):
    teams = rows_by(1)
    found = matches(r"The (\w+) sit (\w+) in the (\w+) with (\d+) wins and (\d+) losses \.", lines)

    for match in found:
        division, place = teams[match[1]][3][0], teams[match[1]][4][0]
        assert (match[2], match[3]) == (place, division)
        assert within(reports.PLACES[place], int(match[4]))
        assert int(match[4]) + int(match[5]) == reports.GAMES


def test_winning_or_losing_is_the_same_throughout_a_sentence(lines):
    found = matches(r"The \w+ shot (\d+) percent from the field in the (win|loss) at \w+ \.", lines)
    assert all((int(match[1]) > 45) == (match[2] == "win") for match in found)

    found = matches(r"The \w+ (improved|dropped) to \d+ - \d+ with a (win over|loss against) the \w+ \.", lines)
    assert {match.groups() for match in found} == {("improved", "win over"), ("dropped", "loss against")}

    wins = {verb for row in reports.MARGINS for verb in row[1]}
    found = matches(r"The \w+ (trailed|led) by \d+ points at halftime but (.+) the \w+ \.", lines)
    assert {(match[1], match[2] in wins) for match in found} == {("trailed", True), ("led", False)}
