"""The discriminator against the original module's golden vectors."""

import numpy as np
import pytest
import tensorflow as tf

from text_infilling.layers.conv1d_classifier import Conv1DClassifier

SCOPE = "w/conv1d_classifier/conv_encoder"


@pytest.fixture(scope="module")
def golden(shared):
    return np.load(shared / "original" / "golden" / "conv1d_classifier.npz")


@pytest.fixture(scope="module")
def classifier(golden):
    """Ours with the original's weights; its three kernels are told apart by their size."""
    layer = Conv1DClassifier({"filters": 8})
    layer.build((None, None, 16))
    names = [name for name in golden if "conv_pool_1" in name and name.endswith("/kernel:0")]
    names.sort(key=lambda name: len(golden[name]))
    for convolution, name in zip(layer.convolutions, names, strict=True):
        convolution.kernel.assign(golden[name])
        convolution.bias.assign(golden[name.replace("/kernel:0", "/bias:0")])
    layer.logit.kernel.assign(golden[f"{SCOPE}/logit_layer/kernel:0"])
    return layer


def embedded(golden, what):
    table = golden["w/lookup_table/lookup_table:0"]
    return table[golden["ids"]] if what == "ids" else golden["soft_ids"] @ table


@pytest.mark.parametrize(("what", "prefix"), [("ids", ""), ("soft_ids", "soft_")])
def test_logits_equal_the_original(golden, classifier, what, prefix):
    """Lengths from 1, shorter than every kernel, up to the whole width."""
    assert set(golden["sequence_length"]) == {1, 2, 3, 5, 7}
    logits = classifier(tf.constant(embedded(golden, what)), golden["sequence_length"])
    np.testing.assert_allclose(logits, golden[f"{prefix}logits"], atol=1e-5)
    np.testing.assert_array_equal(logits > 0, golden[f"{prefix}preds"])


def test_the_original_counts_the_windows_at_the_edge_of_the_padding(golden, classifier):
    """Why we do: the row without padding would get another logit with some, the rows that have enough would not."""
    inputs = np.pad(embedded(golden, "soft_ids"), [(0, 0), (0, 3), (0, 0)])
    logits = classifier(tf.constant(inputs), golden["sequence_length"])
    differs = ~np.isclose(logits, golden["soft_logits"], atol=1e-4)
    np.testing.assert_array_equal(differs, golden["sequence_length"] == 7)
