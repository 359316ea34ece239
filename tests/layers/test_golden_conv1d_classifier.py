"""The discriminator, compared with the original module's golden vectors."""

import numpy as np
import pytest
import tensorflow as tf
from golden import check_close, golden

from text_infilling.layers.conv1d_classifier import Conv1DClassifier

SCOPE = "w/conv1d_classifier/conv_encoder"


@pytest.fixture(scope="module")
def data():
    return golden("conv1d_classifier")


@pytest.fixture(scope="module")
def classifier(data):
    """Returns our layer with the original weights, whose three kernels are identified by their size."""
    layer = Conv1DClassifier({"filters": 8})
    layer.build((None, None, 16))
    names = [name for name in data if "conv_pool_1" in name and name.endswith("/kernel:0")]
    names.sort(key=lambda name: len(data[name]))
    for convolution, name in zip(layer.convolutions, names, strict=True):
        convolution.kernel.assign(data[name])
        convolution.bias.assign(data[name.replace("/kernel:0", "/bias:0")])
    layer.logit.kernel.assign(data[f"{SCOPE}/logit_layer/kernel:0"])
    return layer


def embedded(data, what):
    table = data["w/lookup_table/lookup_table:0"]
    return table[data["ids"]] if what == "ids" else data["soft_ids"] @ table


@pytest.mark.parametrize(("what", "prefix"), [("ids", ""), ("soft_ids", "soft_")])
def test_logits_equal_the_original(data, classifier, what, prefix):
    """Lengths range from 1, which is shorter than every kernel, to the full width."""
    assert set(data["sequence_length"]) == {1, 2, 3, 5, 7}
    logits = classifier(tf.constant(embedded(data, what)), data["sequence_length"])
    check_close(logits, data[f"{prefix}logits"], 2e-6)
    np.testing.assert_array_equal(logits > 0, data[f"{prefix}preds"])


def test_the_original_counts_the_windows_at_the_edge_of_the_padding(data, classifier):
    """Why we count them too: padding would change the logit of a row that has none, but not of rows with enough."""
    inputs = np.pad(embedded(data, "soft_ids"), [(0, 0), (0, 3), (0, 0)])
    logits = classifier(tf.constant(inputs), data["sequence_length"])
    differs = ~np.isclose(logits, data["soft_logits"], atol=1e-4)
    np.testing.assert_array_equal(differs, data["sequence_length"] == 7)
