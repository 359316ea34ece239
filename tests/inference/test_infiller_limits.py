"""Limits on infills: every result keeps them, and wrong limits are a clear error."""

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from infilling_runs import LONGEST, TEXT, WORDS, write_run

from text_infilling.inference.infiller import Infiller
from text_infilling.inference.limits import Limits
from text_infilling.vocabulary import SPECIAL_TOKENS


def keeps(infiller, filled, all_limits):
    """Asserts that every infill is within its limits."""
    known = frozenset(infiller.vocabulary.words)
    for fill, words, limits_ in zip(filled.fills, filled.words, all_limits, strict=True):
        low = [word.lower() for word in words]
        n = limits_.get("exact_words", len(words))
        assert limits_.get("min_words", n) <= len(words) == n <= limits_.get("max_words", max(n, LONGEST))
        prefix = infiller.tokenizer.split(limits_.get("prefix", ""), known)
        assert words[: len(prefix)] == [limits_["prefix"][piece.start : piece.end] for piece in prefix]
        for phrase in limits_.get("must_include", []):
            parts = [phrase[piece.start : piece.end].lower() for piece in infiller.tokenizer.split(phrase, known)]
            assert any(low[i : i + len(parts)] == parts for i in range(len(low)))
        banned = limits_.get("banned_words", [])  # and the words that the model has for them
        assert not set(low) & {word.lower() for word in [*banned, *infiller.tokenizer.words(" ".join(banned), known)]}
        assert not set(low) & {token.lower() for token in SPECIAL_TOKENS}
        assert fill == "" or fill.strip() == fill


PHRASES = ["soup", "very good", "Zorblatt", "don't", "so Quux so", "the", "5", "7 soup"]


@st.composite
def some_limits(draw):
    """Draws satisfiable limits."""
    limits_, needed = {}, 0
    if draw(st.booleans()):
        limits_["prefix"] = draw(st.sampled_from(["the", "Zorblatt", "We love", "can't", "the Zorblatt", "7", "5 was"]))
        needed += 2
    if draw(st.booleans()):
        limits_["must_include"] = draw(st.lists(st.sampled_from(PHRASES), max_size=2, unique=True))
        needed += sum(len(phrase.split()) + ("'" in phrase) for phrase in limits_["must_include"])
    asked = (limits_.get("prefix", "") + " ".join(limits_.get("must_include", []))).lower()
    if draw(st.booleans()):
        names = [word for word in "Bread was ! is and soup good 5 8".split() if word.lower() not in asked]
        limits_["banned_words"] = draw(st.lists(st.sampled_from(names), max_size=3))
    kind = draw(st.sampled_from(["exact", "most", "least", "none"]))
    if kind == "exact":
        limits_["exact_words"] = draw(st.integers(needed, LONGEST))
    elif kind == "most":
        limits_["max_words"] = draw(st.integers(needed, LONGEST))
    elif kind == "least":
        limits_["min_words"] = draw(st.integers(0, LONGEST))
    return limits_


@settings(max_examples=25)
@given(
    st.lists(some_limits(), min_size=2, max_size=2),
    st.sampled_from([{}, {"num_results": 3}, {"seed": 4, "num_results": 2}, {"order": "confident"}]),
)
def test_every_limit_holds_for_every_result(infiller, limits, settings_):
    filled = infiller.fill(TEXT, limits=limits, **settings_)
    assert filled.alternatives
    for other in filled.alternatives:
        keeps(infiller, other, limits)


def test_unknown_words_are_returned_as_typed(infiller):
    filled = infiller.fill("Mr. Zorblatt ____", limits={"prefix": "eats Quux's 漢字 soup", "exact_words": 5})
    assert filled.text == "Mr. Zorblatt eats Quux's 漢字 soup"
    filled = infiller.fill("The ____.", limits={"must_include": ["ZORBLATT 👍", "Soup"], "max_words": 3})
    assert "ZORBLATT 👍" in filled.text and "Soup" in filled.text


