"""Hyperparameters: accepted values, refused values and error messages."""

import copy
import json

import hypothesis
import pytest
from hypothesis import strategies as st

from text_infilling.hparams import assign, differences, flatten, merge

DEFAULTS = {
    "dim": 400,
    "dropout": 0.1,
    "name": "decoder",
    "scale": True,
    "limit": None,
    "kernels": [3, 4, 5],
    "betas": (0.9, 0.997),
    "position": {"base": 256.0, "layout": "interleaved", "deep": {"er": 1}},
}


def test_none_returns_a_deep_copy_of_the_defaults():
    merged = merge(None, DEFAULTS)
    assert merged == DEFAULTS
    merged["position"]["deep"]["er"] = 2
    merged["kernels"].append(6)
    assert DEFAULTS["position"]["deep"]["er"] == 1 and DEFAULTS["kernels"] == [3, 4, 5]


def test_a_partial_dict_overwrites_only_its_own_keys():
    before = copy.deepcopy(DEFAULTS)
    merged = merge({"dim": 8, "position": {"deep": {"er": 5}}}, DEFAULTS)
    assert differences(merged, DEFAULTS) == ["dim", "position.deep.er"]
    assert merged["position"] == {"base": 256.0, "layout": "interleaved", "deep": {"er": 5}}
    assert DEFAULTS == before


def test_a_given_list_is_copied():
    given_kernels = [1, 2]
    merged = merge({"kernels": given_kernels}, DEFAULTS)
    given_kernels.append(3)
    assert merged["kernels"] == [1, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dims": 8}, "Unknown hyperparameter 'dims'; did you mean 'dim'?"),
        ({"position": {"bse": 8}}, "Unknown hyperparameter 'position.bse'; did you mean 'position.base'?"),
        ({"position": {"deep": {"x": 8}}}, "Unknown hyperparameter 'position.deep.x'; known keys: position.deep.er"),
        ({3: 8}, "Unknown hyperparameter '3'; known keys: dim, dropout,"),
    ],
)
def test_an_unknown_key_error_names_the_full_path_and_the_nearest_key(given, message):
    with pytest.raises(ValueError) as error:
        merge(given, DEFAULTS)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_error_messages_start_with_the_path_of_the_outer_dict():
    with pytest.raises(ValueError, match=r"'model\.dims'; did you mean 'model\.dim'"):
        merge({"dims": 8}, DEFAULTS, "model")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dim": 8.0}, "'dim' must be int. Received: 8.0 (float)"),
        ({"dim": True}, "'dim' must be int. Received: True (bool)"),
        ({"dim": "8"}, "'dim' must be int. Received: '8' (str)"),
        ({"dim": None}, "'dim' must be int. Received: None (NoneType)"),
        ({"dropout": True}, "'dropout' must be float. Received: True (bool)"),
        ({"dropout": "0.1"}, "'dropout' must be float. Received: '0.1' (str)"),
        ({"scale": 1}, "'scale' must be bool. Received: 1 (int)"),
        ({"name": 1}, "'name' must be str. Received: 1 (int)"),
        ({"limit": [1]}, "'limit' must be a scalar. Received: [1] (list)"),
        ({"limit": {"a": 1}}, "'limit' must be a scalar. Received: {'a': 1} (dict)"),
        ({"position": 3}, "'position' must be a dict. Received: 3 (int)"),
        ({"position": None}, "'position' must be dict. Received: None (NoneType)"),
        ({"position": {"base": "a"}}, "'position.base' must be float. Received: 'a' (str)"),
        ({"dim": {"a": 1}}, "'dim' must be int. Received: {'a': 1} (dict)"),
        ({"kernels": 3}, "'kernels' must be list. Received: 3 (int)"),
        ({"kernels": "345"}, "'kernels' must be list. Received: '345' (str)"),
        ({"kernels": [3, 4.0]}, "'kernels[1]' must be int. Received: 4.0 (float)"),
        ([], "Hyperparameters must be a dict. Received: [] (list)"),
    ],
)
def test_a_value_of_another_type_is_refused(given, message):
    with pytest.raises(ValueError) as error:
        merge(given, DEFAULTS)
    assert message in str(error.value)


