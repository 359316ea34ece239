"""Fills the templates of stored predictions again with the model of a finished cell, by any search, and scores them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.effects import bleu_counts
from experiments.statistics import corpus_bleu
from text_infilling.inference.infiller import Infiller
from text_infilling.inference.limits import BlankLimits
from text_infilling.inference.request import MaskedText, SearchOptions
from text_infilling.metrics.diversity import distinct, repeating
from text_infilling.text.tokenizer import Piece
from text_infilling.vocabulary import TEMPLATE_BLANK, Vocabulary


class Refilled(NamedTuple):
    """Templates filled again.

    Attributes:
        predictions: lines as in predictions.jsonl, with the new infills.
        metrics: both BLEUs, `right_length`, `mean_infill_length`, `distinct_1`, `distinct_2`, `repeating_infills`.
    """

    predictions: list[dict]
    metrics: dict[str, float]


class Refiller:
    """Filler of the templates of predictions with the model of a finished cell. Padding is masked, as in `Infiller`.

    Args:
        folder: the cell, with its weights.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder is not that of a trained model.
    """

    def __init__(self, folder: Path):
        self._infiller = Infiller.load(folder)

    def __call__(self, predictions: Sequence[dict], exact: bool = False, **options: object) -> Refilled:
        """Returns the templates filled by a search.

        Args:
            predictions: lines of predictions.jsonl.
            exact: whether each infill gets the number of words of the true answer.
            options: `num_results`, `beam_width`, `length_penalty`, `temperature`, `top_k`, `top_p`, `seed`,
                `no_repeat_ngram` as in `Infiller.fill`; default: greedy search without the n-gram rule.
        """
        given = dict.fromkeys(("beam_width", "temperature", "top_k", "top_p", "seed"))
        given |= {"num_results": 1, "order": "left", "no_repeat_ngram": 0} | options
        texts = [self._masked(one, exact) for one in predictions]
        found = self._infiller.search(texts, SearchOptions.read(1, **given))
        made = [
            {**{key: one[key] for key in ("template", "answer")}, "infill": list(map(" ".join, results[0].words))}
            for one, results in zip(predictions, found, strict=True)
        ]
        return Refilled(made, scores(made, self._infiller.vocabulary))

    def _masked(self, prediction: dict, exact: bool) -> MaskedText:
        """Returns a template as the model reads it, with limits on the number of words only."""
        vocabulary, text, pieces, places = self._infiller.vocabulary, prediction["template"], [], []
        end = 0
        for token in text.split():
            word = None if token == TEMPLATE_BLANK else token
            if word is None:
                places.append(len(pieces) - len(places))
            pieces.append(Piece(end, end + len(token), word, True))
            end += len(token) + 1
        ids = vocabulary.encode([piece.word for piece in pieces if piece.word is not None])
        lengths = [len(answer.split()) for answer in prediction["answer"]]
        limits = [
            BlankLimits(*((length, length) if exact else (0, self._infiller.longest)), [], [], [], [], {})
            for length in lengths
        ]
        return MaskedText(text, pieces, ids, places, limits)


def scores(predictions: Sequence[dict], vocabulary: Vocabulary) -> dict[str, float]:
    """Returns the metrics of `Refilled` for lines as in predictions.jsonl."""
    infills, answers = ([text.split() for one in predictions for text in one[key]] for key in ("infill", "answer"))
    bleus = {name: bleu_counts(predictions, name, vocabulary).sum(axis=0) for name in ("bleu_paper", "bleu")}
    lengths = np.array([[len(infill), len(answer)] for infill, answer in zip(infills, answers, strict=True)])
    return {
        **{name: float(corpus_bleu(sums, smoothed=name == "bleu_paper")) for name, sums in bleus.items()},
        "right_length": float(np.mean(lengths[:, 0] == lengths[:, 1])),
        "mean_infill_length": float(np.mean(lengths[:, 0])),
        "distinct_1": distinct(infills, 1),
        "distinct_2": distinct(infills, 2),
        "repeating_infills": repeating(infills),
    }
