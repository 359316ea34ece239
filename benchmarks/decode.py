"""Measures how fast a model fills the blanks of the test sentences, one blank after another, as in the evaluation.

Command:
    python -m benchmarks.decode --data_dir=FOLDER_THAT_CONTAINS_yelp/
    python -m benchmarks.decode --cell=FOLDER_OF_A_FINISHED_CELL

Without `--cell`, first trains a model of the preset's sizes for one epoch (see `--train_steps`), with a learning rate
high enough that it learns where infills end. The weights are kept in `--workdir` and reused by the next run.

Columns: `sentences_per_s` is the rate of the median pass; `decoded_positions` is the mean number of positions computed
per blank, `needed_positions` the mean number of generated words plus their `<EOB>`. `gflops` counts useful work only:
the forward pass over the needed positions and the templates. `gemm_gflops` and `ratio` are as in train_step.
Duration on 2 cores: one minute for decoding, plus 10 to 15 minutes per setting for the training before the first run.
"""

import argparse
import hashlib
import json
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import common
from text_infilling.configs.defaults import MODELS
from text_infilling.utils.command import note
from text_infilling.utils.files import written_aside

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.training.task import Task

COLUMNS = (*common.KEYS, "beam_width", "decoded_positions", "needed_positions")

# With the paper's schedule, the learning rate is still very low after one epoch.
TRAINING = (
    "schedule.shape=linear", "schedule.peak=5e-4", "schedule.warmup_steps=100", "optimizer.beta_2=0.98",
)  # fmt: skip
PROGRESS_SECONDS = 30.0