@pytest.mark.parametrize(
    ("limits", "fill"),
    [
        ({"must_include": ["5", "7"]}, "5 7"),
        ({"prefix": "5 so", "must_include": ["7"]}, "5 so 7"),
        ({"must_include": ["5 so", "7 bad"]}, "5 so 7 bad"),
        ({"must_include": ["7", "so 7"]}, "so 7"),
        ({"prefix": "3.50", "must_include": ["3.50"]}, "3.50"),
        ({"must_include": ["7"], "banned_words": ["5", "_num_"]}, "7"),
    ],
)
def test_numbers_that_share_one_model_word_are_returned_as_typed(infiller, limits, fill):
    filled = infiller.fill("the ____ .", limits={**limits, "exact_words": len(fill.split())})
    assert sorted(filled.text.split()) == sorted(f"the {fill} .".split())


def test_a_typed_number_is_as_probable_as_the_model_word_for_all_numbers(infiller):
    texts = [f"The soup ____ {number} bad ____!" for number in ("5", "7", "_num_")]
    limits = [[{"prefix": f"was {number}"}, {}] for number in ("7", "1,000", "_num_")]
    one, *others = infiller.fill(texts, limits=limits)
    for other in others:
        assert one.token_log_probabilities[0] == pytest.approx(other.token_log_probabilities[0], abs=1e-4)
        assert one.words[1] == other.words[1]  # filled after the model has read the number


def test_a_banned_number_bans_all_numbers_not_requested(infiller):
    words = [word for word in WORDS if word not in ("_num_", "so")]
    for number in ("5", "_num_"):
        filled = infiller.fill("the ____", limits={"banned_words": [*words, number], "exact_words": 3})
        assert filled.words == [["so"] * 3]
    with pytest.raises(ValueError, match="'5' is in banned_words"):
        infiller.fill("____", limits={"banned_words": ["5"], "must_include": ["7", "so 5"]})


# Banned words that are several words of the vocabulary.


@pytest.mark.parametrize(
    ("words", "prefix", "banned", "forbidden"),
    [
        ("do n't so", "do", "don't", "don't"),
        ("do n't so", "do", "DON’T", "don't"),
        ("can not so", "can", "cannot", "can not"),
        ("gon na gonna so", "gon", "gonna", "gonna"),
        ("u . s so", "u.s", "U.S.", "u.s."),
        ("u . s u.s. so", "u.s", "U.S.", "u.s."),
        ("e - mail so", "e -", "e-mail", "e - mail"),
        ("New new York york so", "new", "new york", "new york"),
        ("New new York york so", "NEW", "New York", "new york"),
        ("very _num_ so", "very", "very 5", "very _num_"),
    ],
)
def test_a_banned_word_of_several_tokens_is_in_no_infill(tmp_path, words, prefix, banned, forbidden):
    infiller = Infiller.load(write_run(tmp_path, words=words.split()))

    def fills(**limits):
        n = len(infiller.tokenizer.words(prefix, frozenset(infiller.vocabulary.words))) + 1
        limits = {"prefix": prefix, "exact_words": n, **limits}
        return {other.fills[0].lower() for other in infiller.fill("____", num_results=20, limits=limits).alternatives}

    assert forbidden in fills()
    assert fills(banned_words=[banned]) == {fill for fill in fills() if forbidden not in fill}


def test_a_banned_single_token_is_also_banned_as_its_parts(tmp_path):
    infiller = Infiller.load(write_run(tmp_path, words=["gonna", "gon", "na", "so"]))
    for banned in ("gonna", "Gonna"):
        limits_ = {"min_words": 1, "max_words": 2, "banned_words": [banned]}
        results = infiller.fill("____", num_results=20, limits=limits_).alternatives
        assert len(results) > 5 and not any("gonna" in result.text.lower() for result in results)


def test_a_banned_phrase_applies_only_inside_the_infill(tmp_path):
    infiller = Infiller.load(write_run(tmp_path, words=["do", "n't"]))
    filled = infiller.fill("do ____", limits={"banned_words": ["don't", "do"], "exact_words": 1})
    assert filled.text == "don't"


