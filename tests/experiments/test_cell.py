"""A cell's folder: the cell runs once, resumes, and never mixes settings or shares the folder between processes."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from finished_cells import changed

from experiments.cells import cell as cells
from experiments.cells.cell import Inputs, run_cell
from experiments.cells.setting import KEYS, Cell, Setting
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

ROOT = Path(__file__).resolve().parents[2]
CELL = Cell(Setting("synthetic", "fixed", 0.4, 2, "paper", "smoke"), "template", 1)
LINES = [
    "the noodles here were very good and the staff was kind .",
    "we had the spicy soup and it was far too cold .",
    "i will come back for the fresh bread and the wine .",
]


@pytest.fixture
def inputs(tmp_path):
    """A corpus of three sentences, and a workdir that does not exist yet."""
    paths = []
    for split in ("train", "valid", "test"):
        paths.append(tmp_path / f"{split}.txt")
        paths[-1].write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return Inputs(
        corpus=Corpus("synthetic", *paths, source="three sentences", note="", checksum="c0ffee"),
        vocabulary=Vocabulary.build(LINES, min_count=1),
        hparams=run_hparams("paper", "smoke"),
        workdir=tmp_path / "runs",
    )


def with_hparams(inputs, *assignments):
    return dataclasses.replace(inputs, hparams=run_hparams("paper", "smoke", assignments))


def log_of(inputs):
    return (CELL.folder(inputs.workdir) / "log.txt").read_text("utf-8")


def mark_as_finished(inputs):
    """Writes metrics that no run would produce, to check whether they are kept."""
    files.write_json(CELL.folder(inputs.workdir) / "metrics.json", {"template_bleu": -1.0})


def test_the_folder_is_named_after_the_cell():
    folder = changed(CELL, corpus="yelp", model="self_attention", preset="laptop").folder("runs")
    assert folder == Path("runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1")


def test_cells_that_differ_in_any_attribute_have_different_folders():
    other = dict(corpus="yelp", masking="random", mask_rate=0.4000001, blanks=1, model="self_attention",
                 protocol="released", preset="full", seed=2)  # fmt: skip
    assert other.keys() == set(KEYS)
    folders = {CELL.folder("runs"), *(changed(CELL, **{key: other[key]}).folder("runs") for key in other)}
    assert len(folders) == 1 + len(other)


def test_a_new_cell_writes_its_files(inputs):
    metrics = run_cell(CELL, inputs)
    folder = CELL.folder(inputs.workdir)
    assert 0 < metrics["template_bleu_paper"] < 100
    assert json.loads((folder / "metrics.json").read_text("utf-8")) == metrics
    assert json.loads((folder / "timing.json").read_text("utf-8"))["evaluation_seconds"] > 0
    assert Vocabulary.load(folder / "vocabulary.txt").hash == inputs.vocabulary.hash
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["cell"] == CELL.as_dict()
    assert config["hparams"] == inputs.hparams
    assert config["corpus"] == {"checksum": "c0ffee"} and config["answers"] == {"empty": False}
    assert config["vocabulary"] == {"hash": inputs.vocabulary.hash, "size": len(inputs.vocabulary)}
    assert config["versions"].keys() == {"python", "tensorflow", "keras", "numpy", "sacrebleu"}
    assert "template_bleu_paper" in log_of(inputs)


def test_a_finished_cell_is_not_run_again(inputs):
    run_cell(CELL, inputs)
    mark_as_finished(inputs)
    assert run_cell(CELL, inputs) == {"template_bleu": -1.0}
    assert run_cell(CELL, dataclasses.replace(inputs, resume=False)) == {"template_bleu": -1.0}
    assert "is finished" in log_of(inputs)


def test_overwrite_runs_a_finished_cell_from_scratch(inputs):
    first = run_cell(CELL, inputs)
    mark_as_finished(inputs)
    (CELL.folder(inputs.workdir) / "weights").mkdir()
    other = dataclasses.replace(with_hparams(inputs, "train.epochs=9"), overwrite=True)
    assert run_cell(CELL, other) == first
    assert not (CELL.folder(inputs.workdir) / "weights").exists()


def test_resume_keeps_the_files_of_an_unfinished_cell_and_noresume_deletes_them(inputs):
    run_cell(CELL, inputs)
    folder = CELL.folder(inputs.workdir)
    resume_point = folder / "resume_point"
    for resume in (True, False):
        resume_point.touch()
        (folder / "metrics.json").unlink()
        run_cell(CELL, dataclasses.replace(inputs, resume=resume))
        assert resume_point.exists() == resume


def test_leftovers_without_a_config_are_never_resumed(inputs):
    run_cell(CELL, inputs)
    folder = CELL.folder(inputs.workdir)
    for name in ("metrics.json", "config.json"):  # As after an interrupted deletion.
        (folder / name).unlink()
    (folder / "resume_point").touch()
    run_cell(CELL, inputs)
    assert not (folder / "resume_point").exists()


def test_refused_settings_are_not_stored(inputs):
    """Otherwise the fix that the message suggests would fail on a config that differs."""
    cell = dataclasses.replace(CELL, model="self_attention")
    with pytest.raises(ValueError, match="fix it with position.base="):
        run_cell(cell, with_hparams(inputs, "position.base=8"))
    assert not (cell.folder(inputs.workdir) / "config.json").exists()
    assert "fix it with" in (cell.folder(inputs.workdir) / "log.txt").read_text("utf-8")


@pytest.mark.parametrize("finished", [True, False])
def test_other_hyperparameters_are_an_error_that_names_them(inputs, finished):
    run_cell(CELL, inputs)
    if not finished:
        (CELL.folder(inputs.workdir) / "metrics.json").unlink()
    with pytest.raises(ValueError) as error:
        run_cell(CELL, with_hparams(inputs, "train.epochs=9", "decoder.dim=64"))
    message, epochs = str(error.value), inputs.hparams["train"]["epochs"]
    assert "decoder.dim=128 (now 64)" in message and f"train.epochs={epochs} (now 9)" in message
    assert "--overwrite" in message and "--workdir" in message
    assert "batch_size" not in message and "\n" not in message


def test_another_corpus_vocabulary_or_precision_is_an_error(inputs):
    run_cell(CELL, inputs)
    corpus = dataclasses.replace(inputs.corpus, checksum="decaf")
    for change, named in (
        ({"corpus": corpus}, "corpus.checksum=c0ffee (now decaf)"),
        ({"vocabulary": Vocabulary(["one"])}, "vocabulary.hash="),
        ({"mixed_precision": True}, "mixed_precision=False (now True)"),
    ):
        with pytest.raises(ValueError) as error:
            run_cell(CELL, dataclasses.replace(inputs, **change))
        assert named in str(error.value)


def test_settings_that_do_not_affect_the_numbers_may_change(inputs):
    metrics = run_cell(CELL, inputs)
    moved = dataclasses.replace(inputs.corpus, source="downloaded")
    changed = dataclasses.replace(with_hparams(inputs, "train.resume_seconds=2"), corpus=moved, data_dir="/elsewhere")
    assert run_cell(CELL, changed) == metrics


def test_other_package_versions_cause_a_warning(inputs):
    run_cell(CELL, inputs)
    path = CELL.folder(inputs.workdir) / "config.json"
    config = files.read_json(path)
    config["versions"]["keras"] = "2.0"
    files.write_json(path, config)
    run_cell(CELL, inputs)
    assert "warning" in log_of(inputs) and "keras 2.0" in log_of(inputs)


def test_a_second_process_is_refused_until_the_first_ends(inputs):
    folder = CELL.folder(inputs.workdir)
    folder.mkdir(parents=True)
    hold = (
        "import sys, pathlib; from text_infilling.utils import files\n"
        "with files.locked(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", hold, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="in use by another process"):
            run_cell(CELL, inputs)
        assert not cells.is_finished(folder)
    finally:
        first.kill()
        first.communicate()
    run_cell(CELL, inputs)
    assert cells.is_finished(folder)


def test_a_workdir_that_cannot_be_written_is_named(inputs):
    inputs.workdir.touch()
    with pytest.raises(OSError, match="cannot write to .*runs.*: Not a directory. Give another --workdir"):
        run_cell(CELL, inputs)


def test_a_truncated_config_is_an_error_that_names_the_file(inputs):
    run_cell(CELL, inputs)
    (CELL.folder(inputs.workdir) / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match="config.json is not JSON"):
        run_cell(CELL, inputs)


def test_a_failed_write_leaves_the_old_file_intact(tmp_path):
    path = tmp_path / "predictions.jsonl"
    files.write_jsonl(path, [{"infill": ["crème brûlée"]}, {"infill": [""]}])
    with pytest.raises(TypeError, match="a object cannot be written as JSON"):
        files.write_jsonl(path, [{"infill": ["new"]}, object()])
    assert files.read_jsonl(path) == [{"infill": ["crème brûlée"]}, {"infill": [""]}]
    assert files.read_jsonl(path, 1) == [{"infill": ["crème brûlée"]}]


def test_the_log_contains_the_traceback_and_the_terminal_does_not(tmp_path, capsys):
    with pytest.raises(ValueError), files.Log(tmp_path / "log.txt") as log:
        log("one line")
        with log.traceback():
            raise ValueError("went wrong")
    assert capsys.readouterr().out == "one line\n"
    text = (tmp_path / "log.txt").read_text("utf-8")
    assert "one line" in text and "Traceback" in text and "went wrong" in text
