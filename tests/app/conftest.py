"""Fixtures of the tests of the server and of the base model."""

import json
import shutil

import pytest
from serving_helper import Echo, serving_

from text_infilling.app import base_model
from text_infilling.runs import run_folder

LINES = "The soup was good , but I love the bread !\nis the bread so very cold ?\n"


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def server(echo):
    with serving_(echo) as server:
        yield server


@pytest.fixture(scope="session")
def base_run(infiller_run, tmp_path_factory):
    """A run whose config has the masking of a base model, beside a folder of held-out texts."""
    folder = tmp_path_factory.mktemp("base")
    copy = shutil.copytree(infiller_run, folder / "run")
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["cell"] |= {"masking": "any", "mask_rate": [0.15, 0.6], "blanks": 2, "corpus": "own", "preset": "smoke"}
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    (copy / "metrics.json").write_text("{}", "utf-8")
    (folder / "held_out").mkdir()
    for name in ("novels", "examples"):
        (folder / "held_out" / f"{name}.txt").write_text(LINES, "utf-8")
    return copy


@pytest.fixture(scope="session")
def shipped(base_run):
    """The folder that `ship` writes."""
    held_out, out = base_run.parent / "held_out", base_run.parent / "base_model"
    with pytest.raises(SystemExit) as exit_:
        base_model.main(["ship", "--run", str(base_run), "--held_out", str(held_out), "--out", str(out)])
    assert not exit_.value.code
    return out


@pytest.fixture
def base(shipped, tmp_path, monkeypatch):
    """A copy of the shipped folder, as the base model of this installation."""
    folder = shutil.copytree(shipped, tmp_path / "base_model")
    monkeypatch.setattr(run_folder, "BASE_MODEL", folder)
    return folder