def test_an_int_becomes_a_float_if_the_default_is_a_float():
    merged = merge({"dropout": 0, "betas": [1, 0.5]}, DEFAULTS)
    assert isinstance(merged["dropout"], float)
    assert merged["betas"] == (1.0, 0.5) and all(isinstance(beta, float) for beta in merged["betas"])


@pytest.mark.parametrize("value", [None, True, 3, 0.5, "text"])
def test_a_default_of_none_takes_any_scalar(value):
    assert merge({"limit": value}, DEFAULTS)["limit"] is value


scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
keys = st.sampled_from(["a", "b", "c"])
trees = st.dictionaries(keys, scalars | st.dictionaries(keys, scalars | st.dictionaries(keys, scalars)))


@hypothesis.given(trees)
def test_a_json_round_trip_makes_no_difference(tree):
    assert differences(merge(json.loads(json.dumps(tree)), tree), tree) == []


@hypothesis.given(trees)
def test_every_key_of_flatten_can_be_assigned(tree):
    for key, value in flatten(tree).items():
        if not isinstance(value, dict):
            assert differences(assign(tree, f"{key}={json.dumps(value)}"), tree) == []


@pytest.mark.parametrize(
    ("assignment", "key", "value"),
    [
        ("dim=8", "dim", 8),
        ("dropout=0", "dropout", 0.0),
        ("dropout=.5", "dropout", 0.5),
        ("dropout=1e-3", "dropout", 0.001),
        ("scale=false", "scale", False),
        ("scale=False", "scale", False),
        ("name=encoder", "name", "encoder"),
        ('name="8"', "name", "8"),
        ("name=a=b", "name", "a=b"),
        ("name=", "name", ""),
        ("limit=null", "limit", None),
        ("limit=None", "limit", None),
        ("limit=3", "limit", 3),
        ("limit=words", "limit", "words"),
        ("limit=nan", "limit", "nan"),
        ("limit=NaN", "limit", "NaN"),
        ("kernels=[1, 2]", "kernels", [1, 2]),
        (" position.layout = halves ", "position.layout", "halves"),
        ('position={"base": 8}', "position.base", 8.0),
    ],
)
def test_an_assignment_sets_one_key(assignment, key, value):
    assigned = flatten(assign(DEFAULTS, assignment))
    assert assigned[key] == value and type(assigned[key]) is type(value)
    assert set(differences(assign(DEFAULTS, assignment), DEFAULTS)) <= {key}


@pytest.mark.parametrize("assignment", ["dim", "=3", "position..base=3", ".dim=3", ""])
def test_an_assignment_needs_a_key_and_a_value(assignment):
    with pytest.raises(ValueError, match="an assignment must be key=value"):
        assign(DEFAULTS, assignment)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("dims=8", "did you mean 'dim'"),
        ("position.base.x=8", "'position.base' must be float"),
        ("position=8", "'position' must be a dict"),
        ("dim=1e3", r"'dim' must be int. Received: 1000.0 \(float\)"),
        ("dropout=nan", "'dropout' must be float"),
    ],
)
def test_an_assignment_is_as_strict_as_a_merge(assignment, message):
    with pytest.raises(ValueError, match=message):
        assign(DEFAULTS, assignment)


def test_flatten_returns_dotted_keys():
    assert flatten({"a": 1, "b": {"c": {"d": [1]}, "e": {}}}) == {"a": 1, "b.c.d": [1], "b.e": {}}


def test_differences_lists_changed_keys_and_keys_of_only_one_side():
    a = {"same": (1, 2), "number": 1, "flag": True, "inner": {"x": 1, "gone": 0}}
    b = {"same": [1, 2], "number": 1.0, "flag": 1, "inner": {"x": 2}, "new": 0}
    assert differences(a, b) == ["flag", "inner.gone", "inner.x", "new"]
    assert differences(a, b) == differences(b, a)
