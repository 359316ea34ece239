"""The data report counts the content of the files and shows the paper's figures beside it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from text_infilling.corpora.corpus import Corpus, load_corpus
from text_infilling.data.report import data_report, format_report, save_report
from text_infilling.vocabulary import Vocabulary

TRAIN = ["a b c d e f g h i .", "a b c d e f g h i .", "a b c d e f g h i j k .", "a ."]
VALID = ["a b c d e f g h i !"]
TEST = ["a  b c d e f g h i .", "a b c d e f g h x <m> .", "b ."]


@pytest.fixture
def corpus(tmp_path):
    paths = []
    for split, lines in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        paths.append(tmp_path / f"{split}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return Corpus("yelp", *paths, source="data_dir", note="this stands in for that", checksum="0123")


@pytest.fixture
def vocabulary():
    return Vocabulary.build(TRAIN, min_count=2)


def test_counts_equal_those_made_by_hand(corpus, vocabulary):
    report = data_report(corpus, vocabulary, mask_rate=0.5, blanks=2, min_count=2)

    assert report["vocabulary"] == {"words": 10, "with_special_tokens": 17, "min_count": 2}
    assert report["splits"]["train"] == {
        "lines": 4,
        "distinct_lines": 3,
        "tokens": 34,
        "shortest": 2,
        "mean_length": 8.5,
        "longest": 12,
        "unknown_rate": 2 / 34,  # j and k occur once
        "mask_rate": (5 + 5 + 6) / 32,
        "too_short": 1,
        "also_in_train": None,
    }
    assert report["splits"]["valid"]["unknown_rate"] == 1 / 10
    assert report["splits"]["test"] == {
        "lines": 3,
        "distinct_lines": 3,
        "tokens": 23,
        "shortest": 2,
        "mean_length": 23 / 3,
        "longest": 11,
        "unknown_rate": 2 / 23,  # x, and <m>, which is not a special token in text
        "mask_rate": (5 + 5) / 21,
        "too_short": 1,
        "also_in_train": 1,  # sentences that differ only in white space are equal
    }


def test_random_masking_rounds_the_number_of_masked_words_to_nearest(corpus, vocabulary):
    report = data_report(corpus, vocabulary, mask_rate=0.3, blanks=1, masking="random")

    assert report["splits"]["train"]["mask_rate"] == (3 + 3 + 4 + 1) / 34
    assert report["splits"]["train"]["too_short"] == 0


def test_the_mask_rate_is_none_if_all_sentences_are_too_short(corpus, vocabulary):
    report = data_report(corpus, vocabulary, mask_rate=0.5, blanks=8)

    assert report["splits"]["test"]["mask_rate"] is None
    assert report["splits"]["test"]["too_short"] == 3
    assert format_report(report)


def test_errors_of_bad_settings_name_the_argument(corpus, vocabulary):
    with pytest.raises(ValueError, match="masking must be one of"):
        data_report(corpus, vocabulary, 0.5, 1, masking="other")
    with pytest.raises(ValueError, match="mask_rate"):
        data_report(corpus, vocabulary, 1.5, 1)


@pytest.mark.parametrize(("mask_rate", "real"), [(0.3, 26.8), (0.4, 34.6), (0.5, 48.0)])
def test_the_papers_test_set_has_the_known_rates(shared, mask_rate, real):
    corpus = load_corpus("yelp", shared / "data")
    with open(corpus.train, encoding="utf-8") as lines:
        vocabulary = Vocabulary.build(lines, min_count=2)
    splits = data_report(corpus, vocabulary, mask_rate, blanks=1)["splits"]

    assert np.round(100 * splits["test"]["mask_rate"], 1) == real
    assert (splits["train"]["lines"], splits["train"]["distinct_lines"]) == (98_298, 97_893)
    assert [splits[split]["tokens"] for split in splits] == [1_212_034, 12_217, 12_327]
    assert round(splits["test"]["unknown_rate"] * 12_327) == 43
    assert splits["test"]["also_in_train"] == splits["valid"]["also_in_train"] == 0


def test_the_text_is_an_aligned_table_with_the_papers_figures(corpus, vocabulary):
    text = format_report(data_report(corpus, vocabulary, 0.5, 2, min_count=2))

    lines = text.splitlines()
    assert lines[0] == "Data report: yelp corpus, data_dir"
    assert lines[1].split() == ["train", "valid", "test", "paper"]
    table = {line[:19].strip(): line[19:] for line in lines[2:14]}
    assert table["lines"].split() == ["4", "1", "3", "104K", "/", "1K"]
    assert table["lines also in train"].split() == ["-", "0", "1"]
    assert table["unknown tokens"].split() == ["5.882%", "10.000%", "8.696%"]
    assert table["masked tokens"].split() == ["50.0%", "50.0%", "47.6%"]
    assert table["vocabulary"].split() == ["10", "9K"]
    ends = {line.index(cell) + len(cell) for line, cell in ((lines[1], "test"), (lines[2], " 3 "[:-1]))}
    assert len(ends) == 1
    assert "note: this stands in for that" in lines
    assert "masking: fixed, 50% requested, blanks: 2" in lines
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize(("tales", "ours"), [(211, "211"), (None, "-")])
def test_the_report_shows_the_number_of_tales_if_known(corpus, vocabulary, tales, ours):
    grimm = replace(corpus, task="grimm", tales=tales)

    lines = format_report(data_report(grimm, vocabulary, 0.5, 2)).splitlines()

    assert lines[2].split() == ["tales", ours, "209"]
    assert "tales" not in format_report(data_report(corpus, vocabulary, 0.5, 2))


def test_the_title_of_a_report_on_the_synthetic_corpus_says_so(tmp_path):
    corpus = load_corpus("synthetic", cache_dir=tmp_path)
    with open(corpus.train, encoding="utf-8") as lines:
        report = data_report(corpus, Vocabulary.build(lines, min_count=2), 0.4, 2)

    assert "synthetic" in format_report(report).splitlines()[0]
    assert report["vocabulary"]["words"] >= 500
    assert report["splits"]["test"]["also_in_train"] == 0
    assert report["splits"]["test"]["too_short"] == 0


def test_the_saved_files_hold_the_report_as_json_and_text(tmp_path, corpus, vocabulary):
    report = data_report(corpus, vocabulary, 0.5, 2)
    folder = tmp_path / "cell"
    folder.mkdir()
    save_report(report, folder)

    assert json.loads((folder / "data_report.json").read_text("utf-8")) == report
    assert (folder / "data_report.txt").read_text("utf-8") == format_report(report) + "\n"
    assert sorted(path.name for path in folder.iterdir()) == ["data_report.json", "data_report.txt"]
