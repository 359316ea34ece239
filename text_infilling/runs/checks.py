"""Checks the files of a run folder, which may be damaged or hostile, without running their code or using much memory.

This module does not import TensorFlow.
"""

import hashlib
import math
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.configs.checks import check_hparams, config_differences
from text_infilling.configs.defaults import MODELS
from text_infilling.runs.layout import CONFIG, METRICS
from text_infilling.utils import files

if TYPE_CHECKING:
    import h5py

_CHECKSUM = "text_infilling_sha256"  # attribute of a weights file
# All that h5py, zipfile and NumPy raise for a damaged file.
DAMAGED = (OSError, ValueError, KeyError, TypeError, RuntimeError, EOFError, SystemError, zipfile.BadZipFile)
_SIZES = (  # hyperparameters that decide how many parameters a model has
    "decoder.dim", "decoder.num_blocks", "decoder.ffn_dim", "embedder.dim", "encoder.units",
    "gan.discriminator_dim", "classifier.filters", "classifier.kernel_sizes",
)  # fmt: skip
# Parts of config.json that do not affect what a run computes: where it was made, or derived from its corpus.
_RECORD_ONLY = ("versions", "where", "answers", "plan")


def changed_keys(stored: dict, config: dict) -> list[str]:
    """Returns the keys in which two configs differ, except those that do not affect training."""
    return config_differences(
        *({key: part for key, part in each.items() if key not in _RECORD_ONLY} for each in (stored, config))
    )


def read_config(folder: Path) -> dict:
    """Returns the config.json of a run after checking the types and ranges of all values a model is built from.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file does not describe a run; the message names the file and the key.
    """
    config = files.read_json(folder / CONFIG)
    try:
        check_types(config, {"cell": dict, "hparams": dict, "vocabulary": dict})
        check_types(config["cell"], {"model": str}, "cell.")
        check_types(config["vocabulary"], {"hash": str}, "vocabulary.")
        config.setdefault("answers", {"empty": False})  # runs before 2026-12 lack this key
        check_types(config, {"answers": dict})
        check_types(config["answers"], {"empty": bool}, "answers.")
        for name in ("where", "versions"):
            check_types({name: config.get(name, {})}, {name: dict})
        model = config["cell"]["model"]
        if model not in MODELS:
            raise ValueError(f"cell.model must be one of {', '.join(MODELS)}. Received: {files.shown(model)}")
        check_hparams(model, config["hparams"])
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG} does not describe a run: {error}") from error
    return config


def check_types(value: object, keys: dict[str, type | tuple], prefix: str = "") -> None:
    """Raises ValueError unless `value` is an object with these keys, each of its type; a bool is not an int."""
    if not isinstance(value, dict):
        raise ValueError(f"{prefix.rstrip('.') or 'it'} is not an object. Received: {files.shown(value)}")
    for key, kinds in keys.items():
        if key not in value:
            raise ValueError(f"it has no {prefix}{key}")
        kinds = kinds if isinstance(kinds, tuple) else (kinds,)
        if type(value[key]) not in kinds:
            expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ValueError(f"{prefix}{key} must be {expected}. Received: {files.shown(value[key])}")


def read_metrics(folder: Path) -> dict[str, float]:
    """Returns the metrics.json of a finished run.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not an object of numbers.
    """
    metrics = files.read_object(folder / METRICS)
    for name, value in metrics.items():
        if type(value) not in (int, float) or (type(value) is int and abs(value) >= 2**63):
            raise ValueError(
                f"{folder / METRICS}: {files.shown(name)} must be a number. Received: {files.shown(value)}"
            )
    return metrics


def check_weights(path: Path, model: str, vocabulary_size: int, hparams: dict) -> None:
    """Checks that a weights file has the number of parameters of a model, before memory is allocated for either.

    Args:
        path: file written by `keras.Model.save_weights`, or the `.npz` file of a base model.
        model: name in `MODELS`.
        vocabulary_size: words and special tokens.
        hparams: checked hyperparameters of the run.

    Raises:
        ValueError: the file is damaged, or has another number of parameters; the message names the sizes.
    """
    wrong = f"{path} does not hold the weights of the {model} model that {CONFIG} beside it describes"
    try:
        stored = _npz_parameters(path) if path.suffix == ".npz" else _stored_parameters(path)
    except DAMAGED as error:
        raise ValueError(f"{wrong}: {' '.join(str(error).split())}") from error
    expected = parameters(model, vocabulary_size, hparams)
    if stored != expected:
        sizes = {key: _value(hparams, key) for key in _SIZES}
        named = ", ".join(f"{key}={value}" for key, value in sizes.items() if value is not None)
        raise ValueError(
            f"{wrong}: it has {stored:,} parameters; {expected:,} follow from {named} and {vocabulary_size:,} words"
        )


