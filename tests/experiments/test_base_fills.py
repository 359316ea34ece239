"""The fills of everyday sentences in docs/base-model.md."""

import re
import shutil
from pathlib import Path

import pytest

import text_infilling
from experiments import base_fills
from experiments.cells import flags
from text_infilling.inference.results import Filled
from text_infilling.runs.run_folder import open_run

ROOT = Path(__file__).resolve().parents[2]


def test_the_sentences_are_twenty_with_one_or_two_blanks():
    assert len(set(base_fills.SENTENCES)) == 20
    assert {text.count("____") for text in base_fills.SENTENCES} == {1, 2}


def test_infills_are_in_bold():
    filled = Filled("I <b> a|b.", ["<b>", "a|b"], -0.5, [-0.5], [], [])
    assert base_fills.marked(filled, "I ____ ____.") == r"I **&lt;b>** **a\|b**."


def test_the_command_writes_the_fills_between_the_markers(infiller_run, tmp_path, monkeypatch):
    monkeypatch.setattr(base_fills, "SENTENCES", base_fills.SENTENCES[:2])
    page = tmp_path / "docs" / "base-model.md"
    page.parent.mkdir()
    shutil.copy(ROOT / base_fills.PAGE, page)
    run = open_run(infiller_run)
    values = flags.parse([f"--base={infiller_run}", f"--root={tmp_path}"], base_fills.define_flags)
    base_fills.run(values)
    text = page.read_text("utf-8")
    written = re.search(r"<!-- base:fills -->\n(.*)<!-- /base:fills -->", text, re.DOTALL)[1]
    assert len(re.findall(r"^- .*\*\*.+\*\*", written, re.MULTILINE)) == 2
    assert 2 <= len(re.findall(r"^  - .*\*\*.+\*\*", written, re.MULTILINE)) <= 2 * base_fills.SAMPLES
    assert base_fills.is_current(text, run)
    assert not base_fills.is_current(text.replace("- I forgot to ", "- I forget to "), run)
    base_fills.run(values)
    assert page.read_text("utf-8") == text


def test_the_documentation_has_the_fills_of_the_shipped_weights():
    folder = Path(text_infilling.__file__).parent / "base_model"
    if not folder.is_dir():
        pytest.skip("the package has no base model yet: `python -m text_infilling.app.base_model ship` writes it")
    text = (ROOT / base_fills.PAGE).read_text("utf-8")
    assert base_fills.is_current(text, open_run(folder)), "run `python -m experiments.base_fills`"
