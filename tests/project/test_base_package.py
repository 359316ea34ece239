"""The base model in the package: the files of a wheel, and the folder that is shipped."""

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import text_infilling
from text_infilling.app import base_artefact
from text_infilling.inference.infiller import Infiller
from text_infilling.runs.run_folder import open_run

PACKAGE = Path(text_infilling.__file__).parent
FILES = {
    "config.json", "vocabulary.txt", "tokenizer.json", "weights.npz", "MODEL_CARD.md", "fills.json", "checksums.json",
}  # fmt: skip


def test_a_wheel_has_the_files_of_the_base_model(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PACKAGE.parent / name, source)
    shutil.copytree(PACKAGE, source / "text_infilling", ignore=shutil.ignore_patterns("__pycache__", "base_model"))
    folder = source / "text_infilling" / "base_model"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(name, "utf-8")
    # Without isolation: setuptools need not be downloaded.
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(source)], check=True, capture_output=True, text=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        packed = {Path(name).name for name in wheel.namelist() if name.startswith("text_infilling/base_model/")}
    assert packed == FILES


def test_the_documentation_and_the_notice_name_every_source():
    documented = (PACKAGE.parent / "docs" / "base-model.md").read_text("utf-8")
    notice = (PACKAGE.parent / "NOTICE").read_text("utf-8")
    for source in base_artefact.SOURCES:
        package = source.package
        assert f"`{package.name}` {package.version}" in documented and package.sha256 in documented
        assert f"{package.name} {package.version}" in notice


# The shipped folder


@pytest.fixture(scope="module")
def folder():
    path = PACKAGE / "base_model"
    if not path.is_dir():
        pytest.skip("the package has no base model yet: `python -m text_infilling.app.base_model ship` writes it")
    return path


def test_the_base_model_has_its_files_with_their_checksums_and_is_small(folder):
    assert {path.name for path in folder.iterdir()} == FILES
    sums = json.loads((folder / "checksums.json").read_text("utf-8"))
    assert set(sums) == FILES - {"checksums.json"}
    for name, checksum in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name
    assert sum(path.stat().st_size for path in folder.iterdir()) < base_artefact.MOST_BYTES


def test_the_model_card_names_sources_scores_and_limits(folder):
    card = (folder / "MODEL_CARD.md").read_text("utf-8")
    for source in base_artefact.SOURCES:
        assert source.about in card and card.count(f"| {source.name} |") == 2  # source and scores
    for part in ("| all |", "## Limits", "app.base_model ship"):
        assert part in card


def test_the_base_model_fills_fixed_sentences_as_when_it_was_written(folder):
    fills = json.loads((folder / "fills.json").read_text("utf-8"))
    infiller = Infiller.load(open_run(folder))
    assert len(fills) == len(base_artefact.SENTENCES)
    assert [infiller.fill(fill["text"]).text for fill in fills] == [fill["filled"] for fill in fills]
