"""Checks of hyperparameters against their tables in `defaults`, and the comparison of the configs of two runs."""

from collections.abc import Mapping
from typing import Any

from text_infilling.configs.defaults import MODELS, Key, defaults, run_keys
from text_infilling.hparams import differences, flatten, merge
from text_infilling.utils import files

MAX_ITEMS = 100  # of a list
# Keys that do not affect the result; ignored in the comparison of the configs of two runs.
NO_DIFFERENCE = ("hparams.train.resume_seconds",)
_KEYS = {key: limits for model in MODELS for key, limits in flatten(run_keys(model)).items()}


def checked(hparams: dict | None, keys: Mapping[str, Key], group: str) -> dict:
    """Returns the hyperparameters of a layer: a partial dict merged on the defaults, with all values checked.

    Args:
        hparams: partial dict, or None for the defaults.
        keys: the layer's keys, from a table of `defaults`.
        group: name of the group, for error messages.

    Raises:
        ValueError: an unknown key, or a value of the wrong type, out of range or not a valid choice.

    >>> checked({"units": 8}, {"units": Key(1600, 1, 2**16), "dropout": Key(0.1, 0, 1)}, "encoder")
    {'units': 8, 'dropout': 0.1}
    """
    merged = merge(hparams, defaults(keys), group)
    for name, value in merged.items():
        _check_value(f"{group}.{name}", value, keys[name])
    return merged


def check_hparams(model: str, hparams: dict) -> None:
    """Checks the stored hyperparameters of a run.

    Raises:
        ValueError: a key is unknown or missing, or a value has the wrong type, is out of range or not a valid choice.
    """
    known = defaults(run_keys(model))
    check_values(merge(hparams, known))
    missing = flatten({"hparams": known}).keys() - flatten({"hparams": hparams}).keys()
    if missing:
        raise ValueError(f"it has no {min(missing)}")


def check_values(hparams: dict) -> None:
    """Checks the values of hyperparameters whose keys and types are valid, also those that depend on each other.

    Raises:
        ValueError: a value is out of range or not a valid choice; the message names the first one.
    """
    values = flatten(hparams)
    for key, value in values.items():
        _check_value(key, value, _KEYS[key])
    if "decoder.num_heads" in values:
        dim, heads = values["decoder.dim"], values["decoder.num_heads"]
        if dim % heads or dim % 2:
            raise ValueError(
                f"decoder.dim must be even and a multiple of num_heads. Received: dim={dim}, num_heads={heads}"
            )
    if values.get("embedder.dim", 0) % 2:
        raise ValueError(f"embedder.dim must be even. Received: dim={values['embedder.dim']}")
    if "encoder.units" in values and values["encoder.units"] != values["decoder.units"]:
        raise ValueError(
            "decoder.units must equal encoder.units, because the decoder starts from the encoder's state. "
            f"Received: encoder.units={values['encoder.units']}, decoder.units={values['decoder.units']}"
        )


def config_differences(one: dict, other: dict) -> list[str]:
    """Returns the sorted dotted keys in which the configs of two runs, or the same parts of them, differ."""
    return [key for key in differences(one, other) if key not in NO_DIFFERENCE]


def _check_value(name: str, value: Any, key: Key) -> None:
    if key.choices and value not in key.choices:
        raise ValueError(f"{name} must be one of {', '.join(key.choices)}. Received: {files.shown(value)}")
    if key.least is None:
        return
    items = value if isinstance(value, list) else [value]
    if not 1 <= len(items) <= MAX_ITEMS or not all(key.least <= item < key.bound for item in items):  # also for NaN
        many = f"1 to {MAX_ITEMS} numbers, each " if isinstance(value, list) else ""
        raise ValueError(
            f"{name} must be {many}at least {key.least} and less than {key.bound}. "
            f"Received: {name}={files.shown(value)}"
        )
