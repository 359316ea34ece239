"""The base model: written from a run, checked when it is opened, and used by the commands without --run."""

import json
import shutil
import zipfile

import numpy as np
import pytest

from text_infilling.app import base_artefact, base_model
from text_infilling.inference.infiller import Infiller
from text_infilling.inference.load_model import load_model
from text_infilling.runs import run_folder
from text_infilling.runs.run_folder import open_run

LINES = "The soup was good , but I love the bread !\nis the bread so very cold ?\n"
FILES = {
    "config.json", "vocabulary.txt", "tokenizer.json", "weights.npz", "MODEL_CARD.md", "fills.json", "checksums.json",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(infiller_run, tmp_path_factory):
    """A run whose config has the masking of a base model, beside a folder of held-out texts."""
    folder = tmp_path_factory.mktemp("base")
    copy = shutil.copytree(infiller_run, folder / "run")
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["cell"] |= {"masking": "any", "mask_rate": [0.15, 0.6], "blanks": 2, "corpus": "own"}
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    (copy / "metrics.json").write_text("{}", "utf-8")
    (folder / "held_out").mkdir()
    for name in ("novels", "examples"):
        (folder / "held_out" / f"{name}.txt").write_text(LINES, "utf-8")
    return copy


@pytest.fixture(scope="module")
def shipped(run):
    """The folder that `ship` writes."""
    with pytest.raises(SystemExit) as exit_:
        held_out = str(run.parent / "held_out")
        base_model.main(["ship", "--run", str(run), "--held_out", held_out, "--out", str(run.parent / "base_model")])
    assert not exit_.value.code
    return run.parent / "base_model"


@pytest.fixture
def base(shipped, tmp_path, monkeypatch):
    """A copy of the shipped folder, as the base model of this installation."""
    folder = shutil.copytree(shipped, tmp_path / "base_model")
    monkeypatch.setattr(run_folder, "BASE_MODEL", folder)
    return folder


@pytest.fixture
def no_base(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "BASE_MODEL", tmp_path / "missing")


def test_the_shipped_folder_has_rounded_weights_scores_and_fills(shipped, run):
    assert {path.name for path in shipped.iterdir()} == FILES
    weights, rounded = (load_model(open_run(folder)).get_weights() for folder in (run, shipped))
    for one, other in zip(weights, rounded, strict=True):
        assert other.dtype == np.float32
        np.testing.assert_array_equal(one.astype(np.float16), other)
    with zipfile.ZipFile(shipped / "weights.npz") as file:
        assert {member.compress_type for member in file.infolist()} == {zipfile.ZIP_STORED}
    fills = json.loads((shipped / "fills.json").read_text("utf-8"))
    infiller = Infiller.load(shipped)
    assert [fill["text"] for fill in fills] == list(base_artefact.SENTENCES)
    assert [fill["filled"] for fill in fills] == [infiller.fill(text).text for text in base_artefact.SENTENCES]
    card = (shipped / "MODEL_CARD.md").read_text("utf-8")
    for part in ("| novels | 2 |", "| all | 4 |", "wordnet-base 1:3.0-37", "MIT licence", "app.base_model", "Limits"):
        assert part in card


def test_the_base_model_is_opened_without_a_folder(base):
    run = open_run()
    assert (run.name, run.path, run.weights.name) == ("base model", base, "weights.npz")
    assert Infiller.load().fill("The ____ was good.").text == Infiller.load(base).fill("The ____ was good.").text


@pytest.mark.parametrize("name", ["config.json", "vocabulary.txt", "tokenizer.json", "weights.npz"])
def test_a_changed_file_of_the_base_model_is_an_error(base, name):
    with open(base / name, "ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match=f"{name} has another checksum than checksums.json states"):
        open_run()


def test_an_installation_without_a_base_model_says_so(no_base):
    with pytest.raises(ValueError, match="^this installation has no base model: give the folder of a trained run"):
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


def test_a_base_model_that_is_too_large_is_not_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr(base_artefact, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="must have less than 1,000 bytes"):
        base_artefact.ship(open_run(run), run.parent / "held_out", tmp_path / "base_model", "command")
    assert not list(tmp_path.iterdir())


def test_an_unfinished_run_is_not_shipped(run, tmp_path, capsys):
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "metrics.json").unlink()
    out = tmp_path / "base_model"
    with pytest.raises(SystemExit) as exit_:
        base_model.main(["ship", "--run", str(copy), "--held_out", str(run.parent / "held_out"), "--out", str(out)])
    assert exit_.value.code == 1 and not out.exists()
    assert "run is not a finished run: it has no metrics.json; run `train` again" in capsys.readouterr().err


def test_the_scores_of_all_sources_are_those_of_their_sentences_together(run):
    scores = base_artefact.evaluate(open_run(run), run.parent / "held_out")
    assert set(scores) == {"examples", "novels", "all"} and scores["examples"] == scores["novels"]
    for name, score in scores["novels"].items():
        assert scores["all"][name] == pytest.approx(score * (2 if name == "sentences" else 1))


def test_evaluate_prints_the_scores_of_each_source(run, capsys):
    with pytest.raises(SystemExit):
        base_model.main(["evaluate", "--run", str(run), "--held_out", str(run.parent / "held_out")])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows[1:]] == [["examples", "2"], ["novels", "2"], ["all", "4"]]


def test_train_fits_with_the_recipe(tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr(base_model.fitting, "fit", lambda *arguments: given.append(arguments))
    with pytest.raises(SystemExit):
        base_model.main(["train", "--text", str(tmp_path), "--out", str(tmp_path / "run")])
    assert given == [(tmp_path / "train.txt", tmp_path / "run", base_model.RECIPE)]
    assert base_model.RECIPE.hparams()["decoder"]["num_blocks"] == 3
