"""Tunes a model by validation perplexity: the same number of trials, budget and search space for every model.

Command:
    python -m experiments.tune --model=self_attention --data_dir=FOLDER_THAT_CONTAINS_yelp/

A trial trains the model on Yelp at mask rate 40% with one blank, seed 0, preset laptop, with hyperparameters drawn from
`drawn`, which depend on the model and the number of the trial only. Trials are judged by the validation `ppl` of their
selected weights; the test split is never decoded.
Expected: one folder per trial in WORKDIR/tuning/, and all trials of all models, best first, in RESULTS_DIR/tuning.csv
and tuning.md, rewritten after every trial. Finished trials are not run again; an interrupted one is resumed.
Duration: 8 trials of 5 to 15 minutes per model on 2 cores.
"""

import csv
import io
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments.cells import cell as cells
from experiments.cells import flags, record
from experiments.cells.experiment import load_corpus
from experiments.cells.setting import Cell, Setting
from experiments.tables import formats, paper
from text_infilling.configs.checks import config_differences
from text_infilling.configs.protocols import run_hparams
from text_infilling.utils import files

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.training.task import Task

MASK_RATE, BLANKS, SEED = 0.4, 1, 0  # seed 0 is not among the seeds of the tables
TRIAL, CONFIG = "trial.json", "config.json"
COLUMNS = (
    "model", "trial", "ppl", "hyperparameters", "budget", "train_tflop", "passes", "parameters", "minutes",
    "processor", "cores", "commit",
)  # fmt: skip
SHOWN = ("model", "trial", "ppl", "hyperparameters", "train_tflop", "passes", "parameters", "minutes")


def drawn(model: str, number: int) -> list[str]:
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
    width = chance.choice([0, 1, 2])  # small, medium, large
    if model == "self_attention":
        dim = (192, 256, 320)[width]
        values |= {"decoder.dim": dim, "decoder.ffn_dim": 4 * dim, "decoder.num_blocks": chance.choice([2, 3, 4])}
    else:
        units = (384, 512, 640)[width]
        values |= {"encoder.units": units, "decoder.units": units, "embedder.dim": chance.choice([128, 192, 256])}
    if model == "gan":
        values |= {
            "gan.estimator": ("straight_through", "reinforce", "soft")[number % 3],
            "gan.weight": log_uniform(0.01, 1.0),
            "gan.adversarial_epochs": chance.choice([0.1, 0.25, 0.5]),
            "gan.discriminator_rate": log_uniform(1e-4, 1e-3),
        }
    return [f"{key}={value}" for key, value in values.items()]


def run_trial(task: "Task", model: str, number: int, budget: float, folder: Path) -> dict:
    """Returns the record of a trial, whose keys are `COLUMNS`: trains it, or reads it if it is finished.

    Raises:
        ValueError: the folder has a trial with other hyperparameters.
        OSError: the folder cannot be written, or another process runs this trial.
    """
    from text_infilling.models.registry import MODELS
    from text_infilling.training.cost import planned
    from text_infilling.training.trainer import train

    files.make_folder(folder, "--workdir")
    assignments = drawn(model, number)
    hparams = run_hparams("paper", "laptop", assignments, model, task="yelp")
    work = (MODELS[model], hparams, len(task.vocabulary), task.survey("train"), BLANKS)
    hparams["train"]["epochs"], per_pass = planned(*work, budget)
    config = {"hparams": hparams, "budget": budget, "per_pass": per_pass, "corpus": task.corpus.checksum}
    with files.locked(folder), files.Log(folder / "log.txt") as log:
        if not (folder / CONFIG).exists():
            files.write_json(folder / CONFIG, config)
        elif keys := config_differences(files.read_json(folder / CONFIG), config):
            raise ValueError(f"{folder} was made with other values of {', '.join(keys)}: pass another --workdir")
        if (folder / TRIAL).exists():
            return files.read_json(folder / TRIAL)
        log(f"trial {number} of {model}: {', '.join(assignments)}")
        evaluator, timing = train(task, model, hparams, folder, log=log, epochs_per_pass=per_pass)
        found = {
            "model": model,
            "trial": number,
            "ppl": evaluator.perplexities("valid")["ppl"],
            "hyperparameters": " ".join(assignments),
            "budget": budget,
            "train_tflop": record.train_tflop(*work, timing["epochs"]) / per_pass,
            "passes": timing["epochs"] / per_pass,
            "parameters": evaluator.model.count_params(),
            "minutes": timing["training_seconds"] / 60,
            **record.of_machine(),
        }
        files.write_json(folder / TRIAL, found)
        log(f"trial {number} of {model}: validation ppl {found['ppl']:.4f}")
        return found


def write(workdir: Path, results_dir: Path) -> list[dict]:
    """Writes all finished trials, per model best first, to tuning.csv and tuning.md, and returns them."""
    trials = [files.read_json(path) for path in (workdir / "tuning").glob(f"*/{TRIAL}")]
    trials.sort(key=lambda trial: (paper.MODELS.index(trial["model"]), trial["ppl"]))
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
    """Runs the trials of a model and prints its best one."""
    from text_infilling.vocabulary import Vocabulary

    corpus = load_corpus("yelp", values.corpus, "fixed", values.data_dir)
    hparams = run_hparams("paper", "laptop", (), values.model, task="yelp")
    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), hparams["train"]["min_count"])
    setting = Setting(corpus.name, "fixed", MASK_RATE, BLANKS, "paper", "laptop")
    task = cells.make_task(Cell(setting, values.model, SEED), corpus, vocabulary)
    workdir, results_dir = Path(values.workdir), Path(values.results_dir)
    for number in range(1, values.trials + 1):
        run_trial(task, values.model, number, values.budget, workdir / "tuning" / f"{values.model}.trial{number}")
        trials = write(workdir, results_dir)
    best = next(trial for trial in trials if trial["model"] == values.model)
    print(f"best trial of {values.model}: {best['trial']}, validation ppl {best['ppl']:.4f}: {best['hyperparameters']}")


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_enum("model", "self_attention", flags.TRAINED, "Model to tune.", flag_values=values)
    absl_flags.DEFINE_integer("trials", 8, "Number of trials.", lower_bound=1, flag_values=values)
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
