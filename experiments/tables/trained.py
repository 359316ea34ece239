"""The table of how the models were trained: optimizer, size, work, time and machine."""

import statistics
from collections.abc import Sequence

from experiments.cells.record import Machine, Trained
from experiments.cells.setting import Setting
from experiments.tables import paper
from experiments.tables.table import NO_VALUE, TRAINED, Table, header

# Columns of the training table after the first two.
TRAINED_HEADER = ("Model", "Budget", "Optimizer", "Epochs", "Batch", "Parameters", "TFLOP", "Minutes")


def trained_header(table: Table) -> tuple[str, ...]:
    """Returns the column titles of the training table."""
    return (*header(table)[:2], *TRAINED_HEADER)


def trained_rows(table: Table) -> list[tuple[str, ...]]:
    """Returns the rows of the training table, one per setting and trained model."""
    return [
        (setting.name, str(setting.blanks), paper.TITLES[model], *training_of(table, setting, model))
        for setting in table.settings
        for model in TRAINED
        if table.trained(setting, model)
    ]


def training_of(table: Table, setting: Setting, model: str) -> tuple[str, ...]:
    """Returns the columns `TRAINED_HEADER[1:]` of a model in a setting; numbers are means over its seeds.

    The letter after the minutes names the machine, see `trained_notes`.
    """
    of_seeds = list(table.trained(setting, model).values())
    letters = _letters(table)
    machines = sorted({letters[one.machine] for one in of_seeds if one.machine})
    minutes = _mean([one.minutes for one in of_seeds], ".1f") + (f" ({', '.join(machines)})" if machines else "")
    budget = of_seeds[0].budget
    return (
        NO_VALUE if budget is None else f"{budget:g}",
        of_seeds[0].optimizer,
        _mean([one.epochs for one in of_seeds], ".4g"),
        str(of_seeds[0].batch_size),
        _mean([one.parameters for one in of_seeds], ",.0f"),
        _mean([one.tflop for one in of_seeds], ".1f"),
        minutes,
    )


def trained_notes(table: Table) -> list[str]:
    """Returns notes on the numbers of `training_of`: definitions, machines, commits."""
    every = _every_training(table)
    if not every:
        return []
    notes = [
        "TFLOP: useful work of the training, forward and backward, without padding; budget: the work that was planned, "
        "from which the epochs follow (-: the epochs were given). Minutes: wall-clock time of the "
        "training alone, on a machine that also did other work: compare TFLOP. The GAN's epochs include the "
        "adversarial epochs."
    ]
    if any(one.optimizer == "Muon" for one in every):
        notes.append("Muon updates the matrices; Adam updates the embeddings, biases and norms.")
    for machine, letter in _letters(table).items():
        cores = "" if machine.cores is None else f", {machine.cores} core{'s' if machine.cores > 1 else ''}"
        rates = [rate for one in every if one.machine == machine for rate in one.gemm_gflops]
        low, high = (f"{limit(rates):.0f}" for limit in (min, max)) if rates else ("", "")
        rate = f"; a 2048 x 2048 float32 matrix product ran at {low if low == high else f'{low} to {high}'} GFLOP/s"
        notes.append(f"({letter}) {machine.processor}{cores}{rate if rates else ''}.")
    if commits := sorted({one.commit for one in every if one.commit}):
        notes.append(f"Code: {', '.join(commits)}.")
    return notes


def _every_training(table: Table) -> list[Trained]:
    """Returns how all cells were trained, in the order of the table."""
    return [one for setting in table.settings for model in TRAINED for one in table.trained(setting, model).values()]


def _letters(table: Table) -> dict[Machine, str]:
    """Returns a letter for each machine, in order of first use."""
    machines = dict.fromkeys(one.machine for one in _every_training(table) if one.machine)
    return {machine: chr(ord("a") + i) for i, machine in enumerate(machines)}


def _mean(numbers: Sequence[float | None], form: str) -> str:
    known = [number for number in numbers if number is not None]
    return format(statistics.fmean(known), form) if known else NO_VALUE
