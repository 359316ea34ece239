"""Word rules, checked against their definitions and against the authors' templates."""

import collections
import itertools
import json
import sys

import hypothesis
import pytest
from hypothesis import strategies as st

from text_infilling.masking.rules import (
    CLASSES,
    CLOSED,
    MASKINGS,
    NOUNS,
    VERBS,
    anchors_name_number,
    anchors_noun_verb,
    choose_blanks,
    load_rule,
    masked_sentences,
    names_of,
    word_classes,
    word_classes_closed,
)

TAGS = sorted(NOUNS | VERBS | CLASSES) + ["CD", "CD", "JJ", "NNP", "VBZ", ":", "."]
WORDS = ["the", "to", "In", "rain", "fell", "12", "-", "Ann_Lee", "Lee", "_num_", "."]


def split(text):
    """Returns the tokens and tags of `word/TAG word/TAG`."""
    tokens, tags = zip(*(pair.rsplit("/", 1) for pair in text.split()))
    return list(tokens), list(tags)


def template(tokens, blanks):
    """Returns the tokens with each blank collapsed to `<m>`, as the authors write them."""
    kept, done = [], 0
    for start, end in blanks:
        kept += [*tokens[done:start], "<m>"]
        done = end
    return " ".join(kept + tokens[done:])


def kept(tokens, blanks):
    """Returns the positions of the words that are in no blank."""
    return [i for i in range(len(tokens)) if not any(start <= i < end for start, end in blanks)]


def are_valid(blanks, length):
    """Returns whether these are three blanks inside a sentence, left to right, that do not overlap."""
    bounds = [0, *itertools.chain.from_iterable(blanks), length]
    return len(blanks) == 3 and bounds == sorted(bounds)


tagged = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS)), max_size=18).map(
    lambda pairs: ([word for word, _ in pairs], [label for _, label in pairs])
)


# Anchors: a noun and a verb.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the/DT miller/NN laughed/VBD loudly/RB ./.", "<m> miller <m> laughed <m>"),
        ("come/VB and/CC see/VB the/DT cows/NNS ./.", "<m> see <m> cows <m>"),
        ("a/DT king/NN said/VBD his/PRP$ son/NN might/MD ride/VB home/NN", "<m> king <m> ride <m>"),
        ("he/PRP said/VBD that/IN she/PRP sings/VBZ in/IN rain/NN", "<m> said <m> rain <m>"),
        ("men/NNS ran/VBD", "<m> men <m> ran <m>"),
        ("well/RB ,/, she/PRP knows/VBZ the/DT way/NN", None),
        ("run/VB away/RB !/.", None),
    ],
)
def test_the_first_noun_and_the_last_verb_are_kept(text, expected):
    tokens, tags = split(text)
    blanks = anchors_noun_verb(tokens, tags)
    assert (blanks and template(tokens, blanks)) == expected


@hypothesis.given(tagged)
def test_noun_and_verb_are_all_that_is_kept(sentence):
    tokens, tags = sentence
    nouns = [i for i, label in enumerate(tags) if label in NOUNS]
    verbs = [i for i, label in enumerate(tags) if label in VERBS]
    blanks = anchors_noun_verb(tokens, tags)
    if nouns and verbs:
        assert are_valid(blanks, len(tokens))
        assert kept(tokens, blanks) == sorted([nouns[0], verbs[-1]])
    else:
        assert blanks is None


# Anchors: a name and a number.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann_Lee/NNP had/VBD a/DT good/JJ 17/CD points/NNS ./.", "<m> Ann_Lee <m> 17 points <m>"),
        ("the/DT Foxes/NNP beat/VBD the/DT Hill_Owls/NNP 95/CD -/: 88/CD at/IN home/NN", "<m> Foxes <m> 95 - 88 <m>"),
        ("Lee/NNP made/VBD 4/CD -/: of/IN -/: 15/CD -/: shots/NNS", "<m> Lee <m> 15 - <m>"),
        ("Lee/NNP hit/VBD 11/CD team/NN three/CD -/: pointers/NNS", "<m> Lee <m> 11 team three - <m>"),
        ("8/CD minutes/NNS after/IN Ann_Lee/NNP left/VBD", "<m> 8 minutes <m> Ann_Lee <m>"),
        ("two/CD Foxes/NNS ,/, Lee/NNP and/CC Ann_Lee/NNP", "<m> two Foxes <m> Lee <m>"),
        ("Lee/NNP won/VBD by/IN 3/CD", "<m> Lee <m> 3 <m>"),
        ("he/PRP paid/VBD _num_/NN or/CC 17/CD dollars/NNS", None),
        ("two/CD Foxes/NNS", None),
        ("Lee/NNP won/VBD", None),
    ],
)
def test_the_first_name_and_the_last_numbers_are_kept(text, expected):
    tokens, tags = split(text)
    blanks = anchors_name_number(tokens, tags, names={"Lee", "Foxes"})
    assert (blanks and template(tokens, blanks)) == expected


