"""Looks whether everything is there that training and filling need, and says how to mend what is not."""

import importlib.metadata
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from text_infilling.training.layout import METRICS

GEMM_SIZE = 1024
# What each corpus looks like, below `--data_dir` or the cache.
CORPORA = {
    "Yelp": ("yelp/train.txt", "yelp/valid.txt", "yelp/test.txt"),
    "Grimm's pairs": ("grimm/lm.train.jsonl", "grimm/lm.test.jsonl"),
    "prepositions' pairs": ("grimm/prep.train.jsonl", "grimm/prep.test.jsonl"),
    "NBA's pairs": ("nba/lm.train.jsonl", "nba/lm.test.jsonl"),
}


class Check(NamedTuple):
    """What was found of one thing, and how to mend it; `mend` is empty where nothing is wrong."""

    what: str
    found: str
    mend: str = ""


def checks(data_dir: str | None = None, run: str | None = None) -> Iterator[Check]:
    """Everything looked at, the soonest known first.

    Args:
        data_dir: as of `--data_dir`.
        run: folder of a run to look at, or None.
    """
    yield Check("Python", platform.python_version())
    yield from _packages()
    yield from _tagger()
    yield from _data(data_dir)
    if run is not None:
        yield from _run(run)
    yield from _device()


def _packages() -> Iterator[Check]:
    versions = {}
    for name in ("tensorflow", "tensorflow-text", "keras", "numpy", "nltk", "sacrebleu", "tensorboard"):
        try:
            versions[name] = importlib.metadata.version(name)
            yield Check(name, versions[name])
        except importlib.metadata.PackageNotFoundError:
            yield Check(name, "not installed", f"pip install {name}, or pip install -e . in the project's folder")
    minors = {name: versions[name].split(".")[:2] for name in ("tensorflow", "tensorflow-text") if name in versions}
    if len(minors) == 2 and minors["tensorflow"] != minors["tensorflow-text"]:
        minor = ".".join(minors["tensorflow"])
        yield Check(
            "TensorFlow", "tensorflow-text is of another minor version", f"pip install 'tensorflow-text=={minor}.*'"
        )


def _tagger() -> Iterator[Check]:
    from text_infilling import tagging

    try:
        next(tagging.tag([["word"]]))
        yield Check("NLTK's tagger", "there")
    except FileNotFoundError as error:
        yield Check("NLTK's tagger", "not there; only --masking by tags needs it", str(error))
    except ModuleNotFoundError:
        return  # said above


def _data(data_dir: str | None) -> Iterator[Check]:
    from text_infilling.data.corpora import cache_folder

    places = {"the cache": cache_folder(), **({"--data_dir": Path(data_dir)} if data_dir else {})}
    for name, folder in places.items():
        there = [corpus for corpus, paths in CORPORA.items() if all((folder / path).is_file() for path in paths)]
        found = f"{folder}: {', '.join(there) or 'no corpus'}"
        if name == "--data_dir" and not there:
            yield Check(name, found, "give the folder that holds yelp/, grimm/ or nba/ (see the README)")
        else:
            yield Check(name, found)


def _run(folder: str) -> Iterator[Check]:
    from text_infilling.infiller import Infiller

    try:
        model = Infiller.load(folder).model
    except (ValueError, OSError) as error:
        yield Check("run", "not whole", str(error))
        return
    finished = (Path(folder) / METRICS).exists()
    state = "finished" if finished else "not finished: the command that began it goes on with it"
    yield Check("run", f"{folder}: {type(model).__name__}, {model.count_params():,} parameters, {state}")


def _device() -> Iterator[Check]:
    import tensorflow as tf

    from text_infilling.training.trainer import gemm_flops

    gpus = [device.name for device in tf.config.list_physical_devices("GPU")]
    threads = tf.config.threading.get_intra_op_parallelism_threads() or "all"
    yield Check("device", ", ".join(gpus) or f"CPU ({platform.machine()}), {threads} cores")
    yield Check("matrix product", f"{gemm_flops(GEMM_SIZE, 5) / 1e9:.0f} GFLOP/s (float32, {GEMM_SIZE} x {GEMM_SIZE})")


def text(found: list[Check]) -> str:
    """The checks for people, each trouble with its mend below it."""
    width = max(len(check.what) for check in found)
    lines = []
    for check in found:
        lines.append(f"{'TROUBLE ' if check.mend else 'ok      '}{check.what.ljust(width)}  {check.found}")
        if check.mend:
            lines.append(f"        mend: {check.mend}")
    return "\n".join(lines)
