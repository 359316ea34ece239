"""The embedded corpora are deterministic, have the recorded checksums and the specified sizes, and use every frame."""

import hashlib
import itertools
import re
from collections import Counter

import pytest

from text_infilling.corpora.synthetic import grammar, reports, reviews, tales
from text_infilling.corpora.synthetic.grammar import SIZES, Grammar
from text_infilling.masking.masked_lines import parse_line

# module, tasks whose lines include blanks, least and most tokens of a sentence, least number of frames
CORPORA = {
    "reviews": (reviews, (), 10, 15, 25),
    "tales": (tales, ("lm", "prepositions"), 10, 17, 40),
    "reports": (reports, ("lm",), 8, 14, 40),
}
FILES = [(name, task) for name, (_, tasks, *_) in CORPORA.items() for task in tasks or (None,)]
each_corpus = pytest.mark.parametrize("name", CORPORA)
each_file = pytest.mark.parametrize(("name", "task"), FILES)


def texts(name, seed=grammar.SEED, count=5000):
    """Returns the first sentences of a corpus, without their blanks."""
    found = CORPORA[name][0].sentences(seed, count)
    return [sentence if isinstance(sentence, str) else " ".join(sentence[0]) for sentence in found]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Returns the folder of each corpus and task; a None task has no blanks."""
    folders = {key: tmp_path_factory.mktemp("synthetic") for key in FILES}
    for (name, task), folder in folders.items():
        CORPORA[name][0].write_corpus(folder, *([task] if task else []))
    return folders


@each_file
def test_the_files_have_the_recorded_checksums(folders, name, task):
    recorded = CORPORA[name][0].SHA256
    for split, digest in (recorded[task] if task else recorded).items():
        assert hashlib.sha256((folders[name, task] / f"{split}.txt").read_bytes()).hexdigest() == digest


@each_file
def test_the_files_have_the_specified_sizes_sentence_lengths_and_word_types(folders, name, task):
    _, _, shortest, longest, _ = CORPORA[name]
    splits = {split: (folders[name, task] / f"{split}.txt").read_text("utf-8").splitlines() for split in SIZES}
    splits = {split: [line.split("\t")[0] for line in lines] for split, lines in splits.items()}
    lines = list(itertools.chain(*splits.values()))

    assert {split: len(text) for split, text in splits.items()} == {"train": 10_000, "valid": 500, "test": 500}
    assert len(set(lines)) == len(lines), "a sentence is repeated"
    assert {len(line.split(" ")) for line in lines} == set(range(shortest, longest + 1))
    counts = Counter(" ".join(splits["train"]).split(" "))
    held_out = set(" ".join(splits["valid"] + splits["test"]).split(" "))
    if name == "reviews":
        assert sum(count >= 2 for count in counts.values()) >= 500
        assert set(" ".join(splits["test"]).split(" ")) <= set(counts)
    else:
        assert {"tales": 500, "reports": 300}[name] <= len(counts) <= 1500
        assert all(counts[word] >= 2 for word in held_out)


@pytest.mark.parametrize(("name", "task"), [(name, task) for name, task in FILES if task])
def test_a_line_holds_a_sentence_a_tab_and_its_blanks(folders, name, task):
    lines = (folders[name, task] / "train.txt").read_text("utf-8").splitlines()
    for line, (words, blanks) in zip(lines, CORPORA[name][0].sentences(count=5000)):
        assert parse_line(line) == (words, blanks[task])
        assert line.split("\t")[0] == " ".join(words)


@pytest.mark.parametrize(
    ("corpus", "task", "tasks"), [(reports, "prepositions", "lm"), (tales, "verbs", "lm, prepositions")]
)
def test_an_unknown_task_is_an_error(tmp_path, corpus, task, tasks):
    with pytest.raises(ValueError, match=f"the tasks {tasks}. Received: '{task}'"):
        corpus.write_corpus(tmp_path, task)


@each_corpus
def test_the_seed_determines_the_text(name):
    module, lines = CORPORA[name][0], texts(name)
    assert list(module.sentences(count=100)) == list(itertools.islice(module.sentences(), 100))
    assert texts(name, count=100) == lines[:100]
    others = texts(name, seed=7, count=100)
    assert len(set(others) & set(lines[:100])) <= (0 if name == "reviews" else 1)


@each_corpus
def test_every_frame_is_used(name):
    """No frame always gives sentences that are too long or too short."""
    frames, lines = Grammar(name).lines("frames"), texts(name)
    assert len(frames) >= CORPORA[name][-1]
    for frame in frames:
        between = re.split(r"\{\w+\}|\([^)]*\)|\[[^]]*\]", frame.lower() if name == "tales" else frame)
        pattern = ".*".join(re.escape(part.strip()) for part in between)
        assert any(re.fullmatch(pattern, line) for line in lines), frame