@hypothesis.given(tagged)
def test_name_and_numbers_are_all_that_is_kept(sentence):
    tokens, tags = sentence
    numbers = [i for i, label in enumerate(tags) if label == "CD"]
    names = [i for i, word in enumerate(tokens) if word in ("Lee", "Ann_Lee")]
    blanks = anchors_name_number(tokens, tags, names={"Lee"})
    if blanks is None:
        assert not numbers or all("CD" in tags[max(0, i - 1) : i + 2] for i in names)
        return
    assert are_valid(blanks, len(tokens))
    spans = [(blanks[0][1], blanks[1][0]), (blanks[1][1], blanks[2][0])]
    ((start, end),) = [span for span in spans if numbers[-1] in range(*span)]
    ((name, after),) = [span for span in spans if span != (start, end)]
    assert after == name + 1 and name == next(i for i in names if not start <= i < end)
    group = " ".join({"CD": "number", ":": "glue"}.get(label, label[:2]) for label in tags[start:end])
    assert set(group.replace("NN", "glue").replace("number glue", "number").split()) == {"number"}
    assert start == 0 or tags[start - 1] != "CD"


def test_names_of_a_corpus_are_joined_tokens_and_their_parts():
    sentences = [["the", "Old_Foxes", "beat", "Ann_Lee", "."], ["A.B._Cole", "paid", "_num_", "dollars", "_"]]
    assert names_of(sentences) == {"Old_Foxes", "Old", "Foxes", "Ann_Lee", "Ann", "Lee", "A.B._Cole", "Cole"}


# Word classes.


def runs_of(masked):
    """Returns the maximal runs (start, end) of true values, found word by word."""
    edges = [False, *masked, False]
    starts = [i for i in range(len(masked)) if edges[i + 1] and not edges[i]]
    ends = [i + 1 for i in range(len(masked)) if edges[i + 1] and not edges[i + 2]]
    return list(zip(starts, ends))


def check_classes(blanks, runs, length):
    """Asserts that the first three runs are masked and that the empty blanks are in allowed positions."""
    filled = runs[:3]
    free = [p for p in range(2, length) if not any(start <= p <= end for start, end in filled)]
    if blanks is None:
        assert len(filled) + len(free) < 3
        return
    assert are_valid(blanks, length)
    assert [blank for blank in blanks if blank[0] < blank[1]] == filled
    empty = [start for start, end in blanks if start == end]
    assert set(empty) <= set(free) and len(set(empty)) == len(empty)


@hypothesis.given(tagged, st.integers(0, 3))
def test_the_first_three_runs_are_masked_and_empty_blanks_complete_three(sentence, seed):
    tokens, tags = sentence
    check_classes(word_classes(tokens, tags, seed), runs_of([label in CLASSES for label in tags]), len(tokens))
    check_classes(word_classes_closed(tokens, seed), runs_of([word.lower() in CLOSED for word in tokens]), len(tokens))


def test_runs_after_the_third_are_kept():
    tokens, tags = split("in/IN the/DT hut/NN by/IN a/DT lake/NN of/IN tears/NNS sat/VBD a/DT frog/NN")
    assert template(tokens, word_classes(tokens, tags)) == "<m> hut <m> lake <m> tears sat a frog"
    assert template(tokens, word_classes_closed(tokens)) == "<m> hut <m> lake <m> tears sat a frog"


def test_closed_class_words_are_masked_in_any_case():
    assert {"in", "at", "on", "a", "an", "the", "to", "of", "up"} <= CLOSED
    tokens = "IN Rome The Romans sat On chairs".split()
    assert template(tokens, word_classes_closed(tokens)) == "<m> Rome <m> Romans sat <m> chairs"


def test_positions_of_empty_blanks_depend_on_seed_and_sentence_and_are_equally_likely():
    tags = ["NN"] * 6
    sentences = [[str(number), *"abcde"] for number in range(3_000)]
    drawn = [tuple(word_classes(tokens, tags, seed=5)) for tokens in sentences]

    assert drawn[::-1] == [tuple(word_classes(tokens, tags, seed=5)) for tokens in reversed(sentences)]
    assert drawn != [tuple(word_classes(tokens, tags, seed=6)) for tokens in sentences]
    counts = collections.Counter(drawn)
    assert set(counts) == {tuple((i, i) for i in positions) for positions in itertools.combinations(range(2, 6), 3)}
    # The expected count is 750, its standard deviation 24.
    assert min(counts.values()) > 650 and max(counts.values()) < 850


