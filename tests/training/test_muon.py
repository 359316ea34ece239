"""StackedMuon takes the steps of Keras's Muon."""

import keras
import numpy as np
import pytest

from text_infilling.training.muon import StackedMuon

SHAPES = {
    "square": (8, 8),
    "another_square": (8, 8),
    "wide": (4, 9),
    "tall": (9, 4),
    "embedding": (12, 4),
    "output_kernel": (12, 5),
    "bias": (9,),
}


def trained(optimizer_class, steps=5, **options):
    """Returns the variables and the optimizer's variables after steps with fixed gradients."""
    draws = np.random.default_rng(1)
    variables = [keras.Variable(draws.normal(size=shape), dtype="float32", name=name) for name, shape in SHAPES.items()]
    optimizer = optimizer_class(0.02, exclude_layers=["output_kernel"], **options)
    for _ in range(steps):
        gradients = [keras.ops.convert_to_tensor(draws.normal(size=v.shape), "float32") for v in variables]
        optimizer.apply(gradients, variables)
    return [v.numpy() for v in variables], [v.numpy() for v in optimizer.variables]


@pytest.mark.parametrize(
    "options",
    [{}, {"ns_steps": 2, "weight_decay": 0.1, "adam_lr_ratio": 0.5}, {"nesterov": False}, {"rms_rate": None}],
    ids=str,
)
def test_weights_and_state_equal_those_of_keras(options):
    for found, expected in zip(trained(StackedMuon, **options), trained(keras.optimizers.Muon, **options), strict=True):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_matrices_move_by_their_orthogonalized_momentum():
    """After one step with a large ns_steps, all singular values of an update are close to each other."""
    before, after = (trained(StackedMuon, steps, ns_steps=10, rms_rate=None)[0] for steps in (0, 1))
    for name in ("square", "wide", "tall"):
        row = list(SHAPES).index(name)
        values = np.linalg.svd(after[row] - before[row], compute_uv=False) / 0.02
        assert values.min() > 0.6 and values.max() < 1.3
