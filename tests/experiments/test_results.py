"""The tables in results/, README.md and docs/ equal those generated from results/cells, byte for byte."""

import re
import shutil
from pathlib import Path

import pytest

from experiments import claims, collect, readme
from experiments.cells import flags, record

ROOT = Path(__file__).resolve().parents[2]
RESULTS, CELLS = ROOT / "results", ROOT / "results" / "cells"


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A folder with the tables and claims made from results/cells, and what else its index lists."""
    folder = tmp_path_factory.mktemp("results")
    for path in (*RESULTS.glob("samples.*"), *RESULTS.glob("replay.*")):
        shutil.copy(path, folder)
    for command in (claims, collect):
        command.run(flags.parse([f"--cells={CELLS}", f"--results_dir={folder}"], flags.define_collect))
    return folder


def content(folder):
    """Returns the tables and indexes of a results folder, by path."""
    pages = [
        folder / "README.md",
        folder / "claims.md",
        *(path for path in folder.glob("*/*.*") if path.parent.name not in ("cells", "benchmarks")),
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in pages if "synthetic" not in path.parent.name}


def test_the_tables_in_results_match_the_cells(collected):
    ours, made = content(RESULTS), content(collected)
    assert ours.keys() == made.keys(), "run: python -m experiments.collect"
    stale = [name for name in made if ours[name] != made[name]]
    assert not stale, (
        f"results/ does not match results/cells: {stale}. Run experiments.collect, then experiments.claims"
    )


def test_the_tables_in_the_readme_and_docs_match_the_cells():
    written = readme.rewritten(ROOT, collect.read_all(CELLS))
    stale = [path.name for path, text in written.items() if path.read_text("utf-8") != text]
    assert not stale, f"{stale} do not match results/cells. Run: python -m experiments.readme"


@pytest.mark.parametrize("suffix", [".md", ".tex"])
def test_the_samples_name_the_cells_that_filled_them(suffix):
    for path in RESULTS.glob(f"samples.*{suffix}"):
        cells = re.findall(r"^(?:- `|% cell: )([\w.]+)", path.read_text("utf-8"), re.MULTILINE)
        assert cells, f"{path} names no cells. Run: python -m experiments.samples"
        assert [name for name in cells if not (CELLS / name / "metrics.json").exists()] == [], path


def test_every_trained_cell_records_epochs_parameters_and_work():
    for one in collect.read_all(CELLS):
        if one.cell.model != "template":
            timing = record.read(one.folder, one.config)
            assert None not in (timing.epochs, timing.parameters, timing.tflop), "run: python -m experiments.facts"
