"""The words of a made-up review agree across the sentence."""

import re

import pytest

from text_infilling.corpora.synthetic import reviews

COUNT = 3000


@pytest.fixture(scope="module")
def lines():
    return list(reviews.sentences(count=COUNT))


def side_of(words):
    """Returns 0 if the words contain praise, 1 if blame, None if neither; fails if they contain both."""
    tables = [*reviews.OPINIONS.values(), *reviews.KINDS.values()]
    sides = {side for side in (0, 1) for table in tables for word in table[side] if word in words}
    assert len(sides) <= 1, words
    return sides.pop() if sides else None


def test_text_is_in_lower_case_with_separate_punctuation_tokens(lines):
    assert all(re.fullmatch(r"([a-z]+|,)( ([a-z]+|,))* [.!]", line) for line in lines)
    assert not [line for line in lines if re.search(r"\ba [aeiou]|\ban [^aeiou]", line)]


def test_no_word_is_both_praise_and_blame():
    tables = [*reviews.OPINIONS.values(), *reviews.KINDS.values()]
    praise, blame = ({word for table in tables for word in table[side]} for side in (0, 1))

    assert praise.isdisjoint(blame)


def test_cuisine_and_dish_agree(lines):
    """In `the dish at this cuisine place` each word determines the other, although they are far apart."""
    menus = {row[0][0]: [re.sub(r"\+?\s\w+$", "", dish) for dish in row[3]] for row in reviews.CUISINES}
    found = [re.match(r"the (.+) at this (\w+) (.+) w(?:as|ere) ", line) for line in lines]
    found = [match for match in found if match]

    assert len(found) > 20
    assert all(match[1] in menus[match[2]] for match in found)


def test_noun_and_verb_agree(lines):
    plurals = {"these": "were", "this": "was"}
    found = [re.match(r"how \w+ (this|these) .+? (was|were) ", line) for line in lines]
    found = [match for match in found if match]

    assert {match[1] for match in found} == set(plurals)
    assert all(plurals[match[1]] == match[2] for match in found)


def test_person_and_pronoun_agree(lines):
    pronouns = {row[0][0].rstrip("+"): row[1][0] for row in reviews.GUESTS}
    found = [re.match(r"my (\w+) \w+ the .+ and (he|she|they) said", line) for line in lines]
    found = [match for match in found if match]

    assert {match[2] for match in found} == {"he", "she", "they"}
    assert all(pronouns[match[1]] == match[2] for match in found)


def test_city_and_state_agree(lines):
    states = {row[0][0]: row[1][0] for row in reviews.CITIES}
    found = [match for line in lines if (match := re.search(r" (?:in|to) (\w+) , (\w+) (?:for|is) ", line))]

    assert len(found) > 20
    assert all(states[match[1]] == match[2] for match in found)


def test_the_opinion_is_the_same_throughout_a_sentence(lines):
    """The remark on the dish at the start and the verdict at the end are both praise or both blame."""
    found = [match for line in lines if (match := re.fullmatch(r"the .+ w(?:as|ere) (.*) , (.+) [.!]", line))]
    pairs = []
    for match in found:
        verdict = match[2].removeprefix("and ")
        side = next((i for i in (0, 1) if verdict in reviews.OPINIONS["verdict"][i]), None)
        if side is not None:
            pairs.append((side_of(match[1].replace(",", "").split()), side))

    assert {side for _, side in pairs} == {0, 1}
    assert all(opinion in (side, None) for opinion, side in pairs)
    assert sum(opinion is not None for opinion, _ in pairs) > len(pairs) // 2


def test_the_word_but_reverses_the_opinion_and_the_word_and_keeps_it(lines):
    """In `the soup was rich , but the bread was stale` the conjunction decides."""
    two_dishes = r"the .+ w(?:as|ere) (.+) , (and|but) the .+ w(?:as|ere) (.+) [.!]"
    found = [re.fullmatch(two_dishes, line) for line in lines]
    turned = {"and": set(), "but": set()}
    for match in found:
        if match:
            turned[match[2]].add(side_of(match[1].split()) != side_of(match[3].split()))

    assert turned == {"and": {False}, "but": {True}}
