"""Tunes the models by validation perplexity: the same number of trials, budget and search space for every model.

Command:
    python -m experiments.tune --model=all --data_dir=FOLDER_THAT_CONTAINS_yelp/
    python -m experiments.tune --model=gan --preset=smoke --corpus=synthetic --budget=0.05

A trial trains a model on Yelp at mask rate 40% with one blank and seed 0, with hyperparameters from `drawn`, which
depend on the preset, the model and the number of the trial only. Trials are judged by the validation `ppl` of their
selected weights; the test split is never decoded. With --model=all, trial k of every model runs before trial k + 1 of
any, so all models have had the same number of trials, or one more, whenever the command is stopped.
Expected: one folder per trial in WORKDIR/tuning/, and all trials of all models, best first, in RESULTS_DIR/tuning.csv
and tuning.md, rewritten after every trial. Finished trials are not run again; an interrupted one is resumed. The time
left for all trials is printed before each.
Duration: 8 trials of 3 to 15 minutes per model on 2 cores.
"""

import csv
import io
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments.cells import cell as cells
from experiments.cells import flags, record
from experiments.cells.experiment import load_corpus
from experiments.cells.progress import Progress
from experiments.cells.setting import Cell, Setting
from experiments.tables import formats, paper
from text_infilling.configs.checks import config_differences
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.runs.layout import CONFIG, RESUME_POINT
from text_infilling.utils import files

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.training.cost import Plan
    from text_infilling.training.task import Task

# Three widths per preset, small, medium and large: of self-attention, and of the LSTMs and embeddings of the others.
WIDTHS = {
    "full": {"dim": (320, 400, 480), "units": (1200, 1600, 2000), "embedding": (256, 400, 512)},
    "laptop": {"dim": (192, 256, 320), "units": (384, 512, 640), "embedding": (128, 192, 256)},
    "smoke": {"dim": (16, 24, 32), "units": (16, 24, 32), "embedding": (16, 24, 32)},
}
MASK_RATE, BLANKS, SEED = 0.4, 1, 0  # seed 0 is not among the seeds of the tables
TRIAL = "trial.json"
COLUMNS = (
    "preset", "model", "trial", "ppl", "hyperparameters", "budget", "train_tflop", "passes", "parameters", "minutes",
    "processor", "cores", "commit",
)  # fmt: skip
SHOWN = ("preset", "model", "trial", "ppl", "hyperparameters", "train_tflop", "passes", "parameters", "minutes")


class Trial(NamedTuple):
    """A trial: the model and the number, counted from 1."""

    model: str
    number: int


def order(models: Sequence[str], trials: int) -> list[Trial]:
    """Returns the trials of models in the order they run.

    >>> [tuple(trial) for trial in order(["gan", "seq2seq"], 2)]
    [('gan', 1), ('seq2seq', 1), ('gan', 2), ('seq2seq', 2)]
    """
    return [Trial(model, number) for number in range(1, trials + 1) for model in models]


