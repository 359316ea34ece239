"""Runs one cell of a table in its own folder: once, resumed after a stop, never mixed with other settings.

A cell's folder holds config.json and vocabulary.txt (written first), the checkpoint, TensorBoard events, log.txt,
predictions.jsonl, timing.json and metrics.json. metrics.json is written last: a folder that contains it is finished.
"""

import dataclasses
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.cells import record
from experiments.cells.setting import CONTROL, CONTROL_ASSIGNMENT, KEYS, TASKS, Cell
from experiments.tables import paper
from text_infilling.configs.checks import check_hparams, config_differences
from text_infilling.configs.defaults import MAX_SEED, MODELS, defaults, run_keys
from text_infilling.configs.presets import PRESETS, budget_of
from text_infilling.configs.protocols import PROTOCOLS, run_hparams
from text_infilling.hparams import flatten, merge
from text_infilling.masking.rules import MASKINGS
from text_infilling.runs.checks import changed_keys, check_types, read_metrics
from text_infilling.runs.layout import CONFIG, LOG, METRICS, PREDICTIONS, REPORT, RESUME_POINT, TIMING, VOCABULARY
from text_infilling.utils import files

if TYPE_CHECKING:  # These import TensorFlow; a finished cell needs none of it.
    from text_infilling.corpora.corpus import Corpus
    from text_infilling.training.cost import Plan
    from text_infilling.training.task import Task
    from text_infilling.vocabulary import Vocabulary

PACKAGES = ("tensorflow", "keras", "numpy", "sacrebleu")
HOW = ("mixed_precision",)  # parts of config.json that say how training computes
CORPORA = ("yelp", "synthetic") + tuple(
    f"{task}{kind}" for task in TASKS if task != "yelp" for kind in ("", "_built", "_synthetic")
)
_FUNCTION = re.compile(r"[\w.-]+:\w+(:[1-9][0-9]?)?")  # a masking that is a custom function, `module:function`


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The settings that all cells of one command share.

    Attributes:
        corpus: the files of sentences.
        vocabulary: built from the train lines; for Grimm, NBA and prepositions from all splits.
        hparams: all hyperparameters.
        workdir: folder that contains the folders of all cells.
        data_dir: the value of `--data_dir`, or None.
        resume: resume an unfinished cell; False restarts it.
        overwrite: run a finished cell again from scratch.
        mixed_precision: as in `trainer.train`.
        budget: useful work of the training in TFLOP, from which the epochs follow; None: `train.epochs` epochs.
    """

    corpus: "Corpus"
    vocabulary: "Vocabulary"
    hparams: dict
    workdir: Path
    data_dir: str | None = None
    resume: bool = True
    overwrite: bool = False
    mixed_precision: bool = False
    budget: float | None = None


def is_finished(folder: Path) -> bool:
    """Returns whether the cell in `folder` has its metrics."""
    return (folder / METRICS).exists()


def make_task(cell: Cell, corpus: "Corpus", vocabulary: "Vocabulary") -> "Task":
    """Returns the training and evaluation task of a cell."""
    from text_infilling.training.evaluation import PAPER_BATCH
    from text_infilling.training.task import Task

    return Task(
        corpus=corpus,
        vocabulary=vocabulary,
        masking=cell.setting.masking,
        mask_rate=cell.setting.mask_rate,
        blanks=cell.setting.blanks,
        seed=cell.seed,
        perplexity_batch=PAPER_BATCH[corpus.task],
    )


def plan(cell: Cell, task: "Task", inputs: Inputs) -> "Plan":
    """Returns the epochs of a cell's training, which follow from its budget if it has one.

    Raises:
        ValueError: the budget is too small.
    """
    from text_infilling.models.registry import MODELS as CLASSES
    from text_infilling.training.cost import planned

    work = (CLASSES[cell.network], inputs.hparams, len(task.vocabulary), task.survey("train"), task.blanks)
    return planned(*work, inputs.budget)


def run_cell(cell: Cell, inputs: Inputs) -> dict[str, float]:
    """Returns the test metrics of a cell: runs it, or reads them from its folder if it is finished.

    Raises:
        ValueError: the folder was created with other hyperparameters, another corpus or vocabulary.
        OSError: the folder cannot be written, or another process runs this cell.
    """
    folder = cell.folder(inputs.workdir)
    config = cell_config(cell, inputs)
    files.make_folder(folder, "--workdir")
    with files.locked(folder), files.Log(folder / LOG) as log:
        if _must_clear(folder, inputs):
            _clear(folder)
        else:
            _check_config(folder, config, log)
        if is_finished(folder):
            files.remove(folder / RESUME_POINT)  # left over if the process stopped right after writing metrics.json
            log(f"{folder} is finished; using its stored metrics (--overwrite runs it again)")
            return read_metrics(folder)
        log(f"cell {folder}")
        with log.traceback():
            task = make_task(cell, inputs.corpus, inputs.vocabulary)
            if cell.model != "template":
                task.check_positions(inputs.hparams)  # before config.json, which must not store refused settings
                config["plan"] = plan(cell, task, inputs)._asdict()
                _check_plan(folder, config["plan"])
            if not (folder / CONFIG).exists():
                inputs.vocabulary.save(folder / VOCABULARY)
                files.write_json(folder / CONFIG, config)
            return _compute(cell, task, inputs, folder, log)


def cell_config(cell: Cell, inputs: Inputs) -> dict:
    """Returns everything that a cell's numbers depend on and where they were computed, as JSON values."""
    config = {
        "cell": cell.as_dict(),
        "hparams": inputs.hparams,
        "corpus": {"checksum": inputs.corpus.checksum},
        "vocabulary": {"hash": inputs.vocabulary.hash, "size": len(inputs.vocabulary)},
        "answers": {"empty": inputs.corpus.has_empty_answers},
        "mixed_precision": inputs.mixed_precision,
        "budget": inputs.budget,
        "versions": files.versions(PACKAGES),
        "where": {
            "data_dir": inputs.data_dir,
            "source": inputs.corpus.source,
            "note": inputs.corpus.note,
            "cores": files.cores(),
        },
    }
    return json.loads(json.dumps(config))