def parameters(model: str, vocabulary_size: int, hparams: dict) -> int:
    """Returns the number of parameters of a model, without building it.

    Args:
        model: name in `MODELS`.
        vocabulary_size: words and special tokens.
        hparams: hyperparameters of the run.
    """
    decoder = hparams["decoder"]
    if model == "self_attention":
        dim, ffn = decoder["dim"], decoder["ffn_dim"]
        attention, norms, feed_forward = 8 * dim * dim, 3 * 2 * dim, 2 * dim * ffn + ffn + dim
        return vocabulary_size * dim + decoder["num_blocks"] * (attention + norms + feed_forward) + 2 * dim
    dim, units = hparams["embedder"]["dim"], decoder["units"]
    lstm = 4 * units * (dim + units + 1)
    count = vocabulary_size * dim + 2 * lstm + vocabulary_size * (units + 1)
    if model == "gan":
        dim, filters = hparams["gan"]["discriminator_dim"], hparams["classifier"]["filters"]
        convolutions = sum(filters * (size * dim + 1) + filters for size in hparams["classifier"]["kernel_sizes"])
        count += vocabulary_size * dim + convolutions
    return count


def _stored_parameters(path: Path) -> int:
    """Counts the parameters in a weights file and compares its checksum, without following links to other files.

    Raises:
        ValueError: the file has parts that Keras does not write: links, compressed or external arrays; or it is cut
            off, or has another checksum.
        OSError, KeyError, TypeError, RuntimeError: h5py cannot read it.
    """
    import h5py

    count = size = 0
    with h5py.File(path, "r") as file:
        links: list[tuple[str, object]] = []
        file.visititems_links(lambda name, link: links.append((name, link)))
        for name, link in links:
            if not isinstance(link, h5py.HardLink):
                raise ValueError(f"{files.shown(name)} is a link to elsewhere")
            array = file[name]
            if not isinstance(array, h5py.Dataset):
                continue
            if array.chunks or array.external or array.is_virtual or array.dtype.kind not in "fiu":
                raise ValueError(f"{files.shown(name)} is not a plain array of numbers")
            size += array.nbytes
            if array.shape and array.dtype.kind == "f":  # the rest are metric states, a temperature, and seeds
                count += array.size
        if size > path.stat().st_size:
            raise ValueError(f"it is cut off: its arrays have {size:,} bytes, the file {path.stat().st_size:,}")
        if _CHECKSUM in file.attrs and file.attrs[_CHECKSUM] != _checksum(file):
            raise ValueError("its numbers have another checksum than it states")
    return count


def add_checksum(path: Path) -> None:
    """Adds a checksum of all numbers to a weights file, which `check_weights` compares.

    HDF5 has none of its own: without it, a changed bit in a weight would change the infills and nothing else.
    """
    import h5py

    with h5py.File(path, "r+") as file:
        file.attrs[_CHECKSUM] = _checksum(file)


def _checksum(file: "h5py.File") -> str:
    import h5py

    digest = hashlib.sha256()

    def add(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            digest.update(f"{name} {item.dtype} {item.shape} ".encode())
            digest.update(item[()].tobytes())

    file.visititems(add)
    return digest.hexdigest()


def _npz_parameters(path: Path) -> int:
    """Counts the parameters in a file written by `np.savez` without reading them.

    Raises:
        ValueError, OSError, zipfile.BadZipFile, EOFError: the file has another format, or is cut off.
    """
    count = size = 0
    with zipfile.ZipFile(path) as file:
        for member in file.infolist():
            with file.open(member) as array:
                if np.lib.format.read_magic(array) != (1, 0):
                    raise ValueError(f"{files.shown(member.filename)} has an unknown format")
                shape, _, dtype = np.lib.format.read_array_header_1_0(array)
                if member.compress_type != zipfile.ZIP_STORED or dtype.kind != "f":
                    raise ValueError(f"{files.shown(member.filename)} is not a plain array of numbers")
                if member.file_size != array.tell() + math.prod(shape) * dtype.itemsize:
                    raise ValueError(f"{files.shown(member.filename)} has another size than it states")
            size += member.file_size
            count += math.prod(shape) if shape else 0
    if size > path.stat().st_size:
        raise ValueError(f"its arrays have {size:,} bytes, the file {path.stat().st_size:,}")
    return count


def _value(hparams: dict, key: str) -> object:
    """Returns the hyperparameter of a dotted key, None if the model lacks it."""
    group, _, name = key.partition(".")
    return hparams.get(group, {}).get(name)
