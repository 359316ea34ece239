"""What `text-infill doctor` reports, and the fixes that it suggests."""

import importlib.metadata
import itertools
import json
import os
import subprocess
import sys

import pytest

from text_infilling.app import cli, doctor
from text_infilling.masking import tagging
from text_infilling.runs.run_folder import open_run


def found(monkeypatch=None, **arguments):
    return {check.what: check for check in doctor.checks(**arguments)}


@pytest.fixture
def no_tagger(monkeypatch):
    def tag(_):
        raise FileNotFoundError("get it with `python -m nltk.downloader x`")

    monkeypatch.setattr(tagging, "tag", tag)


def test_a_complete_installation_reports_versions_device_and_speed(monkeypatch, tmp_path):
    monkeypatch.setattr(tagging, "tag", lambda _: iter([["NN"]]))
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path))
    checks = found()
    assert not any(check.fix for check in checks.values())
    assert checks["tensorflow"].found == importlib.metadata.version("tensorflow")
    assert "GFLOP/s" in checks["matrix product"].found and checks["device"].found
    assert checks["the cache"].found == f"{tmp_path}: no corpus"


def test_a_missing_tagger_is_reported_with_its_download_command(no_tagger):
    check = found()["NLTK's tagger"]
    assert "nltk.downloader" in check.fix
    assert str(check).splitlines()[1].startswith("        fix: get it with")


def test_different_minor_versions_are_reported(monkeypatch, no_tagger):
    versions = {"tensorflow": "2.21.0", "tensorflow-text": "2.20.1"}
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: versions.get(name) or real(name))
    assert found()["TensorFlow"].fix == "pip install 'tensorflow-text==2.21.*'"


def test_a_missing_package_is_reported(monkeypatch, no_tagger):
    real = importlib.metadata.version

    def version(name):
        if name == "sacrebleu":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert found()["sacrebleu"].fix.startswith("pip install 'sacrebleu")


def test_versions_are_compared_with_the_requirements_of_the_project(monkeypatch, no_tagger):
    required = ["numpy<2,>=1.0", "nltk>=3", 'ruff<0.1; extra == "test"']
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: required)
    checks = found()
    assert checks["numpy"].found == f"{importlib.metadata.version('numpy')}, which is not <2,>=1.0"
    assert checks["numpy"].fix == "pip install 'numpy<2,>=1.0'"
    assert not checks["nltk"].fix and "ruff" not in checks


def test_packages_are_checked_even_if_the_project_is_not_installed(monkeypatch, no_tagger):
    def requires(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", requires)
    checks = found()
    assert "not installed" in checks["text_infilling"].found and not checks["text_infilling"].fix
    assert checks["absl-py"].found == importlib.metadata.version("absl-py")


def command(folder, *arguments):
    """Runs `text-infill` in a process whose TensorFlow cannot be imported."""
    (folder / "tensorflow.py").write_text('raise ImportError("libcudart.so.12:\\nno such file")', "utf-8")
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "text_infilling", *arguments],
        env={**os.environ, "PYTHONPATH": path, "TEXT_INFILLING_DATA": str(folder)},
        capture_output=True,
        text=True,
    )


def test_a_broken_tensorflow_does_not_stop_the_other_checks(infiller_run, tmp_path):
    process = command(tmp_path, "doctor", f"--run={infiller_run}")
    lines = process.stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("PROBLEM tensorflow "))
    assert "cannot be imported: ImportError: libcudart.so.12: no such file" in lines[at]
    assert "pip install --force-reinstall 'tensorflow" in lines[at + 1]
    for what in ("run", "device"):
        assert any(line.startswith(f"PROBLEM {what} ") and "not checked: ImportError" in line for line in lines)
    assert any(line.startswith("ok      the cache ") for line in lines)
    assert process.returncode == 1 and not process.stderr


def test_other_commands_refer_to_the_doctor_if_an_import_fails(infiller_run, tmp_path):
    process = command(tmp_path, "fill", f"--run={infiller_run}", "a ____")
    assert process.returncode == 1 and process.stderr == (
        "error: libcudart.so.12: no such file; run `text-infill doctor` to see how to fix it\n"
    )


def test_each_check_is_printed_as_soon_as_it_is_known(monkeypatch, capsys):
    def checks(*_):
        yield doctor.Check("first", "there")
        assert capsys.readouterr().out == "ok      first            there\n"
        yield doctor.Check("second", "not there", "get it")

    monkeypatch.setattr(doctor, "checks", checks)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["doctor"])
    assert exit_.value.code == 1
    assert capsys.readouterr().out == "PROBLEM second           not there\n        fix: get it\n"


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a\n", "utf-8")


def test_the_corpora_in_the_cache_and_the_data_folder_are_listed(monkeypatch, tmp_path):
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))

    def looked():
        return [(check.found.partition(": ")[2], check.fix) for check in doctor._data(str(tmp_path / "data"))]

    (nothing, fix), (also_nothing, other) = looked()
    assert nothing == also_nothing == "no corpus" and not fix and "yelp/" in other
    write(tmp_path / "data" / "tale.txt")
    assert looked()[1] == ("your own texts", "")
    for name in ("train", "valid", "test"):
        write(tmp_path / "data" / "yelp" / f"{name}.txt")
    write(tmp_path / "cache" / "grimm" / "tales" / "1.txt")
    write(tmp_path / "cache" / "nba" / "sentences.train.txt")
    assert looked() == [("Grimm's tales", ""), ("Yelp, your own texts", "")]
    write(tmp_path / "cache" / "nba" / "sentences.test.txt")
    assert looked()[0] == ("Grimm's tales, NBA's sentences", "")


def test_an_incomplete_run_is_reported(tmp_path):
    from infilling_runs import write_run

    python, nothing = itertools.islice(doctor.checks(run=str(tmp_path)), 2)  # before TensorFlow is imported
    assert python.what == "Python" and nothing.what == "run"
    assert "has no config.json" in nothing.found and "copy the whole folder again" in nothing.fix
    run = write_run(tmp_path / "run")
    (cell,) = doctor._run(open_run(run))
    assert not cell.fix and "not finished" in cell.found
    config = json.loads((run / "config.json").read_text("utf-8"))
    config["cell"]["corpus"] = "own"  # a run of `text-infill fit`, which has a tokenizer file
    (run / "config.json").write_text(json.dumps(config), "utf-8")
    (fitted,) = doctor._run(open_run(run))
    assert "has no tokenizer.json" in fitted.found and fitted.fix
