"""Measures how fast `Infiller.fill` fills sentences, one at a time and in batches, and how fast the shell command is.

Command:
    python -m benchmarks.fill --run=FOLDER_OF_A_RUN
    python -m benchmarks.fill --preset=full

Without `--run`, uses an untrained model of the preset's sizes with 9,000 words. Every infill then has exactly `--words`
words, so that the work is that of a trained model, although its words are meaningless. The default, 2, is close to what
models trained on Yelp at 40%/2 generate for these sentences: 2.1 words (self-attention), 2.4 (GAN). Decoding is greedy.

Columns: `texts` is the number of texts filled per call, each with two blanks; `median_ms` and `p90_ms` are times of one
call of `Infiller.fill`; `words_per_infill` is a mean; `first_answer_s` is the total time of `text-infill fill TEXT`,
including startup.
Duration on 2 cores: under two minutes.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import common
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import PRESETS

COLUMNS = (
    "benchmark", "model", "sizes", "texts", "words_per_infill", "median_ms", "p90_ms", "sentences_per_s",
    "first_answer_s", "peak_mib",
)  # fmt: skip
TOGETHER = (1, 64, 256)
BEGINNINGS = ("", "today", "my friend and i", "on sundays we often came here , so")
TEXTS = [
    f"{words} ____ have a ____ , please{end}" for words in BEGINNINGS for end in (".", "!", " , now .", " or else ?")
]
UNTRAINED_WORDS = 9_000


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add_run(parser)
    parser.add_argument("--steps", type=common.positive, default=20, help="calls per batch size (default: %(default)s)")
    common.add_output(parser)
    return parser


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that select a trained run, or the sizes of an untrained model."""
    parser.set_defaults(batch_size=None)
    add = parser.add_argument
    add("--run", type=Path, action="append", help="a trained run, instead of --model, --preset, --set; repeatable")
    add("--model", choices=MODELS, default="self_attention", help="default: %(default)s")
    add("--preset", choices=list(PRESETS), default="full", help="model sizes; full: the paper's (default: %(default)s)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a hyperparameter, e.g. decoder.dim=256; repeatable",
    )
    add("--words", type=common.positive, default=2, help="words per infill, without --run (default: %(default)s)")


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Measures each run in its own process."""
    for run in args.run or []:
        yield from common.isolated(measure, run, str(run), args.steps, None)
    if not args.run:
        with tempfile.TemporaryDirectory() as folder:
            common.isolated(write_untrained, Path(folder), args)
            limits = {"exact_words": args.words}
            yield from common.isolated(measure, Path(folder), f"{args.preset}, untrained", args.steps, limits)


def write_untrained(folder: Path, args: argparse.Namespace, words: int = UNTRAINED_WORDS) -> None:
    """Writes a run folder with untrained weights and a vocabulary of `words` words."""
    import keras

    from text_infilling.models.registry import built_model
    from text_infilling.runs import layout
    from text_infilling.utils import files
    from text_infilling.vocabulary import Vocabulary

    keras.utils.set_random_seed(1)
    hparams, vocabulary = common.hparams_of(args, task="own"), Vocabulary(f"w{i}" for i in range(words))
    built_model(args.model, len(vocabulary), hparams).save_weights(folder / layout.WEIGHTS)
    vocabulary.save(folder / layout.VOCABULARY)
    config = {"cell": {"model": args.model}, "hparams": hparams, "vocabulary": {"hash": vocabulary.hash}}
    files.write_json(folder / layout.CONFIG, config)


def measure(run: Path, sizes: str, steps: int, limits: dict | None) -> list[dict]:
    """Returns the rows of a run, one for each number of texts in `TOGETHER`."""
    from text_infilling.inference.infiller import Infiller
    from text_infilling.runs import layout
    from text_infilling.utils import files

    command = [sys.executable, "-m", "text_infilling", "fill", "--run", str(run), TEXTS[0]]
    command += ["--limits", json.dumps(limits)] if limits else []
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    first_answer = time.perf_counter() - start
    infiller, rows = Infiller.load(run), []
    name = files.read_json(run / layout.CONFIG)["cell"]["model"]
    for together in TOGETHER:
        infiller.fill(TEXTS[:together], limits=limits)  # traces the graph
        times, words = [], []
        for step in range(steps):
            texts = [TEXTS[(step + i) % len(TEXTS)] for i in range(together)]
            begin = time.perf_counter()
            found = infiller.fill(texts, limits=limits if limits is None else [limits] * together)
            times.append(time.perf_counter() - begin)
            words += [len(infill) for filled in found for infill in filled.words]
        median = statistics.median(times)
        values = (
            "fill", name, sizes, together, statistics.mean(words), 1000 * median,
            1000 * sorted(times)[math.ceil(0.9 * steps) - 1], together / median, first_answer, common.peak_mib(),
        )  # fmt: skip
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