def drawn(model: str, number: int, preset: str = "laptop") -> list[str]:
    """Returns the assignments `key=value` of a trial, drawn with a seed that depends on model and number only.

    What all models have in common has the same distribution for all. Half of the trials use each optimizer; the GAN's
    three estimators take turns.

    >>> drawn("seq2seq", 1) == drawn("seq2seq", 1), drawn("seq2seq", 1) == drawn("seq2seq", 2)
    (True, False)
    """
    chance = random.Random(f"{model}, trial {number}")

    def log_uniform(low, high):
        return float(f"{math.exp(chance.uniform(math.log(low), math.log(high))):.2g}")

    optimizer = ("adam", "muon")[number % 2]
    values = {
        "optimizer.name": optimizer,
        "schedule.peak": log_uniform(1e-3, 8e-3) if optimizer == "muon" else log_uniform(5e-4, 4e-3),
        "optimizer.adam_lr_ratio": 0.5,  # the last three are read by Muon only
        "optimizer.ns_steps": 3,
        "optimizer.weight_decay": 0.1,
        "train.batch_size": chance.choice([100, 150, 200]),
    }
    widths, size = WIDTHS[preset], chance.choice([0, 1, 2])
    if model == "self_attention":
        dim = widths["dim"][size]
        values |= {"decoder.dim": dim, "decoder.ffn_dim": 4 * dim, "decoder.num_blocks": chance.choice([2, 3, 4])}
    else:
        units, embedding = widths["units"][size], chance.choice(widths["embedding"])
        values |= {"encoder.units": units, "decoder.units": units, "embedder.dim": embedding}
    if model == "gan":
        values |= {
            "gan.estimator": ("straight_through", "reinforce", "soft")[number % 3],
            "gan.weight": log_uniform(0.01, 1.0),
            "gan.adversarial_epochs": chance.choice([0.1, 0.25, 0.5]),
            "gan.discriminator_rate": log_uniform(1e-4, 1e-3),
        }
    return [f"{key}={value}" for key, value in values.items()]


def hparams_of(trial: Trial, preset: str) -> dict:
    """Returns all hyperparameters of a trial."""
    return run_hparams("paper", preset, drawn(*trial, preset), trial.model, task="yelp")


def length_of(task: "Task", trial: Trial, preset: str, budget: float) -> "Plan":
    """Returns the epochs of a trial with a budget in TFLOP."""
    from text_infilling.models.registry import MODELS
    from text_infilling.training.cost import planned

    work = (MODELS[trial.model], hparams_of(trial, preset), len(task.vocabulary), task.survey("train"), BLANKS)
    return planned(*work, budget)


def run_trial(task: "Task", trial: Trial, preset: str, budget: float, folder: Path) -> dict:
    """Returns the record of a trial, whose keys are `COLUMNS`: trains it, or reads it if it is finished.

    Args:
        task: the task, with `SEED`.
        trial: the trial.
        preset: key of `WIDTHS`; what is not drawn is that of the preset.
        budget: work of the training in TFLOP.
        folder: folder of the trial.

    Raises:
        ValueError: the folder has a trial with other hyperparameters.
        OSError: the folder cannot be written, or another process runs this trial.
    """
    from text_infilling.training.trainer import TrainingRun, train

    files.make_folder(folder, "--workdir")
    (model, number), assignments, hparams = trial, drawn(*trial, preset), hparams_of(trial, preset)
    hparams["train"]["epochs"], per_pass = length_of(task, trial, preset, budget)
    config = {"hparams": hparams, "budget": budget, "per_pass": per_pass, "corpus": task.corpus.checksum}
    with files.locked(folder), files.Log(folder / "log.txt") as log:
        if not (folder / CONFIG).exists():
            files.write_json(folder / CONFIG, config)
        elif keys := config_differences(files.read_json(folder / CONFIG), config):
            raise ValueError(f"{folder} was made with other values of {', '.join(keys)}: pass another --workdir")
        if (folder / TRIAL).exists():
            return files.read_json(folder / TRIAL)
        log(f"trial {number} of {model}: {', '.join(assignments)}")
        evaluator, timing = train(TrainingRun(task, model, hparams, folder, log, epochs_per_pass=per_pass))
        cost = record.of_training(evaluator.model, task, hparams, timing["epochs"], per_pass)
        found = {
            "preset": preset,
            "model": model,
            "trial": number,
            "ppl": evaluator.perplexities("valid")["ppl"],
            "hyperparameters": " ".join(assignments),
            "budget": budget,
            "train_tflop": cost["train_tflop"],
            "passes": timing["epochs"] / per_pass,
            "parameters": cost["parameters"],
            "minutes": timing["training_seconds"] / 60,
            **record.of_machine(),
        }
        files.write_json(folder / TRIAL, found)
        log(f"trial {number} of {model}: validation ppl {found['ppl']:.4f}")
        return found


