"""Building the sentences of the paper's task from raw reports, and counting every token that is left out."""

import tempfile
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from builds import check, near, released, write

from text_infilling.corpora.builders.nba import build_reports


def reports(folder, train, test="The Springfield_Owls won 9 of their last ten games .\n"):
    write(folder, {"train.txt": train, "test.txt": test})
    return build_reports(folder / "train.txt", folder / "test.txt")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "The Springfield_Owls ( 3 - 1 ) beat the Ogdenville_Elks 99 - 88 , and nobody in the hall saw it coming .",
            "The Springfield_Owls beat the Ogdenville_Elks 99 - 88 , and nobody in the hall",
        ),
        ("Owls guard Ned_Plank scored 20 ( 7 of 9 ( ! ) .", "Owls guard Ned_Plank scored 20"),
        ("And then , Plank scored 20 ) more points .", "And then , Plank scored 20 more points ."),
        ("The Owls won by 20 at home today .", "The Owls won by 20 at home today ."),
    ],
)
def test_a_report_is_cut_and_keeps_its_case(tmp_path, line, sentence):
    names = "On that long night Ned_Plank of the Springfield_Owls had 31 .\n"
    splits = reports(tmp_path, names + line + "\n")
    kept = [" ".join(tokens) for tokens in splits.train[1:]]

    assert kept == ([sentence] if len(sentence.split()) >= 8 else [])


def test_reports_without_a_name_or_number_are_left_out_and_counted(tmp_path):
    train = [
        "The Springfield_Owls beat the Ogdenville_Elks by 9 points .",
        "The Springfield_Owls beat the Ogdenville_Elks by 9 points .",
        "The Springfield_Owls beat the Ogdenville_Elks once more today .",
        "A 9 - point lead was all the Owls had .",
        "Nobody scored more than 9 points on that day .",
        "Owls won ( 9 - 3 ) 9 - 3 .",
        "",
        "The Owls , of whom nobody had thought this possible before the night , won by 9 .",
    ]
    test = [
        "The Springfield_Owls beat the Ogdenville_Elks by 9 points .",
        "The Elks scored 9 fewer points than they had before .",
    ]

    splits = reports(tmp_path, "\ufeff" + "\n".join(train), "\r\n".join(test))

    check(splits, 8, 14)
    assert [" ".join(sentence) for sentence in splits.train] == train[:1]
    assert [" ".join(sentence) for sentence in splits.test] == test[1:]
    assert splits.report.train.lines_in == 7
    assert splits.report.train.left_out == {
        "repeats of a sentence": 9,
        "sentences without a number after the name": 9 + 11 + 14,
        "sentences without a name": 10,
        "in parentheses": 5,
        "sentences of fewer than 8 tokens": 6,
        "after the first 14 tokens": 4,
    }
    assert splits.report.test.times == {"sentences that are also in train": 1}


TOKENS = st.sampled_from(["The", "Owls", "Ned_Plank", "_", "__", "(", ")", "9", "99.5", "won", ",", "-", "Plank", "."])


@hypothesis.settings(max_examples=100)
@hypothesis.given(*[st.lists(st.lists(TOKENS, max_size=30), max_size=8)] * 2)
def test_the_tokens_of_a_sentence_are_from_its_line_in_order(train, test):
    texts = [
        "\n".join(map(" ".join, [*lines, f"{n} Ned_Plank won 9 of all his games .".split()]))
        for n, lines in enumerate([train, test])
    ]
    with tempfile.TemporaryDirectory() as folder:
        splits = reports(Path(folder), *texts)

    check(splits, 8, 14)
    for sentences, text in ((splits.train, texts[0]), (splits.test, texts[1])):
        lines = iter(text.split("\n"))
        for sentence in sentences:
            assert any(
                is_subsequence(sentence, line.split()) for line in lines
            )  # The iterator `lines` continues after the line found.
            assert not {"(", ")"} & set(sentence)


def is_subsequence(tokens, source):
    rest = iter(source)
    return all(token in rest for token in tokens)


def test_errors_name_the_report_file(tmp_path):
    with pytest.raises(OSError, match="train.txt"):
        build_reports(tmp_path / "train.txt", tmp_path / "test.txt")
    with pytest.raises(ValueError, match="train.txt, line 2: not UTF-8"):
        reports(tmp_path, b"one\nb\xe4r\n")
    with pytest.raises(ValueError, match="no sentence for train in train.txt: .* 3 sentences of fewer than 8 tokens"):
        reports(tmp_path, "Far too short\n")


def test_the_report_is_formatted_as_an_aligned_table(tmp_path):
    splits = reports(tmp_path, "The Springfield_Owls ( 3 - 1 ) beat the Ogdenville_Elks by 9 points .\n" * 2)

    assert splits.report.format().splitlines()[1:] == [
        "                                  train   test",
        "files                                 1      1",
        "lines in                              2      1",
        "tokens in                            28     10",
        "lines out                             1      1",
        "tokens out                            9     10",
        "left out: in parentheses         10 (2)  0 (0)",
        "left out: repeats of a sentence   9 (1)  0 (0)",
        "vocabulary: 15 word types over train and test",
    ]


@pytest.fixture(scope="module")
def nba(shared):
    return build_reports(*(shared / "data" / "nba" / f"sentences.{split}.txt" for split in ("train", "test")))


def test_the_nba_corpus_has_the_size_of_the_papers(nba):
    check(nba, 8, 14)
    assert near(len(nba.train), 21_000) and near(len(nba.test), 5_000)
    assert 5_000 <= nba.report.vocabulary <= 6_000  # Not the paper's 8K: see `build_reports`.


def test_the_nba_corpus_has_most_of_the_authors_sentences(nba, shared):
    digits = {
        word: str(n) for n, word in enumerate("one two three four five six seven eight nine ten eleven".split(), 1)
    }

    def numbers_as_digits(sentences):
        return {" ".join(digits.get(token.lower(), token) for token in sentence) for sentence in sentences}

    train, test = (numbers_as_digits(released(shared, [f"nba/lm.{split}.jsonl"])) for split in ("train", "test"))
    assert len(train & numbers_as_digits(nba.train)) / len(train) > 0.85
    assert len(test & numbers_as_digits(nba.test)) / len(test) > 0.85
