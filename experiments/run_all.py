"""Runs all cells of the paper's tables and makes tables with the paper's numbers and ours.

Command:
    python -m experiments.run_all --preset=smoke
    python -m experiments.run_all --data_dir=FOLDER_THAT_CONTAINS_yelp_grimm_nba/ --seeds=1,2,3 --only=yelp,grimm

Groups: `yelp` (fixed masks, as in the paper), `race` (only 50% with one blank and 40% with two), `yelp_random` (the
settings of `yelp` with random masks), `grimm`, `nba` and `prepositions`. Beside the GAN, a control runs in the settings
of `paper.RACE`: the GAN with gan.weight=0 (not with --nocontrol or the preset smoke).
Expected: the paper's tables as Markdown, LaTeX and CSV in RESULTS_DIR/, rewritten after every setting, and an index,
RESULTS_DIR/README.md. At the end it writes the table of the paper's samples and the page of its claims if models were
trained on its sentences, and the report (RESULTS_DIR/report.html, see `experiments.report`), and prints each table with
three filled sentences. Finished cells are not run again; a cell
that fails does not stop the others and is listed at the end with its log.
With --jobs=2, the default of smoke, two settings run in parallel, each in its own process.
Duration: an estimate is printed during the run.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from absl.flags import FlagValues

from experiments import claims, collect, report, samples
from experiments.cells import cell as cells
from experiments.cells import experiment as experiments_
from experiments.cells import flags, jobs
from experiments.cells.experiment import Experiment
from experiments.cells.progress import Progress
from experiments.cells.setting import Cell, Setting
from experiments.tables import formats, paper
from text_infilling.runs import layout
from text_infilling.utils import files
from text_infilling.utils.command import EXIT_FAILED

# Settings of the paper's tables, each once, with the masking to use.
GROUPS: dict[str, Sequence[Setting]] = {
    "yelp": paper.APPENDIX_TABLE,  # includes the main table
    "race": paper.RACE[:2],  # the two settings of Yelp that are run with three seeds
    "yelp_random": [dataclasses.replace(row, masking="random") for row in paper.APPENDIX_TABLE],
    **{row.task: [row] for row in (*paper.LONG_CONTENT_TABLE, *paper.PREPOSITIONS_TABLE)},
}
DEFAULT_GROUPS = tuple(name for name in GROUPS if name != "race")  # "yelp" includes it
SMOKE_GROUPS = tuple(name for name in DEFAULT_GROUPS if name != "yelp_random")


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cells that a command runs.

    Attributes:
        experiments: the experiment of each corpus, by the corpus's name.
        groups: the settings to run; each group has its own table.
        seeds: every setting is run with each of them.
        results_dir: output folder of the tables.
    """

    experiments: Mapping[str, Experiment]
    groups: Sequence[Sequence[Setting]]
    seeds: Sequence[int]
    results_dir: Path

    @property
    def workdir(self) -> Path:
        """The folder that contains the folders of all cells."""
        return next(iter(self.experiments.values())).inputs.workdir

    def rows(self) -> Iterator[tuple[Setting, int]]:
        """Yields all settings and seeds, group by group and then seed by seed, so that each table is complete early."""
        for group in self.groups:
            for seed in self.seeds:
                for setting in group:
                    yield setting, seed

    def cells(self, setting: Setting, seed: int) -> list[Cell]:
        """Returns the cells of a setting with one seed."""
        return self.experiments[setting.corpus].cells(setting, seed)

    def progress(self) -> Progress:
        """Returns the progress over all cells, with an estimate of the time for each."""
        seconds: dict[Cell, float] = {}
        for setting, seed in self.rows():
            for cell in self.cells(setting, seed):
                try:
                    seconds[cell] = experiments_.estimate(self.experiments[setting.corpus], cell)
                except ValueError:  # no sentence fits these blanks: the cell fails with this message when it runs
                    seconds[cell] = 0.0
        return Progress(seconds, lambda cell: (cell.folder(self.workdir) / layout.RESUME_POINT).exists())

    def unfinished(self, setting: Setting, seed: int) -> list[Path]:
        """Returns the folders of the cells of a setting and seed that are not finished."""
        folders = [cell.folder(self.workdir) for cell in self.cells(setting, seed)]
        return [folder for folder in folders if not cells.is_finished(folder)]

    def finished(self, group: Sequence[Setting]) -> list[collect.Finished]:
        """Returns the finished cells in the workdir that share tables with a group: all models, the requested seeds."""
        shared = collect.common(group[0])
        found = collect.read_cells(self.workdir, "*/*")
        return [one for one in found if collect.common(one.cell.setting) == shared and one.cell.seed in self.seeds]

    def write(self, group: Sequence[Setting]) -> list[Path]:
        """Writes the tables of a group, if it has a finished cell, and the index; returns the paths of the tables.

        Raises:
            ValueError: its finished cells cannot be in one table.
            OSError: a table cannot be written.
        """
        files.make_folder(self.results_dir, "--results_dir")
        with files.held(self.results_dir):  # else another command could overwrite these tables with older ones
            finished = self.finished(group)
            return collect.write_tables(finished, self.results_dir) if finished else []

    def show(self, group: Sequence[Setting]) -> None:
        """Prints the table of a group, if it has a finished cell, and sentences that a model filled."""
        finished = self.finished(group)
        if finished:
            table = collect.table(finished, group)
            print(f"\n{formats.text(table)}", flush=True)
            experiments_.show_samples(self.experiments[group[0].corpus], table)


