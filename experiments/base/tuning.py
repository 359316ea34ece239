"""Chooses rate, epochs and dropout of fits from the base model, by validation perplexity on two small corpora."""

import csv
import io
import itertools
from collections.abc import Mapping
from pathlib import Path

from experiments.base.texts import sample
from experiments.base.units import BASE, Work
from text_infilling.app.fitting import Recipe
from text_infilling.utils import files

LINES, SEED = 300, 0  # seed 0 is not among the seeds of the tables
RATES, EPOCHS, DROPOUTS = (2e-3, 1e-3, 5e-4), (8, 24), (0.1, 0.3)
COLUMNS = ("corpus", "rate", "epochs", "dropout", "ppl_1", "ppl_2", "minutes", "best_epochs")


def grid() -> list[dict[str, float]]:
    """Returns the settings of the trials.

    >>> len(grid()), grid()[0]
    (12, {'rate': 0.002, 'epochs': 8, 'dropout': 0.1})
    """
    return [
        {"rate": rate, "epochs": epochs, "dropout": dropout}
        for epochs, rate, dropout in itertools.product(EPOCHS, RATES, DROPOUTS)
    ]


def recipe_of(setting: Mapping[str, float]) -> Recipe:
    """Returns the defaults of training that a setting describes.

    >>> recipe_of(grid()[0]).assignments[:2]
    ('schedule.peak=0.002', 'decoder.embedding_dropout=0.1')
    """
    dropouts = (f"decoder.{kind}_dropout={setting['dropout']}" for kind in ("embedding", "attention", "residual"))
    return Recipe(setting["epochs"], (f"schedule.peak={setting['rate']}", *dropouts))


def run(work: Work, path: Path) -> dict[str, float]:
    """Runs the trials that are not finished; writes all to a CSV file; returns the best setting.

    The best one has the lowest mean logarithm of the validation perplexities over the corpora and numbers of blanks.
    The test sentences are not read.

    Args:
        work: base model, corpora and work folder.
        path: the CSV file.
    """
    work.check_base()
    trials = [(setting, corpus) for setting in grid() for corpus in ("yelp", "grimm")]
    folder, rows = work.folder / "tuning", []
    files.make_folder(folder, "--workdir")
    for number, (setting, corpus) in enumerate(trials, start=1):
        name = f"{corpus}.{'.'.join(f'{key}{value:g}' for key, value in setting.items())}"
        stored = folder / f"{name}.json"
        if not stored.exists():
            work.say(f"trial {number} of {len(trials)}: {name}")
            texts = work.texts[corpus]
            lines = sample(texts.train, LINES, SEED)
            result = work.fitted(name, lines, BASE, SEED, texts.valid, recipe=recipe_of(setting))
            files.write_json(stored, result)
        found = files.read_json(stored)
        ppls = {f"ppl_{blanks}": scores["ppl"] for blanks, scores in found["scores"].items()}
        rows.append({"corpus": corpus, **setting, **ppls, "minutes": found["minutes"], "best_epochs": found["epochs"]})
        _write(rows, path)
    return best(rows)


def best(rows: list[dict]) -> dict[str, float]:
    """Returns the setting with the lowest product of perplexities.

    >>> row = {"corpus": "yelp", "rate": 1e-3, "epochs": 8, "dropout": 0.1, "ppl_1": 9.0, "ppl_2": 8.0}
    >>> best([row, {**row, "rate": 5e-4, "ppl_1": 8.0}])
    {'rate': 0.0005, 'epochs': 8, 'dropout': 0.1}
    """
    totals: dict[tuple, float] = {}
    for row in rows:
        key = (row["rate"], row["epochs"], row["dropout"])
        totals[key] = totals.get(key, 1.0) * row["ppl_1"] * row["ppl_2"]
    return dict(zip(("rate", "epochs", "dropout"), min(totals, key=totals.get), strict=True))


def _write(rows: list[dict], path: Path) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.make_folder(path.parent, "--results_dir")
    files.write_text(path, out.getvalue())
