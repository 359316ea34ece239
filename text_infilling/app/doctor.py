"""Checks that everything that training and filling need is present, and reports how to fix what is not."""

import contextlib
import importlib
import importlib.metadata
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from text_infilling.runs.layout import METRICS, TOKENIZER
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.utils.command import one_line

GEMM_SIZE = 1024
# The module that each package provides.
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
# The files of each corpus, below `--data_dir` or the cache.
CORPORA = {
    "Yelp": ("yelp/train.txt", "yelp/valid.txt", "yelp/test.txt"),
    "Grimm's pairs": ("grimm/lm.train.jsonl", "grimm/lm.test.jsonl"),
    "prepositions' pairs": ("grimm/prep.train.jsonl", "grimm/prep.test.jsonl"),
    "NBA's pairs": ("nba/lm.train.jsonl", "nba/lm.test.jsonl"),
    "Grimm's tales": ("grimm/tales/*.txt",),
    "NBA's sentences": ("nba/sentences.train.txt", "nba/sentences.test.txt"),
}


class Check(NamedTuple):
    """The result of one check.

    Attributes:
        what: name of what was checked.
        found: version, folder or problem.
        fix: how to fix the problem; empty if nothing needs a fix.
    """

    what: str
    found: str
    fix: str = ""

    def __str__(self):
        """Returns the check as printed by the command, with the fix on a second line."""
        if not self.fix:
            return f"ok      {self.what:15}  {self.found}"
        return f"PROBLEM {self.what:15}  {self.found}\n        fix: {self.fix}"


def checks(data_dir: str | None = None, run: str | None = None) -> Iterator[Check]:
    """Yields the checks, the fastest first; a check that cannot be made is reported as a problem too.

    Args:
        data_dir: folder of corpora or texts to check, or None.
        run: run folder to check, or None.
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
                what, f"not checked: {_named(error)}", "fix the problems above first; if there are none, this is a bug"
            )


def _packages() -> Iterator[Check]:
    try:
        required = importlib.metadata.requires("text_infilling") or []
        required = [line for line in required if "extra ==" not in line] + ["keras"]
    except importlib.metadata.PackageNotFoundError:
        yield Check("text_infilling", "not installed, so the versions that it needs are unknown")
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
            "TensorFlow", "tensorflow-text has another minor version", f"pip install 'tensorflow-text=={minor}.*'"
        )


def _package(line: str) -> Check:
    """Checks a requirement such as `numpy<3,>=2.0`."""
    name, versions = re.fullmatch(r"([\w.-]+)(.*)", line).groups()
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "not installed", f"pip install '{line}'")
    if not _is_within(version, versions):
        return Check(name, f"{version}, which is not {versions}", f"pip install '{line}'")
    try:
        importlib.import_module(MODULES.get(name, name))
    except Exception as error:  # a broken installation may raise anything
        found = f"{version}, which cannot be imported: {_named(error)}"
        return Check(name, found, f"fix the problems above first, else pip install --force-reinstall '{line}'")
    return Check(name, version)


def _is_within(version: str, versions: str) -> bool:
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:  # comes with TensorFlow, which has a check of its own
        return True
    return SpecifierSet(versions).contains(version, prereleases=True)


def _tagger() -> Iterator[Check]:
    from text_infilling.masking import tagging

    try:
        next(tagging.tag([["word"]]))
        yield Check("NLTK's tagger", "found")
    except FileNotFoundError as error:
        yield Check("NLTK's tagger", "missing; only --masking by tags needs it", str(error))
    except ImportError:
        return  # reported by the packages' checks


def _data(data_dir: str | None) -> Iterator[Check]:
    from text_infilling.corpora.builders.common import text_files
    from text_infilling.corpora.cache import cache_folder

    places = {"the cache": cache_folder(), **({"--data_dir": Path(data_dir)} if data_dir else {})}
    for name, folder in places.items():
        present = [corpus for corpus, paths in CORPORA.items() if all(any(folder.glob(path)) for path in paths)]
        if name == "--data_dir" and text_files(folder):
            present.append("your own texts")
        found = f"{folder}: {', '.join(present) or 'no corpus'}"
        if name == "--data_dir" and not present:
            yield Check(name, found, "give the folder that holds yelp/, grimm/, nba/ or *.txt (see docs/reproduce.md)")
        else:
            yield Check(name, found)


def _run(run: RunFolder) -> Iterator[Check]:
    from text_infilling.inference.load_model import load_model

    try:
        model = load_model(run)
        if run.config["cell"].get("corpus") == "own" and not (run.path / TOKENIZER).is_file():
            raise ValueError(f"{run.path} has no {TOKENIZER}")
    except (ValueError, OSError) as error:
        yield _broken_run(error)
        return
    state = "finished" if (run.path / METRICS).exists() else "not finished: the command that started it resumes it"
    yield Check("run", f"{run.path}: {type(model).__name__}, {model.count_params():,} parameters, {state}")


def _broken_run(error: Exception) -> Check:
    fix = (
        "give a run folder, or copy the whole folder again from where it was trained; a run that was stopped is "
        "resumed by the command that started it"
    )
    return Check("run", f"incomplete: {_named(error)}", fix)


def _device() -> Iterator[Check]:
    import tensorflow as tf

    from text_infilling.training.estimate import gemm_flops

    gpus = [device.name for device in tf.config.list_physical_devices("GPU")]
    threads = tf.config.threading.get_intra_op_parallelism_threads() or "all"
    yield Check("device", ", ".join(gpus) or f"CPU ({platform.machine()}), {threads} cores")
    yield Check("matrix product", f"{gemm_flops(GEMM_SIZE, 5) / 1e9:.0f} GFLOP/s (float32, {GEMM_SIZE} x {GEMM_SIZE})")


def _named(error: Exception) -> str:
    return one_line(f"{type(error).__name__}: {error}")
