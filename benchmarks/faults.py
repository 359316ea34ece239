"""Shows which faults the commands survive: killed, interrupted, out of disk space, damaged and hostile inputs.

Command:
    python -m benchmarks.faults
    python -m benchmarks.faults --short

Rows: a `fit`, a self-attention cell and a GAN cell, each killed (SIGKILL) or interrupted (SIGTERM, Ctrl-C) at random
moments and then resumed, must end with the weights, metrics and predictions of an undisturbed run, bit by bit. A full
disk and a folder that cannot be written are one-line errors, after which the same command completes. Of two processes
on one folder, one is refused. Damaged run folders, texts, requests and HTTP (`benchmarks.damaged_inputs`) give a result
or a one-line error that names the input.

Columns: `inputs` is the number of attempts; `accepted` gave a result, `refused` a one-line error, `failed` anything
else, which is described on stderr; `slowest_s` is the longest attempt.
Expected: `failed` is 0 in each row; otherwise the exit code is 1.
Duration on 2 cores: about 20 minutes; two with `--short`.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import common
from text_infilling.utils.command import note

COLUMNS = ("fault", "of", "inputs", "accepted", "refused", "failed", "slowest_s")
PARTS = ("inputs", "processes")


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.set_defaults(batch_size=None, preset="smoke", set=[])
    add = parser.add_argument
    add("--inputs", type=common.positive, help="damaged inputs, of all kinds (default: 10000; 300 with --short)")
    add("--kills", type=common.positive, help="kills of each command (default: 20; 1 with --short)")
    add("--seed", type=common.positive, default=1, help="random seed of damages and moments (default: %(default)s)")
    add("--part", choices=PARTS, help="damaged inputs only, or faults of processes only (default: both)")
    add("--short", action="store_true", help="few inputs and kills")
    common.add_output(parser)
    return parser


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Yields the rows of the table, and describes the failures on stderr."""
    inputs, kills = args.inputs or (300 if args.short else 10_000), args.kills or (1 if args.short else 20)
    for part in [args.part] if args.part else PARTS:
        with tempfile.TemporaryDirectory() as folder:
            for row in _part(part, Path(folder), inputs, kills, args.seed):
                for reason in row.pop("reasons"):
                    note(f"failed: {reason}")
                yield {"benchmark": "faults", **row}


def _part(part: str, folder: Path, inputs: int, kills: int, seed: int) -> Iterator[dict]:
    if part == "inputs":
        from benchmarks import damaged_inputs

        return damaged_inputs.campaign(folder, inputs, seed)
    from benchmarks import process_faults

    return process_faults.campaign(folder, kills, seed)


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