@pytest.mark.parametrize(
    "limits",
    [
        {"banned_words": ["don't"], "prefix": "I Don’t"},
        {"banned_words": ["so very good"], "must_include": ["a SO very good soup"]},
        {"banned_words": ["new Zorblatt"], "prefix": "a New zorblatt"},
        {"banned_words": ["zorblatt"], "must_include": ["Zorblatt"]},
        {"banned_words": ["5 so"], "must_include": ["so 5 so"]},
    ],
)
def test_a_phrase_both_banned_and_requested_is_an_error(infiller, limits):
    with pytest.raises(ValueError, match="^blank 1: '.*' is in banned_words and in prefix or must_include"):
        infiller.fill("____", limits=limits)


# How many words.


def test_infills_are_not_empty_unless_requested(infiller):
    """Holds even if the model prefers an empty blank, for every search and for several blanks."""
    text = "____ so ____ , the ____ ! ____"
    for options in ({}, {"num_results": 3}, {"seed": 1, "num_results": 5}, {"order": "confident"}):
        for filled in infiller.fill(text, **options).alternatives:
            assert all(filled.words)
    empty = {"min_words": 0}
    drawn = infiller.fill(text, limits=empty, seed=1, temperature=5.0, num_results=50).alternatives
    assert any([] in filled.words for filled in drawn)
    for limits in ({"max_words": 0}, {"exact_words": 0}):
        assert infiller.fill("so ____ .", limits=limits).text == "so ."


def test_a_run_with_empty_training_answers_may_leave_blanks_empty(infiller_run, tmp_path):
    folder = shutil.copytree(infiller_run, tmp_path / "run")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for answers, least in (({"empty": True}, 0), ({"empty": False}, 1)):
        (folder / "config.json").write_text(json.dumps({**config, "answers": answers}), "utf-8")
        filled = Infiller.load(folder).fill("____", num_results=100, seed=1, temperature=5.0)
        assert min(len(other.words[0]) for other in filled.alternatives) == least


@pytest.mark.parametrize("options", [{}, {"seed": 1, "temperature": 0.5}, {"num_results": 4}], ids=str)
def test_infills_do_not_repeat_words_unless_allowed(infiller, options):
    def repeats(**more):
        """Returns the number of infills with a repeated trigram or a word three times in a row."""
        filled = infiller.fill(["____", TEXT], limits={"exact_words": 24}, **options, **more)
        infills = [words for text in filled for other in text.alternatives for words in other.words]
        grams = [list(zip(words, words[1:], words[2:])) for words in infills]
        return sum(len(set(each)) < len(each) or any(len(set(gram)) == 1 for gram in each) for each in grams)

    assert repeats() == repeats(no_repeat_ngram=3) == 0
    assert repeats(no_repeat_ngram=0) > 0


def test_unknown_words_are_read_as_unknown(infiller):
    """The model does not distinguish unknown words."""
    one, other = (infiller.fill(f"{word} is ____ and {word} ____.") for word in ("Zorblatt", "漢字"))
    assert one.words == other.words
    assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)


def test_limits_apply_to_all_blanks_or_to_each(infiller):
    two = {"exact_words": 2}
    assert [len(words) for words in infiller.fill(TEXT, limits=two).words] == [2, 2]
    assert [len(words) for words in infiller.fill(TEXT, limits=Limits(exact_words=2)).words] == [2, 2]
    assert [len(words) for words in infiller.fill(TEXT, limits=[two, {"exact_words": 0}]).words] == [2, 0]
    filled = infiller.fill([TEXT, "____"], limits=[[None, two], Limits(exact_words=3)])
    assert [len(words) for words in filled[0].words][1] == 2 and len(filled[1].words[0]) == 3