def write(workdir: Path, results_dir: Path) -> list[dict]:
    """Writes all finished trials, per model best first, to tuning.csv and tuning.md, and returns them."""
    trials = [files.read_json(path) for path in (workdir / "tuning").glob(f"*/{TRIAL}")]
    trials.sort(key=lambda trial: (trial["preset"], paper.MODELS.index(trial["model"]), trial["ppl"]))
    files.make_folder(results_dir, "--results_dir")
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(trials)
    files.write_text(results_dir / "tuning.csv", out.getvalue())
    grid = [SHOWN, ("---",) * len(SHOWN), *([_shown(trial[key]) for key in SHOWN] for trial in trials)]
    text = (
        f"# Tuning\n\nYelp, mask rate {MASK_RATE:.0%}, {BLANKS} blank, seed {SEED}; `ppl` is on validation sentences. "
        f"The test split was not decoded. Made by `experiments.tune`.\n\n{formats.markdown_rows(grid)}\n"
    )
    files.write_text(results_dir / "tuning.md", text)
    return trials


def _shown(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value


def run(values: FlagValues) -> None:
    """Runs the trials of the models and prints the best one of each."""
    from text_infilling.vocabulary import Vocabulary

    corpus = load_corpus("yelp", values.corpus, "fixed", values.data_dir)
    models = list(MODELS) if values.model == "all" else [values.model]
    hparams = run_hparams("paper", values.preset, model=models[0], task="yelp")  # the vocabulary's are the same for all
    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), hparams["train"]["min_count"])
    setting = Setting(corpus.name, "fixed", MASK_RATE, BLANKS, "paper", values.preset)
    task = cells.make_task(Cell(setting, models[0], SEED), corpus, vocabulary)
    workdir, results_dir = Path(values.workdir), Path(values.results_dir)
    folders = {
        trial: workdir / "tuning" / f"{values.preset}.{trial.model}.trial{trial.number}"
        for trial in order(models, values.trials)
    }
    progress = Progress(
        {
            trial: 0.0 if (folder / TRIAL).exists() else _seconds(task, trial, values.preset, values.budget)
            for trial, folder in folders.items()
        },
        lambda trial: (folders[trial] / RESUME_POINT).exists(),
        "trial",
    )
    for trial, folder in folders.items():
        with progress.around(trial):
            run_trial(task, trial, values.preset, values.budget, folder)
        files.remove(folder / RESUME_POINT)
        trials = write(workdir, results_dir)
    for model in models:
        best = next(one for one in trials if (one["preset"], one["model"]) == (values.preset, model))
        print(f"best trial of {model}: {best['trial']}, validation ppl {best['ppl']:.4f}: {best['hyperparameters']}")


def _seconds(task: "Task", trial: Trial, preset: str, budget: float) -> float:
    from text_infilling.training.estimate import work_seconds

    return work_seconds(task, hparams_of(trial, preset), length_of(task, trial, preset, budget), trial.model)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_enum("model", "all", [*MODELS, "all"], "Model to tune.", flag_values=values)
    absl_flags.DEFINE_enum(
        "preset",
        "laptop",
        list(WIDTHS),
        "Widths to choose from, and the values that are not drawn.",
        flag_values=values,
    )
    absl_flags.DEFINE_integer("trials", 8, "Number of trials per model.", lower_bound=1, flag_values=values)
    absl_flags.DEFINE_float(
        "budget", 30.0, "Useful work of a trial in TFLOP; default: a third of a cell's with one blank.",
        lower_bound=0.0, flag_values=values,
    )  # fmt: skip
    absl_flags.DEFINE_enum("corpus", "yelp", ["yelp", "synthetic"], "Sentences.", flag_values=values)
    absl_flags.DEFINE_string("data_dir", None, "Folder that contains yelp/.", flag_values=values)
    absl_flags.DEFINE_string(
        "workdir", "runs", "Output folder; the trials are in its folder tuning/.", flag_values=values
    )
    flags.define_results_dir(values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
