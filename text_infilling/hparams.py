"""Hyperparameters as plain dicts: strict merging on defaults, assignments `key=value`, comparison of two configs.

Every configurable class has a `default_hparams()`, which reads `configs/defaults.py`; its constructor merges a partial
dict on them. The defaults determine which keys exist and their types.
"""

import contextlib
import copy
import difflib
import json
import re
from typing import Any

MOST_SHOWN = 200  # maximum characters of a value in a message
_SCALARS = (bool, int, float, str)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PYTHON_WORDS = {"True": True, "False": False, "None": None}


def merge(hparams: dict | None, defaults: dict, path: str = "") -> dict:
    """Returns a new plain dict: `defaults`, recursively overwritten with the values in `hparams`.

    A value must have the type of its default: a bool is not an int, an int may become a float, a dict stays a dict. A
    list or tuple becomes the default's sequence type, its elements the type of the default's first element. A default
    of None accepts any scalar (bool, int, float, str, None); other defaults do not accept None.

    Args:
        hparams: nested dict, possibly partial, or None for the unchanged defaults.
        defaults: all allowed keys with their default values; neither modified nor shared with the result.
        path: dotted path of these dicts within a larger one, for error messages.

    Raises:
        ValueError: unknown key (with its full path and the nearest name) or a value of another type.

    >>> merge({"decoder": {"dim": 8}}, {"decoder": {"dim": 400, "dropout": 0.1}})
    {'decoder': {'dim': 8, 'dropout': 0.1}}
    """
    merged = copy.deepcopy(defaults)
    if hparams is None:
        return merged
    if not isinstance(hparams, dict):
        raise ValueError(f"{_name(path)} must be a dict. Received: {_received(hparams)}")
    for key, value in hparams.items():
        where = f"{path}.{key}" if path else str(key)
        if key not in defaults:
            raise ValueError(f"Unknown hyperparameter '{where}'; {_hint(key, defaults, path)}")
        merged[key] = _checked(value, defaults[key], where)
    return merged


def assign(hparams: dict, assignment: str) -> dict:
    """Returns `hparams` with one assignment `a.b=value` applied, as a new dict.

    The value is a JSON literal (`true`, `null`, `3`, `0.5`, `"text"`, `[3, 4]`; also `True`, `None`, `.5`); anything
    else is a literal string. The assignment is merged into `hparams`, with the same checks of keys and types.

    Raises:
        ValueError: no `=`, an empty key, an unknown key, or a value of another type.

    >>> assign({"train": {"epochs": 150}}, "train.epochs=3")
    {'train': {'epochs': 3}}
    """
    key, equals, text = assignment.partition("=")
    names = key.strip().split(".")
    if not equals or not all(names):
        raise ValueError(
            f"an assignment must be key=value with a dotted key such as train.epochs=3. Received: {assignment!r}"
        )
    update = _literal(text.strip())
    for name in reversed(names):
        update = {name: update}
    return merge(update, hparams)


def flatten(hparams: dict) -> dict[str, Any]:
    """Returns one level of dotted keys; an empty inner dict stays a value.

    >>> flatten({"a": {"b": 1}})
    {'a.b': 1}
    """
    flat = {}
    for key, value in hparams.items():
        if isinstance(value, dict) and value:
            flat.update({f"{key}.{inner}": leaf for inner, leaf in flatten(value).items()})
        else:
            flat[str(key)] = value
    return flat


def differences(a: dict, b: dict) -> list[str]:
    """Returns the sorted dotted keys that exist in only one of two configurations or whose values differ.

    A tuple equals the corresponding list (JSON has no tuples), and 1 equals 1.0, but True does not equal 1.

    >>> differences({"train": {"epochs": 3, "seed": 1}}, {"train": {"epochs": 4, "seed": 1}})
    ['train.epochs']
    """
    flat_a, flat_b = flatten(a), flatten(b)
    shared = flat_a.keys() & flat_b.keys()
    return sorted((flat_a.keys() ^ flat_b.keys()) | {key for key in shared if not _same(flat_a[key], flat_b[key])})


def _checked(value: Any, default: Any, where: str) -> Any:
    """Returns `value` converted to the type of `default`, or raises ValueError."""
    if isinstance(default, dict):
        # `merge` accepts None for a constructor's argument ("use the defaults"), but None is no valid nested value.
        if value is not None:
            return merge(value, default, where)
    elif isinstance(default, list | tuple):
        if isinstance(value, list | tuple):
            element = default[0] if default else None
            return type(default)(_checked(item, element, f"{where}[{i}]") for i, item in enumerate(value))
    elif default is None:
        if value is None or isinstance(value, _SCALARS):
            return value
    elif isinstance(value, bool) or isinstance(default, bool):
        if isinstance(value, bool) and isinstance(default, bool):
            return value
    elif isinstance(default, float) and isinstance(value, int):
        with contextlib.suppress(OverflowError):
            return float(value)
    elif isinstance(value, type(default)):
        return copy.deepcopy(value)
    expected = "a scalar" if default is None else type(default).__name__
    raise ValueError(f"{_name(where)} must be {expected}. Received: {_received(value)}")


def _hint(key: Any, defaults: dict, path: str) -> str:
    prefix = f"{path}." if path else ""
    nearest = difflib.get_close_matches(str(key), [str(known) for known in defaults], n=1)
    if nearest:
        return f"did you mean '{prefix}{nearest[0]}'?"
    return f"known keys: {', '.join(f'{prefix}{known}' for known in defaults) or 'none'}"


def _name(path: str) -> str:
    return f"Hyperparameter '{path}'" if path else "Hyperparameters"


def _received(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + '...'} ({type(value).__name__})"


def _literal(text: str) -> Any:
    if text in _PYTHON_WORDS:
        return _PYTHON_WORDS[text]
    try:
        return json.loads(text, parse_constant=_not_a_number)
    except (ValueError, RecursionError):
        return float(text) if _NUMBER.fullmatch(text) else text


def _not_a_number(text: str) -> None:
    raise ValueError(f"{text} is not a valid hyperparameter value")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and a == b
