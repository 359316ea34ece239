"""A corpus from the user's own texts: reading, cutting, joining, leaving out, and holding out."""

import gzip
import io
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.corpora import own_texts, source_texts
from text_infilling.corpora.corpus import SPLITS
from text_infilling.corpora.own_texts import Reading, sentences
from text_infilling.corpora.source_texts import SourceFile, source_files
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils import files


@given(st.lists(st.lists(st.sampled_from(["a", "b", ".", "!"]), max_size=20).map(" ".join), max_size=5))
def test_only_the_words_of_single_word_parts_are_lost(lines):
    found = list(sentences(lines, Tokenizer(lower=True), max_words=6))
    assert all(1 < len(words) <= 6 for words in found)
    kept, all_words = sum(map(len, found)), sum(len(line.split()) for line in lines)
    assert all_words - kept <= sum(1 + len(line.split()) // 6 for line in lines)


def test_a_long_line_is_cut_between_its_sentences():
    line = "It rained. We stayed in! The cat slept on the warm stove all day."
    found = [" ".join(words) for words in sentences([line], Tokenizer(lower=True), max_words=9)]
    assert found == ["it rained . we stayed in !", "the cat slept on the warm stove all day"]


def test_a_sentence_without_end_is_cut_into_full_parts():
    words = [f"w{i}" for i in range(10_000)]
    found = list(sentences([f"so . {' '.join(words)}"], Tokenizer(lower=True), max_words=60))
    assert (
        found[0] == ["so", "."]
        and [word for part in found[1:] for word in part] == words
        and {len(part) for part in found[1:]} == {60, 40}
    )


def test_a_short_line_is_not_cut():
    assert list(sentences(["One. Two."], Tokenizer(lower=False), 60)) == [["One", ".", "Two", "."]]


def corpus_of(source, folder, reading, log=print):
    """Makes the corpus of a source."""
    with source_files(source, source.parent, log) as sources:
        return own_texts.corpus(sources, folder, reading, "any", log)


def test_lines_with_blanks_are_left_out_with_a_warning(tmp_path):
    lines = [f"The owl of tower {i} sees the moon." for i in range(30)] + ["Fill in the ____ of [blank]!", "Or __m__."]
    (tmp_path / "form.txt").write_text("\n".join(lines), "utf-8")
    logged = []
    reading = Reading(Tokenizer(lower=True), frozenset(), "lines", 60)
    _, counts = corpus_of(tmp_path / "form.txt", tmp_path / "data", reading, logged.append)
    assert sum(counts.values()) == 30
    assert [line for line in logged if "warning" in line] == [
        "warning: left out 2 lines that already contain blanks (____)"
    ]


def split(tmp_path, lines):
    """Splits the lines; returns the sentences of each split."""
    everything = tmp_path / "all.txt"
    everything.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    counts = own_texts._split(everything, tmp_path, len(lines))
    found = {name: (tmp_path / f"{name}.txt").read_text("utf-8").splitlines() for name in SPLITS}
    assert {name: len(lines) for name, lines in found.items()} == counts
    return found


@given(st.lists(st.integers(0, 40), min_size=20, max_size=200))
def test_a_sentence_is_in_one_split_only_and_held_out_once(numbers):
    with tempfile.TemporaryDirectory() as folder:
        found = split(Path(folder), [f"sentence {number}" for number in numbers])
    sides = [set(lines) for lines in found.values()]
    assert sum(map(len, sides)) == len(set.union(*sides)) == len(set(numbers))
    assert len(found["valid"]) == len(sides[1]) and len(found["test"]) == len(sides[2])
    assert all(sides) or len(set(numbers)) < 3
    assert Counter(found["train"]) == {
        line: numbers.count(int(line.split()[1])) for line in sides[SPLITS.index("train")]
    }


def test_a_frequent_line_leaves_enough_sentences_to_validate_on(tmp_path):
    for often in range(20):  # different lines, with different hashes
        lines = [f"a different line {i}" for i in range(260)] + [f"the same line {often}"] * 40
        found = split(tmp_path, lines)
        assert (len(found["valid"]), len(found["test"])) == (15, 15)


def test_the_lines_of_a_large_text_are_distributed_over_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(own_texts, "EPOCH_SENTENCES", 100)
    found = split(tmp_path, [f"line {i}" for i in range(1000)])
    numbers = [int(line.split()[1]) for line in found["train"]]
    assert sorted(numbers) != numbers
    parts = [numbers[i : i + 80] for i in range(0, 880, 80)]
    assert all(min(part) < 300 and max(part) > 700 for part in parts)
    assert not list(tmp_path.glob("*.part"))


def test_the_paragraphs_layout_joins_the_lines_of_a_paragraph(tmp_path):
    page = "The owl of tower {0} looks\nat the moon. It is\nnever tired.\n\nNobody knows {0}.\n\n\n"
    path = tmp_path / "book.txt"
    path.write_text("".join(map(page.format, range(30))), "utf-8")
    logged = []
    corpus_of(path, tmp_path / "data", Reading(Tokenizer(lower=True), frozenset(), "paragraphs", 11), logged.append)
    found = {line for name in SPLITS for line in (tmp_path / "data" / f"{name}.txt").read_text("utf-8").splitlines()}
    expected = ("the owl of tower {} looks at the moon .", "it is never tired .", "nobody knows {} .")
    assert found == {line.format(i) for line in expected for i in range(30)}
    assert not any("warning" in line for line in logged)


def test_a_paragraph_ends_with_its_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"The owl\nof {name}", "utf-8")
    sources = [SourceFile(str(tmp_path / name)) for name in ("a.txt", "b.txt")]
    found = own_texts._paragraphs(own_texts._lines(sources, None, print))
    assert list(found) == ["The owl of a", "The owl of b"]


