"""Measures how fast `model.fit` trains on real batches, compared with the machine's matrix product.

Command:
    python -m benchmarks.train_step --data_dir=FOLDER_THAT_CONTAINS_yelp/

Columns: `gflops` counts useful work only: positions without padding, forward and backward. `gemm_gflops` is the rate of
a 2048 x 2048 float32 matrix product right before and after; `ratio` is `gflops / gemm_gflops`. Batches contain
sentences of similar length, so steps differ in work: `gflops` is the work of all timed steps divided by their time,
`sentences_per_s` converts it to mean sentences of the corpus, and `minutes_per_epoch` follows.
Without `--preset` there are rows of the paper's sizes and of the preset `laptop`, as used for Yelp.
Op determinism is on, as in training. `--model=gan` measures pre-training, or the adversarial phase if `--adversarial`
is given too. Duration on 2 cores: about 3 minutes.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks import common
from text_infilling.configs.defaults import MODELS
from text_infilling.training.cost import flop, flop_per_sentence

if TYPE_CHECKING:  # imports TensorFlow
    import keras
    import tensorflow as tf

COLUMNS = (*common.KEYS[:2], "preset", *common.KEYS[2:8], "minutes_per_epoch")
PRESETS = ("full", "laptop")  # measured by default


def measure(args: argparse.Namespace, setting: common.Setting) -> dict:
    """Returns the row of one setting.

    Raises:
        ValueError: `--adversarial` with a model other than the GAN.
    """
    from text_infilling.models.registry import MODELS as CLASSES
    from text_infilling.training.trainer import compiled_model

    if args.adversarial and args.model != "gan":
        raise ValueError(f"--adversarial requires --model=gan. Received: --model={args.model}")
    hparams = common.hparams_of(args)
    task = common.make_task(args, setting, hparams)
    found = task.survey("train")
    steps = args.warmup_steps + args.steps
    model = compiled_model(task, args.model, hparams, hparams["train"]["epochs"] * steps, args.mixed_precision)
    pipeline = task.pipeline("train", model.template_format, hparams["train"]["batch_size"])
    epochs = range(-(-steps // pipeline.steps(found.lines)))
    bucket = hparams["train"]["bucket_by_length"]
    batches = pipeline.training(found.lines, task.seed, epochs, bucket_by_length=bucket).take(steps)
    cls, size = CLASSES[args.model], len(task.vocabulary)
    per_position = (cls.adversarial_multiply_adds if args.adversarial else cls.multiply_adds)(hparams, size)
    work = [batch_flop(per_position, batch) for batch in batches][args.warmup_steps :]

    if args.adversarial:
        model.begin_adversarial()
    before = common.gemm_gflops()
    seconds = step_seconds(model, batches)[args.warmup_steps :]
    gemm = (before + common.gemm_gflops()) / 2

    flops = sum(work) / sum(seconds)
    mean_rate = found.masked_words / found.words
    rate = flops / flop_per_sentence(per_position, found.words / found.lines, mean_rate, task.blanks)
    return common.row(
        "train_step", args.model, task, rate, flops / 1e9, gemm,
        minutes_per_epoch=found.lines / rate / 60,
        median_step_seconds=statistics.median(seconds),
        steps=args.steps,
        batch_size=hparams["train"]["batch_size"],
        preset=args.preset,
        adversarial=args.adversarial,
        mixed_precision=args.mixed_precision,
    )  # fmt: skip


def batch_flop(multiply_adds: tuple[int, int], examples: dict) -> float:
    """Returns the useful floating-point operations of training on one batch of examples."""
    answers, templates = (int(examples[name].numpy().sum()) for name in ("answer_lengths", "template_lengths"))
    return flop(multiply_adds, answers, templates)


def step_seconds(model: "keras.Model", batches: "tf.data.Dataset") -> list[float]:
    """Returns the seconds of each step of `model.fit`, measured from the end of the previous step."""
    import keras

    ends = []

    class Clock(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            ends.append(time.perf_counter())

        def on_train_batch_end(self, batch, logs=None):
            float(logs["loss"])  # waits for the device
            ends.append(time.perf_counter())

    model.fit(batches, epochs=1, callbacks=[Clock()], verbose=0, shuffle=False)
    return [end - start for start, end in zip(ends, ends[1:])]


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Measures each preset and setting in its own process."""
    for preset in [args.preset] if args.preset else PRESETS:
        for setting in args.settings:
            yield common.isolated(measure, argparse.Namespace(**vars(args) | {"preset": preset}), setting)


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = common.new_parser(__doc__, preset=None)
    add = parser.add_argument
    add("--model", choices=MODELS, default="self_attention", help="model type (default: %(default)s)")
    add("--steps", type=common.positive, default=30, help="timed steps (default: %(default)s)")
    add("--warmup_steps", type=common.positive, default=5, help="untimed steps before them (default: %(default)s)")
    add("--adversarial", action="store_true", help="measure the GAN's adversarial phase")
    add("--mixed_precision", action="store_true", help="compute in bfloat16 instead of float32")
    return parser


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