def read_config(folder: Path) -> tuple[Cell, dict]:
    """Returns the cell that a folder's config.json describes, and the content of that file, both validated.

    Raises:
        OSError: config.json cannot be read.
        ValueError: it does not describe a cell (but e.g. a run of `text-infill fit`); the message names file and key.
    """
    config = files.read_json(folder / CONFIG)
    try:
        check_types(config, {"where": dict})
        if "init_from" in config["where"]:
            raise ValueError(f"this is a run of `text-infill fit`, not a cell: see its {REPORT}")
        check_types(config, {"cell": dict, "hparams": dict, "corpus": dict, "vocabulary": dict})
        check_types(config, dict.fromkeys(HOW, bool) | {"budget": (float, type(None))})
        check_types(config["corpus"], {"checksum": str}, "corpus.")
        check_types(config["vocabulary"], {"hash": str}, "vocabulary.")
        check_types(config["where"], {"data_dir": (str, type(None)), "source": str, "note": str}, "where.")
        cell = _read_cell(config["cell"])
        if cell.network in MODELS:
            check_hparams(cell.network, config["hparams"])
        else:
            merge(config["hparams"], defaults(run_keys("gan")))  # a template cell has only some of the keys
        return cell, config
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG} does not name a cell: {error}") from error


def _read_cell(stored: dict) -> Cell:
    """Returns the cell that config.json describes.

    Raises:
        ValueError: a part of the cell's name is missing, of the wrong type or unknown (it would become part of a path).
    """
    types = {"corpus": str, "masking": str, "mask_rate": (float, int, type(None)), "blanks": int, "seed": int}
    check_types(stored, types | dict.fromkeys(("model", "protocol", "preset"), str), "cell.")
    if unknown := stored.keys() - set(KEYS):
        raise ValueError(f"cell.{min(unknown)} is unknown")
    known = {"corpus": CORPORA, "model": (*paper.MODELS, CONTROL), "protocol": PROTOCOLS, "preset": tuple(PRESETS)}
    for key, names in known.items():
        if stored[key] not in names:
            raise ValueError(f"cell.{key} must be one of {', '.join(names)}. Received: {files.shown(stored[key])}")
    maskings = ("fixed", "random", "pairs", *MASKINGS)
    if stored["masking"] not in maskings and not _FUNCTION.fullmatch(stored["masking"]):
        raise ValueError(
            f"cell.masking must be one of {', '.join(maskings)}, or module:function. "
            f"Received: {files.shown(stored['masking'])}"
        )
    rate, blanks, seed = (stored[key] for key in ("mask_rate", "blanks", "seed"))
    if not ((rate is None or 0 < rate < 1) and 1 <= blanks <= 99 and 0 <= seed <= MAX_SEED):
        raise ValueError(
            "cell.mask_rate must be null or between 0 and 1, cell.blanks from 1 to 99, cell.seed from 0 to "
            f"{MAX_SEED}. Received: {rate}, {files.shown(blanks)}, {files.shown(seed)}"
        )
    return Cell.from_dict(stored)


def changed(cell: Cell, config: dict) -> str:
    """Returns how a cell's config differs from its protocol and preset, e.g. `train.batch_size=50 instead of 100`."""
    setting = cell.setting
    model = cell.network if cell.network in MODELS else MODELS[0]  # the template has only the keys that all share
    assignments = [CONTROL_ASSIGNMENT] if cell.model == CONTROL else []
    expected = run_hparams(setting.protocol, setting.preset, assignments, model, task=setting.task)
    ours, theirs = (flatten({"hparams": hparams}) for hparams in (config["hparams"], expected))
    lengths = []
    for values, budget in (
        (ours, config["budget"]),
        (theirs, budget_of(setting.preset, setting.task, setting.blanks)),
    ):
        epochs = values.pop("hparams.train.epochs", None)  # not used if there is a budget
        lengths.append(f"{epochs} epochs" if budget is None else f"a budget of {budget:g} TFLOP")
    keys = config_differences(ours, {key: theirs.get(key) for key in ours})
    changes = [f"{key.removeprefix('hparams.')}={ours[key]} instead of {theirs.get(key)}" for key in keys]
    if cell.network in MODELS and lengths[0] != lengths[1]:
        changes.append(" instead of ".join(lengths))
    return ", ".join(changes + [name for name in HOW if config[name]])


