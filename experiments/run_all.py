"""Runs all cells of the paper's tables and makes tables with the paper's numbers and ours.

Command:
    python -m experiments.run_all --preset=smoke
    python -m experiments.run_all --data_dir=FOLDER_THAT_CONTAINS_yelp_grimm_nba/ --seeds=1,2,3 --only=yelp,grimm

Groups: `yelp` (fixed masks, as in the paper), `yelp_random` (the same settings with random masks), `grimm`, `nba` and
`prepositions`.
Expected: the paper's tables as Markdown, LaTeX and CSV in RESULTS_DIR/, rewritten after every setting, and an index,
RESULTS_DIR/README.md. At the end it writes the table of the paper's samples if models were trained on its sentences,
and prints each table with three filled sentences. Finished cells are not run again; a cell that fails does not stop the
others and is listed at the end with its log.
With --jobs=2, the default of smoke, two settings run in parallel, each in its own process.
Duration: an estimate is printed during the run.
"""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from experiments import collect, samples
from experiments.cells import cell as cells
from experiments.cells import experiment as experiments_
from experiments.cells import flags, jobs
from experiments.cells.experiment import Experiment
from experiments.cells.progress import Progress
from experiments.tables import paper, tables
from text_infilling.runs import layout
from text_infilling.utils import files
from text_infilling.utils.command import EXIT_FAILED


@dataclasses.dataclass(frozen=True)
class Group:
    """Settings of one task with the same masking.

    Attributes:
        task: one of `paper.TASKS`.
        masking: the masking of all cells.
        settings: settings of the paper's tables, each once.
    """

    task: str
    masking: str
    settings: Sequence[paper.Key]