def test_a_sentence_without_enough_positions_has_no_blanks():
    assert word_classes(["a", "b", "c", "d"], ["NN"] * 4) is None
    assert word_classes(["a", "b", "c", "d", "e"], ["NN"] * 5) == [(2, 2), (3, 3), (4, 4)]
    assert word_classes(["the"], ["DT"]) is None
    assert word_classes([], []) is None


# By name.


def test_built_in_rules_make_three_blanks_and_report_whether_they_need_tags():
    assert {name: load_rule(name).needs_tags for name in MASKINGS} == {
        "anchors_noun_verb": True,
        "anchors_name_number": True,
        "word_classes": True,
        "word_classes_closed": False,
    }
    assert {load_rule(name).blanks for name in MASKINGS} == {3}


@pytest.mark.parametrize("name", ["nouns", "", "word_classes "])
def test_an_unknown_rule_names_the_known_ones(name):
    with pytest.raises(ValueError, match="masking must be one of anchors_noun_verb, .*or module:function"):
        load_rule(name)


def test_names_and_seed_reach_the_rule():
    tokens, tags = split("Lee/NNP won/VBD by/IN 3/CD")
    assert load_rule("anchors_name_number")(tokens, tags) is None
    assert load_rule("anchors_name_number", names={"Lee"})(tokens, tags) == [(0, 0), (1, 3), (4, 4)]
    tokens = [f"w{i}" for i in range(40)]
    for name, arguments in [("word_classes", [["NN"] * 40]), ("word_classes_closed", [])]:
        first, second = (load_rule(name, seed=seed)(tokens, *arguments) for seed in (0, 1))
        assert first != second


# Custom functions.


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Returns a function that writes code into a module `own_rule` and returns its name for `--masking`."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(code, function="rule", blanks=None):
        (tmp_path / "own_rule.py").write_text(code, encoding="utf-8")
        return f"own_rule:{function}" + ("" if blanks is None else f":{blanks}")

    yield write
    sys.modules.pop("own_rule", None)


def test_a_custom_function_of_tokens_is_called_without_a_tagger(own):
    name = own("def rule(tokens):\n    return [(0, 1), (1, 1)] if len(tokens) > 1 else None\n", blanks=2)
    chosen = load_rule(name)

    assert not chosen.needs_tags and chosen.blanks == 2 and chosen.name == name
    assert list(choose_blanks([["a", "b"], ["a"]], chosen)) == [[(0, 1), (1, 1)], None]
    assert list(masked_sentences(iter([["a"], ["a", "b"]]), chosen)) == [(["a", "b"], [(0, 1), (1, 1)])]


def test_a_custom_function_with_two_parameters_gets_tags(own, shared, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))
    name = own("def rule(tokens, tags, far=2):\n    i = tags.index('NN')\n    return [(i, i + 1)]\n", blanks=1)
    chosen = load_rule(name)

    assert chosen.needs_tags
    assert list(choose_blanks([["the", "old", "house", "fell"]], chosen)) == [[(2, 3)]]


@pytest.mark.parametrize(
    ("code", "function", "message"),
    [
        ("", "rule", "own_rule:rule cannot be imported.*AttributeError"),
        ("raise OSError('one\\ntwo')", "rule", "own_rule:rule cannot be imported.*OSError: one two"),
        ("1 / 0", "rule", "own_rule:rule cannot be imported.*ZeroDivisionError"),
        ("def rule(:", "rule", "own_rule:rule cannot be imported.*SyntaxError"),
        ("rule = 3", "rule", "must be a function of .tokens. or .tokens, tags."),
        ("def rule(): pass", "rule", "must be a function of"),
        ("def rule(a, b, c): pass", "rule", "must be a function of"),
        ("", "", "cannot be imported"),
    ],
)
def test_an_invalid_custom_function_is_a_one_line_error(own, code, function, message):
    with pytest.raises(ValueError, match=message) as caught:
        load_rule(own(code, function))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["no_such_module:rule", ":rule", ":"])
def test_a_missing_module_is_an_error(name):
    with pytest.raises(ValueError, match=f"masking={name} cannot be imported"):
        load_rule(name)


@pytest.mark.parametrize("blanks", ["0", "-1", "100", "1.0", "", "two", "2:3"])
def test_a_number_of_blanks_out_of_range_is_an_error(own, blanks):
    with pytest.raises(ValueError, match="must end with a number of blanks from 1 to 99"):
        load_rule(own("def rule(tokens): pass", blanks=blanks))


