"""Building the sentences of the paper's task from raw tales, and counting every token that is left out."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from builds import check, near, released, write

from text_infilling.corpora.builders.grimm import build_tales

OTHER = "and then the old badger went home through the dark wood to sleep"  # One clause.


def split_of(splits, name):
    """Returns the sentences and the counts of the split that contains a file."""
    split = "train" if name in splits.report.train.files else "test"
    return [" ".join(sentence) for sentence in getattr(splits, split)], getattr(splits.report, split)


def clauses_of(folder, text):
    """Returns the clauses and counts of one tale; builds it with another tale, since one tale must be test."""
    return split_of(build_tales(write(folder, {"tale.txt": text, "other.txt": OTHER})), "tale.txt")


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        (
            "“I'll not go,” said the miller's cat, “for I don’t like the rain at all.”",
            ["i 'll not go , said the miller 's cat", "for i do n't like the rain at all ."],
        ),
        (
            '"Old hen," said the fox, "what hast thou in thy basket? Show it to me; I won\'t tell."',
            ["old hen , said the fox , what hast thou in thy basket ?", "show it to me ; i wo n't tell ."],
        ),
        (
            'He knocked. "Who is that?" asked the old-fashioned owl, and the mouse fell asleep.',
            ["who is that ? asked the old fashioned owl , and the mouse fell asleep ."],
        ),
        (
            "At six o'clock Mr. Badger, 'the Elder', paid 3.50 (all he had) for pies.",
            ["at six o'clock mr. badger , the elder , paid 3.50 all he had for pies ."],
        ),
        (
            "In Zu\u0308rich the win\u00adter was long \u2014 U.S. sailors, e.g. the tall one, did n't like it \u2026",
            ["in z\u00fcrich the winter was long u.s. sailors , e.g. the tall one"],
        ),
        (
            "_In Zu\u0308rich_ the win\u00adter came with 1,000 crows [or more] -- and a wolf.",
            ["in z\u00fcrich the winter came with 1,000 crows or more and a wolf ."],
        ),
        (
            "The snow lay deep upon the roof of the hut--nobody had swept the path that led up to it!",
            ["the snow lay deep upon the roof of the hut", "nobody had swept the path that led up to it !"],
        ),
        (
            "The cook, who had a wooden spoon, a ladle, and one very long, old fork; she took none of them along then.",
            [
                "the cook , who had a wooden spoon , a ladle , and one very long",
                "old fork ; she took none of them along then .",
            ],
        ),
    ],
)
def test_a_sentence_becomes_clauses(tmp_path, text, clauses):
    assert clauses_of(tmp_path, text)[0] == clauses


def test_a_clause_has_at_most_17_tokens_and_short_clauses_are_counted(tmp_path):
    text = (
        "The Lamp and the Very Old Well of the Seven Owls\n\n"
        "One, two, three, four, five, six, seven, eight, nine, ten. Eleven.\n"
        "It was so.\n\n"
        "In a part that has no comma at all in it the words are counted up to seventeen at most.\n"
    )

    sentences, counts = clauses_of(tmp_path, text)

    assert sentences == [
        "one , two , three , four , five , six , seven , eight , nine",
        "in a part that has no comma at all in it the words are counted up to",
    ]
    assert (counts.lines_in, counts.tokens_in) == (4, 11 + 20 + 2 + 4 + 21)
    assert counts.left_out == {
        "title": 11,
        "comma, semicolon or colon before a cut": 1,
        "fewer than 10 tokens": 2 + 2 + 4,
        "fewer than 10 tokens, after a run of 17": 4,
    }
    assert counts.times["fewer than 10 tokens"] == 3


@pytest.mark.parametrize(
    "first", ["Once there was a rat that lived alone under a barn.", "a rat " * 9 + "and that was that for now"]
)
def test_a_first_line_is_text_if_it_is_a_sentence_or_too_long_for_a_title(tmp_path, first):
    sentences, counts = clauses_of(tmp_path, f"{first}\n\nIt ate nothing but cheese from the miller's own table.")

    assert len(sentences) == 2 and sentences[0].startswith(first.lower()[:20])
    assert "title" not in counts.left_out


def test_a_repeated_sentence_is_kept_once_and_in_train_if_possible(tmp_path):
    twice = "The rain fell on the roof all night and all day. "
    tales = {
        f"{number}.txt": f"{twice * 2} Only tale {number} has this sentence, and has it twice. " * 2
        for number in "123456"
    }

    splits = build_tales(write(tmp_path, tales))

    check(splits, 10, 17)
    assert (len(splits.report.train.files), len(splits.report.test.files)) == (5, 1)
    assert (len(splits.train), len(splits.test)) == (1 + 5, 1)
    assert splits.report.train.times["repeats of a sentence"] == 3 + 4 * 4 + 5
    assert splits.report.test.times == {"sentences that are also in train": 4, "repeats of a sentence": 1}


def test_the_split_depends_only_on_names_and_seed(tmp_path):
    names = [f"{number:02}.txt" for number in range(40)]
    ours = write(tmp_path / "ours", {name: f"{OTHER} number {name[:2]}" for name in names})
    longer = write(
        tmp_path / "longer",
        {name: f"{OTHER} again {name[:2]}. " * int(name[:2]) + OTHER + " " + name[:2] for name in reversed(names)},
    )
    files = [build_tales(folder, seed).report for folder, seed in ((ours, 5), (longer, 5), (ours, 6))]

    assert files[0].train.files == files[1].train.files and files[0].test.files == files[1].test.files
    assert files[0].test.files != files[2].test.files
    assert sorted(files[0].train.files + files[0].test.files) == names
    assert len(files[0].test.files) == 6  # 3 in 19.
    # Sentences follow the order of the files, so a contiguous part of train consists of whole tales except at its ends.
    splits = build_tales(ours, 5)
    assert [sentence[-1] for sentence in splits.train] == [name[:2] for name in splits.report.train.files]
    assert [sentence[-1] for sentence in splits.test] == [name[:2] for name in splits.report.test.files]


WORDS = st.sampled_from(["owl", "The", "saw", "Miller", "a", "fell", "it", "green", "3", "and", "Über"])
MARKS = st.sampled_from(["", "", "", "", "", ",", ";", ".", "?", "!", ":", "...", '."', ',"', "!?"])


@hypothesis.settings(max_examples=100)
@hypothesis.given(st.lists(st.lists(st.tuples(WORDS, MARKS), min_size=1, max_size=80), min_size=1, max_size=4))
def test_clauses_are_contiguous_parts_of_the_text_in_order(paragraphs):
    texts = [" ".join(f"{word}{mark}" for word, mark in paragraph) for paragraph in paragraphs]
    text = "\n\n".join(["A Title", *texts, f"{OTHER} soon."])
    with tempfile.TemporaryDirectory() as folder:
        splits = build_tales(write(Path(folder), {"tale.txt": text, "other.txt": OTHER}))

    check(splits, 10, 17)
    sentences, counts = split_of(splits, "tale.txt")
    words_and_marks = sum(1 + bool(mark.strip('"')) for paragraph in paragraphs for _, mark in paragraph)
    assert counts.tokens_in == 2 + words_and_marks + len(OTHER.split()) + 2
    assert sentences[-1] == f"{OTHER} soon ."
    source, end = text.lower(), 0
    for sentence in sentences:
        run = re.compile(r'[\s"]*'.join(map(re.escape, sentence.split()))).search(source, end)
        assert run, (sentence, source[end:])
        end = run.end()


@hypothesis.settings(max_examples=100)
@hypothesis.given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300))
def test_every_token_of_any_text_is_kept_or_counted(text):
    with tempfile.TemporaryDirectory() as folder:
        tales = {"a.txt": f"{OTHER} a.\n\n{text}", "b.txt": f"{OTHER} b.\n\n{text * 5}"}
        splits = build_tales(write(Path(folder), tales))

    check(splits, 10, 17)


def test_a_very_long_line_is_cut_like_any_other_text(tmp_path):
    words = [f"word{number}" for number in range(17 * 12_345 + 4)]
    endless, counts = clauses_of(tmp_path / "bare", " ".join(words))
    punctuated, _ = clauses_of(
        tmp_path / "marks", " ".join(f"We saw the {word}, and then we went back home." for word in words[:40_000])
    )

    assert endless == [" ".join(words[start : start + 17]) for start in range(0, len(words) - 4, 17)]
    assert counts.left_out == {"fewer than 10 tokens, after a run of 17": 4}
    assert punctuated == [f"we saw the {word} , and then we went back home ." for word in words[:40_000]]


def test_a_very_long_word_is_left_out_as_one_token(tmp_path):
    _, counts = clauses_of(tmp_path, f"{'x' * 2_000_000}! {OTHER.capitalize()}.")

    assert counts.left_out == {"fewer than 10 tokens": 2}


def test_empty_files_and_files_of_other_types_are_skipped_and_noted(tmp_path):
    folder = write(tmp_path, {"a.txt": OTHER, "b.TXT": f"{OTHER} too", "none.txt": "", "blank.txt": " \n\n\t\n"})
    write(folder, {"notes.md": "no tale", ".hidden.txt": "no tale"})
    (folder / "more.txt").mkdir()

    report = build_tales(folder).report

    assert sorted(report.train.files + report.test.files) == ["a.txt", "b.TXT"]
    assert report.notes == [
        "skipped because they are empty: blank.txt, none.txt",
        "skipped because tales are *.txt files: .hidden.txt, more.txt, notes.md",
    ]
    assert all(f"\nnote: {note}" in report.format() for note in report.notes)


@pytest.mark.parametrize(("encoding", "line"), [("ISO-8859-1", 3), ("UTF-16", 1)])
def test_the_error_of_a_file_that_is_not_utf8_has_a_remedy_that_works(tmp_path, encoding, line):
    bad = f"The Bear\n\n{OTHER} with a bär.\n".encode(encoding)
    folder = write(tmp_path / "my tales", {"a.txt": OTHER, "b.txt": bad, "c.txt": f"\ufeff{OTHER} too"})

    with pytest.raises(ValueError) as raised:
        build_tales(folder)

    message = str(raised.value)
    assert message.startswith(f"{folder / 'b.txt'}, line {line}: not UTF-8 text") and "\n" not in message
    assert f"iconv -f {encoding} -t UTF-8" in message
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt", "b.txt", "c.txt"]
    if shutil.which("iconv"):
        subprocess.run(message[message.index("iconv") :], shell=True, check=True)
        splits = build_tales(folder)
        assert sorted(sentence[13:] for sentence in splits.train + splits.test) == [
            [],
            ["too"],
            ["with", "a", "bär", "."],
        ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "has 0 text files"),
        ({"a.txt": OTHER, "b.txt": ""}, "has 1 text files"),
        ({"a.txt": OTHER, "b.txt": "Far too short."}, "no sentence for"),
        ({"a.txt": OTHER, "b.txt": OTHER}, "no sentence for test in .*: 13 sentences that are also in train"),
    ],
)
def test_too_little_text_is_an_error(tmp_path, texts, message):
    with pytest.raises(ValueError, match=message):
        build_tales(write(tmp_path / "tales", texts))


def test_a_missing_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="no folder .*tales"):
        build_tales(tmp_path / "tales")


def test_ten_custom_files_are_split_into_8_train_and_2_test_files(tmp_path):
    lines = [f"On day {day} of the voyage we saw {day} whales,\nand the mate wrote it down." for day in range(100)]
    texts = {f"chapter {n}.txt": f"Chapter {n}\n\n" + "\n\n".join(lines[n * 10 : n * 10 + 10]) for n in range(10)}

    splits = build_tales(write(tmp_path, texts))

    check(splits, 10, 17)
    assert (len(splits.report.train.files), len(splits.report.test.files)) == (8, 2)
    assert (len(splits.train), len(splits.test)) == (80, 20)
    days = {split: {sentence[2] for sentence in getattr(splits, split)} for split in ("train", "test")}
    assert not days["train"] & days["test"]


@pytest.fixture(scope="module")
def grimm(shared):
    return build_tales(shared / "data" / "grimm" / "tales")


def test_the_grimm_corpus_has_the_size_of_the_papers(grimm):
    check(grimm, 10, 17)
    assert len(grimm.report.train.files) + len(grimm.report.test.files) == 211
    assert near(len(grimm.train), 16_000) and near(len(grimm.test), 3_000) and near(grimm.report.vocabulary, 7_000)


def test_two_of_three_grimm_clauses_equal_one_of_the_authors(grimm, shared):
    """A different way of cutting would agree only by chance; the rest differ since the authors used another edition."""

    def words(sentence):
        return " ".join(token for token in sentence if token not in {"``", "''", "'", ",", ".", ";", ":", "!", "?"})

    theirs = {
        words(s)
        for s in released(shared, [f"grimm/{n}.jsonl" for n in ("prep.train", "prep.test", "lm.train", "lm.test")])
    }
    ours = {words(s) for s in grimm.train + grimm.test}
    assert len(ours & theirs) / len(ours) > 0.65
