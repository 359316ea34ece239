"""A model of your own texts: started, stopped, resumed, replaced, and its command."""

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from fits import stopped_at_training

from text_infilling.app import cli, fitting
from text_infilling.app.fit_config import FitConfig
from text_infilling.app.initial_run import InitialRun
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora import own_texts
from text_infilling.corpora.corpus import SPLITS
from text_infilling.inference.infiller import Infiller
from text_infilling.models.registry import MODELS, built_model
from text_infilling.runs.replace import replacing

TINY = ("decoder.dim=16", "decoder.num_heads=2", "decoder.ffn_dim=16", "decoder.num_blocks=1")
LINES = [f"Gardener {i} waters the {what} in the evening." for i in range(12) for what in ("roses", "beans", "lawn")]


def config_of(**changes):
    return FitConfig(**{"blanks": 2, "assignments": (*TINY, "train.epochs=1", "train.batch_size=8"), **changes})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "garden.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def folders(source):
    """The folder of a run, and a copy of it from the moment after training, before any result was written."""
    run, unfinished, write = source.parent / "model", source.parent / "unfinished", fitting.files.write_jsonl

    def written(*arguments):
        shutil.copytree(run, unfinished)
        write(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting.files, "write_jsonl", written)
        fitting.fit(source, run, config_of(), say=lambda _: None)
    return run, unfinished


@pytest.fixture(scope="module")
def fitted(folders):
    """A run folder."""
    return folders[0]


# The run


def test_a_complete_run_and_a_report_are_written(fitted):
    metrics = json.loads((fitted / "metrics.json").read_text("utf-8"))
    counts = json.loads((fitted / "data" / "made.json").read_text("utf-8"))["counts"]
    assert counts == {"train": 32, "valid": 2, "test": 2} and metrics["sentences"] == 2
    assert {"ppl", "bleu", "right_length", "unknown_rate", "epochs"} <= metrics.keys()
    report = (fitted / "report.txt").read_text("utf-8")
    assert "garden.txt: 32 sentences" in report and "blanks of the true length" in report and "truth  " in report
    assert not (fitted / "resume.npz").exists()


def test_a_small_corpus_keeps_all_words_and_learns_unknown_ones(fitted, source, tmp_path, monkeypatch):
    def settings_of(run):
        return json.loads((run / "config.json").read_text("utf-8"))["hparams"]["train"]

    assert (settings_of(fitted)["min_count"], settings_of(fitted)["word_dropout"]) == (1, fitting.WORD_DROPOUT)
    monkeypatch.setattr(fitting, "LARGE", 31)
    with stopped_at_training():
        fitting.fit(source, tmp_path, config_of(), say=lambda _: None)
    assert (settings_of(tmp_path)["min_count"], settings_of(tmp_path)["word_dropout"]) == (2, 0.0)


def test_no_sentence_is_in_two_splits(fitted):
    sides = [set((fitted / "data" / f"{split}.txt").read_text("utf-8").splitlines()) for split in SPLITS]
    assert len(set.union(*sides)) == len(LINES) == sum(map(len, sides))


def test_a_finished_run_is_replaced_only_with_overwrite(fitted, source):
    with pytest.raises(ValueError, match="is a finished run: give another out, or set overwrite"):
        fitting.fit(source, fitted, config_of())


