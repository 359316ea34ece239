"""The base model: written from a run, checked when it is opened, and used by the commands without --run."""

import contextlib
import io
import json
import re
import shutil
import zipfile

import numpy as np
import pytest

from text_infilling.app import base_artefact, base_model, cli
from text_infilling.app.server import Server
from text_infilling.inference.infiller import Infiller
from text_infilling.inference.load_model import load_model
from text_infilling.runs.run_folder import open_run

FILES = {
    "config.json", "vocabulary.txt", "tokenizer.json", "weights.npz", "MODEL_CARD.md", "fills.json", "checksums.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def filler(shipped):
    """The infiller of the base model."""
    return Infiller.load(shipped)


@pytest.fixture(scope="module")
def evaluated(base_run):
    """The scores of the command `evaluate`, and what it prints."""
    found, evaluate, out = [], base_artefact.evaluate, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        patch.setattr(base_artefact, "evaluate", lambda *arguments: found.append(evaluate(*arguments)) or found[0])
        base_model.main(["evaluate", "--run", str(base_run), "--held_out", str(base_run.parent / "held_out")])
    return found[0], out.getvalue()


def test_the_shipped_folder_has_rounded_weights_scores_and_fills(shipped, base_run, filler):
    assert {path.name for path in shipped.iterdir()} == FILES
    weights, rounded = (load_model(open_run(folder)).get_weights() for folder in (base_run, shipped))
    for one, other in zip(weights, rounded, strict=True):
        assert other.dtype == np.float32
        np.testing.assert_array_equal(one.astype(np.float16), other)
    with zipfile.ZipFile(shipped / "weights.npz") as file:
        assert {member.compress_type for member in file.infolist()} == {zipfile.ZIP_STORED}
    fills = json.loads((shipped / "fills.json").read_text("utf-8"))
    assert [fill["text"] for fill in fills] == list(base_artefact.SENTENCES)
    assert [fill["filled"] for fill in fills] == [filler.fill(text).text for text in base_artefact.SENTENCES]
    card = (shipped / "MODEL_CARD.md").read_text("utf-8")
    for part in ("| novels | 2 |", "| all | 4 |", "wordnet-base 1:3.0-37", "MIT licence", "app.base_model", "Limits"):
        assert part in card


def test_the_base_model_is_opened_without_a_folder(base, filler):
    run = open_run()
    assert (run.name, run.path, run.weights.name) == ("base model", base, "weights.npz")
    assert Infiller.load().fill("The ____ was good.").text == filler.fill("The ____ was good.").text


@pytest.mark.parametrize("name", ["config.json", "vocabulary.txt", "tokenizer.json", "weights.npz"])
def test_a_changed_file_of_the_base_model_is_an_error(base, name):
    with open(base / name, "ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match=f"{name} has another checksum than checksums.json states"):
        open_run()


def test_an_installation_without_a_base_model_says_so():
    with pytest.raises(ValueError, match="^this installation has no base model: train one on your own texts"):
        Infiller.load()


def with_arrays(**arrays):
    return lambda path: np.savez(path, **arrays)


def compressed(path):
    with np.load(path) as arrays:
        np.savez_compressed(path, **arrays)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-500]), "weights.npz does not hold the weights"),
        (lambda path: path.write_bytes(b"weights"), "weights.npz does not hold the weights"),
        (compressed, "is not a plain array of numbers"),
        (with_arrays(**{"000": np.array([{}], object)}), "is not a plain array of numbers"),
        (with_arrays(**{"000": np.zeros(3, np.float16)}), "it has 3 parameters"),
    ],
)
def test_damaged_weights_are_an_error_before_a_model_is_built(shipped, tmp_path, damage, message):
    folder = shutil.copytree(shipped, tmp_path / "damaged")
    damage(folder / "weights.npz")
    with pytest.raises(ValueError, match=message):
        open_run(folder)


def test_a_base_model_that_is_too_large_is_not_written(base_run, evaluated, tmp_path, monkeypatch):
    monkeypatch.setattr(base_artefact, "evaluate", lambda *_: evaluated[0])
    monkeypatch.setattr(base_artefact, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="must have less than 1,000 bytes"):
        base_artefact.ship(open_run(base_run), base_run.parent / "held_out", tmp_path / "base_model", "command")
    assert not list(tmp_path.iterdir())


