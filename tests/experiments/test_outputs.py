"""Resampled scores of the predictions of cells."""

import numpy as np
import pytest
from finished_cells import finish, other

from experiments import collect
from experiments.statistics import corpus_bleu
from experiments.tables import paper
from experiments.tables.outputs import RESAMPLES, Outputs, outputs_of
from text_infilling.metrics.bleu import bleu_paper
from text_infilling.utils import files

GOOD, BAD = [4, 4, 4, 3, 2, 1, 4, 3, 2, 1], [4, 4, 2, 1, 0, 0, 4, 3, 2, 1]


def predictions(counts, word="x"):
    return [{"template": "a <m>", "answer": [word], "infill": ["y"], "counts": {"bleu": one}} for one in counts]


def test_scores_are_those_of_the_counts_and_missing_counts_have_none(tmp_path):
    assert outputs_of(tmp_path / "predictions.jsonl") is None
    files.write_jsonl(tmp_path / "predictions.jsonl", predictions([GOOD, BAD]))
    found = outputs_of(tmp_path / "predictions.jsonl").scores("bleu")
    assert found.value == pytest.approx(float(corpus_bleu(np.add(GOOD, BAD), smoothed=False)))
    assert found.resampled.shape == (RESAMPLES,) and found.resampled.max() == 100
    assert Outputs(tmp_path / "predictions.jsonl").scores("ppl") is None


def test_references_can_be_cut_as_those_of_the_authors(tmp_path):
    lines = [{"template": "a b <m> d e f", "answer": ["c"], "infill": ["c"]}] * 3
    files.write_jsonl(tmp_path / "predictions.jsonl", lines)
    outputs = Outputs(tmp_path / "predictions.jsonl")
    assert outputs.bleu_of_cut_references(6) == pytest.approx(100)
    assert outputs.bleu_of_cut_references(5) == pytest.approx(
        bleu_paper(["<BOS> a b c d e f"] * 3, ["<BOS> a b c d e"] * 3)
    )


def test_a_damaged_file_is_named(tmp_path):
    files.write_jsonl(tmp_path / "predictions.jsonl", [{"template": "a <m>"}])
    with pytest.raises(ValueError, match="predictions.jsonl is damaged: KeyError"):
        Outputs(tmp_path / "predictions.jsonl").scores("bleu")


def test_a_table_compares_cells_over_their_seeds_only_if_they_have_the_same_sentences(tmp_path):
    for model, seed, counts, word in (
        ("gan", 1, BAD, "x"), ("seq2seq", 1, GOOD, "other"),
        ("self_attention", 1, GOOD, "x"), ("self_attention", 2, BAD, "x"),
    ):  # fmt: skip
        folder = finish(tmp_path, other(model=model, seed=seed), {"bleu": 1.0})
        files.write_jsonl(folder / "predictions.jsonl", predictions([counts, GOOD], word))
    made = collect.table(collect.read_all(tmp_path), [paper.yelp(0.4, 2)])
    found = made.difference(made.settings[0], "bleu", "self_attention", "gan")
    only_good, mixed = (float(corpus_bleu(np.add(GOOD, one), smoothed=False)) for one in (GOOD, BAD))
    assert found.value == pytest.approx((only_good - mixed) / 2)
    assert made.difference(made.settings[0], "ppl", "self_attention", "gan") is None
    with pytest.raises(ValueError, match="predictions of self_attention and seq2seq are of different test sentences"):
        made.difference(made.settings[0], "bleu", "self_attention", "seq2seq")
