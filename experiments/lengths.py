"""Measures BLEU of a finished cell with the true number of words per infill."""

from pathlib import Path

from experiments import effects
from experiments.cells import cell as cells
from text_infilling.runs.layout import VOCABULARY
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

FILE = "true_lengths.json"
METRICS = ("bleu_paper", "bleu")


def measure(folder: Path) -> dict:
    """Returns the scores of a cell with free and with true lengths, and their difference with its interval.

    Args:
        folder: the cell, with weights and predictions.jsonl.

    Returns:
        `{"free": METRICS, "true_lengths": METRICS, "gap": {"bleu": [value, low, high], "bleu_paper": ...}}`

    Raises:
        OSError: a file is missing.
        ValueError: a file is damaged.
    """
    predictions = cells.read_predictions(folder)
    from experiments.refill import Refiller, scores  # imports TensorFlow

    exact = Refiller(folder)(predictions, exact=True)
    vocabulary = Vocabulary.load(folder / VOCABULARY)
    gap = {}
    for metric in METRICS:
        both = (effects.bleu_counts(lines, metric, vocabulary) for lines in (exact.predictions, predictions))
        gap[metric] = list(effects.difference(*both, metric))
    return {"free": scores(predictions, vocabulary), "true_lengths": exact.metrics, "gap": gap}


def of_cell(folder: Path) -> str:
    """Measures a cell, writes its file and returns a line about it."""
    found = measure(folder)
    files.write_json(folder / FILE, found)
    value, low, high = found["gap"]["bleu"]
    free, true = (found[key]["bleu"] for key in ("free", "true_lengths"))
    return f"bleu {free:.2f} with free lengths, {true:.2f} with true ones: {value:+.2f} [{low:+.2f}, {high:+.2f}]"
