"""One's own texts: cut into sentences, held out, learned, gone on with, and filled from the command line."""

import io
import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling import cli, fitting
from text_infilling.data import own_texts
from text_infilling.data.corpora import SPLITS
from text_infilling.data.own_texts import sentences
from text_infilling.fitting import Wishes
from text_infilling.infiller import Infiller
from text_infilling.tokenizer import Tokenizer

TINY = ("decoder.dim=16", "decoder.num_heads=2", "decoder.ffn_dim=16", "decoder.num_blocks=1")
LINES = [f"Gardener {i} waters the {what} in the evening." for i in range(12) for what in ("roses", "beans", "lawn")]


def wishes(**changes):
    return Wishes(**{"blanks": 2, "assignments": (*TINY, "train.epochs=1", "train.batch_size=8"), **changes})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "garden.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def fitted(source):
    """A run folder."""
    fitting.fit(source, source.parent / "model", wishes(), say=lambda _: None)
    return source.parent / "model"


# Sentences


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


# The run


def test_it_leaves_a_whole_run_and_a_report(fitted):
    metrics = json.loads((fitted / "metrics.json").read_text("utf-8"))
    counts = json.loads((fitted / "data" / "made.json").read_text("utf-8"))["counts"]
    assert counts == {"train": 32, "valid": 2, "test": 2} and metrics["sentences"] == 2
    assert {"ppl", "bleu", "right_length", "unknown_rate", "epochs"} <= metrics.keys()
    report = (fitted / "report.txt").read_text("utf-8")
    assert "garden.txt: 32 sentences" in report and "blanks of the true length" in report and "truth  " in report
    assert not (fitted / "resume.npz").exists()


def test_no_sentence_is_on_two_sides(fitted):
    sides = [set((fitted / "data" / f"{split}.txt").read_text("utf-8").splitlines()) for split in SPLITS]
    assert len(set.union(*sides)) == len(LINES) == sum(map(len, sides))


def test_a_finished_run_is_not_run_again_unasked(fitted, source):
    with pytest.raises(ValueError, match="holds a finished run: give another --out, or --overwrite"):
        fitting.fit(source, fitted, wishes())


