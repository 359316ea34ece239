"""Reading the authors' pairs: each template is aligned with its sentence; the rule decides between several fits."""

import itertools
import json

import hypothesis
import nltk.data
import pytest
from hypothesis import strategies as st

from text_infilling.corpora.pairs import Pair, read_pairs, split_validation
from text_infilling.masking import tagging
from text_infilling.masking.rules import WordRule, load_rule


def template(tokens, blanks):
    kept, done = [], 0
    for start, end in blanks:
        kept += [*tokens[done:start], "<m>"]
        done = end
    return " ".join(kept + tokens[done:])


def choosing(blanks, count):
    """Returns a rule without tags that gives every sentence these blanks."""
    return WordRule("chosen", lambda tokens, tags: blanks, needs_tags=False, blanks=count)


@pytest.fixture
def write(tmp_path):
    """Returns a function that writes (template, sentence) pairs into a file."""

    def write(*rows):
        path = tmp_path / "pairs.jsonl"
        path.write_text(
            "".join(json.dumps({"template": template, "expected": expected}) + "\n" for template, expected in rows),
            encoding="utf-8",
        )
        return path

    return write


@pytest.fixture
def no_tagger(monkeypatch, tmp_path):
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    tagging._tagger.cache_clear()


@pytest.fixture
def data_of_tagger(shared, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))


# Aligning a template with its sentence.


def test_pairs_are_in_file_order_with_their_blanks(write):
    path = write(
        ("<m> miller <m> laughed <m>", "then the miller got up and laughed at them"),
        ("<m> wolf <m> ran <m>", "wolf ran"),
    )
    result = read_pairs(path, choosing(None, 3))

    assert result.pairs == [
        Pair("then the miller got up and laughed at them".split(), [(0, 2), (3, 6), (7, 9)]),
        Pair(["wolf", "ran"], [(0, 0), (1, 1), (2, 2)]),
    ]
    assert (result.ambiguous, result.leftmost, result.note) == (0, 0, "")


sentences = st.lists(st.sampled_from("ab"), max_size=7)


@hypothesis.given(sentences, st.integers(1, 3), st.data())
def test_the_masker_recovers_any_blanks_and_otherwise_the_leftmost_fit_is_read(tmp_path_factory, tokens, count, data):
    choices = itertools.combinations_with_replacement(range(len(tokens) + 1), 2 * count)
    every = [list(zip(bounds[::2], bounds[1::2])) for bounds in choices]
    blanks = data.draw(st.sampled_from(every))
    given = template(tokens, blanks)
    fits = [other for other in every if template(tokens, other) == given]
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    path.write_text(json.dumps({"template": given, "expected": " ".join(tokens)}), encoding="utf-8")

    assert read_pairs(path, choosing(blanks, count)).pairs == [Pair(tokens, blanks)]
    result = read_pairs(path, choosing(None, count))
    assert result.pairs == [Pair(tokens, min(fits))]
    assert result.ambiguous == result.leftmost == (len(fits) > 1)
    assert bool(result.note) == (len(fits) > 1)


# Templates that fit in several ways.


def test_the_last_verb_decides_between_two_fits(write, data_of_tagger):
    path = write(
        ("<m> king <m> said <m>", "the king said what he said before"),
        ("<m> king <m> said <m>", "the king said nothing"),
    )
    result = read_pairs(path, load_rule("anchors_noun_verb"))

    assert [pair.blanks for pair in result.pairs] == [[(0, 1), (2, 5), (6, 7)], [(0, 1), (2, 2), (3, 4)]]
    assert (result.ambiguous, result.leftmost, result.note) == (1, 0, "")


def test_without_the_tagger_the_leftmost_fit_is_used_and_a_note_says_so(write, no_tagger):
    path = write(("<m> king <m> said <m>", "the king said what he said before"))
    result = read_pairs(path, load_rule("anchors_noun_verb"))

    assert result.pairs[0].blanks == [(0, 1), (2, 2), (3, 7)]
    assert (result.ambiguous, result.leftmost) == (1, 1)
    assert result.note.startswith("1 of 1 ambiguous templates are read as the leftmost fit: the tagger's data")
    assert "\n" not in result.note


def test_without_the_tagger_an_unambiguous_file_is_read_without_a_note(write, no_tagger):
    path = write(("<m> king <m> said <m>", "the king said nothing"))
    assert read_pairs(path, load_rule("anchors_noun_verb")).note == ""


def test_the_leftmost_fit_is_used_if_the_maskers_choice_does_not_fit(write):
    path = write(("<m> a <m>", "a b a"))
    result = read_pairs(path, choosing([(0, 1), (2, 3)], 2))

    assert result.pairs[0].blanks == [(0, 0), (1, 3)]
    assert result.note == (
        "1 of 1 ambiguous templates are read as the leftmost fit: the rule's choice is not among the fits"
    )


