"""Learning curves: BLEU and perplexity by sentences seen, ours from the logs of cells and the authors' from a table."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from experiments.cells.setting import Setting
from experiments.tables import paper
from text_infilling.runs.layout import LOG

# The authors' names in curves.csv.
DATASETS = {"yelp": "yelp", "grimm": "grimm_lm", "nba": "nba_lm", "prepositions": "grimm_prep"}
MODELS = {"seq2seq": "seq2seq", "gan": "gan", "self_attention": "self_attn"}
COLUMNS = ("dataset", "mask_rate", "blanks", "model", "run", "log_dir", "epoch", "last_step", "test_ppl", "test_bleu")
_SIZE = re.compile(r"([\d,]+) sentences, \d+ epochs of \d+ steps")
_EPOCH = re.compile(r" epoch (\d+): loss .*; validation bleu_paper ([\d.]+), .*\bppl_paper ([\d.einf+]+),")


class Point(NamedTuple):
    """Scores after some training; None for a score that was not computed.

    Attributes:
        sentences: training sentences seen, repeats included.
        bleu: `bleu_paper`.
        ppl: `ppl_paper`.
    """

    sentences: int
    bleu: float | None
    ppl: float | None


def of_cell(folder: Path) -> list[Point]:
    """Returns the validation scores of a cell after each epoch, from its log; empty if it has none."""
    path = folder / LOG
    return of_log(path.read_text("utf-8")) if path.exists() else []


def of_log(text: str) -> list[Point]:
    """Returns the validation scores after each epoch from the text of a log.

    >>> of_log('''gan: 9 parameters, 1,000 sentences, 5 epochs of 10 steps, ...
    ... 09:00:00 epoch 1: loss 4.9; validation bleu_paper 47.35, bleu 27.23, ppl_paper 53.70, ppl 34.12 (58 s)''')
    [Point(sentences=1000, bleu=47.35, ppl=53.7)]
    """
    size, found = None, {}
    for line in text.splitlines():
        if match := _SIZE.search(line):
            size = int(match[1].replace(",", ""))
        elif (match := _EPOCH.search(line)) and size:
            epoch = int(match[1])
            found[epoch] = Point(epoch * size, float(match[2]), float(match[3]))  # of a restarted run the last
    return [found[epoch] for epoch in sorted(found)]


def of_authors(original_dir: Path, setting: Setting, model: str) -> list[list[Point]]:
    """Returns the test scores in the authors' logs of the run that the paper prints: one curve, or one per part.

    The run is the one whose log has the printed BLEU, or that of the released output; a GAN's was continued in a second
    log.

    Args:
        original_dir: folder that contains curves.csv.
        setting: a setting of the paper.
        model: one of `MODELS`.

    Raises:
        OSError: curves.csv cannot be read.
        ValueError: it lacks a column.
    """
    printed = paper.printed(setting, model, "bleu") or paper.printed(setting, model, "outputs_bleu")
    if printed is None:
        return []
    rows = list(_rows(original_dir / "curves.csv", setting, model))
    half = 0.6 * 10.0 ** -len(printed.partition(".")[2])  # the table has six digits
    runs = {row["run"] for row in rows if row["test_bleu"] and abs(float(row["test_bleu"]) - float(printed)) < half}
    runs = runs & {row["run"] for row in rows if row["test_ppl"]} or runs  # some logs have the same BLEU by chance
    begun = {run.partition("@")[0].removesuffix(".new") for run in runs}
    runs |= {row["run"] for row in rows if model == "gan" and row["run"].partition("@")[0] in begun}
    return [points for run in sorted(runs) if (points := [_point(row) for row in rows if row["run"] == run])]


def _rows(path: Path, setting: Setting, model: str) -> Iterator[dict[str, str]]:
    rate = "" if setting.mask_rate is None else f"{setting.mask_rate:g}"
    key = (DATASETS[setting.task], rate, str(setting.blanks), MODELS[model])
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if missing := set(COLUMNS) - set(reader.fieldnames or ()):
            raise ValueError(f"{path} has no column {min(missing)}: expected the table of the authors' logs")
        yield from (row for row in reader if tuple(row[name] for name in COLUMNS[:4]) == key)


def _point(row: dict[str, str]) -> Point:
    batch = re.search(r"\.bsize(\d+)\.", row["log_dir"])
    bleu, ppl = (float(row[name]) if row[name] else None for name in ("test_bleu", "test_ppl"))
    return Point(int(row["last_step"] or 0) * int(batch[1]), bleu, ppl)
