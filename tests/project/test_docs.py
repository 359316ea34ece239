"""The documentation names only what exists: files, hyperparameters, tests."""

import re
from pathlib import Path

import pytest

from text_infilling.configs.defaults import MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.hparams import flatten

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TESTS = set(re.findall(r"^def (test_\w+)", "".join(p.read_text("utf-8") for p in ROOT.glob("tests/**/*.py")), re.M))


def rows_of_fidelity():
    lines = (ROOT / "docs" / "fidelity.md").read_text("utf-8").splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if re.match(r"\| \d+ \|", line)]


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(path):
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8")):
        if target.startswith("http"):
            continue
        name, _, heading = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.M) if heading else []
        assert not heading or heading in [re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings], target


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_named_tests_and_modules_exist(path):
    text = path.read_text("utf-8")
    assert set(re.findall(r"`(test_\w+)`", text)) <= TESTS
    for module in re.findall(r"python -m ((?:experiments|benchmarks|text_infilling)[\w.]*)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
    for name in re.findall(r"`((?:text_infilling|experiments|benchmarks|tests|results)/[\w./]*)`", text):
        assert (ROOT / name).exists(), name


def test_fidelity_numbers_its_rows_and_names_a_key_and_a_test_in_each():
    keys = {key for model in MODELS for key in flatten(run_hparams("paper", "full", model=model))}
    rows = rows_of_fidelity()
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    for row in rows:
        assert row[4].strip("`") in keys, row[1]
        assert row[7].strip("`") in TESTS, row[1]


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150