# Invalid files.


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a b c", "expected JSON in UTF-8.*a b c"),
        (b"", "expected JSON in UTF-8"),
        (b'{"template": "\xff"}', "expected JSON in UTF-8"),
        (b"[1]", "an object with the strings"),
        (b'{"template": "<m> a"}', "an object with the strings"),
        (b'{"template": "<m> a", "expected": 3}', "an object with the strings"),
        (b'{"template": "<m> a <m>", "expected": "b c"}', "'<m> a <m>' does not fit 'b c'"),
        (b'{"template": "<m> a a <m>", "expected": "a"}', "does not fit"),
        (b'{"template": "b <m> <m>", "expected": "a"}', "does not fit"),
        (b'{"template": "<m> <m> b", "expected": "a"}', "does not fit"),
        (b'{"template": "<m> a", "expected": "b a"}', "1 blanks, but chosen makes 2"),
        (b'{"template": "a", "expected": "a"}', "0 blanks, but chosen makes 2"),
    ],
)
def test_the_error_of_an_invalid_line_names_file_and_line(tmp_path, line, message):
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b'{"template": "<m> a <m>", "expected": "a b"}\n' + line + b"\n")

    with pytest.raises(ValueError, match=f"pairs.jsonl, line 2: .*{message}") as caught:
        read_pairs(path, choosing(None, 2))
    assert "\n" not in str(caught.value)


def test_an_empty_file_and_a_missing_file_are_errors_that_name_it(tmp_path):
    (tmp_path / "pairs.jsonl").write_bytes(b"")
    with pytest.raises(ValueError, match="pairs.jsonl is empty"):
        read_pairs(tmp_path / "pairs.jsonl", choosing(None, 3))
    with pytest.raises(FileNotFoundError, match="other.jsonl"):
        read_pairs(tmp_path / "other.jsonl", choosing(None, 3))


# Validation.


def pairs_of(words):
    return [Pair([word], [(0, 1)]) for word in words]


def test_validation_is_the_last_tenth_in_file_order():
    pairs = pairs_of(map(str, range(25)))
    assert split_validation(pairs) == (pairs[:23], pairs[23:])


def test_validation_leaves_out_sentences_that_are_in_train():
    train, valid = split_validation(pairs_of("abcdefghijklmnopqr") + pairs_of("ax"))
    assert train == pairs_of("abcdefghijklmnopqr")
    assert valid == pairs_of("x")


@pytest.mark.parametrize("words", ["", "abcdefghi", "abcdefghia"])
def test_an_empty_validation_split_is_an_error(words):
    with pytest.raises(ValueError, match=f"last tenth of {len(words)} pairs"):
        split_validation(pairs_of(words))


# The authors' files.


@pytest.mark.parametrize(
    ("file", "masking", "ambiguous"),
    [
        ("grimm/lm.test", "anchors_noun_verb", 40),
        ("grimm/lm.train", "anchors_noun_verb", 391),
        ("grimm/prep.test", "word_classes", 0),
        ("grimm/prep.train", "word_classes", 1),
        ("nba/lm.test", "anchors_name_number", 9),
        ("nba/lm.train", "anchors_name_number", 97),
    ],
)
def test_every_released_template_fits_its_sentence(shared, data_of_tagger, file, masking, ambiguous):
    names = json.loads((shared / "data" / "nba" / "names.json").read_text("utf-8"))
    path = shared / "data" / f"{file}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    result = read_pairs(path, load_rule(masking, names=frozenset(itertools.chain.from_iterable(names.values()))))

    assert [template(*pair) for pair in result.pairs] == [row["template"] for row in rows]
    assert [" ".join(pair.tokens) for pair in result.pairs] == [row["expected"] for row in rows]
    assert (result.ambiguous, result.leftmost, result.note) == (ambiguous, 0, "")


def test_the_validation_split_of_the_released_files_is_nearly_a_tenth(shared, no_tagger):
    for task, masking in [("grimm/lm", "anchors_noun_verb"), ("nba/lm", "anchors_name_number")]:
        pairs = read_pairs(shared / "data" / f"{task}.train.jsonl", load_rule(masking)).pairs
        train, valid = split_validation(pairs)

        assert len(train) == len(pairs) - len(pairs) // 10
        assert 0.95 * (len(pairs) // 10) <= len(valid) <= len(pairs) // 10
        assert not {tuple(pair.tokens) for pair in train} & {tuple(pair.tokens) for pair in valid}
