"""The made-up tales are deterministic, their blanks follow word classes, and their words agree across a sentence."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.corpora.synthetic import tales
from text_infilling.corpora.synthetic.grammar import Grammar

COUNT = 5000


@pytest.fixture(scope="module")
def corpus():
    return list(tales.sentences(count=COUNT))


@pytest.fixture(scope="module")
def lines(corpus):
    return [" ".join(words) for words, _ in corpus]


@pytest.fixture(scope="module")
def lexicon():
    """Returns all nouns, verbs and other words of the tables and frames, told apart by their letter case."""

    def words(value):
        if isinstance(value, str):
            return re.findall(r"\w+", re.sub(r"\{\w+\}", " ", value))
        values = value.values() if isinstance(value, dict) else value
        return itertools.chain(*map(words, values))

    tables = [tales.HEROES, tales.ROYALS, tales.ELDERS, tales.WITCHES, tales.ANIMALS, tales.PLACES, tales.MOODS]
    tables += [tales.GIFTS, tales.TIMES, tales.SEASONS, tales.CHARACTERS, tales._NUMBERS, tales._PRISONS]
    tables.append(Grammar("tales").lines("frames"))
    marked = set(words(tables))
    nouns = {word.lower() for word in marked if word.istitle()}
    verbs = {word.lower() for word in marked if word.isupper()}
    return nouns, verbs, {word for word in marked if word.islower()}


def matches(pattern, lines):
    found = [match for line in lines if (match := re.fullmatch(pattern, line))]
    assert len(found) > 20, pattern
    return found


def kept_words(words, blanks):
    masked = {i for start, end in blanks for i in range(start, end)}
    return [word for i, word in enumerate(words) if i not in masked]


def test_text_is_in_lower_case_with_separate_punctuation_tokens(lines):
    assert all(re.fullmatch(r"([a-z]+|,|'s)( ([a-z]+|,|'s))*( \.)?", line) for line in lines)
    assert not [line for line in lines if re.search(r"\ba [aeiou]|\ban [^aeiou]", line)]


@given(st.integers(0, 2**32))
def test_each_sentence_has_three_blanks_in_order_within_it(seed):
    for words, blanks in tales.sentences(seed, count=3):
        assert set(blanks) == set(tales.TASKS)
        for spans in blanks.values():
            bounds = [bound for span in spans for bound in span]
            assert len(spans) == 3
            assert [0, *bounds, len(words)] == sorted([0, *bounds, len(words)])


def test_no_word_belongs_to_two_classes(lexicon):
    nouns, verbs, others = lexicon

    assert nouns.isdisjoint(verbs)
    assert (nouns | verbs).isdisjoint(others | tales.PREPOSITIONS)


def test_lm_keeps_the_first_noun_and_the_last_verb(corpus, lexicon):
    nouns, verbs, _ = lexicon
    for words, blanks in corpus:
        noun = next(i for i, word in enumerate(words) if word in nouns)
        verb = max(i for i, word in enumerate(words) if word in verbs)
        first, last = sorted([noun, verb])
        assert blanks["lm"] == [(0, first), (first + 1, last), (last + 1, len(words))]


def test_lm_has_empty_blanks_and_sentences_with_the_verb_before_the_noun(corpus, lexicon):
    spans = [blanks["lm"] for _, blanks in corpus]

    for i in range(3):
        assert any(start == end for start, end in (blanks[i] for blanks in spans))
    assert any(kept_words(words, blanks["lm"])[0] in lexicon[1] for words, blanks in corpus)


def test_preposition_blanks_are_the_first_three_runs_of_prepositions(corpus):
    for words, blanks in corpus:
        runs, end = [], 0
        for hit, run in itertools.groupby(words, tales.PREPOSITIONS.__contains__):
            length = len(list(run))
            if hit:
                runs.append((end, end + length))
            end += length
        filled = [span for span in blanks["prepositions"] if span[0] < span[1]]
        assert filled == runs[:3]
        assert runs


def test_an_empty_preposition_blank_is_between_words_and_next_to_no_other_blank(corpus):
    empty = 0
    for words, blanks in corpus:
        spans = blanks["prepositions"]
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(spans))
        for start, end in spans:
            assert start < end or 0 < start < len(words)
            empty += start == end
    assert empty > COUNT // 20


def test_the_preposition_blanks_depend_only_on_the_words():
    words = "nobody knew the frog , but she said so and went home again .".split(" ")

    blanks = tales.preposition_blanks(words)

    assert (2, 3) in blanks and sum(start == end for start, end in blanks) == 2
    assert blanks == tales.preposition_blanks(list(words))
    for position in {start for start, end in blanks if start == end}:
        assert 0 < position < len(words) and position not in (2, 3)


@pytest.mark.parametrize(("task", "least", "most"), [("lm", 0.78, 0.88), ("prepositions", 0.18, 0.30)])
def test_the_mask_rate_is_near_the_papers(corpus, task, least, most):
    masked = sum(end - start for _, blanks in corpus for start, end in blanks[task])

    assert least <= masked / sum(len(words) for words, _ in corpus) <= most


def test_craftsman_tool_and_work_agree(lines):
    trades = {hero[0].lower(): (they[0], *rest) for hero, they, *rest in tales.HEROES}
    found = matches(r"early one morning the (\w+) took (his|her) (\w+) and (.+) \.", lines)

    for match in found:
        they, (workplace,), tools, makes = trades[match[1]]
        assert match[2] == tales._FORMS[they][0]
        assert match[3] in map(str.lower, tools)
        assert match[4] in [f"{made} {workplace}".lower() for made in makes]


def test_animal_and_cry_agree_and_so_do_ruler_and_pronoun(lines):
    """The sentences are like `the witch turned the prince into a frog , and he croaked all day long`."""
    cries = {row[0][0].lower(): row[3][0].lower() for row in tales.ANIMALS}
    pronouns = {row[0][0].lower(): row[1][0] for row in tales.ROYALS}
    found = matches(r"the \w+ turned the (\w+) into an? (\w+) , and (he|she) (\w+) all day long \.", lines)

    assert {match[3] for match in found} == {"he", "she"}
    assert all(pronouns[match[1]] == match[3] and cries[match[2]] == match[4] for match in found)


def test_place_preposition_and_the_things_found_there_agree(lines):
    places = {row[0][0].lower(): row for row in tales.PLACES}
    found = matches(r"the \w+ sent (?:his|her) \w+ (.+) the (\w+) to fetch (\w+) \.", lines)

    assert all(match[1] == places[match[2]][1][0] for match in found)
    assert all(match[3] in map(str.lower, places[match[2]][4]) for match in found)


def test_elder_child_and_pronoun_agree(lines):
    children = {row[0][0].lower(): dict(child.lower().split(" ") for child in row[2]) for row in tales.ELDERS}
    pronouns = {row[0][0].lower(): row[1][0] for row in tales.ELDERS}
    found = matches(r"the (\w+) loved (his|her) (\w+) , but the .+ hated (him|her|them) \.", lines)

    for match in found:
        their, _, _ = tales._FORMS[pronouns[match[1]]]
        _, them, _ = tales._FORMS[children[match[1]][match[3]]]
        assert (match[2], match[4]) == (their, them)


def test_number_and_verb_agree(lines):
    found = matches(r"because the (\w+) (was|were) \w+ , (he|she|they) .+", lines)

    assert {(match[2], match[3]) for match in found} == {("was", "he"), ("was", "she"), ("were", "they")}


def test_gift_and_magic_agree(lines):
    magic = {row[0][0].lower(): (row[1][0].lower(), [effect.lower() for effect in row[2]]) for row in tales.GIFTS}
    found = matches(r"as soon as the \w+ (\w+) the (\w+) , (.+) \.", lines)

    assert all(match[1] == magic[match[2]][0] and match[3] in magic[match[2]][1] for match in found)


def test_feeling_and_deed_agree(lines):
    deeds = {mood: [deed.lower() for deed in row[1]] for row in tales.MOODS for mood in row[0]}
    found = matches(r"the \w+ was so (\w+) that (?:he|she) (.+) \.", lines)

    assert all(match[2] in deeds[match[1]] for match in found)


def test_season_and_nature_agree(lines):
    signs = {row[0][0].lower(): [sign.lower() for sign in row[1]] for row in tales.SEASONS}
    found = matches(r"in (\w+) , when (.+) , the \w+ .+ \.", lines)

    assert all(match[2] in signs[match[1]] for match in found)


def test_the_good_are_rewarded_and_the_wicked_punished(lines):
    sides = {
        phrase.lower(): side
        for slot in ("virtue", "deed", "reward")
        for side in (0, 1)
        for phrase in tales.CHARACTERS[slot][side]
    }
    found = matches(r"the (\w+) \w+ (.+) and therefore (.+) \.", [line for line in lines if "people" not in line])

    assert {sides[match[1]] for match in found} == {0, 1}
    assert all(sides[match[1]] == sides[match[2]] == sides[match[3]] for match in found)

    found = matches(r"the eldest (?:son|daughter) was (\w+) , but the youngest (.+) \.", lines)
    assert all(sides[match[1]] != sides[match[2]] for match in found)
