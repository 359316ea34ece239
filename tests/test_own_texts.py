"""Where the sentences of one's own texts come from: read, cut, joined, left out, and held out."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.data import own_texts
from text_infilling.data.corpora import SPLITS
from text_infilling.data.own_texts import sentences
from text_infilling.tokenizer import Tokenizer


@given(st.lists(st.lists(st.sampled_from(["a", "b", ".", "!"]), max_size=20).map(" ".join), max_size=5))
def test_no_word_is_lost_but_those_of_single_word_parts(lines):
    found = list(sentences(lines, Tokenizer(lower=True), max_words=6))
    assert all(1 < len(words) <= 6 for words in found)
    kept, all_words = sum(map(len, found)), sum(len(line.split()) for line in lines)
    assert all_words - kept <= sum(1 + len(line.split()) // 6 for line in lines)


def test_a_long_line_is_cut_between_its_sentences():
    line = "It rained. We stayed in! The cat slept on the warm stove all day."
    found = [" ".join(words) for words in sentences([line], Tokenizer(lower=True), max_words=9)]
    assert found == ["it rained . we stayed in !", "the cat slept on the warm stove all day"]


def test_a_sentence_without_end_is_cut_where_a_part_is_full():
    words = [f"w{i}" for i in range(10_000)]
    found = list(sentences([f"so . {' '.join(words)}"], Tokenizer(lower=True), max_words=60))
    assert (
        found[0] == ["so", "."]
        and [word for part in found[1:] for word in part] == words
        and {len(part) for part in found[1:]} == {60, 40}
    )


def test_a_short_line_stays_as_it_is():
    assert list(sentences(["One. Two."], Tokenizer(lower=False), 60)) == [["One", ".", "Two", "."]]


def test_lines_with_blanks_are_not_learned_from(tmp_path):
    lines = [f"The owl of tower {i} sees the moon." for i in range(30)] + ["Fill in the ____ of [blank]!", "Or __m__."]
    (tmp_path / "form.txt").write_text("\n".join(lines), "utf-8")
    said = []
    arguments = Tokenizer(lower=True), frozenset(), "lines", 60, "any", said.append
    _, counts = own_texts.corpus(tmp_path / "form.txt", tmp_path / "data", *arguments)
    assert sum(counts.values()) == 30
    assert [line for line in said if "warning" in line] == [
        "warning: 2 lines are left out, they have blanks (____) themselves"
    ]


def test_the_texts_of_a_folder_are_txt_in_any_case_and_not_hidden(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no .*txt"):
        own_texts.check_there(tmp_path)
    for name in ("b.TXT", "a.txt", "._a.txt", "notes.md"):
        (tmp_path / name).write_text("The owl sees the moon.", "utf-8")
    (tmp_path / "dir.txt").mkdir()
    assert [path.name for path in own_texts._paths(tmp_path)] == ["a.txt", "b.TXT"]


def split(tmp_path, lines):
    """The sentences of each split."""
    everything = tmp_path / "all.txt"
    everything.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    counts = own_texts._split(everything, tmp_path, len(lines))
    found = {name: (tmp_path / f"{name}.txt").read_text("utf-8").splitlines() for name in SPLITS}
    assert {name: len(lines) for name, lines in found.items()} == counts
    return found


@given(st.lists(st.integers(0, 40), min_size=20, max_size=200))
def test_a_sentence_is_on_one_side_alone_and_held_out_once(numbers):
    with tempfile.TemporaryDirectory() as folder:
        found = split(Path(folder), [f"sentence {number}" for number in numbers])
    sides = [set(lines) for lines in found.values()]
    assert sum(map(len, sides)) == len(set.union(*sides)) == len(set(numbers))
    assert len(found["valid"]) == len(sides[1]) and len(found["test"]) == len(sides[2])
    assert all(sides) or len(set(numbers)) < 3
    assert Counter(found["train"]) == {
        line: numbers.count(int(line.split()[1])) for line in sides[SPLITS.index("train")]
    }


def test_a_line_that_stands_often_leaves_enough_to_validate_on(tmp_path):
    for often in range(20):  # wherever its number falls
        lines = [f"a different line {i}" for i in range(260)] + [f"the same line {often}"] * 40
        found = split(tmp_path, lines)
        assert (len(found["valid"]), len(found["test"])) == (15, 15)


def test_the_lines_of_a_large_text_are_dealt_out(tmp_path, monkeypatch):
    monkeypatch.setattr(own_texts, "EPOCH_SENTENCES", 100)
    found = split(tmp_path, [f"line {i}" for i in range(1000)])
    numbers = [int(line.split()[1]) for line in found["train"]]
    assert sorted(numbers) != numbers
    parts = [numbers[i : i + 80] for i in range(0, 880, 80)]
    assert all(min(part) < 300 and max(part) > 700 for part in parts)
    assert not list(tmp_path.glob("*.part"))


def test_lines_of_a_paragraph_are_joined_where_asked_for(tmp_path):
    page = "The owl of tower {0} looks\nat the moon. It is\nnever tired.\n\nNobody knows {0}.\n\n\n"
    path = tmp_path / "book.txt"
    path.write_text("".join(map(page.format, range(30))), "utf-8")
    said = []
    own_texts.corpus(path, tmp_path / "data", Tokenizer(lower=True), frozenset(), "paragraphs", 11, "any", said.append)
    found = {line for name in SPLITS for line in (tmp_path / "data" / f"{name}.txt").read_text("utf-8").splitlines()}
    expected = ("the owl of tower {} looks at the moon .", "it is never tired .", "nobody knows {} .")
    assert found == {line.format(i) for line in expected for i in range(30)}
    assert not any("warning" in line for line in said)


def test_a_paragraph_ends_with_its_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"The owl\nof {name}", "utf-8")
    found = own_texts._paragraphs(own_texts._lines([tmp_path / "a.txt", tmp_path / "b.txt"], print))
    assert list(found) == ["The owl of a", "The owl of b"]


def test_lines_that_end_in_mid_sentence_are_told(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("".join(f"The owl of tower {i} looks\nat the moon and\nis quiet.\n\n" for i in range(30)), "utf-8")
    said = []
    own_texts._warn_of_paragraphs(path, said.append)
    assert len(said) == 1 and "--layout=paragraphs" in said[0]
    path.write_text("".join(f"the owl of tower {i} is quiet .\n" for i in range(90)), "utf-8")
    own_texts._warn_of_paragraphs(path, said.append)
    assert len(said) == 1


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16"])
def test_a_file_in_another_encoding_is_told_with_the_command_that_converts_it(tmp_path, encoding):
    path = tmp_path / "my text.txt"
    path.write_text("caf\xe9\nol\xe9\n", encoding)
    with pytest.raises(ValueError, match=f"line 1: not UTF-8 .* iconv -f {encoding} -t UTF-8 '.*' > '.*' && mv "):
        list(own_texts._lines([path], print))