def test_a_warning_is_logged_if_lines_end_in_mid_sentence(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("".join(f"The owl of tower {i} looks\nat the moon and\nis quiet.\n\n" for i in range(30)), "utf-8")
    logged = []
    own_texts._warn_of_paragraphs(SourceFile(str(path)), None, logged.append)
    assert len(logged) == 1 and "layout=paragraphs" in logged[0]
    path.write_text("".join(f"the owl of tower {i} is quiet .\n" for i in range(90)), "utf-8")
    own_texts._warn_of_paragraphs(SourceFile(str(path)), None, logged.append)
    assert len(logged) == 1


# Whole corpora.


LINES = [f"Gardener {i} waters the {what} in the evening." for i in range(12) for what in ("roses", "beans", "lawn")]
TEXT = "".join(f"{line}\n" for line in LINES)


def made(folder, source, layout="lines", column=None):
    """Makes the corpus of a source; returns its sentences in alphabetical order, and the log lines."""
    logged = []
    reading = Reading(Tokenizer(lower=False), frozenset(), layout, 60, column)
    corpus_of(source, folder / "data", reading, logged.append)
    lines = [line for name in SPLITS for line in (folder / "data" / f"{name}.txt").read_text("utf-8").splitlines()]
    return sorted(lines), logged


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The sentences of `TEXT`."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "garden.txt").write_text(TEXT, "utf-8")
    return made(folder, folder / "garden.txt")[0]


def test_the_corpus_of_a_plain_text_does_not_change(tmp_path):
    """The key and the sentences equal those of earlier versions, so that runs started with them can be resumed."""
    path = tmp_path / "garden.txt"
    path.write_text(TEXT, "utf-8")
    reading = Reading(Tokenizer(lower=True), frozenset(), "lines", 60)
    corpus, counts = corpus_of(path, tmp_path / "data", reading)
    assert counts == {"train": 32, "valid": 2, "test": 2}
    assert corpus.checksum == "21476c594b52b1dfb5bd5e35a73525b74246f807d9f889012ea6786d8d3f2904"
    assert files.read_json(tmp_path / "data" / "made.json")["key"] == (
        "44b22886cc0b3a517c69de17122c282e2969b141bb4dbab1f2265115b9825211"
    )


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("layout", ["lines", "paragraphs"])
def test_line_ends_of_any_system_are_read(tmp_path, expected, end, layout):
    text = TEXT if layout == "lines" else "\n".join(f"{line} Yes.\nYes again.\n" for line in LINES)
    path = tmp_path / "text.txt"
    path.write_bytes(text.replace("\n", end).encode())
    found, _ = made(tmp_path, path, layout)
    assert found == (expected if layout == "lines" else [f"{line} Yes . Yes again ." for line in expected])


def test_a_text_without_line_ends_is_cut_between_words_and_no_word_is_lost(tmp_path, monkeypatch):
    for module in (source_texts, own_texts):
        monkeypatch.setattr(module, "LONGEST_LINE", 1000)
    (tmp_path / "text.txt").write_text(" ".join(f"word{i}" for i in range(3000)), "utf-8")
    found, _ = made(tmp_path, tmp_path / "text.txt")
    assert sorted(word for line in found for word in line.split()) == sorted(f"word{i}" for i in range(3000))
    (tmp_path / "text.txt").write_text("word\n" * 1000, "utf-8")
    paragraphs = own_texts._paragraphs(SourceFile(str(tmp_path / "text.txt")).texts(None))
    assert max(map(len, paragraphs)) < 1010


def test_html_entities_are_decoded_and_counted(tmp_path):
    lines = [f"Ben &amp; Jerry&#39;s shop {i} is &unknown; at AT&T &copy now." for i in range(30)]
    (tmp_path / "text.txt").write_text("\n".join(lines), "utf-8")
    found, logged = made(tmp_path, tmp_path / "text.txt")
    assert found[0] == "Ben & Jerry 's shop 0 is &unknown; at AT&T & copy now ."
    assert "decoded 60 HTML entities, e.g. &amp;" in logged


@pytest.mark.parametrize(
    ("text", "expected"),
    [("it&apos;s", "it's"), ("&#x27;&#39;", "''"), ("&lt;b&gt;", "<b>"), ("&notit;", "&notit;"), ("R&D; x", "R&D; x"),
     ("&amp", "&amp"), ("&amp;lt;", "&lt;"), ("&#99999999;", "&#99999999;")],
)  # fmt: skip
def test_only_whole_html_entities_are_decoded(text, expected):
    assert own_texts.decode_entities(text)[0] == expected


JSON_LINES = "".join(json.dumps({"id": i, "text": line}) + "\n" for i, line in enumerate(LINES))
CSV = "id,text,stars\n" + "".join(f'{i},"{line}\nSo, ""yes"".",5\n' for i, line in enumerate(LINES))
TSV = "id\ttext\n" + "".join(f"{i}\t{line}\n" for i, line in enumerate(LINES))


@pytest.mark.parametrize("suffix", ["", ".txt.gz"])
@pytest.mark.parametrize("content", [JSON_LINES, JSON_LINES.replace("\n", "\n\n"), TSV], ids=["json", "blank", "tsv"])
def test_the_texts_of_a_column_become_the_corpus(tmp_path, expected, content, suffix):
    data = content.encode("utf-8-sig")
    (tmp_path / f"a{suffix}").write_bytes(gzip.compress(data) if suffix else data)
    assert made(tmp_path, tmp_path / f"a{suffix}", column="text")[0] == expected


def test_a_csv_field_may_contain_quotes_and_line_ends(tmp_path, expected):
    (tmp_path / "a.csv").write_text(CSV, "utf-8", newline="\r\n")
    found, _ = made(tmp_path, tmp_path / "a.csv", "paragraphs", "text")
    assert found == [f"{line} So , `` yes '' ." for line in expected]


def test_another_column_gives_another_corpus(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"one": line, "two": line.upper()}) + "\n" for line in LINES), "utf-8"
    )
    assert made(tmp_path, tmp_path / "a.jsonl", column="one") != made(tmp_path, tmp_path / "a.jsonl", column="two")


