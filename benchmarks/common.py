"""Code that the benchmarks share: flags, one process per row so that memory peaks do not mix, and the table.

Does not import TensorFlow, so that the process that prints the table stays small.
"""

import argparse
import dataclasses
import datetime
import json
import multiprocessing
import resource
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import PRESETS
from text_infilling.configs.protocols import run_hparams
from text_infilling.utils import files, machine
from text_infilling.utils.columns import aligned
from text_infilling.utils.command import EXIT_FAILED, note, run_command
from text_infilling.utils.quiet import quiet_tensorflow

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.training.task import Task

GEMM_SIZE, GEMM_REPEATS = 2048, 5

# Keys of every row, in order; a benchmark may add its own.
KEYS = ("benchmark", "model", "setting", "sentences_per_s", "gflops", "gemm_gflops", "ratio", "peak_mib")


@dataclasses.dataclass(frozen=True)
class Setting:
    """A mask rate in (0, 1) and a number of blanks, written `30%/1`."""

    mask_rate: float
    blanks: int

    def __str__(self) -> str:
        return f"{100 * self.mask_rate:.6g}%/{self.blanks}"


def parse_settings(text: str) -> list[Setting]:
    """Parses settings like `30%/1,50%/2`.

    Raises:
        argparse.ArgumentTypeError: a setting is not a percentage between 0 and 100 with at least one blank.
    """
    found = []
    for part in text.split(","):
        rate, _, blanks = part.strip().partition("%/")
        try:
            setting = Setting(float(rate) / 100, int(blanks))
        except ValueError:
            setting = None
        if setting is None or not 0 < setting.mask_rate < 1 or setting.blanks < 1:
            raise argparse.ArgumentTypeError(f"expected settings like 30%/1,50%/2. Received: {text!r}")
        found.append(setting)
    return found


def positive(text: str) -> int:
    """Parses a whole number of at least 1.

    Raises:
        argparse.ArgumentTypeError: the text is not such a number.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1. Received: {text!r}")
    return int(text)


def new_parser(doc: str, preset: str | None = "full") -> argparse.ArgumentParser:
    """Returns a parser with the flags that all benchmarks share.

    Args:
        doc: help text.
        preset: default of `--preset`; None: the benchmark measures several presets.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--settings",
        type=parse_settings,
        default="30%/1,50%/2",
        help="mask rate and blanks of each row (default: %(default)s)",
    )
    shown = preset or "full, then laptop"
    add("--preset", choices=list(PRESETS), default=preset, help=f"model sizes; full: the paper's (default: {shown})")
    add("--batch_size", type=positive, help="sentences per training batch (default: the preset's; 200 for full)")
    add(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a hyperparameter, e.g. train.epochs=5; repeatable",
    )
    add(
        "--corpus",
        choices=["auto", "yelp", "synthetic"],
        help="sentences; auto: yelp if available, otherwise synthetic (default: auto; for the preset smoke: synthetic)",
    )
    add("--data_dir", help="folder that contains yelp/ with train.txt, valid.txt and test.txt (default: the cache)")
    add_output(parser)
    return parser


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that determine where the rows are written."""
    parser.add_argument("--json", action="store_true", help="print one JSON object per line instead of the table")
    parser.add_argument(
        "--out", type=Path, help="also write rows, machine and command to this JSON file, for benchmarks.tables"
    )


def main(
    parser: argparse.ArgumentParser,
    rows_of: Callable[[argparse.Namespace], Iterable[dict]],
    columns: Sequence[str],
    arguments: Sequence[str] | None = None,
) -> NoReturn:
    """Parses the flags, measures and prints the rows; exits: 0, 2 on a flag error, 1 if anything else failed.

    Args:
        parser: from `new_parser`.
        rows_of: yields the rows for the parsed flags.
        columns: keys of the columns in the table.
        arguments: command-line arguments; default: those of this process.
    """
    args = parser.parse_args(arguments)
    try:
        hparams_of(args)
    except ValueError as error:
        parser.error(str(error))

    def measure():
        rows = []
        for row in rows_of(args):
            rows.append(row)
            if args.json:
                print(json.dumps(row), flush=True)
        if not args.json:
            print(table(rows, columns))
            print(f"machine {machine.processor()}, {files.cores()} cores, {' '.join(machine.instruction_sets())}")
        if args.out:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            files.write_json(args.out, record(command_line(args, arguments), rows, columns))
        return EXIT_FAILED if any(row.get("failed") for row in rows) else 0

    run_command(measure)


def command_line(args: argparse.Namespace, arguments: Sequence[str] | None) -> str:
    """Returns the command that was run, with `DATA` for the folder of the corpora."""
    words = sys.argv[1:] if arguments is None else arguments
    line = shlex.join(["python", "-m", f"benchmarks.{Path(sys.argv[0]).stem}", *words])
    data_dir = getattr(args, "data_dir", None)
    return line.replace(data_dir, "DATA") if data_dir else line


def record(line: str, rows: Sequence[dict], columns: Sequence[str]) -> dict:
    """Returns what was measured, when, with which code and on which machine, as JSON values.

    Args:
        line: the command line.
        rows: the rows of the benchmark.
        columns: keys of the columns to show.
    """
    return {
        "source": "measured by the command",
        "command": line,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "commit": machine.commit(),
        "machine": {
            "processor": machine.processor(),
            "instruction_sets": machine.instruction_sets(),
            "cores": files.cores(),
            "gemm_gflops": isolated(gemm_gflops),
        },
        "columns": list(columns),
        "rows": list(rows),
    }


def isolated(function: Callable, *arguments: Any) -> Any:
    """Returns the result of `function`, which runs in a new process.

    Raises:
        OSError: the process was killed.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=quiet_tensorflow) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool as error:
            raise OSError(
                "the measuring process was killed, most likely because memory ran out: lower --batch_size"
            ) from error