def test_an_unfinished_run_is_not_shipped(base_run, tmp_path, capsys):
    copy = shutil.copytree(base_run, tmp_path / "run")
    (copy / "metrics.json").unlink()
    out = tmp_path / "base_model"
    with pytest.raises(SystemExit) as exit_:
        held_out = str(base_run.parent / "held_out")
        base_model.main(["ship", "--run", str(copy), "--held_out", held_out, "--out", str(out)])
    assert exit_.value.code == 1 and not out.exists()
    assert "run is not a finished run: it has no metrics.json; run `train` again" in capsys.readouterr().err


def test_the_scores_of_all_sources_are_those_of_their_sentences_together(evaluated):
    scores, _ = evaluated
    assert set(scores) == {"examples", "novels", "all"} and scores["examples"] == scores["novels"]
    for name, score in scores["novels"].items():
        assert scores["all"][name] == pytest.approx(score * (2 if name == "sentences" else 1))


def test_evaluate_prints_the_scores_of_each_source(evaluated):
    rows = [line.split() for line in evaluated[1].splitlines()]
    assert [row[:2] for row in rows[1:]] == [["examples", "2"], ["novels", "2"], ["all", "4"]]


def test_train_fits_with_the_recipe(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(base_model.fitting, "fit", lambda *arguments: given.append(arguments))
    with pytest.raises(SystemExit):
        base_model.main(["train", "--text", str(tmp_path), "--out", str(tmp_path / "run")])
    assert given == [(tmp_path / "train.txt", tmp_path / "run", base_model.RECIPE)]
    assert base_model.RECIPE.hparams()["decoder"]["num_blocks"] == 3


# The commands without a run


NOTE = "no run is given: using the base model, which knows everyday English"


def commanded(capsys, *arguments):
    """Returns the exit code of a command, and what it printed on stdout and stderr."""
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return exit_.value.code or 0, *capsys.readouterr()


def test_fill_without_a_run_uses_the_base_model_and_says_so_once(base, filler, capsys):
    texts = ["The ____ was good.", "I ____ bread."]
    code, out, err = commanded(capsys, "fill", *texts)
    assert (code, err) == (0, f"{NOTE}\n")
    assert out.splitlines() == [filled.text for filled in filler.fill(texts)]


@pytest.mark.parametrize(
    "arguments", [["fill", "____"], ["serve", "--port=0"], ["info"], ["export", "--out=exported"]], ids=" ".join
)
def test_without_a_run_and_a_base_model_one_line_says_what_to_do(capsys, arguments):
    code, _, err = commanded(capsys, *arguments)
    assert code == 1 and err.count("\n") == 1
    assert err.startswith("error: this installation has no base model") and "text-infill fit" in err and "--run" in err


def test_info_describes_the_base_model(base, capsys):
    code, out, err = commanded(capsys, "info")
    assert (code, err) == (0, f"{NOTE}\n") and re.search(r"^model +self_attention$", out, re.MULTILINE)
    summary = "texts of own in lower case, 1 to 2 blanks per text, 15% to 60% of the words masked"
    assert re.search(rf"^learned +{summary}$", out, re.MULTILINE)


def test_the_base_model_is_exported_to_a_given_path_only(base, tmp_path, capsys):
    code, _, err = commanded(capsys, "export", "--format=keras")
    assert (code, err) == (1, "error: give --out to export the base model\n")
    out = tmp_path / "base.keras"
    assert commanded(capsys, "export", "--format=keras", "--out", out) == (0, f"written to {out}\n", f"{NOTE}\n")
    assert out.is_file() and {path.name for path in base.iterdir()} == FILES


def test_the_page_shows_that_the_base_model_answers(base, capsys, monkeypatch):
    served, traced = [], []
    monkeypatch.setattr(Server, "serve", lambda self, infiller, about, learned: served.append(about))
    monkeypatch.setattr(Infiller, "fill", lambda self, text, **options: traced.append(options))
    code, _, err = commanded(capsys, "serve", "--port=0")
    assert code == 0 and err.startswith(f"{NOTE}\n")
    assert served == [{"run": "base model", "model": "self_attention"}]
    assert traced == [{"order": order, "seed": seed} for order in ("left", "confident") for seed in (None, 0)]
