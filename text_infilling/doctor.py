"""Looks whether everything is there that training and filling need, and says how to mend what is not."""

import contextlib
import importlib
import importlib.metadata
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from text_infilling.run_folder import RunFolder, open_run
from text_infilling.training.layout import METRICS, TOKENIZER

GEMM_SIZE = 1024
# What is imported of each package.
MODULES = {
    "tensorflow": "tensorflow",
    "tensorflow-text": "tensorflow_text",
    "keras": "keras",
    "numpy": "numpy",
    "nltk": "nltk",
    "absl-py": "absl",
    "tensorboard": "tensorboard",
    "sacrebleu": "sacrebleu",
}
# What each corpus looks like, below `--data_dir` or the cache.
CORPORA = {
    "Yelp": ("yelp/train.txt", "yelp/valid.txt", "yelp/test.txt"),
    "Grimm's pairs": ("grimm/lm.train.jsonl", "grimm/lm.test.jsonl"),
    "prepositions' pairs": ("grimm/prep.train.jsonl", "grimm/prep.test.jsonl"),
    "NBA's pairs": ("nba/lm.train.jsonl", "nba/lm.test.jsonl"),
    "Grimm's tales": ("grimm/tales/*.txt",),
    "NBA's sentences": ("nba/sentences.train.txt", "nba/sentences.test.txt"),
}


class Check(NamedTuple):
    """What was found of one thing, and how to mend it; `mend` is empty where nothing is wrong."""

    what: str
    found: str
    mend: str = ""

    def __str__(self):
        """For people, the mend on a line of its own."""
        if not self.mend:
            return f"ok      {self.what:15}  {self.found}"
        return f"TROUBLE {self.what:15}  {self.found}\n        mend: {self.mend}"


def checks(data_dir: str | None = None, run: str | None = None) -> Iterator[Check]:
    """Everything looked at, the soonest known first; what cannot be looked at is a trouble too.

    Args:
        data_dir: as of `--data_dir`.
        run: folder of a run to look at, or None.
    """
    yield Check("Python", platform.python_version())
    opened = None
    if run is not None:
        try:
            opened = open_run(run)  # before TensorFlow is imported, which takes seconds
        except (ValueError, OSError) as error:
            yield _broken_run(error)
    looks = {"packages": _packages, "NLTK's tagger": _tagger, "data": lambda: _data(data_dir)}
    if opened is not None:
        looks["run"] = lambda: _run(opened)
    for what, look in {**looks, "device": _device}.items():
        try:
            yield from look()
        except Exception as error:  # an import that fails may raise anything
            yield Check(
                what, f"not looked at: {_line(error)}", "mend what is in trouble above; if nothing is, this is a bug"
            )


def _packages() -> Iterator[Check]:
    try:
        required = importlib.metadata.requires("text_infilling") or []
        required = [line for line in required if "extra ==" not in line] + ["keras"]
    except importlib.metadata.PackageNotFoundError:
        yield Check("text_infilling", "not installed, so what versions it needs is not known")
        required = list(MODULES)
    for line in required:
        yield _package(line)
    minors = {}
    for name in ("tensorflow", "tensorflow-text"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            minors[name] = importlib.metadata.version(name).split(".")[:2]
    if len(minors) == 2 and minors["tensorflow"] != minors["tensorflow-text"]:
        minor = ".".join(minors["tensorflow"])
        yield Check(
            "TensorFlow", "tensorflow-text is of another minor version", f"pip install 'tensorflow-text=={minor}.*'"
        )


def _package(line) -> Check:
    """What there is of a requirement such as `numpy<3,>=2.0`."""
    name, versions = re.fullmatch(r"([\w.-]+)(.*)", line).groups()
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "not installed", f"pip install '{line}'")
    if not _is_within(version, versions):
        return Check(name, f"{version}, which is not {versions}", f"pip install '{line}'")
    try:
        importlib.import_module(MODULES.get(name, name))
    except Exception as error:  # of a broken installation, anything
        found = f"{version}, which cannot be imported: {_line(error)}"
        return Check(name, found, f"mend what is in trouble above, else pip install --force-reinstall '{line}'")
    return Check(name, version)


def _is_within(version, versions):
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:  # it comes with TensorFlow, whose lack is a trouble of its own
        return True
    return SpecifierSet(versions).contains(version, prereleases=True)


def _tagger() -> Iterator[Check]:
    from text_infilling import tagging

    try:
        next(tagging.tag([["word"]]))
        yield Check("NLTK's tagger", "there")
    except FileNotFoundError as error:
        yield Check("NLTK's tagger", "not there; only --masking by tags needs it", str(error))
    except ImportError:
        return  # said above


def _data(data_dir: str | None) -> Iterator[Check]:
    from text_infilling.data.builders import text_files
    from text_infilling.data.corpora import cache_folder

    places = {"the cache": cache_folder(), **({"--data_dir": Path(data_dir)} if data_dir else {})}
    for name, folder in places.items():
        there = [corpus for corpus, paths in CORPORA.items() if all(any(folder.glob(path)) for path in paths)]
        if name == "--data_dir" and text_files(folder):
            there.append("texts of your own")
        found = f"{folder}: {', '.join(there) or 'no corpus'}"
        if name == "--data_dir" and not there:
            yield Check(name, found, "give the folder that holds yelp/, grimm/, nba/ or *.txt (see the README)")
        else:
            yield Check(name, found)


def _run(run: RunFolder) -> Iterator[Check]:
    from text_infilling.infiller import Infiller

    try:
        model = Infiller.load(run).model
        if run.config["cell"].get("corpus") == "own" and not (run.path / TOKENIZER).is_file():
            raise ValueError(f"{run.path} has no {TOKENIZER}")
    except (ValueError, OSError) as error:
        yield _broken_run(error)
        return
    state = "finished" if (run.path / METRICS).exists() else "not finished: the command that began it resumes it"
    yield Check("run", f"{run.path}: {type(model).__name__}, {model.count_params():,} parameters, {state}")


def _broken_run(error: Exception) -> Check:
    mend = (
        "give the folder of a run, or copy it again whole from where it was trained; one that was stopped is resumed "
        "by the command that began it"
    )
    return Check("run", f"not whole: {_line(error)}", mend)


def _device() -> Iterator[Check]:
    import tensorflow as tf

    from text_infilling.training.trainer import gemm_flops

    gpus = [device.name for device in tf.config.list_physical_devices("GPU")]
    threads = tf.config.threading.get_intra_op_parallelism_threads() or "all"
    yield Check("device", ", ".join(gpus) or f"CPU ({platform.machine()}), {threads} cores")
    yield Check("matrix product", f"{gemm_flops(GEMM_SIZE, 5) / 1e9:.0f} GFLOP/s (float32, {GEMM_SIZE} x {GEMM_SIZE})")


def _line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())
