"""Helpers of the table tests: folders of finished cells with given metrics, without training."""

import csv

from experiments.cells.setting import CONTROL, CONTROL_ASSIGNMENT, Cell, Setting
from text_infilling.configs.presets import budget_of
from text_infilling.configs.protocols import run_hparams
from text_infilling.utils import files

CELL = Cell(Setting("yelp", "fixed", 0.4, 2, "paper", "laptop"), "self_attention", 1)


def finish(workdir, cell, metrics, hparams=None, checksum="c0ffee", **config):
    """Creates the folder of a finished cell and returns it."""
    folder = cell.folder(workdir)
    folder.mkdir(parents=True)
    one = cell.setting
    if not hparams:
        model = "gan" if cell.model == "template" else cell.network
        assignments = [CONTROL_ASSIGNMENT] if cell.model == CONTROL else []
        hparams = run_hparams(one.protocol, one.preset, assignments, model, task="yelp")
    common = {
        "cell": cell.as_dict(),
        "hparams": hparams,
        "corpus": {"checksum": checksum},
        "vocabulary": {"hash": "f00d", "size": 9},
        "mixed_precision": False,
        "budget": budget_of(one.preset, one.task, one.blanks),
        "where": {"data_dir": None, "source": "data_dir", "note": "a stand-in"},
    }
    files.write_json(folder / "config.json", common | config)
    files.write_json(folder / "metrics.json", metrics)
    return folder


def other(**changes):
    """Returns `CELL` with changed attributes, of the cell or of its setting."""
    return changed(CELL, **changes)


def changed(cell, **changes):
    """Returns a cell with changed attributes, of the cell or of its setting."""
    return Cell.from_dict({**cell.as_dict(), **changes})


def csv_of(path):
    """Returns the rows of a CSV table by mask rate, blanks, model and metric."""
    with open(path, encoding="utf-8") as lines:
        return {(float(r["mask_rate"]), int(r["blanks"]), r["model"], r["metric"]): r for r in csv.DictReader(lines)}