def run(values: FlagValues) -> int:
    """Runs the cells that the flags select and makes their tables; returns 1 if a cell or a table failed."""
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    quoted = samples.read_paper(values.paper_tex)  # now, so that an error in it does not appear after hours
    plan = prepared(values, flags.groups(values, DEFAULT_GROUPS, SMOKE_GROUPS))
    if not values.overwrite:  # Raises now, not after hours, if finished cells cannot be in one table.
        for group in plan.groups:
            plan.write(group)

    failures: list[str] = []
    progress = plan.progress()
    if flags.jobs(values) == 1:
        for group in plan.groups:
            for setting, seed in dataclasses.replace(plan, groups=[group]).rows():
                failures += run_row(plan.experiments[setting.corpus], setting, seed, progress.around)
                with _noted([], "the table so far"):
                    plan.write(group)
    else:
        failures += _run_in_parallel(plan, progress, flags.jobs(values))

    paths: list[Path] = []
    for group in plan.groups:
        with _noted(failures, f"the table of {group[0].task}, {group[0].masking} masks"):
            paths += [path for path in plan.write(group) if path not in paths]
            plan.show(group)
    with _noted(failures, "the table of the paper's samples"):
        one = plan.groups[0][0]
        if found := samples.filling_cells(plan.workdir, one.protocol, one.preset, plan.seeds[0]):
            paths += samples.write(found, results_dir, quoted)
    with _noted(failures, "the page of claims"), files.held(results_dir):
        if real := claims.of_real_corpora(collect.read_cells(plan.workdir, "*/*")):
            paths.append(claims.write(real, results_dir))
            collect.write_index(results_dir)
    if report.is_possible():
        with _noted(failures, "the report"), files.held(results_dir):
            if every := collect.read_cells(plan.workdir, "*/*"):
                paths.append(report.write(every, results_dir))
    else:
        print(f"no report.html: {report.MISSING}", flush=True)
    if paths:
        print("\n" + "\n".join(["The tables:", *map(str, paths)]), flush=True)
    for failure in failures:
        print(failure, flush=True)
    return EXIT_FAILED if failures else 0


def prepared(values: FlagValues, names: Sequence[str]) -> Plan:
    """Returns the plan of the groups with these names, with their corpora loaded.

    Raises:
        FileNotFoundError: corpora are missing; the message names the groups whose corpora were found.
    """
    experiments, ours, missing = {}, {}, []
    for task, row in {row.task: row for name in names for row in GROUPS[name]}.items():
        try:
            experiment, ours[task] = experiments_.prepare(values, row)
            if flags.control(values) and "gan" in experiment.models:
                experiment = dataclasses.replace(experiment, control_in=paper.RACE)
            experiments[ours[task].corpus] = experiment
        except FileNotFoundError as error:
            missing.append(str(error))
    if missing:
        if found := ",".join(name for name in GROUPS if name in names and GROUPS[name][0].task in ours):
            missing.append(f"--only={found} runs the groups whose corpora were found")
        raise FileNotFoundError("; ".join(missing))
    groups = [
        [dataclasses.replace(ours[row.task].of_the_same_kind(row), masking=row.masking) for row in GROUPS[name]]
        for name in names
    ]
    return Plan(experiments, groups, flags.seeds(values), Path(values.results_dir))


def run_row(
    experiment: Experiment,
    setting: Setting,
    seed: int,
    around: Callable[[Cell], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> list[str]:
    """Runs the cells of one setting and seed and returns a message for each failure."""
    failures: list[str] = []
    with _noted(failures, f"{setting.title}, {setting.masking} masks, seed {seed}"):
        experiments_.run_setting(experiment, setting, seed, failures, around)
    return failures


def _run_in_parallel(plan: Plan, progress: Progress, count: int) -> list[str]:
    """Runs all settings, `count` at a time, and returns a message for each failure; rewrites the tables after each."""
    failures: list[str] = []
    calls = [(plan.experiments[setting.corpus], setting, seed) for setting, seed in plan.rows()]
    titles = [one.task if one.mask_rate is None else f"{100 * one.mask_rate:g}%/{one.blanks}" for one, _ in plan.rows()]
    print(progress.before(), flush=True)
    with contextlib.closing(jobs.run(run_row, calls, titles, count)) as done:
        for (_, setting, seed), result in done:
            failed: list[str] = []
            try:
                failed = result.result()
            except OSError as error:  # its process was killed
                failed = [f"{folder} failed: {error} (log: {folder / layout.LOG})"
                          for folder in plan.unfinished(setting, seed)]  # fmt: skip
                print(*failed, sep="\n", flush=True)
            failures += failed
            print(progress.after(plan.cells(setting, seed), learn=not failed), flush=True)
            with _noted([], "the tables so far"):
                for group in plan.groups:
                    plan.write(group)
    return failures


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_selection(values, tuple(GROUPS), DEFAULT_GROUPS, SMOKE_GROUPS)
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
