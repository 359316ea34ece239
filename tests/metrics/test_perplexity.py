"""Perplexities against values computed by hand, and the paper's perplexity against the original code."""

import numpy as np
import pytest
import tensorflow as tf
from golden import golden, golden_spans
from released_transformer import released_model

from text_infilling import templates
from text_infilling.metrics.perplexity import Perplexity


def test_results_equal_those_computed_by_hand():
    """Two batches; lengths include `<EOB>`, and 0 means that the row has no such blank."""
    perplexity = Perplexity()
    # Blank 0: 2 and 1 positions, padded to 2; blank 1: 3 and 0, padded to 3. The columns after that are ignored.
    losses = np.array([[[1, 2, 9, 9], [3, 4, 5, 9]], [[6, 7, 9, 9], [1, 1, 1, 9]]], "float32")
    nll = losses / 10
    perplexity.update(losses, nll, np.array([[2, 3], [1, 0]]))
    perplexity.update(np.array([[[2.0]]]), np.array([[[0.5]]]), np.array([[1]]))
    result = perplexity.result()
    padded_means = [np.mean([1, 2, 6, 7, 3, 4, 5, 1, 1, 1]), 2.0]
    assert result["ppl_paper"] == pytest.approx(np.mean(np.exp(padded_means)))
    words, ends = [0.1, 0.3, 0.4], [0.2, 0.5, 0.6, 0.5]
    assert result["ppl"] == pytest.approx(np.exp(np.mean(words + ends)))
    assert result["ppl_words"] == pytest.approx(np.exp(np.mean(words)))
    assert result["loss"] == pytest.approx(np.mean([1, 2, 6, 3, 4, 5, 2]))


def test_a_result_without_batches_is_an_error():
    with pytest.raises(ValueError, match="none"):
        Perplexity().result()


@pytest.mark.parametrize("blanks", [1, 2])
def test_the_printed_perplexity_of_a_batch_is_exp_of_the_originals_mean_loss(blanks):
    data = golden(f"transformer_blanks{blanks}")
    model = released_model(data)
    examples = templates.build_examples(*golden_spans(data), model.template_format)._asdict()
    perplexity = Perplexity()
    perplexity.update(*model.score(examples, with_padding=True, smoothing=0.1), examples["answer_lengths"])
    assert perplexity.result()["ppl_paper"] == pytest.approx(np.exp(float(data["mean_loss"])), rel=2e-5)


def test_the_printed_perplexity_does_not_depend_on_the_smoothing_of_training():
    data = golden("transformer_blanks1")
    model = released_model(data)
    examples = templates.build_examples(*golden_spans(data), model.template_format)._asdict()
    expected, _ = model.score(examples, with_padding=True, smoothing=0.1)
    model.hparams["loss"]["label_smoothing"] = 0.0
    same, _ = model.score(examples, with_padding=True, smoothing=0.1)
    np.testing.assert_array_equal(same, expected)
    other, nll = model.score(examples, with_padding=False)
    np.testing.assert_allclose(other, nll, atol=1e-5)
    assert not np.allclose(tf.reduce_sum(other), tf.reduce_sum(expected))
