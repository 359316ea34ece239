"""The names of `import text_infilling`: imported at first use, and each with an example that runs."""

import os
import subprocess
import sys

import pytest

import text_infilling

SMALL = ("decoder.dim=8", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=8")


def test_importing_the_package_does_not_import_tensorflow():
    script = (
        "import sys, text_infilling\n"
        "from text_infilling import FitConfig, Limits, fit\n"
        "FitConfig(), Limits(), fit\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])\n"
        "text_infilling.Infiller\n"
        "print('tensorflow' in sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "[]\nTrue\n"), done.stderr
    assert done.stderr == ""  # none of TensorFlow's start-up lines


def test_the_public_names_are_listed():
    assert set(text_infilling.__all__) == {"Infiller", "Limits", "fit", "FitConfig"} <= set(dir(text_infilling))
    with pytest.raises(AttributeError, match="module 'text_infilling' has no attribute 'Filler'"):
        text_infilling.Filler  # noqa: B018


def test_a_model_is_fitted_and_fills_with_the_public_names(tmp_path):
    from text_infilling import FitConfig, Infiller, Limits, fit

    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"gardener {i} waters the roses .\n" for i in range(40)), "utf-8")
    config = FitConfig(preset="smoke", blanks=1, assignments=[*SMALL, "train.epochs=1"])
    metrics = fit(texts, tmp_path / "model", config, say=lambda _: None)
    assert metrics["sentences_train"] == 36
    filled = Infiller.load(tmp_path / "model").fill("gardener ____ .", limits=Limits(max_words=3))
    assert filled.text.startswith("gardener ") and len(filled.words[0]) <= 3