GROUPS = {
    "yelp": Group("yelp", "fixed", paper.APPENDIX_TABLE),  # includes the main table
    "yelp_random": Group("yelp", "random", paper.APPENDIX_TABLE),
    **{key.task: Group(key.task, "pairs", (key,)) for key in (*paper.LONG_CONTENT_TABLE, *paper.PREPOSITIONS_TABLE)},
}
SMOKE_GROUPS = tuple(name for name in GROUPS if name != "yelp_random")


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cells that a command runs, for each group and seed; `experiments` has one entry per task."""

    experiments: Mapping[str, Experiment]
    groups: Sequence[Group]
    seeds: Sequence[int]
    results_dir: Path

    def experiment(self, group: Group, seed: int) -> Experiment:
        """Returns the experiment of a group with one seed."""
        return dataclasses.replace(self.experiments[group.task], masking=group.masking, seed=seed)

    def rows(self) -> Iterator[tuple[Group, Experiment, paper.Key]]:
        """Yields all settings, group by group and then seed by seed, so that each table is complete early."""
        for group in self.groups:
            for seed in self.seeds:
                for key in group.settings:
                    yield group, self.experiment(group, seed), key

    def progress(self) -> Progress:
        """Returns the progress over all cells, with an estimate of the time for each."""
        seconds: dict[cells.Cell, float] = {}
        for _, experiment, key in self.rows():
            for model in experiment.models:
                cell = experiment.cell(key.mask_rate, key.blanks, model)
                try:
                    seconds[cell] = experiments_.estimate(experiment, cell)
                except ValueError:  # no sentence fits these blanks: the cell fails with this message when it runs
                    seconds[cell] = 0.0
        workdir = experiment.inputs.workdir
        return Progress(seconds, lambda cell: (cell.folder(workdir) / layout.RESUME_POINT).exists())

    def unfinished(self, experiment: Experiment, key: paper.Key) -> list[Path]:
        """Returns the folders of the cells of a setting that are not finished."""
        folders = [cell.folder(experiment.inputs.workdir) for cell in _cells(experiment, key)]
        return [folder for folder in folders if not cells.is_finished(folder)]

    def finished(self, group: Group) -> list[collect.Finished]:
        """Returns the finished cells in the workdir that share tables with a group: all models, the requested seeds."""
        experiment = self.experiment(group, self.seeds[0])
        wanted = collect.common(_cells(experiment, group.settings[0])[0])
        found = collect.read_cells(experiment.inputs.workdir, "*/*")
        return [one for one in found if collect.common(one.cell) == wanted and one.cell.seed in self.seeds]

    def write(self, group: Group) -> list[Path]:
        """Writes the tables of a group, if it has a finished cell, and the index; returns the paths of the tables.

        Raises:
            ValueError: its finished cells cannot be in one table.
            OSError: a table cannot be written.
        """
        files.make_folder(self.results_dir, "--results_dir")
        with files.held(self.results_dir):  # else another command could overwrite these tables with older ones
            finished = self.finished(group)
            return collect.write_tables(finished, self.results_dir) if finished else []

    def show(self, group: Group) -> None:
        """Prints the table of a group, if it has a finished cell, and sentences that a model filled."""
        finished = self.finished(group)
        if finished:
            table = collect.table(finished, group.settings)
            print(f"\n{tables.text(table)}", flush=True)
            experiments_.show_samples(self.experiment(group, self.seeds[0]), table.settings)


def run(values) -> int:
    """Runs the cells that the flags select and makes their tables; returns 1 if a cell or a table failed."""
    groups = [GROUPS[name] for name in flags.groups(values, tuple(GROUPS), SMOKE_GROUPS)]
    seeds = flags.seeds(values)
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    quoted = samples.read_paper(values.paper_tex)  # now, so that an error in it does not appear after hours
    plan = Plan(_prepared(values, groups, seeds[0]), groups, seeds, results_dir)
    if not values.overwrite:  # Raises now, not after hours, if finished cells cannot be in one table.
        for group in groups:
            plan.write(group)

    failures: list[str] = []
    progress = plan.progress()
    if flags.jobs(values) == 1:
        for group, experiment, key in plan.rows():
            failures += run_row(experiment, key, progress.around)
            with _noted([], "the table so far"):
                plan.write(group)
    else:
        rows = list(plan.rows())
        titles = [key.task if key.mask_rate is None else f"{100 * key.mask_rate:g}%/{key.blanks}" for *_, key in rows]
        print(progress.before(), flush=True)
        with contextlib.closing(jobs.run(run_row, [row[1:] for row in rows], titles, flags.jobs(values))) as done:
            for (experiment, key), result in done:
                failed: list[str] = []
                try:
                    failed = result.result()
                except OSError as error:  # its process was killed
                    failed = [f"{folder} failed: {error} (log: {folder / layout.LOG})"
                              for folder in plan.unfinished(experiment, key)]  # fmt: skip
                    print(*failed, sep="\n", flush=True)
                failures += failed
                print(progress.after(_cells(experiment, key), learn=not failed), flush=True)
                with _noted([], "the tables so far"):
                    for group in groups:
                        plan.write(group)

    paths: list[Path] = []
    for group in groups:
        with _noted(failures, f"the table of {group.task}, {group.masking} masks"):
            paths += [path for path in plan.write(group) if path not in paths]
            plan.show(group)
    with _noted(failures, "the table of the paper's samples"):
        one = plan.experiment(groups[0], seeds[0])
        if found := samples.filling_cells(one.inputs.workdir, one.protocol, one.preset, one.seed):
            paths += samples.write(found, results_dir, quoted)
    if paths:
        print("\n" + "\n".join(["The tables:", *map(str, paths)]), flush=True)
    for failure in failures:
        print(failure, flush=True)
    return EXIT_FAILED if failures else 0


def _prepared(values, groups: Sequence[Group], seed: int) -> dict[str, Experiment]:
    """Returns the experiment of each task, with its corpus.

    Raises:
        FileNotFoundError: corpora are missing; the message names the groups whose corpora were found.
    """
    prepared, missing = {}, []
    for task, masking in {group.task: group.masking for group in groups}.items():
        try:
            prepared[task] = experiments_.prepare(values, task, masking, seed)
        except FileNotFoundError as error:
            missing.append(str(error))
    if missing:
        found = ",".join(name for name, group in GROUPS.items() if group in groups and group.task in prepared)
        if found:
            missing.append(f"--only={found} runs the groups whose corpora were found")
        raise FileNotFoundError("; ".join(missing))
    return prepared


def run_row(experiment: Experiment, key: paper.Key, around=contextlib.nullcontext) -> list[str]:
    """Runs the cells of one setting and returns a message for each failure."""
    failures: list[str] = []
    title = f"{tables.Setting(*key[:2], {}, key.task).title}, {experiment.masking} masks, seed {experiment.seed}"
    with _noted(failures, title):
        experiments_.run_setting(experiment, key.mask_rate, key.blanks, failures, around)
    return failures


def _cells(experiment: Experiment, key: paper.Key) -> list[cells.Cell]:
    """Returns the cells of a setting."""
    return [experiment.cell(key.mask_rate, key.blanks, model) for model in experiment.models]


def define_flags(values) -> None:
    """Defines the flags of this command."""
    flags.define_selection(values, tuple(GROUPS), SMOKE_GROUPS)
    flags.define_common(values, "all")


@contextlib.contextmanager
def _noted(failures: list[str], what: str) -> Iterator[None]:
    """Prints an expected error and appends it to `failures` instead of raising it."""
    try:
        yield
    except (ValueError, OSError, ArithmeticError) as error:
        failures.append(f"{what} failed: {' '.join(str(error).split())}")
        print(failures[-1], flush=True)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