def test_a_pipe_and_a_file_of_the_same_text_give_the_same_corpus(tmp_path, expected, monkeypatch):
    (tmp_path / "a.txt").write_text(TEXT, "utf-8")
    made(tmp_path, tmp_path / "a.txt")
    key = (tmp_path / "data" / "made.json").read_bytes()
    for source in ("-", "/dev/stdin", str(tmp_path / "fifo")):
        (tmp_path / "data" / "made.json").unlink()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
        if source.endswith("fifo"):
            os.mkfifo(source)
            threading.Thread(target=Path(source).write_text, args=(TEXT,), daemon=True).start()
        assert made(tmp_path, Path(source))[0] == expected
        assert (tmp_path / "data" / "made.json").read_bytes() == key
        assert {path.name for path in tmp_path.iterdir()} <= {"a.txt", "data", "fifo"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.txt is empty or has blank lines only: expected at least 20 sentences"),
        (b" \n\r\n" * 50, "a.txt is empty or has blank lines only"),
        (b"the same line\n" * 50, "has too few different sentences: most of the 50 are repeats, and none is left"),
        (TEXT.encode() + b"a\0b c\n", "a.txt, line 37: has a NUL byte"),
    ],
)
def test_the_error_of_an_unusable_text_names_it_and_leaves_no_files(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        made(tmp_path, tmp_path / "a.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
