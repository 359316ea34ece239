"""Scores of filled blanks: BLEU of the blanks' words and of the sentences, exact blanks, right lengths."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.statistics import corpus_bleu
from text_infilling.metrics.bleu import sentence_counts

if TYPE_CHECKING:  # These import TensorFlow.
    from text_infilling.models.infilling_model import InfillingModel
    from text_infilling.runs.run_folder import RunFolder
    from text_infilling.training.evaluation import Fill

BLANKS = (1, 2)  # blanks per held-out sentence; random ones
MASK_RATE = 0.3  # the default of `fit`


def of_fills(fills: Sequence["Fill"], ppl: float | None = None) -> dict:
    """Returns the scores of filled sentences.

    Args:
        fills: the sentences.
        ppl: perplexity of the true words, if the filler has one.

    Returns:
        `sentences`; `ppl`; `exact` and `right_length` (shares of the blanks); and per sentence the counts of
        `sentence_counts`, from which both BLEUs follow: `blank_counts` of the blanks' words, where each blank is a
        text of its own, and `full_counts` of the whole sentence.
    """
    from text_infilling.app.base_artefact import shares

    pairs = [pair for fill in fills for pair in zip(fill.infills, fill.answers, strict=True)]
    of_blanks = np.array(sentence_counts(*(map(" ".join, side) for side in zip(*pairs, strict=True)), "bleu"))
    ends = np.cumsum([len(fill.infills) for fill in fills])
    full = sentence_counts(
        [" ".join(fill.sentence(fill.infills)) for fill in fills], [" ".join(fill.words) for fill in fills], "bleu"
    )
    return {
        "sentences": len(fills),
        "ppl": ppl,
        **shares(pairs),
        "blank_counts": np.add.reduceat(of_blanks, [0, *ends[:-1]]).tolist(),
        "full_counts": full,
    }


def bleus(scores: dict) -> tuple[float, float]:
    """Returns BLEU of the blanks' words (smoothed, as `bleu_paper`) and of the sentences (not smoothed, as `bleu`)."""
    totals = (np.sum(scores[key], axis=0) for key in ("blank_counts", "full_counts"))
    return tuple(float(corpus_bleu(total, smoothed)) for total, smoothed in zip(totals, (True, False), strict=True))


def of_model(model: "InfillingModel", run: "RunFolder", lines: Sequence[str], folder: Path) -> dict[str, dict]:
    """Returns the scores of a model on lines of text, by number of blanks.

    Args:
        model: the model of `run`.
        run: the run, which tokenises the lines.
        lines: held-out lines.
        folder: an existing folder for a temporary file.
    """
    from text_infilling.app.base_artefact import held_out_task
    from text_infilling.training.evaluation import Evaluator

    found = {}
    for blanks in BLANKS:
        task = held_out_task(lines, run, "random", MASK_RATE, blanks, folder / "held_out.txt")
        evaluator = Evaluator(model, task, run.hparams)
        found[str(blanks)] = of_fills(evaluator.fills("test"), evaluator.perplexities("test")["ppl"])
    return found