def held(folder):
    """What a run holds, file by file."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ("log.txt", "lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("content", "changes"),
    [(None, {}), (b"caf\xe9\n", {}), (b"one line\n", {}), (b"a b c d\n" * 50, {}), (b"", {"init_from": "nowhere"}),
     (None, {"assignments": ("position.base=8",)})],
)  # fmt: skip
def test_what_cannot_be_begun_leaves_the_run_it_was_to_replace(fitted, source, tmp_path, content, changes):
    out = shutil.copytree(fitted, tmp_path / "model")
    before = held(out)
    path = source if changes and content is None else tmp_path / "texts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((ValueError, OSError)):
        fitting.fit(path, out, wishes(**changes), overwrite=True, say=lambda _: None)
    assert held(out) == before


def test_what_was_not_begun_can_be_mended(source, tmp_path):
    """As the message says; the setting that was refused is not kept."""
    with pytest.raises(ValueError, match="mend it with --set position.base="):
        fitting.fit(source, tmp_path / "out", wishes(assignments=("position.base=8",)))
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize("renames", range(6))
def test_a_process_that_is_killed_while_it_replaces_a_run_leaves_it(tmp_path, monkeypatch, renames):
    """Whichever was its last renaming, the next process finds the old run, whole."""
    old = {name: f"old {name}" for name in (fitting.layout.CONFIG, fitting.layout.METRICS, fitting.layout.WEIGHTS)}
    for name, text in old.items():
        (tmp_path / name).write_text(text, "utf-8")

    class Killed(BaseException):
        pass

    left, rename = [renames], Path.rename

    def counted(path, target):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", counted)
        with pytest.raises((Killed, ValueError)), fitting._replacing(tmp_path, overwrite=True):
            (tmp_path / fitting.layout.CONFIG).write_text("new", "utf-8")
            raise ValueError
    with fitting._replacing(tmp_path, overwrite=False):
        assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == old


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


def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(fitted, source, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fitting.files, "write_jsonl", stopped)
        with pytest.raises(KeyboardInterrupt):
            fitting.fit(source, tmp_path, wishes(), say=lambda _: None)
    assert not (tmp_path / "metrics.json").exists()
    assert Infiller.load(tmp_path).fill("gardener ____ .").text  # it fills already
    with pytest.raises(ValueError, match="was begun with other cell.seed"):
        fitting.fit(source, tmp_path, wishes(seed=2))
    fitting.fit(source, tmp_path, wishes(), say=lambda _: None)
    assert (tmp_path / "predictions.jsonl").read_bytes() == (fitted / "predictions.jsonl").read_bytes()


def test_a_large_corpus_is_validated_within_a_pass(source, tmp_path, monkeypatch):
    monkeypatch.setattr(own_texts, "EPOCH_SENTENCES", 8)
    monkeypatch.setattr(fitting, "LARGE_EPOCHS", 6)
    metrics = fitting.fit(
        source, tmp_path, wishes(blanks=1, assignments=(*TINY, "train.batch_size=4")), say=lambda _: None
    )
    assert (metrics["sentences_train"], metrics["epochs"], metrics["steps"]) == (32, 6, 12)  # 4 epochs are a pass
    assert "6 epochs of 2 steps (4 make a pass)" in (tmp_path / "log.txt").read_text("utf-8")


def test_it_goes_on_from_a_run_whose_words_keep_their_ids(fitted, source, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text("".join(f"The owl of tower {i} sees the moon.\n" for i in range(30)), "utf-8")
    changes = ("train.epochs=1", "train.batch_size=8")
    fitting.fit(more, tmp_path / "on", wishes(blanks=1, init_from=str(fitted), assignments=changes), say=lambda _: None)
    old, new = ((folder / "vocabulary.txt").read_text("utf-8").split() for folder in (fitted, tmp_path / "on"))
    assert new[: len(old)] == old and "owl" in new[len(old) :]
    config = json.loads((tmp_path / "on" / "config.json").read_text("utf-8"))
    assert config["hparams"]["decoder"]["dim"] == 16  # of the run


def test_a_run_that_is_gone_on_from_gives_its_weights(fitted):
    start = fitting._Start.of(fitted, "self_attention")
    old, more = len(start.vocabulary), 3
    model = type(start.model)(old + more, start.model.hparams)
    model.build()
    fresh = [weight.numpy() for weight in model.weights]
    start.give(model)
    for weight, before, given_ in zip(model.weights, fresh, start.model.weights, strict=True):
        value, rows = weight.numpy(), given_.shape[0]
        np.testing.assert_array_equal(value[:rows], given_.numpy())
        np.testing.assert_array_equal(value[rows:], before[rows:])
    assert any(weight.shape[0] == old + more for weight in model.weights)


def test_masks_may_follow_a_rule(source, tmp_path):
    fitting.fit(source, tmp_path, wishes(masking="word_classes_closed", blanks=None), say=lambda _: None)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert (config["cell"]["masking"], config["cell"]["blanks"], config["cell"]["mask_rate"]) == (
        "word_classes_closed", 3, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one short line\n", "has 1 sentences that --masking=any can mask, at least 20"),
        (b"the same line\n" * 50, "too few different sentences"),
        (b"fine\n" + b"caf\xe9 ol\xe9\n", "line 2: not UTF-8.*iconv"),
        (b"", "has 0 sentences that"),
    ],
)
def test_texts_that_cannot_be_learned_are_one_clear_error(content, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        fitting.fit(path, tmp_path / "out", wishes())
    with pytest.raises(FileNotFoundError, match="does not exist: expected a text file"):
        fitting.fit(tmp_path / "none.txt", tmp_path / "out", wishes())


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"max_words": 300}, "--max_words must be from 4 to 254"), ({"model": "gpt"}, "--model takes one of"),
     ({"masking": "nouns"}, "--masking must be one of"), ({"mask_rate": 1.5}, "--mask_rate must be"),
     ({"blanks": 0}, "--blanks must be"), ({"seed": -1}, "--seed must be from 0"),
     ({"layout": "verse"}, "--layout takes one of lines, paragraphs"),
     ({"masking": "word_classes_closed"}, "--blanks has no meaning with --masking=word_classes_closed"),
     ({"init_from": "run", "keep_case": True}, "--keep_case has no meaning with --init_from"),
     ({"assignments": ["train.epoch=1"]}, "train.epochs")],
)  # fmt: skip
def test_a_wrong_wish_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        wishes(**changes)


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


def test_a_folder_of_other_things_is_left_alone(source, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("years of work", "utf-8")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="holds what is no run: give a new folder as --out"):
            fitting.fit(source, tmp_path, wishes(), overwrite=overwrite)
    (tmp_path / "data").rename(tmp_path / "mine")
    (tmp_path / "lock").touch()
    with pytest.raises(ValueError, match="has 1 sentences"):
        fitting.fit(tmp_path / "mine", tmp_path, wishes(), overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


# The command


def run(capsys, *arguments):
    """Exit code, stdout and stderr of `text-infill`."""
    with pytest.raises(SystemExit) as error:
        cli.main(arguments)
    return (error.value.code or 0, *capsys.readouterr())


def test_texts_come_back_filled_in_their_order(fitted, capsys):
    texts = ["The ____ is wet.", "No blank here", "____ and ____"]
    code, out, _ = run(capsys, "fill", "--run", str(fitted), *texts)
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3
    assert lines[0].startswith("The ") and lines[0].endswith(" is wet.") and lines[1] == texts[1]


def test_a_bad_line_of_a_file_is_an_error_record_and_the_rest_goes_on(fitted, tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_text("a ____ .\n" + "word " * 500 + "____\n" + "b ____ .\n", "utf-8")
    code, out, _ = run(capsys, "fill", "--run", str(fitted), "--file", str(path), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and [record["line"] for record in records] == [1, 2, 3]
    assert "at most" in records[1]["error"] and records[2]["text"].startswith("b ")


def test_standard_input_is_read_a_text_a_line(fitted, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("the ____ ünd\n".encode())))
    code, out, _ = run(capsys, "fill", "--run", str(fitted))
    assert code == 0 and out.startswith("the ") and out.endswith(" ünd\n")


def test_an_empty_line_ends_the_results_of_a_text(fitted, capsys):
    code, out, _ = run(capsys, "fill", "--run", str(fitted), "--num_results=2", "the ____ .", "a ____ b ____ .")
    assert code == 0 and [bool(line) for line in out.split("\n")] == [True, True, False] * 2 + [False]


def test_several_results_and_limits(fitted, capsys):
    arguments = ["fill", "--run", str(fitted), "--json", "--num_results=3", '--limits={"exact_words": 2}', "the ____ ."]
    code, out, _ = run(capsys, *arguments)
    found = json.loads(out)["alternatives"]
    assert code == 0 and len({one["text"] for one in found}) == 3
    assert all(len(words) == 2 for one in found for words in one["words"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fill", "--run", "nowhere", "a ____"], 1, "error: nowhere has no config.json"),
        (["fill", "a ____"], 2, "--run"),
        (["fill", "--run", "RUN", "--top_p=3", "a ____"], 1, "top_p"),
        (["fill", "--run", "RUN", "--limits={", "a ____"], 2, "expected JSON"),
        (["fill", "--run", "RUN", "--file", "x", "a ____"], 1, "not both"),
        (["fit", "none.txt", "--out", "OUT"], 1, "none.txt does not exist"),
        (["bake"], 2, "bake"),
    ],
)
def test_wrong_use_is_one_clear_line(arguments, code, message, fitted, tmp_path, capsys):
    names = {"RUN": str(fitted), "OUT": str(tmp_path / "out")}
    got, out, err = run(capsys, *(names.get(argument, argument) for argument in arguments))
    assert got == code and message in err and "Traceback" not in err and not out


def test_info_tells_what_a_run_is(fitted, capsys):
    code, out, _ = run(capsys, "info", str(fitted))
    assert code == 0 and "self_attention" in out and "garden.txt" in out and "254 words" in out
