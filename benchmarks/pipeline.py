"""How fast the input pipeline makes training batches by itself, with fixed and with random masks.

Command:
    python -m benchmarks.pipeline --data_dir=FOLDER_THAT_HOLDS_yelp/ --training_rate=150

Columns: `sentences_per_s` over one epoch with all of its start, of which `first_batch_s` is the time to the first
batch (the shuffle buffer is filled then); `times_training` is the rate over `--training_rate`, the sentences a second
that training takes (`benchmarks.train_step`), and should be 10 or more. Duration on 2 cores: under a minute.
"""

import argparse
import time
from collections.abc import Iterator

from benchmarks import common

COLUMNS = ("benchmark", "setting", "masking", "sentences_per_s", "first_batch_s", "times_training", "peak_mib")
MASKINGS = ("fixed", "random")


def measure(args: argparse.Namespace, setting: common.Setting, masking: str) -> dict:
    """The row of one setting and masking."""
    import tensorflow as tf

    from text_infilling.templates import Protocol

    tf.config.experimental.enable_op_determinism()  # as in training
    hparams = common.hparams_of(args)
    task = common.make_task(args, setting, hparams, masking)
    lines = task.survey("train").lines
    pipeline = task.pipeline("train", Protocol.from_hparams(hparams), hparams["train"]["batch_size"])
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
    """Measures each setting and masking in a process of its own."""
    for setting in args.settings:
        for masking in MASKINGS if args.masking == "both" else (args.masking,):
            yield common.isolated(measure, args, setting, masking)


def new_parser() -> argparse.ArgumentParser:
    """The flags of this benchmark."""
    parser = common.new_parser(__doc__)
    add = parser.add_argument
    add("--masking", choices=["both", *MASKINGS], default="both", help="how blanks are placed (default: %(default)s)")
    add("--steps", type=common.positive, help="batches that are made (default: an epoch)")
    add("--training_rate", type=float, help="sentences a second that training takes")
    return parser


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
