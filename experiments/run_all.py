"""Runs all cells of the paper's Yelp tables and makes the tables, the paper's numbers beside ours.

Command:
    python -m experiments.run_all --preset=smoke
    python -m experiments.run_all --data_dir=FOLDER_THAT_HOLDS_yelp/ --seeds=1,2,3 --only=yelp

Expected: the main and the appendix table of each group (`yelp`: fixed masks, as the paper has them; `yelp_random`: the
same settings with random masks) as Markdown, LaTeX and CSV in RESULTS_DIR/CORPUS/, written anew after every setting;
at the end the table and three filled sentences on the terminal. A finished cell is not run again; one that fails is
named at the end with its log and does not keep the others from running.
With --jobs=2, which smoke takes by default, two settings run at the same time, each in a process of its own.
Duration: said as it goes on.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments import cell as cells
from experiments import collect, files, flags, jobs, paper, yelp
from experiments.progress import Progress
from text_infilling.training.layout import RESUME_POINT


@dataclasses.dataclass(frozen=True)
class Group:
    """Tables that are made of the same cells.

    Attributes:
        masking: of all cells.
        tables: `{name: (mask_rate, blanks) of each setting}`.
    """

    masking: str
    tables: Mapping[str, Sequence[tuple[float, int]]]

    @property
    def settings(self) -> tuple[tuple[float, int], ...]:
        """Every setting of its tables, once."""
        return tuple(sorted({pair for pairs in self.tables.values() for pair in pairs}))


# The first is what the preset smoke runs.
GROUPS = {
    "yelp": Group("fixed", paper.YELP_TABLES),
    "yelp_random": Group("random", paper.YELP_TABLES),
}


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a command runs: the cells of each group and seed."""

    experiment: yelp.Experiment
    groups: Sequence[Group]
    seeds: Sequence[int]
    results_dir: Path

    def rows(self) -> Iterator[tuple[Group, yelp.Experiment, tuple[float, int]]]:
        """Group by group, and in it seed by seed, so that a whole table is there soonest."""
        for group in self.groups:
            for seed in self.seeds:
                experiment = dataclasses.replace(self.experiment, masking=group.masking, seed=seed)
                for pair in group.settings:
                    yield group, experiment, pair

    def progress(self) -> Progress:
        """Of all cells, with the time that each will take."""
        seconds: dict[cells.Cell, float] = {}
        for _, experiment, pair in self.rows():
            for model in experiment.models:
                cell = experiment.cell(*pair, model)
                try:
                    seconds[cell] = yelp.estimate(experiment, cell)
                except ValueError:  # no sentence for these blanks: the cell says so when it is run, and fails
                    seconds[cell] = 0.0
        workdir = self.experiment.inputs.workdir
        return Progress(seconds, lambda cell: (cell.folder(workdir) / RESUME_POINT).exists())

    def unfinished(self, experiment: yelp.Experiment, pair: tuple[float, int]) -> list[Path]:
        """Folders of the cells of a setting that have no metrics."""
        folders = [experiment.cell(*pair, model).folder(experiment.inputs.workdir) for model in experiment.models]
        return [folder for folder in folders if not cells.is_finished(folder)]

    def finished(self, group: Group) -> list[collect.Finished]:
        """The finished cells of a group in the workdir: of all models, and of the seeds asked for."""
        inputs = self.experiment.inputs
        wanted = (inputs.corpus.name, group.masking, self.experiment.protocol, self.experiment.preset)
        found = collect.read_cells(inputs.workdir / inputs.corpus.name)
        return [one for one in found if collect.common(one.cell) == wanted and one.cell.seed in self.seeds]

    def write(self, group: Group) -> list[Path]:
        """Writes the tables of a group where it has a finished cell; the paths.

        Raises:
            ValueError: its finished cells cannot stand in one table.
            OSError: a table cannot be written.
        """
        finished = self.finished(group)
        return collect.write_tables(finished, group.tables, self.results_dir) if finished else []

    def show(self, group: Group) -> None:
        """Prints the largest table of a group where it has a finished cell, and sentences that a model filled."""
        finished = self.finished(group)
        if finished:
            yelp.show(self.experiment, collect.table(finished, max(group.tables.values(), key=len)))


def run(values) -> int:
    """Runs the cells that the flags select and makes their tables; 1 if a cell or a table failed."""
    groups = [GROUPS[name] for name in flags.groups(values, tuple(GROUPS))]
    seeds = flags.seeds(values)
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    plan = Plan(yelp.prepare(values, groups[0].masking, seeds[0]), groups, seeds, results_dir)
    if not values.overwrite:  # Finished cells that cannot stand in one table are an error now, not after hours.
        for group in groups:
            plan.write(group)

    failures: list[str] = []
    progress = plan.progress()
    if flags.jobs(values) == 1:
        for group, experiment, pair in plan.rows():
            failures += run_row(experiment, pair, progress.around)
            with _noted([], "the table so far"):
                plan.write(group)
    else:
        rows = list(plan.rows())
        titles = [f"{100 * rate:g}%/{blanks}" for _, _, (rate, blanks) in rows]
        print(progress.before(), flush=True)
        with contextlib.closing(jobs.run(run_row, [row[1:] for row in rows], titles, flags.jobs(values))) as done:
            for (experiment, pair), result in done:
                failed: list[str] = []
                try:
                    failed = result.result()
                except OSError as error:  # its process was killed
                    failed = [f"{folder} failed: {error} (log: {folder / cells.LOG})"
                              for folder in plan.unfinished(experiment, pair)]  # fmt: skip
                    print(*failed, sep="\n", flush=True)
                failures += failed
                row = [experiment.cell(*pair, model) for model in experiment.models]
                print(progress.after(row, learn=not failed), flush=True)
                with _noted([], "the tables so far"):
                    for group in groups:
                        plan.write(group)

    paths: list[Path] = []
    for group in groups:
        with _noted(failures, f"the table of {group.masking} masks"):
            paths += plan.write(group)
            plan.show(group)
    if paths:
        print("\n" + "\n".join(["The tables:", *map(str, paths)]), flush=True)
    for failure in failures:
        print(failure, flush=True)
    return flags.EXIT_FAILED if failures else 0


def run_row(experiment: yelp.Experiment, pair: tuple[float, int], around=contextlib.nullcontext) -> list[str]:
    """Runs the cells of one setting; what failed."""
    failures: list[str] = []
    with _noted(failures, _title(experiment, pair)):
        yelp.run_setting(experiment, *pair, failures, around)
    return failures


def _title(experiment: yelp.Experiment, pair: tuple[float, int]) -> str:
    return f"{experiment.masking} masks, rate {pair[0]}, blanks {pair[1]}, seed {experiment.seed}"


def define_flags(values) -> None:
    """Defines the flags of this command."""
    flags.define_selection(values, tuple(GROUPS))
    flags.define_common(values)


@contextlib.contextmanager
def _noted(failures: list[str], what: str) -> Iterator[None]:
    """Says an error that is no bug, and notes it in `failures`; the rest goes on."""
    try:
        yield
    except (ValueError, OSError, ArithmeticError) as error:
        failures.append(f"{what} failed: {' '.join(str(error).split())}")
        print(failures[-1], flush=True)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
