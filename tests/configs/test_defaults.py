"""The tables of hyperparameters are consistent, and the examples in the docstrings are correct."""

import pytest

from text_infilling.configs import checks, defaults, protocols
from text_infilling.hparams import flatten

ALL = {name: key for model in defaults.MODELS for name, key in flatten(defaults.run_keys(model)).items()}


@pytest.mark.parametrize("name", ALL)
def test_a_key_has_limits_or_choices_that_include_its_default(name):
    key = ALL[name]
    if isinstance(key.default, bool):
        assert key[1:] == (None, None, ())
    elif isinstance(key.default, str):
        assert key.default in key.choices and (key.least, key.bound) == (None, None)
    else:
        values = key.default if isinstance(key.default, list) else [key.default]
        assert all(key.least <= value < key.bound for value in values) and not key.choices


def test_a_key_is_the_same_in_every_model_that_shares_its_group():
    for name in ("embedder", "encoder", "decoder"):
        assert defaults.run_keys("seq2seq")[name] == defaults.run_keys("gan")[name]


def test_the_defaults_are_copies():
    defaults.defaults(defaults.CLASSIFIER)["kernel_sizes"].append(6)
    assert defaults.defaults(defaults.CLASSIFIER)["kernel_sizes"] == [3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("text", "full"), "protocol must be one of paper, released. Received: 'text'"),
        (("paper", "tiny"), "preset must be one of full, laptop, smoke. Received: 'tiny'"),
        (("paper", "full", (), "gpt"), "model must be one of self_attention, seq2seq, gan. Received: 'gpt'"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(arguments, message):
    with pytest.raises(ValueError, match=message):
        protocols.run_hparams(*arguments)


def test_values_at_the_limits():
    keys = {"units": defaults.Key(8, 1, 10), "sizes": defaults.Key([3], 1, 10)}
    assert checks.checked({"units": 1, "sizes": [9, 1]}, keys, "encoder") == {"units": 1, "sizes": [9, 1]}
    for changes in ({"units": 0}, {"units": 10}, {"sizes": []}, {"sizes": [1, 10]}, {"sizes": [1] * 101}):
        with pytest.raises(ValueError, match=f"encoder.{next(iter(changes))} must be .*at least 1 and less than 10"):
            checks.checked(changes, keys, "encoder")
