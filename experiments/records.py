"""Writes the time to quality: how long training takes until its validation `ppl` reaches a target, from finished cells.

Command:
    python -m experiments.records

Expected: ROOT/docs/records.md, from the epochs.jsonl and timing.json of the cells of the protocol `paper` and the
preset `laptop` in --cells; cells of older code, without epochs.jsonl, are "not recorded".
Duration: under a second.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import collect
from experiments.cells import flags, record
from experiments.evaluate import Finished
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from experiments.tables.notes import seeds
from experiments.tables.table import NOT_RUN, TRAINED
from text_infilling.runs.checks import check_types
from text_infilling.runs.layout import EPOCHS
from text_infilling.utils import files

# Targets of the mean validation `ppl` of the seeds of a setting.
TARGETS = {paper.yelp(0.5, 1): 21.6, paper.yelp(0.4, 2): 9.3}
KIND = ("fixed", "paper", "laptop")  # masking, protocol, preset
NOT_RECORDED = "not recorded"
HEADER = ("setting", "model", "seeds", "target `ppl`", "epoch", "`ppl`", "minutes", "cube TFLOP", "processor", "code")


def page(finished: Sequence[Finished]) -> str:
    """Returns the page of records of finished cells."""
    grid = [HEADER, ("---",) * 3 + ("---:",) * 5 + ("---",) * 2]
    for setting, target in TARGETS.items():
        for model in TRAINED:
            ours = [
                one
                for one in finished
                if one.cell.model == model
                and paper.row_of(one.cell.setting) == setting
                and not one.cell.setting.corpus.endswith("synthetic")
                and (one.cell.setting.masking, one.cell.setting.protocol, one.cell.setting.preset) == KIND
            ]
            title = (f"Yelp {setting.title}", paper.TITLES[model])
            grid.append((*title, *(row(ours, target) if ours else ("-", f"{target:g}", NOT_RUN, *("-",) * 5))))
    return "\n\n".join([
        "# Time to quality",
        "Made by `python -m experiments.records` from [results/cells](../results/cells), protocol `paper`, preset "
        "`laptop`.",
        markdown_rows(grid),
        "The target is reached at the first validation at which the mean `ppl` of all seeds on the validation "
        "sentences is not above it; minutes are the mean training time of the seeds until then, validations included. "
        "Cube TFLOP: these seconds times the rate of a 2048 x 2048 float32 matrix product on the same machine, the "
        "mean of before and after the training; it makes machines comparable. Both count the time as measured, also "
        "if the machine did other work.",
        "Target for self-attention at 50%, 1 blank: half of the 170 to 240 cube TFLOP that it took in December 2026, "
        "before issue 20.",
    ]) + "\n"  # fmt: skip


def row(ours: Sequence[Finished], target: float) -> tuple[str, ...]:
    """Returns the columns `HEADER[2:]` of the seeds of one setting and model.

    Raises:
        ValueError: an epochs.jsonl is damaged.
    """
    first = (seeds(sorted(one.cell.seed for one in ours)).partition(" ")[2], f"{target:g}")
    trained = [record.read(one.folder, one.config) for one in ours]
    where = [", ".join(sorted({str(x) for x in column if x})) or "-" for column in (
        [one.machine and one.machine.processor for one in trained], [one.commit for one in trained]
    )]  # fmt: skip
    logs = [epochs_of(one.folder) for one in ours]
    if not all(logs):
        return (*first, NOT_RECORDED, *("-",) * 3, *where)
    for lines in zip(*logs):  # validations of all seeds at the same epoch
        ppl = statistics.fmean(line["val_ppl"] for line in lines)
        if ppl <= target:
            break
    else:
        return (*first, "not reached", f"{ppl:.2f}", "-", "-", *where)
    cubes = [
        line["seconds"] * statistics.fmean(one.gemm_gflops) / 1e3
        for line, one in zip(lines, trained, strict=True)
        if one.gemm_gflops
    ]
    passes = lines[0]["epoch"] / ours[0].config["plan"]["epochs_per_pass"]
    minutes = statistics.fmean(line["seconds"] for line in lines) / 60
    cube = f"{statistics.fmean(cubes):.0f}" if len(cubes) == len(ours) else NOT_RECORDED
    return (*first, f"{passes:.3g}", f"{ppl:.2f}", f"{minutes:.1f}", cube, *where)


def epochs_of(folder: Path) -> list[dict]:
    """Returns the validations of a cell, see `training.callbacks.EpochLog`; empty if they were not recorded.

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / EPOCHS
    if not path.exists():
        return []
    lines = files.read_jsonl(path)
    for number, line in enumerate(lines, start=1):
        try:
            check_types(line, {"epoch": int, "seconds": (int, float), "val_ppl": (int, float)})
        except ValueError as error:
            raise ValueError(f"line {number} of {path}: {error}") from error
    return lines


def run(values: FlagValues) -> None:
    """Writes docs/records.md."""
    path = Path(values.root) / "docs" / "records.md"
    files.make_folder(path.parent, "--root")
    files.write_text(path, page(collect.read_all(Path(values.cells))))
    print(path, flush=True)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_cells(values)
    absl_flags.DEFINE_string("root", ".", "Folder whose docs/records.md is written.", flag_values=values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