def hparams_of(args: argparse.Namespace, assignments: Sequence[str] = (), task: str = "yelp") -> dict:
    """Returns all hyperparameters: the paper's, overridden by the preset, `assignments` and the flags, in this order.

    Raises:
        ValueError: an unknown key or a value of the wrong type in `--set`.
    """
    batch = [f"train.batch_size={args.batch_size}"] if args.batch_size else []
    model = getattr(args, "model", MODELS[0])  # the pipeline benchmark has no model
    assigned = [*assignments, *batch, *args.set]
    return run_hparams("paper", args.preset or "full", assigned, model=model, task=task)


def make_task(args: argparse.Namespace, setting: Setting, hparams: dict, masking: str = "fixed") -> "Task":
    """Returns a task with the corpus that the flags select, its vocabulary, one setting and seed 1."""
    from text_infilling.corpora.corpus import load_corpus
    from text_infilling.training.task import Task
    from text_infilling.vocabulary import Vocabulary

    name = args.corpus or ("synthetic" if args.preset == "smoke" else "auto")
    corpus = load_corpus(name, args.data_dir, log=lambda text: note(f"warning: {text}"))
    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), hparams["train"]["min_count"])
    return Task(corpus, vocabulary, masking, setting.mask_rate, setting.blanks, seed=1)


def gemm_gflops() -> float:
    """Measures a float32 product of two 2048 x 2048 matrices on this machine, in GFLOP/s."""
    from text_infilling.training.estimate import gemm_flops

    return gemm_flops(GEMM_SIZE, GEMM_REPEATS) / 1e9


def peak_mib() -> float:
    """Returns the peak memory of this process so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10  # macOS reports bytes, Linux KiB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def row(
    benchmark: str, model: str | None, task: "Task", sentences_per_s: float, gflops: float | None = None,
    gemm: float | None = None, **more: Any,
) -> dict:  # fmt: skip
    """Returns a row of results: `KEYS`, the benchmark's own keys `more`, then the corpus."""
    setting = str(Setting(task.mask_rate, task.blanks))
    ratio = gflops / gemm if gflops and gemm else None
    values = (benchmark, model, setting, sentences_per_s, gflops, gemm, ratio, peak_mib())
    source = f"{task.corpus.source}; {task.corpus.note}" if task.corpus.note else task.corpus.source
    return {**dict(zip(KEYS, values, strict=True)), **more, "corpus": task.corpus.name, "corpus_source": source}


def table(rows: Sequence[dict], columns: Sequence[str]) -> str:
    """Returns the rows as an aligned table, followed by the corpora that they were measured on."""
    grid = [list(columns), *([as_text(row[column]) for column in columns] for row in rows)]
    lines = aligned(grid, left=[i for i, column in enumerate(columns) if isinstance(rows[0][column], str)])
    lines.insert(1, "-" * max(map(len, lines)))
    corpora = dict.fromkeys(f"corpus {row['corpus']} ({row['corpus_source']})" for row in rows if "corpus" in row)
    return "\n".join([*lines, *corpora])


def as_text(value: object) -> str:
    """Returns a value as text, with about three significant digits."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"
    return str(value)
