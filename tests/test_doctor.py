"""What the doctor finds, and how it says to mend it."""

import importlib.metadata

import pytest

from text_infilling import doctor, tagging


def found(monkeypatch=None, **arguments):
    return {check.what: check for check in doctor.checks(**arguments)}


@pytest.fixture
def no_tagger(monkeypatch):
    def tag(_):
        raise FileNotFoundError("get it with `python -m nltk.downloader x`")

    monkeypatch.setattr(tagging, "tag", tag)


def test_a_whole_installation_has_versions_device_and_rate(monkeypatch, tmp_path):
    monkeypatch.setattr(tagging, "tag", lambda _: iter([["NN"]]))
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path))
    checks = found()
    assert not any(check.mend for check in checks.values())
    assert checks["tensorflow"].found == importlib.metadata.version("tensorflow")
    assert "GFLOP/s" in checks["matrix product"].found and checks["device"].found
    assert checks["the cache"].found == f"{tmp_path}: no corpus"


def test_a_tagger_that_is_missing_comes_with_its_command(no_tagger):
    check = found()["NLTK's tagger"]
    assert "nltk.downloader" in check.mend
    assert doctor.text([check]).splitlines()[1].startswith("        mend: get it with")


def test_minor_versions_that_differ_are_told(monkeypatch, no_tagger):
    versions = {"tensorflow": "2.21.0", "tensorflow-text": "2.20.1"}
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: versions.get(name) or real(name))
    assert found()["TensorFlow"].mend == "pip install 'tensorflow-text==2.21.*'"


def test_a_package_that_is_missing_is_told(monkeypatch, no_tagger):
    def version(name):
        if name == "sacrebleu":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert found()["sacrebleu"].mend.startswith("pip install sacrebleu")


def test_data_and_a_run_that_are_not_whole(no_tagger, tmp_path):
    checks = found(data_dir=str(tmp_path), run=str(tmp_path))
    assert "yelp/" in checks["--data_dir"].mend and "has no config.json" in checks["run"].mend
    (tmp_path / "yelp").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / "yelp" / f"{split}.txt").write_text("a\n", "utf-8")
    assert found(data_dir=str(tmp_path))["--data_dir"] == ("--data_dir", f"{tmp_path}: Yelp", "")