def test_the_default_number_of_blanks_is_three(own):
    assert load_rule(own("def rule(tokens): pass")).blanks == 3


@pytest.mark.parametrize(
    "given",
    ["[(0, 1)]", "[(0, 1)] * 3", "[(1, 2), (0, 1)]", "[(0, 2), (1, 3)]", "[(0, 1), (3, 4)]", "[(-1, 0), (1, 2)]"]
    + ["[(1, 0), (2, 2)]", "[0, 1]", "7", "[(0, 1), (1.0, 2)]", "[(0, 1, 2), (2, 3)]", "['ab', 'cd']"],
)
def test_invalid_blanks_of_a_custom_function_are_an_error(own, given):
    chosen = load_rule(own(f"def rule(tokens): return {given}", blanks=2))
    with pytest.raises(
        ValueError, match="masking=own_rule:rule:2 must return None or 2 blanks.*Received.*'a b c'"
    ) as caught:
        list(choose_blanks([["a", "b", "c"]], chosen))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("code", ["return [(tokens[9], 1)]", "return tokens.index('no\\nword')", "1 / 0"])
def test_a_failing_custom_function_is_a_one_line_error_with_its_sentence(own, code):
    with pytest.raises(ValueError, match="masking=own_rule:rule failed for 'a b': [A-Za-z]+Error: ") as caught:
        load_rule(own(f"def rule(tokens): {code}"))(["a", "b"])
    assert "\n" not in str(caught.value)


# The authors' sentences.


@pytest.fixture(scope="module")
def released(shared):
    """Returns a function that reads every `step`th of the authors' lines: sentences and templates."""

    def read(name, step=1):
        lines = (shared / "data" / f"{name}.jsonl").read_text("utf-8").splitlines()[::step]
        rows = [json.loads(line) for line in lines]
        return [row["expected"].split() for row in rows], [row["template"] for row in rows]

    return read


@pytest.fixture
def data_of_tagger(shared, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))


def agreement(sentences, templates, masks):
    """Returns the share of equal templates and the share of masked words."""
    pairs = list(zip(sentences, masks))
    equal = sum(blanks is not None and template(t, blanks) == given for (t, blanks), given in zip(pairs, templates))
    masked = sum(end - start for blanks in masks if blanks for start, end in blanks)
    return equal / len(templates), masked / sum(len(tokens) for tokens, blanks in pairs if blanks)


@pytest.mark.parametrize(("file", "step"), [("grimm/lm.test", 1), ("grimm/lm.train", 8)])
def test_noun_and_verb_give_the_templates_of_grimm(released, data_of_tagger, file, step):
    sentences, templates = released(file, step)
    equal, rate = agreement(sentences, templates, list(choose_blanks(sentences, load_rule("anchors_noun_verb"))))
    assert equal >= 0.99
    assert 0.81 <= rate <= 0.855


@pytest.mark.parametrize(("file", "step"), [("nba/lm.test", 1), ("nba/lm.train", 6)])
@pytest.mark.parametrize("names", ["given", "collected"])
def test_name_and_number_give_the_templates_of_nba(shared, released, data_of_tagger, file, step, names):
    sentences, templates = released(file, step)
    if names == "given":
        listed = json.loads((shared / "data" / "nba" / "names.json").read_text("utf-8"))
        names = frozenset(itertools.chain.from_iterable(listed.values()))
    else:
        names = names_of(sentences)
    equal, rate = agreement(
        sentences, templates, list(choose_blanks(sentences, load_rule("anchors_name_number", names=names)))
    )
    assert equal >= 0.9
    assert 0.77 <= rate <= 0.79


@pytest.mark.parametrize(("file", "step"), [("grimm/prep.test", 1), ("grimm/prep.train", 8)])
@pytest.mark.parametrize(("name", "least"), [("word_classes", 0.99), ("word_classes_closed", 0.8)])
def test_word_classes_mask_the_words_of_the_authors(released, data_of_tagger, file, step, name, least):
    """Ignores the empty blanks, whose positions are random."""
    sentences, templates = released(file, step)
    masks = list(choose_blanks(sentences, load_rule(name)))
    filled = [blanks and [(start, end) for start, end in blanks if start < end] for blanks in masks]
    # An empty blank replaces no words, so removing `<m>` leaves exactly the kept words.
    equal = sum(
        blanks is not None and [tokens[i] for i in kept(tokens, blanks)] == given.replace("<m>", "").split()
        for tokens, blanks, given in zip(sentences, filled, templates)
    )
    assert equal / len(sentences) >= least
    _, rate = agreement(sentences, templates, masks)
    assert 0.2 <= rate <= 0.22
