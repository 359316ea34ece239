"""Processes that finish cells of one table at the same time, as in `run_all --jobs=2 --seeds=1,2`, lose no row."""

import contextlib
import time
from types import SimpleNamespace

import pytest
from finished_cells import csv_of, finish, other

from experiments import run_all
from experiments.cells import jobs
from experiments.cells.experiment import Experiment
from experiments.tables import formats
from text_infilling.utils import files

SEEDS = (1, 2, 3)


def finish_and_write(folder, seed, is_locked):
    """Finishes the cell of a seed and writes its table.

    The process of seed 1 waits between reading the cells and writing the table, until the other cells are finished and
    their processes have had time to write: its table would be an old one if they wrote without waiting for it.
    """
    if not is_locked:
        files.held = lambda path: contextlib.nullcontext()
    cell = other(seed=seed)
    if seed == 1:
        write = formats.write

        def late(*arguments):
            (folder / "has_read").touch()
            others = "runs/*/*/metrics.json" if is_locked else "has_written.*"
            while len(list(folder.glob(others))) < len(SEEDS) - 1 + is_locked:
                time.sleep(0.05)
            time.sleep(is_locked)
            return write(*arguments)

        formats.write = late
    else:
        while not (folder / "has_read").exists():
            time.sleep(0.05)
    finish(folder / "runs", cell, {"bleu": float(seed)})
    ours = Experiment(SimpleNamespace(workdir=folder / "runs"), [cell.model], [])
    run_all.Plan({"yelp": ours}, [[cell.setting]], SEEDS, folder / "results").write([cell.setting])
    (folder / f"has_written.{seed}").touch()


def seeds_in_the_table(folder, is_locked):
    calls = [(folder, seed, is_locked) for seed in SEEDS]
    for _, future in jobs.run(finish_and_write, calls, [f"seed {seed}" for seed in SEEDS], len(SEEDS)):
        future.result()
    row = csv_of(folder / "results/yelp/yelp.fixed.paper.laptop.appendix.csv")[0.4, 2, "self_attention", "bleu"]
    return row["seeds"]


@pytest.mark.parametrize(("is_locked", "seeds"), [(True, "1 2 3"), (False, "1")])
def test_the_table_has_the_cells_of_all_processes_and_would_not_without_the_lock(tmp_path, is_locked, seeds):
    assert seeds_in_the_table(tmp_path, is_locked) == seeds
