"""Fits that start from the base model."""

import dataclasses
import json

import numpy as np
import pytest
from fits import stopped_at_training

from text_infilling.app import fitting, initial_run
from text_infilling.app.fit_config import FitConfig
from text_infilling.corpora.source_texts import SourceFile

LINES = [f"the soup of the gardener was so {what} and {i} bread" for i in range(12) for what in ("good", "bad", "cold")]
CONFIG = FitConfig(preset="smoke", blanks=2, assignments=("train.epochs=1", "train.batch_size=8"))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "soup.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


def config_of(run):
    return json.loads((run / "config.json").read_text("utf-8"))


def started(source, config=CONFIG):
    """Starts a fit, stops it when training begins, and returns the config of the run, and its log lines."""
    said = []
    with stopped_at_training():
        fitting.fit(source, source.parent / "run", config, say=said.append)
    return config_of(source.parent / "run"), said


def words_of(folder):
    return (folder / "vocabulary.txt").read_text("utf-8").split()


def test_a_small_text_is_fitted_from_the_base_model_and_resumed_by_the_same_command_only(base, source, monkeypatch):
    started(source)
    run = source.parent / "run"
    for other in ({"from_scratch": True}, {"keep_case": True}):
        with pytest.raises(ValueError, match="was started with other init_from: give the same as before"):
            fitting.fit(source, run, dataclasses.replace(CONFIG, **other), say=lambda _: None)
    said, begun, copy = [], [], initial_run.InitialRun.copy_weights

    def copied(initial, model):
        copy(initial, model)
        begun.extend(model.get_weights())

    monkeypatch.setattr(initial_run.InitialRun, "copy_weights", copied)
    fitting.fit(source, run, CONFIG, say=said.append)
    config = config_of(run)
    assert (run / "metrics.json").exists()
    assert any(line.startswith("starting from the base model") and "from_scratch" in line for line in said)
    assert config["where"]["init_from"] == "base model" and len(config["init_from"]) == 64
    assert config["hparams"]["decoder"]["dim"] == 16  # of the base model
    old, new = words_of(base), words_of(run)
    assert new[: len(old)] == old and {"gardener", "of"} <= set(new[len(old) :])
    with np.load(base / "weights.npz") as arrays:
        for i, weight in enumerate(begun):
            stored = arrays[f"{i:03}"].astype(np.float32)
            np.testing.assert_array_equal(weight[tuple(map(slice, stored.shape))], stored)


def test_a_fit_from_scratch_is_resumed_from_scratch_after_a_base_model_was_installed(request, source):
    started(source)
    request.getfixturevalue("base")
    config, said = started(source)
    assert config["init_from"] is None and not any("base model" in line for line in said)


def test_from_scratch_turns_the_base_model_off(base, source):
    config, said = started(source, dataclasses.replace(CONFIG, from_scratch=True))
    assert "training from scratch: from_scratch is set" in said and config["init_from"] is None
    assert "love" not in words_of(source.parent / "run")


def test_without_a_base_model_a_fit_is_from_scratch_and_says_so(source):
    _, said = started(source)
    assert "training from scratch: this installation has no base model" in said


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"model": "seq2seq", "assignments": ()}, "the base model has model=self_attention, not seq2seq"),
        ({"preset": "laptop"}, "the base model has preset=smoke, not laptop"),
        ({"assignments": ("decoder.dim=32",)}, "decoder.dim is set, which the base model determines"),
        ({"assignments": ("position.base=512",)}, "position.base is set, which the base model determines"),
        ({"assignments": ("decoder.residual_dropout=0.2",)}, ""),
        ({"keep_case": True}, "keep_case is set, and the base model lower-cases words"),
    ],
)
def test_options_that_do_not_fit_the_base_model_start_from_scratch(base, source, changes, reason):
    run, line = initial_run.base_run(dataclasses.replace(CONFIG, **changes), [SourceFile(str(source))])
    assert (run is None) == bool(reason)
    assert line == f"training from scratch: {reason}" if reason else line.startswith("starting from the base model")


def test_a_large_text_starts_from_scratch(base, source, monkeypatch):
    monkeypatch.setattr(initial_run, "BASE_BELOW", len(LINES))
    run, line = initial_run.base_run(CONFIG, [SourceFile(str(source))])
    assert (run, line) == (None, f"training from scratch: the text has {len(LINES)} sentences or more")
    monkeypatch.setattr(initial_run, "BASE_BELOW", len(LINES) + 1)
    assert initial_run.base_run(CONFIG, [SourceFile(str(source))])[0]


def test_a_sentence_beyond_the_positions_of_the_base_model_starts_from_scratch(base, source):
    source.write_text("\n".join([*LINES, " ".join(["bread"] * 200)]), "utf-8")
    run, line = initial_run.base_run(dataclasses.replace(CONFIG, max_words=254), [SourceFile(str(source))])
    assert run is None and line.endswith("a sentence of 200 words may exceed the positions of the base model")


def test_from_scratch_cannot_be_combined_with_init_from():
    with pytest.raises(ValueError, match="from_scratch cannot be combined with init_from"):
        FitConfig(init_from="run", from_scratch=True)
