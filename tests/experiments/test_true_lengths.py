"""Filling stored templates again: true lengths, other searches, and the pages about them."""

import itertools
import shutil

import pytest
from finished_cells import CELL, finish
from infilling_runs import LONGEST

from experiments import collect, lengths, true_lengths
from experiments.refill import Refiller, scores
from experiments.searches import SEARCHES
from experiments.tables.outputs import filled_text
from text_infilling.inference.fill_options import check_options
from text_infilling.metrics.bleu import bleu
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

PREDICTIONS = [
    {
        "template": "the soup <m> , but i <m> the bread !",
        "answer": ["was very good", "love"],
        "infill": ["was", "love"],
    },
    {"template": "<m> is good .", "answer": [""], "infill": ["soup"]},
    {"template": "we <m> cold soup .", "answer": ["do n't love"], "infill": ["love"]},
]


@pytest.fixture(scope="module")
def refiller(infiller_run):
    return Refiller(infiller_run)


def counted(predictions, key):
    return [len(text.split()) for one in predictions for text in one[key]]


def test_greedy_search_gives_the_infills_of_the_infiller(refiller, infiller):
    found = refiller(PREDICTIONS).predictions
    for one, stored in zip(found, PREDICTIONS, strict=True):
        text = stored["template"].replace("<m>", "____")
        expected = infiller.fill(text, limits={"min_words": 0}, no_repeat_ngram=0)
        assert one == stored | {"infill": [" ".join(words) for words in expected.words]}


def test_with_true_lengths_each_infill_is_as_long_as_the_answer(refiller):
    found = refiller(PREDICTIONS, exact=True)
    assert counted(found.predictions, "infill") == counted(PREDICTIONS, "answer") == [3, 1, 0, 3]
    assert found.metrics["right_length"] == 1.0 and found.metrics["mean_infill_length"] == 7 / 4


def test_the_scores_are_those_of_the_filled_sentences(infiller_run):
    found = scores(PREDICTIONS, Vocabulary.load(infiller_run / "vocabulary.txt"))
    texts = [[filled_text(one["template"], one[key]) for one in PREDICTIONS] for key in ("infill", "answer")]
    assert found["bleu"] == pytest.approx(bleu(*texts)) and found["right_length"] == 1 / 4


def test_the_length_penalty_ranks_the_results_of_a_beam(infiller):
    text = "The soup ____ !"
    ways = infiller.fill(text, num_results=LONGEST, beam_width=LONGEST, limits={"min_words": 0}).alternatives
    for penalty in (0.0, 1.0, 5.0):
        best = infiller.fill(text, beam_width=LONGEST, length_penalty=penalty, limits={"min_words": 0})
        keys = [way.log_probability / ((5 + len(way.token_log_probabilities[0])) / 6) ** penalty for way in ways]
        assert best.fills == ways[keys.index(max(keys))].fills
    lengths_ = [
        len(infiller.fill(text, beam_width=LONGEST, length_penalty=x, limits={"min_words": 0}).words[0])
        for x in (0, 1, 10)
    ]
    assert lengths_ == sorted(lengths_)


@pytest.mark.parametrize("penalty", [-0.1, 10.5, float("nan"), True, "1"])
def test_a_length_penalty_out_of_range_is_an_error(penalty):
    with pytest.raises(ValueError, match="length_penalty must be a number from 0 to 10"):
        check_options(length_penalty=penalty)


def test_all_searches_have_valid_options():
    for options in SEARCHES.values():
        check_options(**options)
    assert all(one != other for one, other in itertools.combinations(SEARCHES.values(), 2))


def test_a_measured_cell_is_in_the_table(infiller_run, tmp_path):
    folder = finish(tmp_path / "runs", CELL, {"bleu": 1.0})
    assert "No cell was measured yet" in true_lengths.page(collect.read_all(tmp_path / "runs"))
    run = tmp_path / "measured"
    shutil.copytree(infiller_run, run)
    files.write_jsonl(run / "predictions.jsonl", PREDICTIONS)
    assert "with free lengths" in lengths.of_cell(run)
    shutil.copy(run / lengths.FILE, folder)
    (row,) = [line for line in true_lengths.page(collect.read_all(tmp_path / "runs")).splitlines() if "yelp" in line]
    assert row.startswith("| yelp | 40%, 2 blanks | Self-attn | 1 | 25.0% |")