def content_of(folder):
    """Returns the content of each file of a run."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ("log.txt", "lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize(
    ("content", "changes"),
    [(None, {}), (b"caf\xe9\n", {}), (b"one line\n", {}), (b"a b c d\n" * 50, {}), (b"", {"init_from": "nowhere"}),
     (None, {"assignments": ("position.base=8",)})],
)  # fmt: skip
def test_a_run_is_kept_if_its_replacement_fails_before_training(fitted, source, tmp_path, content, changes):
    out = shutil.copytree(fitted, tmp_path / "model")
    before = content_of(out)
    path = source if changes and content is None else tmp_path / "texts.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((ValueError, OSError)):
        fitting.fit(path, out, config_of(**changes), overwrite=True, say=lambda _: None)
    assert content_of(out) == before


def test_a_fit_that_failed_before_training_can_be_repeated_with_other_values(source, tmp_path):
    """The setting that was refused is not stored."""
    with pytest.raises(ValueError, match="fix it with position.base="):
        fitting.fit(source, tmp_path / "out", config_of(assignments=("position.base=8",)))
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize("renames", range(8))
def test_a_process_that_is_killed_while_it_replaces_a_run_keeps_the_old_run(tmp_path, monkeypatch, renames):
    """Whichever rename was its last, the next process finds the complete old run."""
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
        with pytest.raises((Killed, ValueError)), replacing(tmp_path, overwrite=True):
            (tmp_path / fitting.layout.CONFIG).write_text("new", "utf-8")
            raise ValueError
    with replacing(tmp_path, overwrite=False):
        assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == old


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_stopped_training_is_resumed_or_starts_afresh_with_overwrite(folders, source, tmp_path, overwrite):
    fitted, unfinished = folders
    shutil.copytree(unfinished, tmp_path, dirs_exist_ok=True)
    assert not (tmp_path / "metrics.json").exists()
    if not overwrite:
        assert Infiller.load(tmp_path).fill("gardener ____ .").text  # it fills already
    with pytest.raises(ValueError, match="was started with other cell.seed"):
        fitting.fit(source, tmp_path, config_of(seed=2))
    other = tmp_path / "other.txt"
    other.write_text("".join(f"Sailor {i} repairs the old net at noon.\n" for i in range(30)), "utf-8")
    with pytest.raises(ValueError, match="with other sentences"):
        fitting.fit(other, tmp_path, config_of())
    fitting.fit(source, tmp_path, config_of(), overwrite, say=lambda _: None)
    assert ("resuming at" in (tmp_path / "log.txt").read_text("utf-8")) is not overwrite
    assert (tmp_path / "predictions.jsonl").read_bytes() == (fitted / "predictions.jsonl").read_bytes()


def test_overwrite_replaces_a_run(fitted, source, tmp_path):
    out = shutil.copytree(fitted, tmp_path / "model")
    assignments = (*config_of().assignments, "train.min_count=4")  # each gardener is in three lines
    fitting.fit(source, out, config_of(seed=2, assignments=assignments), overwrite=True, say=lambda _: None)
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert config["cell"]["seed"] == 2 and config["hparams"]["train"]["min_count"] == 4
    before, now = ((folder / "vocabulary.txt").read_text("utf-8").split() for folder in (fitted, out))
    assert "7" in before and "7" not in now and "waters" in now
    assert {path.name for path in out.iterdir()} == {path.name for path in fitted.iterdir()}


def test_a_large_corpus_is_validated_several_times_per_pass(source, tmp_path, monkeypatch):
    monkeypatch.setattr(own_texts, "EPOCH_SENTENCES", 8)
    monkeypatch.setattr(fitting, "LARGE_EPOCHS", 6)
    metrics = fitting.fit(
        source,
        tmp_path,
        config_of(blanks=1, mask_rate=(0.2, 0.6), assignments=(*TINY, "train.batch_size=4")),
        say=lambda _: None,
    )
    assert (metrics["sentences_train"], metrics["epochs"], metrics["steps"]) == (32, 6, 12)  # 4 epochs are a pass
    assert "6 epochs of 2 steps (4 make a pass)" in (tmp_path / "log.txt").read_text("utf-8")


def test_a_run_initialized_from_another_keeps_the_ids_of_its_words(fitted, source, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text("".join(f"The owl of tower {i} sees the moon.\n" for i in range(30)), "utf-8")
    changes = ("train.epochs=1", "train.batch_size=8")
    config = config_of(blanks=1, init_from=str(fitted), assignments=changes)
    with stopped_at_training():
        fitting.fit(more, tmp_path / "on", config, say=lambda _: None)
    old, new = ((folder / "vocabulary.txt").read_text("utf-8").split() for folder in (fitted, tmp_path / "on"))
    assert new[: len(old)] == old and "owl" in new[len(old) :]
    config = json.loads((tmp_path / "on" / "config.json").read_text("utf-8"))
    assert config["hparams"]["decoder"]["dim"] == 16  # of the run
    with pytest.raises(ValueError, match="decoder.dim=32 cannot be combined with init_from=.* has decoder.dim=16"):
        larger = config_of(blanks=1, init_from=str(fitted), assignments=(*changes, "decoder.dim=32"))
        fitting.fit(more, tmp_path / "larger", larger, say=lambda _: None)
    assert not (tmp_path / "larger" / "config.json").exists()


def test_a_run_of_another_model_cannot_initialize(fitted, source, tmp_path):
    with pytest.raises(ValueError, match="holds a self_attention model, not a gan model: give model=self"):
        fitting.fit(source, tmp_path / "on", config_of(model="gan", assignments=(), init_from=str(fitted)))
    assert not (tmp_path / "on").exists()


@pytest.mark.parametrize("name", MODELS)
def test_the_initial_run_gives_its_weights(name):
    old, more = 12, 3
    sizes = ["decoder.dim=16", "decoder.num_heads=2", "embedder.dim=16", "encoder.units=8", "decoder.units=8"]
    hparams = run_hparams("paper", "smoke", sizes, model=name, models=MODELS)
    first, model = (built_model(name, size, hparams) for size in (old, old + more))
    fresh = [np.array(weight.numpy()) for weight in model.weights]
    InitialRun("", first, None, {}).copy_weights(model)
    for weight, before, given in zip(model.weights, fresh, first.weights, strict=True):
        kept = tuple(map(slice, given.shape))
        np.testing.assert_array_equal(weight.numpy()[kept], given.numpy())
        before[kept] = given.numpy()
        np.testing.assert_array_equal(weight.numpy(), before)
    assert any(weight.shape[:1] == (old + more,) for weight in model.weights)


def test_the_mask_rate_may_be_drawn_from_a_range(source, tmp_path):
    config, said = config_of(mask_rate=(0.2, 0.6), assignments=("train.epochs=1",)), []
    for _ in range(2):
        with stopped_at_training():
            fitting.fit(source, tmp_path, config, say=said.append)
    assert json.loads((tmp_path / "config.json").read_text("utf-8"))["cell"]["mask_rate"] == [0.2, 0.6]
    assert any("was started before" in line for line in said)


def test_a_rule_may_choose_the_masks(source, tmp_path):
    fitting.fit(source, tmp_path, config_of(masking="word_classes_closed", blanks=None), say=lambda _: None)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert (config["cell"]["masking"], config["cell"]["blanks"], config["cell"]["mask_rate"]) == (
        "word_classes_closed", 3, None,
    )  # fmt: skip
    assert config["answers"] == {"empty": True} and Infiller.load(tmp_path).least == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"one short line\n", "has 1 sentences that masking=any can mask, at least 20"),
        (b"the same line\n" * 50, "too few different sentences"),
        (b"fine\n" + b"caf\xe9 ol\xe9\n", "line 2: not UTF-8.*iconv"),
        (b"", "is empty or has blank lines only"),
        (b'{"id": 1, "text": "a b"}\n' * 50, "is JSON Lines: choose the texts to learn with column=NAME"),
    ],
)
def test_unusable_texts_are_one_clear_error(content, message, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        fitting.fit(path, tmp_path / "out", config_of())
    with pytest.raises(FileNotFoundError, match="does not exist: expected a text file"):
        fitting.fit(tmp_path / "none.txt", tmp_path / "out", config_of())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"max_words": 300}, "max_words must be from 4 to 254"), ({"model": "gpt"}, "model must be one of"),
     ({"masking": "nouns"}, "masking must be any, one of"), ({"mask_rate": 1.5}, "mask_rate must be"),
     ({"blanks": 0}, "blanks must be"), ({"seed": -1}, "seed must be from 0"),
     ({"layout": "verse"}, "layout must be one of lines, paragraphs"),
     ({"masking": "word_classes_closed"}, "blanks cannot be combined with masking=word_classes_closed"),
     ({"init_from": "run", "keep_case": True}, "keep_case cannot be combined with init_from"),
     ({"assignments": ["train.epoch=1"]}, "train.epochs")],
)  # fmt: skip
def test_an_invalid_option_is_an_error_that_names_it(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        config_of(**changes)
    assert "--" not in str(error.value)  # names arguments, not flags of the command


def test_a_folder_of_other_files_is_not_changed(source, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.txt").write_text("years of work", "utf-8")
    for overwrite in (False, True):
        with pytest.raises(ValueError, match="contains other files and is not a run: give a new folder as out"):
            fitting.fit(source, tmp_path, config_of(), overwrite=overwrite)
    (tmp_path / "data").rename(tmp_path / "mine")
    (tmp_path / "lock").touch()
    with pytest.raises(ValueError, match="has 1 sentences"):
        fitting.fit(tmp_path / "mine", tmp_path, config_of(), overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


# The command


def run(capsys, *arguments):
    """Returns the exit code, stdout and stderr of `text-infill`."""
    with pytest.raises(SystemExit) as error:
        cli.main(arguments)
    return (error.value.code or 0, *capsys.readouterr())


def test_texts_are_filled_in_their_order(fitted, capsys):
    texts = ["The ____ is wet.", "No blank here", "____ and ____"]
    code, out, _ = run(capsys, "fill", "--run", str(fitted), *texts)
    lines = out.splitlines()
    assert code == 0 and len(lines) == 3
    assert lines[0].startswith("The ") and lines[0].endswith(" is wet.") and lines[1] == texts[1]


def test_a_bad_line_of_a_file_is_an_error_record_and_the_rest_is_filled(fitted, tmp_path, capsys):
    path = tmp_path / "in.txt"
    path.write_text("a ____ .\n" + "word " * 500 + "____\n" + "b ____ .\n", "utf-8")
    code, out, _ = run(capsys, "fill", "--run", str(fitted), "--file", str(path), "--json")
    records = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and [record["line"] for record in records] == [1, 2, 3]
    assert "at most" in records[1]["error"] and records[2]["text"].startswith("b ")


def test_standard_input_has_one_text_per_line(fitted, capsys, monkeypatch):
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
        (["fill", "a ____"], 1, "error: this installation has no base model"),
        (["fill", "--run", "RUN", "--top_p=3", "a ____"], 1, "top_p"),
        (["fill", "--run", "RUN", "--limits={", "a ____"], 2, "expected JSON"),
        (["fill", "--run", "RUN", "--limits=" + "[" * 100_000, "a ____"], 2, "expected JSON"),
        (["fill", "--run", "RUN", "--file", "x", "a ____"], 1, "not both"),
        (["fill", "--run", "RUN", "--file", "none.txt"], 1, "cannot read none.txt: No such file or directory. Give"),
        (["fit", "none.txt", "--out", "OUT"], 1, "none.txt does not exist"),
        (["bake"], 2, "bake"),
    ],
)
def test_invalid_arguments_are_one_clear_line(arguments, code, message, fitted, tmp_path, capsys):
    names = {"RUN": str(fitted), "OUT": str(tmp_path / "out")}
    got, out, err = run(capsys, *(names.get(argument, argument) for argument in arguments))
    assert got == code and message in err and "Traceback" not in err and not out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a.jsonl is JSON Lines: choose the texts to learn with column=NAME. NAME is one of id, text\n"),
        (["--column=txt"], "a.jsonl, line 1: there is no key 'txt'; column takes one of id, text\n"),
        (["--column=text"], "a.jsonl has 1 sentences that masking=any can mask, at least 20 are needed\n"),
    ],
)
def test_the_named_column_of_a_table_is_read(tmp_path, capsys, arguments, message):
    (tmp_path / "a.jsonl").write_text('{"id": 7, "text": "One short line."}\n', "utf-8")
    code, _, err = run(capsys, "fit", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "out"), *arguments)
    assert code == 1 and err.endswith(message) and "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_info_describes_a_run(fitted, capsys):
    code, out, _ = run(capsys, "info", str(fitted))
    assert code == 0 and "self_attention" in out and "garden.txt" in out and "254 words" in out
