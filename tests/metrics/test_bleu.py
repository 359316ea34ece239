"""Both BLEU scores against the outputs that the paper's authors released, and against NLTK."""

import functools
import json

import pytest
from nltk.translate.bleu_score import corpus_bleu

from text_infilling.corpora.corpus import Corpus
from text_infilling.metrics.bleu import bleu, bleu_paper, prepare_for_paper
from text_infilling.training.evaluation import evaluate_template
from text_infilling.training.task import Task
from text_infilling.vocabulary import Vocabulary

# The words of the paper's test set that are missing from its vocabulary.
UNKNOWN = {
    *("knot", "popper", "unleashed", "raj", "kiltlifter", "lloyd", "hefeweizen", "indoor/outdoor", "adovada"),
    *("spite", "complements", "boats"),
}

PRINTED_TEMPLATE_BLEU = {
    (0.3, 1): 63.916,
    (0.3, 2): 42.233,
    (0.4, 1): 56.838,
    (0.4, 2): 38.279,
    (0.5, 1): 44.369,
    (0.5, 2): 32.498,
}


@pytest.fixture(scope="module")
def released(request):
    """The released output files, each as its entry in the manifest and its parsed lines."""
    shared = request.getfixturevalue("shared")
    entries = json.loads((shared / "original" / "MANIFEST.json").read_text("utf-8"))["files"]
    lines = [(shared / "original" / entry["file"]).read_text("utf-8").splitlines() for entry in entries]
    return [(entry, [json.loads(line) for line in dump]) for entry, dump in zip(entries, lines, strict=True)]


def test_bleu_paper_equals_the_authors_metric_on_all_released_outputs(released):
    assert len(released) == 28
    bleu_of_templates = functools.cache(bleu_paper)  # models of a cell have the same templates
    for entry, dump in released:
        got, template, expected = (tuple(line[key] for line in dump) for key in ("got", "template", "expected"))
        got, template = bleu_paper(got, expected), bleu_of_templates(template, expected)
        assert (round(got, 3), round(template, 3)) == (entry["bleu_original"], entry["template_bleu_original"]), entry


def test_clean_bleu_agrees_with_nltk_on_the_released_outputs(released):
    for entry, dump in [pair for pair in released if pair[0]["dataset"] == "yelp"]:
        got, expected = ([line[key].removeprefix("<BOS> ") for line in dump] for key in ("got", "expected"))
        assert bleu(got, expected) == pytest.approx(entry["bleu_clean_nltk"], abs=0.01), entry["file"]


def test_clean_bleu_agrees_with_nltk():
    references = ["the food was really good and cheap .", "we will come back here very soon !", "i loved it a lot ."]
    hypotheses = ["the food was really bad and cheap .", "we will come back again very soon !", "i loved it ."]
    nltk = 100 * corpus_bleu([[line.split()] for line in references], [line.split() for line in hypotheses])
    assert bleu(hypotheses, references) == pytest.approx(nltk, abs=1e-9)


def test_template_bleu_of_the_paper_comes_from_the_raw_test_set(shared):
    test = shared / "data" / "yelp" / "test.txt"
    sentences = [line.split() for line in test.read_text("utf-8").splitlines()]
    known = Vocabulary(sorted({word for words in sentences for word in words} - UNKNOWN))
    assert sum(known.replace_unknown(words).count("<UNK>") for words in sentences) == 40
    corpus = Corpus("yelp", test, test, test, source="", note="", checksum="")
    for (mask_rate, blanks), printed in PRINTED_TEMPLATE_BLEU.items():
        metrics = evaluate_template(Task(corpus, known, "fixed", mask_rate, blanks, seed=1))
        assert round(metrics["template_bleu_paper"], 3) == printed, (mask_rate, blanks)
        assert metrics["sentences"] == 1000 and metrics["left_out"] == 0


def test_prepare_for_paper_prepends_bos_and_keeps_the_blank():
    known = Vocabulary(["the", "food"])
    assert prepare_for_paper("the <m> sushi".split(), known.replace_unknown) == "<BOS> the <m> <UNK>"
    assert prepare_for_paper([], known.replace_unknown) == "<BOS>"


def test_special_tokens_count_only_in_the_papers_bleu():
    # `<BOS>` is three matching tokens in it, so a sentence with no correct word still scores.
    assert bleu_paper(["<BOS> a b"], ["<BOS> c d"]) > 20
    assert bleu(["a b c d"], ["e f g h"]) == 0


def test_both_scores_are_case_sensitive():
    assert bleu(["The food is good"], ["the food is good"]) < 100
    assert bleu_paper(["The food is good"], ["the food is good"]) < 100


def test_equal_sentences_score_100():
    for score in (bleu, bleu_paper):
        assert score(["the food is good ."], ["the food is good ."]) == pytest.approx(100)


@pytest.mark.parametrize("score", [bleu, bleu_paper])
def test_no_sentence_or_unequal_numbers_are_errors(score):
    with pytest.raises(ValueError, match="0 hypotheses, 0 references"):
        score([], [])
    with pytest.raises(ValueError, match="1 hypotheses, 2 references"):
        score(["a"], ["a", "b"])
