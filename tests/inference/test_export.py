"""Exports of a run: the same infills in a process without this library."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from infilling_runs import write_run
from token_texts import TEXTS

from text_infilling.app import cli
from text_infilling.inference import export
from text_infilling.inference.infiller import Infiller
from text_infilling.models.registry import MODELS

SENTENCES = [
    "The soup ____, but I ____ the bread!",
    "no blank, at all",
    "____",
    "[blank][blank] can't __m__ it",
    "“So ____” 3.50 ünknöwn 👍 ____ ____ ____",
    "",
]
# Imports TensorFlow and tensorflow-text only, reads texts as JSON and writes the results as JSON.
ALONE = """
import json, sys
import tensorflow as tf, tensorflow_text
fill = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
found = fill(texts=tf.constant(json.load(sys.stdin)))
assert not any(name.startswith("text_infilling") for name in sys.modules)
plain = {name: x.numpy().tolist() for name, x in found.items()}
print(json.dumps(plain, default=bytes.decode))
"""


def exported(folder, infiller, beam_width=None):
    """Exports `infiller` to `folder` and returns the signature of the SavedModel."""
    export.to_savedmodel(infiller, folder, beam_width)
    return tf.saved_model.load(str(folder)).signatures["serving_default"]


def assert_same(found, infiller, texts, **options):
    """Asserts that `found`, a dict of arrays, equals the results of the infiller for the texts."""
    for i, filled in enumerate(infiller.fill(texts, **options)):
        blanks = len(filled.fills)
        assert found["blanks"][i] == blanks
        assert found["text"][i].decode() == filled.text
        assert [fill.decode() for fill in found["fills"][i]][:blanks] == filled.fills
        assert all(fill == b"" for fill in found["fills"][i][blanks:])
        np.testing.assert_allclose(found["log_probabilities"][i][:blanks], filled.log_probabilities, atol=1e-5)
        np.testing.assert_allclose(found["log_probability"][i], filled.log_probability, atol=1e-5 * max(1, blanks))


def arrays(found):
    return {name: x.numpy() for name, x in found.items()}


@pytest.fixture(scope="module")
def saved(infiller, tmp_path_factory):
    """The folder of a SavedModel."""
    folder = tmp_path_factory.mktemp("saved") / "1"
    export.to_savedmodel(infiller, folder)
    return folder


@pytest.fixture(scope="module")
def signature(saved):
    return tf.saved_model.load(str(saved)).signatures["serving_default"]


@given(st.lists(TEXTS, max_size=6))
@settings(max_examples=40)
def test_infills_equal_those_of_the_infiller(signature, infiller, texts):
    assert_same(arrays(signature(texts=tf.constant(texts, tf.string))), infiller, texts)


def test_forty_blanks_in_a_text_and_a_large_batch_are_filled(signature, infiller):
    texts = ["____ " * 40, *SENTENCES] + ["the ____ ."] * 70
    assert_same(arrays(signature(texts=tf.constant(texts))), infiller, texts)


def test_a_large_batch_is_filled_slice_by_slice(infiller, monkeypatch):
    """Memory does not grow with the batch, and each text gets the same result as alone."""
    sizes, width, fill_texts = [], 2, export.fill_texts

    def counted(model, ids, *rest, **options):
        with tf.control_dependencies([tf.py_function(lambda x: sizes.append(len(x)), [ids], [])]):
            return fill_texts(model, tf.identity(ids), *rest, **options)

    monkeypatch.setattr(export, "fill_texts", counted)
    monkeypatch.setattr(export, "HYPOTHESES", 4 * width**2)
    texts = ["a ____ .", "", "____ ____ ____ so ____", "none", *SENTENCES]
    module = export.TextInfiller(infiller, width)
    found = arrays(module.fill(tf.constant(texts)))
    assert sizes == [4, 4, 2]
    for i, text in enumerate(texts):
        assert_same({name: x[i : i + 1] for name, x in found.items()}, infiller, [text], beam_width=width)


@pytest.mark.parametrize(("name", "protocol"), [("self_attention", "released"), ("gan", "paper")])
def test_other_models_and_protocols_are_exported_with_beam_search(tmp_path, name, protocol):
    infiller = Infiller.load(write_run(tmp_path / "run", name, protocol))
    found = exported(tmp_path / "saved", infiller, beam_width=3)(texts=tf.constant(SENTENCES))
    assert_same(arrays(found), infiller, SENTENCES, beam_width=3)


def test_a_savedmodel_needs_neither_this_library_nor_the_run_folder(saved, infiller, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "elsewhere")
    out = subprocess.run(
        [sys.executable, "-c", ALONE, str(folder)],
        input=json.dumps(SENTENCES),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    found = {
        name: [[x.encode() if isinstance(x, str) else x for x in row] if isinstance(row, list) else row for row in rows]
        for name, rows in json.loads(out.stdout).items()
    }
    found["text"] = [text.encode() for text in found["text"]]
    assert_same(found, infiller, SENTENCES)


def test_tensorflow_serving_requests_of_the_docs_fit_the_signature(signature):
    """docs/own-texts.md shows a request in row format and one in column format; both name the single input."""
    readme = (Path(__file__).parents[2] / "docs" / "own-texts.md").read_text("utf-8")
    (instances,), (inputs,) = (
        re.findall(rf"""['`](\{{"{key}": .*?\}})['`]""", readme) for key in ("instances", "inputs")
    )
    (spec,) = signature.structured_input_signature[1].values()
    assert (spec.name, spec.dtype, spec.shape.as_list()) == ("texts", tf.string, [None])
    rows, columns = json.loads(instances)["instances"], json.loads(inputs)["inputs"]
    assert [row["texts"] for row in rows] == columns["texts"] and columns.keys() == {spec.name}
    found = arrays(signature(texts=tf.constant(columns["texts"])))
    assert {name: len(x) for name, x in found.items()} == dict.fromkeys(
        ["text", "fills", "blanks", "log_probability", "log_probabilities"], 2
    )  # one row per text, as the row format of Serving requires


def test_texts_that_are_too_long_or_not_utf_8_raise_an_error(signature):
    with pytest.raises(tf.errors.InvalidArgumentError, match="text 2: the model reads at most 254 words and blanks"):
        signature(texts=tf.constant(["____", "a " * 254 + "____", "a " * 300]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
        signature(texts=tf.constant([b"\xff ____"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="text 1: a text has at most 10000 characters"):
        signature(texts=tf.constant(["é" * 10_001, "____"]))
    signature(texts=tf.constant(["é" * 9_995 + " ____"]))
    found = signature(texts=tf.constant(["____", "a " * 300]))  # a text without blanks is never too long
    assert found["text"][1].numpy().decode() == "a " * 300


@pytest.mark.parametrize("name", MODELS)
def test_a_keras_file_restores_the_model(tmp_path, name):
    run = write_run(tmp_path / "run", name)
    cli_export(run, "--format=keras")
    model = keras.saving.load_model(run / "model.keras")
    expected = Infiller.load(run).model
    assert type(model) is MODELS[name] and model.hparams == expected.hparams
    for weight, other in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, other)


def test_a_keras_file_loads_after_an_import_of_the_models_alone(tmp_path):
    run = write_run(tmp_path / "run")
    cli_export(run, "--format=keras")
    code = """
import sys, keras, text_infilling.models
print(type(keras.saving.load_model(sys.argv[1])).__name__)
"""
    path = str(run / "model.keras")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "SelfAttentionModel"


def cli_export(*arguments):
    """Runs `text-infill export` and returns its exit code."""
    with pytest.raises(SystemExit) as exit_:
        cli.main(["export", *map(str, arguments)])
    return exit_.value.code or 0


def test_the_command_writes_and_overwrites_exports(infiller_run, infiller, tmp_path, capsys):
    out = tmp_path / "1"
    out.mkdir()
    (out / "saved_model.pb").write_text("an old one", "utf-8")
    assert cli_export(infiller_run, "--out", out) == 1
    assert "already exists: give another path, or set overwrite" in capsys.readouterr().err
    assert cli_export(infiller_run, "--out", out, "--beam_width=2", "--overwrite") == 0
    assert capsys.readouterr().out == f"written to {out}\n"
    found = tf.saved_model.load(str(out)).signatures["serving_default"](texts=tf.constant(SENTENCES))
    assert_same(arrays(found), infiller, SENTENCES, beam_width=2)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]

    file = tmp_path / "made" / "on the way" / "model.keras"
    assert cli_export(infiller_run, "--format=keras", "--out", file) == 0
    file.write_text("an old one", "utf-8")
    assert cli_export(infiller_run, "--format=keras", "--out", file, "--overwrite") == 0
    assert file.stat().st_size > 1000


@pytest.mark.parametrize("options", [[], ["--format=keras"]])
def test_only_an_export_is_overwritten(infiller_run, tmp_path, options, capsys):
    folder = tmp_path / "mine.keras"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", "utf-8")
    file = tmp_path / "notes.txt"
    file.write_text("mine", "utf-8")
    for out in (folder, *[file] * (not options)):
        assert cli_export(infiller_run, *options, "--out", out, "--overwrite") == 1
        err = capsys.readouterr().err
        assert err == f"error: {out} is not an export, and overwrite replaces only exports: give another path\n"
    assert (folder / "notes.txt").read_text("utf-8") == file.read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--beam_width=0"], "--beam_width must be from 1 to 1000. Received: 0"),
        (["--format=keras", "--beam_width=2"], "a Keras file contains no search"),
        (
            ["--format=keras", "--out=x.h5"],
            "the name of a Keras file must end in .keras. Received: x.h5",
        ),
        (["--out=/dev/null/x"], "cannot write to /dev/null: "),
    ],
)
def test_an_export_that_fails_prints_one_line(infiller_run, arguments, message, capsys):
    assert cli_export(infiller_run, *arguments) == 1
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
