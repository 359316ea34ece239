"""Corpus BLEU from summed counts, and the paired bootstrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.statistics import COLUMNS, corpus_bleu, difference, mean, paired_bootstrap, resampled
from text_infilling.metrics.bleu import bleu, bleu_paper, sentence_counts

SCORES = {"bleu": bleu, "bleu_paper": bleu_paper}
sentences = st.lists(st.sampled_from("a b c d".split()), min_size=1, max_size=9).map(" ".join)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=6)


@pytest.mark.parametrize("metric", SCORES)
@given(corpus=corpora)
def test_bleu_of_summed_counts_equals_the_score_of_the_texts(metric, corpus):
    hypotheses, references = zip(*corpus, strict=True)
    sums = np.sum(sentence_counts(hypotheses, references, metric), axis=0)
    expected = SCORES[metric](hypotheses, references)
    if sums[-1]:  # without any 4-gram the authors' script and sacrebleu differ, and no corpus is that short
        assert corpus_bleu(sums, smoothed=metric == "bleu_paper") == pytest.approx(expected, abs=1e-9)


def counts_of(hypotheses, references):
    return np.array(sentence_counts(hypotheses, references, "bleu"))


def noisy(rng, references, share):
    """Returns the references with a share of their words replaced."""
    return [" ".join("x" if rng.random() < share else word for word in line.split()) for line in references]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(200)]
    return counts_of(noisy(rng, references, 0.1), references), counts_of(noisy(rng, references, 0.3), references)


def test_better_outputs_are_clearly_better(pair):
    found = paired_bootstrap(*pair, resamples=500, seed=1, metric="bleu")
    assert 0 < found.low < found.value < found.high and found.is_clear and found.p == pytest.approx(1 / 501)


def test_equal_outputs_have_no_difference(pair):
    assert paired_bootstrap(pair[0], pair[0], 100, 1, "bleu") == (0, 0, 0, 1)


def test_the_order_of_the_two_only_changes_signs(pair):
    one, other = (paired_bootstrap(*both, resamples=300, seed=2, metric="bleu") for both in (pair, pair[::-1]))
    assert (one.value, one.low, one.high, one.p) == pytest.approx((-other.value, -other.high, -other.low, other.p))


def test_the_result_depends_on_the_seed_and_nothing_else(pair):
    same = [paired_bootstrap(*pair, resamples=700, seed=3, metric="bleu") for _ in range(2)]
    assert same[0] == same[1] != paired_bootstrap(*pair, resamples=700, seed=4, metric="bleu")


def test_a_pair_has_a_narrower_interval_than_unrelated_sentences(pair):
    a, b = pair
    shuffled = b[np.random.default_rng(5).permutation(len(b))]
    hard = np.arange(len(a)) % 2 == 0  # half of the sentences are hard for both
    a, b = (np.where(hard[:, None], counts * [1, 1, *[0] * 4, *[1] * 4], counts) for counts in (a, b))
    paired = paired_bootstrap(a, b, 500, 1, "bleu")
    unpaired = paired_bootstrap(
        a, np.where(hard[::-1, None], shuffled * [1, 1, *[0] * 4, *[1] * 4], shuffled), 500, 1, "bleu"
    )
    assert paired.high - paired.low < unpaired.high - unpaired.low


def test_95_percent_of_the_intervals_contain_the_true_difference():
    """Outputs of equal quality: the interval excludes 0 in about 5% of the draws."""
    rng, clear = np.random.default_rng(6), 0
    for draw in range(100):
        references = [" ".join(rng.choice(list("abcdefgh"), 12)) for _ in range(60)]
        a, b = (counts_of(noisy(rng, references, 0.2), references) for _ in range(2))
        clear += paired_bootstrap(a, b, 200, draw, "bleu").is_clear
    assert clear <= 12


@pytest.mark.parametrize(
    ("a", "b", "resamples", "message"),
    [
        (np.ones((2, COLUMNS)), np.ones((3, COLUMNS)), 9, "Received: 2 and 3 sentences"),
        (np.ones((0, COLUMNS)), np.ones((0, COLUMNS)), 9, r"\(0, 10\)"),
        (np.ones((2, 9)), np.ones((2, 9)), 9, r"\(2, 9\)"),
        (np.ones((2, COLUMNS)), np.ones((2, COLUMNS)), 0, "at least 1. Received: 0"),
    ],
)
def test_what_cannot_be_compared_is_an_error(a, b, resamples, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(a, b, resamples, 1, "bleu")


def test_several_seeds_are_averaged_on_the_same_resamples(pair):
    a, b = (resampled(counts, "bleu", 300, seed=1) for counts in pair)
    both = mean([a, b])
    assert both.value == (a.value + b.value) / 2 and both.resampled[7] == (a.resampled[7] + b.resampled[7]) / 2
    found = difference(both, b)
    assert found.value == pytest.approx(difference(a, b).value / 2)
    assert found.low == pytest.approx(difference(a, b).low / 2)  # the same resamples, or it would be farther from it


def test_perplexity_is_resampled_from_sums_of_log_likelihoods():
    counts = np.array([[2.0, 1], [6.0, 3], [3.0, 2]])
    found = resampled(counts, "ppl", 200, seed=1)
    assert found.value == pytest.approx(np.exp(11 / 6))
    assert found.resampled.min() >= np.exp(1.5) - 1e-9 and found.resampled.max() <= np.exp(2) + 1e-9
