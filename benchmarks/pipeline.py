"""Measures how fast the input pipeline alone produces training batches, with fixed and random masks.

Command:
    python -m benchmarks.pipeline --data_dir=FOLDER_THAT_CONTAINS_yelp/ --training_rate=150

Columns: `sentences_per_s` is the rate over one epoch, including `first_batch_s`, the time until the first batch (while
the shuffle buffer fills); `times_training` is the rate divided by `--training_rate`, the sentences per second of
training (from `benchmarks.train_step`), and should be 10 or more. Duration on 2 cores: under a minute.
"""

import argparse
import time
from collections.abc import Iterator

from benchmarks import common

COLUMNS = ("benchmark", "setting", "masking", "sentences_per_s", "first_batch_s", "times_training", "peak_mib")
MASKINGS = ("fixed", "random")


def measure(args: argparse.Namespace, setting: common.Setting, masking: str) -> dict:
    """Returns the row of one setting and masking."""
    import tensorflow as tf

    from text_infilling.templates import TemplateFormat

    tf.config.experimental.enable_op_determinism()  # as in training
    hparams = common.hparams_of(args)
    task = common.make_task(args, setting, hparams, masking)
    lines = task.survey("train").lines
    pipeline = task.pipeline("train", TemplateFormat.from_hparams(hparams), hparams["train"]["batch_size"])
    steps = min(args.steps or pipeline.steps(lines), pipeline.steps(lines))
    bucket = hparams["train"]["bucket_by_length"]
    batches = pipeline.training(lines, task.seed, range(1), bucket_by_length=bucket).take(steps)

    start = time.perf_counter()
    sentences, first = 0, None
    for batch in batches:
        sentences += int(tf.shape(batch["answer_lengths"])[0])
        first = first or time.perf_counter() - start
    rate = sentences / (time.perf_counter() - start)
    return common.row(
        "pipeline", None, task, rate,
        masking=masking,
        first_batch_s=first,
        times_training=rate / args.training_rate if args.training_rate else None,
        steps=steps,
        batch_size=hparams["train"]["batch_size"],
    )  # fmt: skip


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Measures each setting and masking in its own process."""
    for setting in args.settings:
        for masking in MASKINGS if args.masking == "both" else (args.masking,):
            yield common.isolated(measure, args, setting, masking)


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = common.new_parser(__doc__)
    add = parser.add_argument
    add(
        "--masking",
        choices=["both", *MASKINGS],
        default="both",
        help="how blanks are placed; both: one row each (default: %(default)s)",
    )
    add("--steps", type=common.positive, help="batches to produce (default: one epoch)")
    add(
        "--training_rate",
        type=float,
        help="sentences per second of training, for the column times_training (default: none)",
    )
    return parser


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
