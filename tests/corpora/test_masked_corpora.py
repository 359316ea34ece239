"""Corpora for Grimm, NBA and prepositions: the authors' pairs, sentences built from raw text, and made-up ones."""

import json
import re

import pytest

from text_infilling.corpora import masked_corpora
from text_infilling.corpora.corpus import SPLITS, load_corpus
from text_infilling.corpora.masked_corpora import SOURCES
from text_infilling.corpora.masked_corpora import load_corpus as load
from text_infilling.masking import masked_lines

TASKS = tuple(SOURCES)


def rows(corpus, split):
    return list(masked_lines.read(getattr(corpus, split)))


def masked_share(found):
    return sum(end - start for _, blanks in found for start, end in blanks) / sum(len(words) for words, _ in found)


def tale(number):
    """Returns a tale whose sentences are in no other tale."""
    paragraphs = "\n\n".join(
        f"The miller of village {number} had {line} sons and he went to the mill in the evening. "
        f"There he sat on bag {line} of flour and looked out at tower {number} of the castle!"
        for line in range(2, 12)
    )
    return f"Tale {number}\n\n{paragraphs}\n"


@pytest.fixture
def tales(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(10):
        (folder / f"{number}.txt").write_text(tale(number), "utf-8")
    return folder


def pairs_of(tmp_path, count=40):
    """Returns a data folder with `count` pairs for the Grimm task."""
    folder = tmp_path / "data" / "grimm"
    folder.mkdir(parents=True)
    for split, first in (("train", 0), ("test", 1000)):
        lines = [
            {"template": "<m> miller <m> went <m>", "expected": f"the miller number {i} then went home"}
            for i in range(first, first + count)
        ]
        (folder / f"lm.{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder.parent


def test_the_authors_pairs_become_masked_lines(tmp_path):
    corpus = load("grimm", "auto", "pairs", pairs_of(tmp_path), tmp_path / "cache")
    assert (corpus.name, corpus.task, corpus.blanks) == ("grimm", "grimm", 3)
    assert [len(rows(corpus, split)) for split in SPLITS] == [36, 4, 40]  # valid is the last tenth of train
    assert rows(corpus, "valid")[0] == ("the miller number 36 then went home".split(), [(0, 1), (2, 5), (6, 7)])


def test_every_load_reports_the_number_of_ambiguous_pairs(tmp_path):
    data, logged = pairs_of(tmp_path), []
    row = {"template": "<m> a <m> b <m>", "expected": "a a b"}
    with open(data / "grimm" / "lm.test.jsonl", "a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")
    for _ in range(2):
        load("grimm", "auto", "pairs", data, tmp_path / "cache", say=logged.append)
    assert logged[0] == logged[1] and "several ways: 0 of train, 1 of test" in logged[0] and len(logged) == 2


def test_the_same_files_give_the_same_corpus_and_changed_files_a_new_one(tmp_path):
    data = pairs_of(tmp_path)
    first, again = (load("grimm", "grimm", "pairs", data, tmp_path / "cache") for _ in range(2))
    assert first == again
    with open(data / "grimm" / "lm.test.jsonl", "a", encoding="utf-8") as lines:
        lines.write('{"template": "<m> a <m> b <m>", "expected": "a c b"}\n')
    assert load("grimm", "grimm", "pairs", data, tmp_path / "cache").checksum != first.checksum
    assert rows(first, "test") == rows(again, "test")  # the earlier corpus is kept


@pytest.mark.parametrize("task", TASKS)
def test_without_data_auto_uses_made_up_sentences_after_one_warning(task, tmp_path):
    warnings = []
    corpus = load(task, "auto", "pairs", cache_dir=tmp_path, log=warnings.append)
    assert len(warnings) == 1 and "no data_dir" in warnings[0]
    assert corpus == load(task, "synthetic", "pairs", cache_dir=tmp_path)
    assert corpus.name == f"{task}_synthetic" and "made-up" in corpus.note
    low, high = {"grimm": (0.78, 0.88), "prepositions": (0.18, 0.3), "nba": (0.72, 0.82)}[task]
    for split in SPLITS:
        assert low < masked_share(rows(corpus, split)) < high


@pytest.mark.parametrize("task", TASKS)
def test_a_requested_corpus_that_is_missing_is_an_error_that_names_it(task, tmp_path):
    name = SOURCES[task].folder
    with pytest.raises(FileNotFoundError, match=rf"no {name}/.*train.jsonl.*no data_dir"):
        load(task, name, "pairs", cache_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=f"no {name}/.*in data_dir={tmp_path}"):
        load(task, "auto", "pairs", tmp_path, tmp_path / "cache")
    with pytest.raises(ValueError, match=f"corpus is one of auto, {name}, synthetic"):
        load(task, "yelp", "pairs", cache_dir=tmp_path)
    assert not (tmp_path / "cache" / "prepared").exists()


def test_custom_texts_are_built_and_masked_without_a_tagger(tmp_path, tales):
    logged = []
    corpus = load("grimm", "auto", "word_classes_closed", tales, tmp_path / "cache", say=logged.append)
    assert corpus.name == "grimm_built" and "built from 10 files of data_dir" in corpus.source
    assert corpus.tales == 10
    assert any("files" in text for text in logged) and any("word_classes_closed" in text for text in logged)
    sides = [{tuple(words) for words, _ in rows(corpus, split)} for split in SPLITS]
    assert all(sides) and not sides[0] & sides[1] and not (sides[0] | sides[1]) & sides[2]
    for words, blanks in rows(corpus, "train"):
        assert len(blanks) == 3 and 10 <= len(words) <= 17
        masked = {word for start, end in blanks for word in words[start:end]}
        assert masked <= {"the", "of", "to", "in", "on", "at", "out"}


def test_texts_are_txt_files_in_any_letter_case_except_hidden_files_and_folders(tmp_path, tales):
    def load_it():
        return load("grimm", "auto", "word_classes_closed", tales, tmp_path / "cache")

    plain = load_it()
    (tales / "9.txt").rename(tales / "9.TXT")
    (tales / "._9.txt").write_bytes(b"\x00\xff")  # as macOS creates them
    (tales / "dir.txt").mkdir()
    assert load_it() == plain and "built from 10 files" in plain.source
    (tales / "9.TXT").write_text(tale(99), "utf-8")
    assert load_it().checksum != plain.checksum
    for path in tales.glob("?.txt"):
        path.rename(path.with_suffix(".TXT"))
    assert "built from 10 files" in load_it().source


def test_a_custom_rule_is_applied_again_at_every_load(tmp_path, tales, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "my_rule.py"
    module.write_text("def ends(tokens):\n    return [(0, 1), (2, 2), (len(tokens) - 1, len(tokens))]\n", "utf-8")
    corpus = load("grimm", "grimm", "my_rule:ends", tales, tmp_path / "cache")
    words, blanks = rows(corpus, "test")[0]
    assert blanks == [(0, 1), (2, 2), (len(words) - 1, len(words))]

    import my_rule

    monkeypatch.setattr(my_rule, "ends", lambda tokens: [(0, 2), (2, 2), (3, 4)])
    other = load("grimm", "grimm", "my_rule:ends", tales, tmp_path / "cache")
    assert other.checksum != corpus.checksum and rows(other, "test")[0][1] == [(0, 2), (2, 2), (3, 4)]


def test_a_file_that_is_not_utf_8_is_an_error_and_no_corpus_is_written(tmp_path, tales):
    (tales / "latin.txt").write_bytes("Ein M\u00e4rchen\n\nEs war einmal.".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin.txt, line 1.*iconv"):
        load("grimm", "auto", "word_classes_closed", tales, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("prepared/*"))


def test_made_up_sentences_can_be_masked_by_another_rule(tmp_path):
    logged = []
    corpus = load("grimm", "synthetic", "word_classes_closed", cache_dir=tmp_path, say=logged.append)
    assert masked_share(rows(corpus, "train")) < 0.5
    (line,) = logged
    assert re.search(r"left out because word_classes_closed .*: \d+ of train, \d+ of valid, \d+ of test$", line)


def test_a_rule_recognises_the_names_in_made_up_reports(tmp_path, shared, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))
    reports = load("nba", "synthetic", "pairs", cache_dir=tmp_path)
    sentences = [words for words, _ in rows(reports, "test")]
    masked, _ = masked_corpora._masked({"test": sentences}, "anchors_name_number")
    assert len(masked["test"]) > 0.9 * len(sentences)


@pytest.mark.parametrize("corpus", ["grimm", "synthetic"])
def test_a_rule_that_masks_no_sentence_is_an_error_that_names_it_and_writes_nothing(
    corpus, tmp_path, tales, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "no_rule.py").write_text("def nothing(tokens):\n    return None\n", "utf-8")
    with pytest.raises(ValueError, match="masking=no_rule:nothing masks no sentence of train and .*test"):
        load("grimm", corpus, "no_rule:nothing", tales, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("prepared/*"))


@pytest.mark.parametrize(("task", "lines"), [("grimm", 14_593), ("prepositions", 15_950), ("nba", 11_941)])
def test_the_released_pairs_have_the_expected_sizes_and_mask_rates(task, lines, shared, tmp_path, monkeypatch):
    monkeypatch.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))
    corpus = load(task, "auto", "pairs", shared / "data", tmp_path)
    train, valid, test = (rows(corpus, split) for split in SPLITS)
    assert lines - len(train) - len(valid) in range(20)  # valid leaves out sentences that are also in train
    assert len(test) == {"grimm": 1546, "prepositions": 2890, "nba": 1000}[task]
    low, high = {"grimm": (0.81, 0.86), "prepositions": (0.2, 0.22), "nba": (0.775, 0.795)}[task]
    assert low < masked_share(train) < high and low < masked_share(test) < high
    assert f"{lines:,} of their" in corpus.note


def test_yelp_lines_include_no_blanks(tmp_path):
    corpus = load_corpus("synthetic", cache_dir=tmp_path)
    assert (corpus.task, corpus.blanks) == ("yelp", None)
    assert next(corpus.texts("train")) == corpus.train.read_text("utf-8").split("\n")[0] + "\n"