def train(args: argparse.Namespace, setting: common.Setting) -> Path:
    """Returns the folder of the weights for these flags; trains the model if they are missing."""
    from text_infilling.runs.layout import WEIGHTS
    from text_infilling.training.optimizers import without_optimizers
    from text_infilling.training.trainer import compiled_model

    hparams = common.hparams_of(args, TRAINING)
    task = common.make_task(args, setting, hparams)
    lines = task.survey("train").lines
    folder = weights_folder(args, task, hparams)
    if (folder / WEIGHTS).exists():
        return folder
    pipeline = task.pipeline("train", None, hparams["train"]["batch_size"])
    steps = args.train_steps or pipeline.steps(lines)
    model = compiled_model(task, args.model, hparams, steps)
    pipeline = task.pipeline("train", model.template_format, hparams["train"]["batch_size"])
    epochs = range(-(-steps // pipeline.steps(lines)))
    note(f"{setting}: training {args.model} for {steps} steps; the weights will be stored in {folder}")
    history = model.fit(
        pipeline.training(lines, task.seed, epochs).take(steps),
        epochs=1, verbose=0, shuffle=False, callbacks=[_progress(steps)],
    )  # fmt: skip
    loss = history.history["loss"][-1]
    if not math.isfinite(loss):
        raise ValueError(f"the training loss is {loss}: lower the learning rate with --set schedule.peak=2e-4")
    folder.mkdir(parents=True, exist_ok=True)
    with written_aside(folder / WEIGHTS) as aside, without_optimizers(model):
        model.save_weights(aside)
    return folder


def weights_folder(args: argparse.Namespace, task: "Task", hparams: dict) -> Path:
    """Returns the folder of the weights; its name includes a hash of everything that they depend on."""
    depends = {
        "hparams": {group: keys for group, keys in hparams.items() if group != "decoding"},
        "corpus": task.corpus.checksum,
        "vocabulary": task.vocabulary.hash,
        "seed": task.seed,
        "steps": args.train_steps,
    }
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:12]
    name = f"decode.{task.corpus.name}.rate{task.mask_rate!r}.blanks{task.blanks}.{args.model}.{args.preset}.{digest}"
    return Path(args.workdir) / name


def measure(args: argparse.Namespace, setting: common.Setting, folder: Path) -> dict:
    """Returns the row of one setting, measured with the weights in `folder`."""
    hparams = common.hparams_of(args, TRAINING)
    return _measure(args, common.make_task(args, setting, hparams), args.model, hparams, folder, args.preset)


def measure_cell(args: argparse.Namespace, folder: Path) -> dict:
    """Returns the row of a finished cell.

    Raises:
        ValueError: the cell is not finished, or is not a model trained on Yelp or made-up sentences.
    """
    from text_infilling.runs.layout import CONFIG, METRICS
    from text_infilling.utils import files

    if not (folder / METRICS).is_file():
        raise ValueError(f"--cell={folder} has no {METRICS}: expected the folder of a finished cell")
    config = files.read_json(folder / CONFIG)
    cell, hparams = config["cell"], config["hparams"]
    if cell["corpus"] not in ("yelp", "synthetic") or cell["model"] not in MODELS:
        raise ValueError(f"--cell={folder} has corpus {cell['corpus']}, model {cell['model']}: expected a Yelp model")
    data_dir = args.data_dir or config["where"]["data_dir"]
    source = argparse.Namespace(corpus=cell["corpus"], data_dir=data_dir, preset=cell["preset"])
    task = common.make_task(source, common.Setting(cell["mask_rate"], cell["blanks"]), hparams, cell["masking"])
    task.vocabulary.check_hash(config["vocabulary"]["hash"], folder / CONFIG)
    return _measure(args, task, cell["model"], hparams, folder, cell["preset"])


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Trains and measures in separate processes, so that the peak memory is that of decoding."""
    if args.cell:
        for folder in args.cell:
            yield common.isolated(measure_cell, args, folder)
        return
    for setting in args.settings:
        yield common.isolated(measure, args, setting, common.isolated(train, args, setting))


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = common.new_parser(__doc__)
    add = parser.add_argument
    add("--model", choices=MODELS, default="self_attention", help="model type (default: %(default)s)")
    add(
        "--cell",
        type=Path,
        action="append",
        help="folder of a finished cell, which replaces --settings and --preset; repeatable",
    )
    add("--beam_width", type=common.positive, default=1, help="beam width; 1: greedy search (default: %(default)s)")
    add("--decoding_batch", type=common.positive, help="sentences decoded together (default: as in the evaluation)")
    add("--steps", type=common.positive, default=3, help="passes over the test sentences (default: %(default)s)")
    add("--train_steps", type=common.positive, help="training steps before decoding (default: one epoch)")
    add("--workdir", default="runs/benchmarks", help="folder of the weights (default: %(default)s)")
    return parser


def _measure(args, task, model_name, hparams, folder, preset) -> dict:
    import tensorflow as tf

    from text_infilling.hparams import merge
    from text_infilling.models.registry import MODELS as CLASSES
    from text_infilling.training.evaluation import DECODING_BATCH, Evaluator, computed
    from text_infilling.training.trainer import load

    tf.config.experimental.enable_op_determinism()
    hparams = merge({"decoding": {"beam_width": args.beam_width}}, hparams)
    model = load(task, model_name, hparams, folder)
    fill = Evaluator(model, task, hparams).fill
    batch = args.decoding_batch or DECODING_BATCH
    batches = list(task.batches("test", batch))
    fill(*batches[0])  # traces the graph

    before = common.gemm_gflops()
    times = []
    for _ in range(args.steps):
        start = time.perf_counter()
        filled = list(computed(fill, batches))
        times.append(time.perf_counter() - start)
    gemm = (before + common.gemm_gflops()) / 2

    seconds = statistics.median(times)
    sentences, needed, templates = 0, 0, 0
    for (_, texts), (_, lengths, _, starts, ends, *_) in zip(batches, filled, strict=True):
        words = task.blank_rule.words_of(texts).row_lengths().numpy()
        more = useful_positions(words, lengths, starts, ends, task.max_length(hparams))
        sentences, needed, templates = sentences + len(lengths), needed + more[0], templates + more[1]
    per_answer, per_template = CLASSES[model_name].multiply_adds(hparams, len(task.vocabulary))
    blanks = sentences * task.blanks
    return common.row(
        "decode", model_name, task, sentences / seconds,
        2 * (needed * per_answer + templates * per_template) / seconds / 1e9, gemm,
        decoded_positions=sum(int(row[-1]) for row in filled) / blanks,
        needed_positions=needed / blanks,
        beam_width=args.beam_width,
        sentences=sentences,
        decoding_batch=batch,
        preset=preset,
    )  # fmt: skip


def useful_positions(
    words: np.ndarray, lengths: np.ndarray, starts: np.ndarray, ends: np.ndarray, max_length: int
) -> tuple[int, int]:
    """Returns the positions of a batch that decoding must compute: in answers, and in the templates of all blanks.

    Args:
        words: `[batch]` words per sentence.
        lengths: `[batch, blanks]` words per infill; an infill of `max_length` words has no `<EOB>`.
        starts, ends: `[batch, blanks]` positions of the blanks.
        max_length: maximum number of tokens per infill.
    """
    answers = (lengths + 1).clip(max=max_length).sum()
    blanks = lengths.shape[1]
    first = words - (ends - starts).sum(axis=1) + blanks + 2  # 2: `<BOS>` and `<EOS>`
    grown = (lengths - 1).cumsum(axis=1)[:, :-1]  # blank k is already filled in the templates of later blanks
    return int(answers), int(first.sum() * blanks + grown.sum())


def _progress(steps):
    """Returns a callback that prints step and loss every `PROGRESS_SECONDS`."""
    import keras

    printed = time.monotonic()

    def end(batch, logs):
        nonlocal printed
        if time.monotonic() - printed > PROGRESS_SECONDS:
            printed = time.monotonic()
            note(f"step {batch + 1}/{steps}: loss {float(logs['loss']):.4f}")

    return keras.callbacks.LambdaCallback(on_train_batch_end=end)


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