def read_predictions(folder: Path, count: int | None = None) -> list[dict]:
    """Returns the first `count` predictions of a finished cell (all for None): template, answer, infill, scores.

    Raises:
        OSError: predictions.jsonl cannot be read.
        ValueError: a line of it is not a prediction.
    """
    predictions = files.read_jsonl(folder / PREDICTIONS, count)
    for number, prediction in enumerate(predictions, start=1):
        try:
            check_types(prediction, {"template": str, "answer": list, "infill": list})
        except ValueError as error:
            raise ValueError(f"line {number} of {folder / PREDICTIONS} is not a prediction: {error}") from error
    return predictions


def _compute(cell: Cell, task: "Task", inputs: Inputs, folder: Path, log: Callable[[str], None]) -> dict[str, float]:
    """Trains the cell's model, if it has one, evaluates it and writes the results, metrics.json last."""
    from text_infilling.training.evaluation import evaluate_template

    timing = {}
    if cell.model == "template":
        start = time.perf_counter()
        metrics = evaluate_template(task)
    else:
        from text_infilling.training.trainer import TrainingRun, train

        before, planned = record.gemm_gflops(), plan(cell, task, inputs)
        hparams = merge({"train": {"epochs": planned.epochs}}, inputs.hparams)
        if inputs.budget is not None:
            log(f"a budget of {inputs.budget:g} TFLOP gives {planned.epochs / planned.epochs_per_pass:.4g} epochs of "
                f"{cell.network}, validated every 1/{planned.epochs_per_pass} epoch")  # fmt: skip
        evaluator, timing = train(
            TrainingRun(
                task,
                cell.network,
                hparams,
                folder,
                log,
                inputs.resume,
                inputs.mixed_precision,
                planned.epochs_per_pass,
            )
        )
        timing |= record.of_training(evaluator.model, task, hparams, timing["epochs"], planned.epochs_per_pass)
        timing |= record.of_machine()
        timing |= {"gemm_gflops_before": before, "gemm_gflops_after": record.gemm_gflops()}
        start = time.perf_counter()
        metrics, predictions = evaluator("test", with_counts=True)
        files.write_jsonl(folder / PREDICTIONS, predictions)
    if metrics["left_out"]:
        log(f"{metrics['left_out']} test sentences left out: too short for {task.blanks} blanks")
    files.write_json(folder / TIMING, {**timing, "evaluation_seconds": time.perf_counter() - start})
    files.write_json(folder / METRICS, metrics)
    files.remove(folder / RESUME_POINT)
    log("test: " + ", ".join(f"{name} {value:.6g}" for name, value in metrics.items()))
    return read_metrics(folder)


def _must_clear(folder: Path, inputs: Inputs) -> bool:
    """Returns whether the folder's content must be discarded.

    A folder without config.json contains at most the leftovers of an interrupted `_clear`.
    """
    unfinished = not is_finished(folder)
    return inputs.overwrite or (unfinished and not inputs.resume) or not (folder / CONFIG).exists()


def _clear(folder: Path) -> None:
    """Empties the folder except its lock and log, in an order that is safe to interrupt."""
    files.remove(folder / METRICS)  # First, so that the leftovers never look finished,
    files.remove(folder / CONFIG)  # then config.json, so that they do not look resumable.
    for path in folder.iterdir():
        if path.name not in (files.LOCK, LOG):
            files.remove(path)


def _check_config(folder: Path, config: dict, log: Callable[[str], None]) -> None:
    stored = files.read_json(folder / CONFIG)
    try:
        check_types(stored, {"versions": dict, "where": dict})
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG} does not name a cell: {error}; --overwrite runs the cell again") from error
    if keys := changed_keys(stored, config):
        old, new = flatten(stored), flatten(config)
        changes = ", ".join(f"{key.removeprefix('hparams.')}={old.get(key)} (now {new.get(key)})" for key in keys)
        raise ValueError(
            f"{folder} was created with {changes}. Pass the same settings, --overwrite to run it again, "
            "or another --workdir or --seed"
        )
    if stored["versions"] != config["versions"]:
        log(f"warning: {folder} was started with {_list(stored['versions'])}; now {_list(config['versions'])}")
    if stored["where"].get("cores", config["where"]["cores"]) != config["where"]["cores"]:
        log(
            f"warning: {folder} was started on {stored['where']['cores']} cores; on {config['where']['cores']} cores "
            "the numbers differ slightly from those of an uninterrupted run"
        )


def _check_plan(folder: Path, plan_: dict) -> None:
    """Raises ValueError if an unfinished cell was started with another plan, so that it cannot be resumed."""
    if (folder / CONFIG).exists() and (stored := files.read_json(folder / CONFIG).get("plan")) != plan_:
        raise ValueError(
            f"{folder} was started with {_list(stored or {})}, now the code plans {_list(plan_)}: pass --noresume"
        )


def _list(values: dict) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