def test_infills_may_be_longer_than_the_default_if_requested(infiller):
    assert len(infiller.fill("____", limits={"min_words": 30}).words[0]) == 30
    assert len(infiller.fill("____", limits={"exact_words": 50}).words[0]) == 50
    assert len(infiller.fill("____", limits={"prefix": "so " * 20}).words[0]) >= 20


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"exact_words": 2, "prefix": "so very good"}, r"^blank 1: prefix and must_include .* exact_words=2"),
        ({"max_words": 2, "must_include": ["so very good"]}, r"take 3 words.*max_words=2"),
        ({"max_words": 3, "prefix": "so", "must_include": ["can't", "good"]}, r"take 4 words"),
        ({"min_words": 3, "max_words": 2}, r"min_words must not be above max_words. Received: 3 and 2"),
        ({"exact_words": 3, "max_words": 4}, r"exact_words cannot be combined with min_words or max_words"),
        ({"min_words": -1}, r"min_words must be a whole number"),
        ({"max_words": 2.0}, r"max_words must be a whole number"),
        ({"exact_words": True}, r"exact_words must be a whole number"),
        ({"max_words": 10**6}, r"the model has room for 254 words here"),
        ({"prefix": 3}, r"prefix must be a string"),
        ({"prefix": "so ____"}, r"prefix must not contain blanks"),
        ({"prefix": "\udc00"}, r"blank 1: prefix: .*lone surrogate"),
        ({"must_include": ["soup", 3]}, r"must_include must be a list of words"),
        ({"must_include": [""]}, r"must_include must have words"),
        ({"banned_words": [" "]}, r"banned_words must have words"),
        ({"banned_words": ["soup"], "prefix": "the Soup"}, r"'Soup' is in banned_words and in prefix or must_include"),
        ({"banned_words": ["Zorblatt"], "must_include": ["Zorblatt"]}, r"'Zorblatt' is in banned_words"),
        ({"banned_words": WORDS}, r"banned_words has all words of the vocabulary, but .* needs 1 \(min_words\)"),
        ({"max_word": 3}, r"unknown limit 'max_word'; did you mean 'max_words'\?"),
        ("good", r"limits must have one entry per blank, 2|limits must be a dict"),
        ([{}], r"^limits must have one entry per blank, 2. Received: 1"),
        ([{}, {"exact_words": 0, "must_include": "so"}], r"^blank 2: "),
        ([{}, 3], r"blank 2: limits must be a dict or Limits. Received: 3"),
    ],
)  # fmt: skip
def test_invalid_limits_are_a_one_line_error(infiller, limits, message):
    with pytest.raises(ValueError, match=message) as error:
        infiller.fill(TEXT, limits=limits)
    assert "\n" not in str(error.value)


def test_errors_count_texts_and_blanks_from_1_and_do_not_name_a_single_text(infiller):
    one, limits = "so ____ ____", [{}, {"max_words": -1}]
    two = ["so", one], [None, limits], "text 2: "
    for texts, all_limits, name in ((one, limits, ""), ([one], [limits], ""), two):
        with pytest.raises(ValueError, match=f"^{name}blank 2: max_words must be"):
            infiller.fill(texts, limits=all_limits)


def test_words_typed_without_a_space_are_returned_without(tmp_path):
    """Includes unknown words that the model reads as their known parts."""
    infiller = Infiller.load(write_run(tmp_path, words=[*WORDS, "-", "/", "not", "<", ">", "m"]))
    known = frozenset(infiller.vocabulary.words)
    for phrase in ("very-good", "so-so", "cannot", "soup/bread", "so,good", "we-so don't", "<m>", '"so"', "so - so"):
        words = infiller.tokenizer.words(phrase, known)
        assert len(words) > 1
        for limits in ({"prefix": phrase}, {"must_include": phrase}):
            assert infiller.fill("the ____ .", limits={**limits, "exact_words": len(words)}).text == f"the {phrase} ."


def test_limits_are_read_once_for_all_blanks_and_texts(infiller, monkeypatch):
    """Equal limits are read once, whether they are one object or several."""
    read, reader = [], infiller._reader._reader
    monkeypatch.setattr(
        reader, "read", lambda *arguments: read.append(arguments) or type(reader).read(reader, *arguments)
    )
    limits = {"prefix": "so", "exact_words": 1}
    for each_form in (limits, [limits, dict(limits), None], [[Limits(**limits)] * 2, [limits], []]):
        filled = infiller.fill(["____ the ____", "____", "the"], limits=each_form)
        assert [each.text for each in filled] == ["so the so", "so", "the"]
        assert len(read) == 1
        read.clear()
