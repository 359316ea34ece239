"""What all experiments share: loads the corpus and vocabulary, runs the cells of a setting, prints the table."""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from absl.flags import FlagValues

from experiments.cells import cell as cells
from experiments.cells import flags, record
from experiments.cells.setting import CONTROL, CONTROL_ASSIGNMENT, Cell, Setting, network_of
from experiments.tables import formats, paper
from experiments.tables.outputs import outputs_of
from experiments.tables.table import Result, Table
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import budget_of
from text_infilling.configs.protocols import run_hparams
from text_infilling.masking import masked_lines
from text_infilling.runs import layout
from text_infilling.utils import files
from text_infilling.utils.progress import duration

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.corpora.corpus import Corpus

HUMAN = "human.json"  # mean score of a cell's infills, written by `experiments.human_eval import`


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The configuration with which a command runs cells of one corpus.

    Attributes:
        inputs: what the cells share; `cell_inputs` replaces its hyperparameters for each cell.
        models: the models to run.
        assignments: overrides of hyperparameters, each `key=value`; one of `train.epochs` replaces the budget.
        budget: useful work of each cell in TFLOP; None: that of the preset, if it has one.
        control_in: the paper's settings in which `CONTROL` runs too.
        measured: estimated seconds of training by setting and model, filled by `estimate`.
    """

    inputs: cells.Inputs
    models: list[str]
    assignments: list[str]
    budget: float | None = None
    control_in: Sequence[Setting] = ()
    measured: dict[tuple[Setting, str], float] = dataclasses.field(default_factory=dict)

    def cell_inputs(self, cell: Cell) -> cells.Inputs:
        """Returns `inputs` with the hyperparameters for a cell's model and number of blanks."""
        if cell.model == "template":  # it depends only on the vocabulary
            hparams = {"train": {"min_count": self.inputs.hparams["train"]["min_count"]}}
            return dataclasses.replace(self.inputs, hparams=hparams)
        one, trained = cell.setting, [network_of(model) for model in self.models if model != "template"]
        assignments = [*self.assignments, *([CONTROL_ASSIGNMENT] if cell.model == CONTROL else [])]
        hparams = run_hparams(one.protocol, one.preset, assignments, cell.network, trained, one.task)
        budget = self.budget or budget_of(one.preset, one.task, one.blanks)
        if any(assignment.partition("=")[0].strip() == "train.epochs" for assignment in assignments):
            budget = None
        return dataclasses.replace(self.inputs, hparams=hparams, budget=budget)

    def cells(self, setting: Setting, seed: int) -> list[Cell]:
        """Returns the cells of a setting: one per model, and the control if it belongs to the setting."""
        row = paper.row_of(setting)
        controls = [CONTROL] if row in self.control_in and setting.masking == row.masking else []
        return [Cell(setting, model, seed) for model in dict.fromkeys([*self.models, *controls])]

    def folder(self, cell: Cell) -> Path:
        """Returns the folder of a cell."""
        return cell.folder(self.inputs.workdir)


def prepare(values: FlagValues, row: Setting) -> tuple[Experiment, Setting]:
    """Loads what the flags request and prints it: preset, hyperparameters, corpus and vocabulary.

    Args:
        values: the flags of the command.
        row: a setting of the paper, with the masking that the command uses.

    Returns:
        The experiment, and `row` with the corpus, blanks, protocol and preset that the flags select.

    Raises:
        OSError: the corpus is missing, or `--workdir` cannot be written.
        ValueError: an unknown hyperparameter, or a corpus that does not fit the masking.
    """
    task = row.task
    workdir = Path(values.workdir)
    # The fastest checks come first; importing TensorFlow, which takes seconds, last.
    files.make_folder(workdir, "--workdir")

    corpus = load_corpus(task, flags.corpus_name(values), row.masking, values.data_dir)
    from text_infilling.vocabulary import Vocabulary

    preset = choose_preset(values.preset)
    trained = flags.trained_models(values) or MODELS
    # For any model: the keys read here are shared by all.
    hparams = run_hparams(
        values.protocol, preset, flags.assignments(values), model=trained[0], models=trained, task=task
    )
    if corpus.name.endswith("synthetic") and values.data_dir is not None:
        if not Path(values.data_dir).is_dir():
            raise FileNotFoundError(
                f"--data_dir={values.data_dir} does not exist (the synthetic corpus does not need it: see --corpus)"
            )
        print("note: --data_dir is ignored, the corpus is synthetic (see --corpus)", flush=True)
    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), hparams["train"]["min_count"])
    print(f"protocol {values.protocol}, preset {preset}, corpus {corpus.name} ({corpus.source})", flush=True)
    inputs = cells.Inputs(
        corpus=corpus,
        vocabulary=vocabulary,
        hparams=hparams,
        workdir=workdir,
        data_dir=None if values.data_dir is None else str(Path(values.data_dir).absolute()),
        resume=values.resume,
        overwrite=values.overwrite,
        mixed_precision=values.mixed_precision,
    )
    setting = dataclasses.replace(
        row, corpus=corpus.name, blanks=corpus.blanks or row.blanks, protocol=values.protocol, preset=preset
    )
    return Experiment(inputs, flags.models(values), flags.assignments(values), values.budget), setting


def load_corpus(task: str, name: str, masking: str, data_dir: str | None) -> "Corpus":
    """Returns the corpus of a task, given its name or the value of `--corpus`; prints warnings about it."""

    def warn(text: str) -> None:
        print(f"warning: {text}", flush=True)

    if task == "yelp":
        from text_infilling.corpora import corpus

        return corpus.load_corpus("yelp" if name == "paper" else name, data_dir, log=warn)
    from text_infilling.corpora import masked_corpora

    if name.endswith("synthetic"):
        name = "synthetic"
    elif name != "auto":
        name = masked_corpora.SOURCES[task].folder
    return masked_corpora.load_corpus(task, name, masking, data_dir, log=warn, say=functools.partial(print, flush=True))


def command(row: Setting) -> tuple[flags.Run, flags.Define]:
    """Returns `run` and `define_flags` of a command for a setting of the paper whose corpus comes with blanks."""

    def run(values: FlagValues) -> None:
        run_and_show(values, dataclasses.replace(row, masking=values.masking))

    def define_flags(values: FlagValues) -> None:
        flags.define_masking(values)
        flags.define_common(values, row.task)

    return run, define_flags


def run_and_show(values: FlagValues, row: Setting) -> None:
    """Runs the cells of a setting with the seed `--seed` and prints the table and three filled sentences."""
    experiment, setting = prepare(values, row)
    corpus = experiment.inputs.corpus
    results = run_setting(experiment, setting, values.seed)
    table = Table([setting], results, (values.seed,), corpus.source, corpus.note)
    print(f"\n{formats.text(table)}", flush=True)
    show_samples(experiment, table)


def choose_preset(preset: str) -> str:
    """Returns `preset`; for `auto`, `full` if TensorFlow finds a GPU and `laptop` otherwise."""
    if preset != "auto":
        return preset
    import tensorflow as tf

    return "full" if tf.config.list_physical_devices("GPU") else "laptop"


def run_setting(
    experiment: Experiment,
    setting: Setting,
    seed: int,
    failures: list[str] | None = None,
    around: Callable[[Cell], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> dict[Cell, Result]:
    """Runs the cells of one row of the table and returns their results; first prints the data report and an estimate.

    Args:
        experiment: the configuration.
        setting: the row.
        seed: the seed of all cells.
        failures: if given, a failed cell is appended here with its log and the other cells still run.
        around: returns the context in which a cell runs.

    Raises:
        ValueError, OSError: a cell failed and `failures` is not given.
    """
    todo = experiment.cells(setting, seed)
    _report(experiment, setting)
    _print_time(experiment, todo)
    results = {}
    for cell in todo:
        inputs = experiment.cell_inputs(cell)
        try:
            with around(cell):
                metrics = cells.run_cell(cell, inputs)
            config = cells.cell_config(cell, inputs)
            results[cell] = result_of(experiment.folder(cell), cell, config, metrics)
        except Exception as error:
            if failures is None:
                raise
            log = experiment.folder(cell) / layout.LOG
            failures.append(f"{cell.folder('')} failed: {' '.join(str(error).split())} (log: {log})")
            print(failures[-1], flush=True)
        finally:
            _free_memory()
    return results


def result_of(folder: Path, cell: Cell, config: dict, metrics: Mapping[str, float]) -> Result:
    """Returns the result of a finished cell, given its folder, config and metrics."""
    trained = None if cell.model == "template" else record.read(folder, config)
    if (human := folder / HUMAN).exists():
        metrics = {**metrics, "human": files.read_object(human, "human")["human"]}
    return Result(metrics, cells.changed(cell, config), trained, outputs_of(folder / layout.PREDICTIONS))


def estimate(experiment: Experiment, cell: Cell) -> float:
    """Returns the estimated seconds of training a cell on this machine; 0 if it is finished or has no model.

    Cells that differ in their seed only are measured once.
    """
    inputs = experiment.cell_inputs(cell)
    if cell.model == "template" or (cells.is_finished(cell.folder(inputs.workdir)) and not inputs.overwrite):
        return 0.0
    from text_infilling.training.estimate import estimate_seconds

    of_any_seed = (cell.setting, cell.model)
    if of_any_seed not in experiment.measured:
        print(f"estimating the time of {cell.model}, {cell.setting.title}", flush=True)
        task = cells.make_task(cell, inputs.corpus, inputs.vocabulary)
        plan = cells.plan(cell, task, inputs)
        experiment.measured[of_any_seed] = estimate_seconds(task, inputs.hparams, plan, cell.network)
    return experiment.measured[of_any_seed]


def samples(folder: Path, count: int = 3) -> str:
    """Returns the first filled test sentences of a finished cell as text: template, infills in brackets, truth."""
    lines = []
    for prediction in cells.read_predictions(folder, count):
        template = prediction["template"]
        lines += [
            f"template  {template}",
            f"filled    {masked_lines.filled(template, prediction['infill'])}",
            f"truth     {masked_lines.filled(template, prediction['answer'])}",
            "",
        ]
    return "\n".join(lines).rstrip()


def show_samples(experiment: Experiment, table: Table) -> None:
    """Prints three filled sentences of the first setting on which a model was run, preferably self-attention."""
    for setting in table.settings:
        for model in reversed(paper.MODELS):
            for seed in list(table.of_model(setting, model))[:1]:
                folder = experiment.folder(Cell(setting, model, seed))
                if (folder / layout.PREDICTIONS).exists():
                    print(f"\nFilled by {model} ({setting.corpus}):\n\n{samples(folder)}", flush=True)
                    return


def _report(experiment: Experiment, setting: Setting) -> None:
    """Prints the data report of the corpus and saves it in `WORKDIR/CORPUS/data/`."""
    from text_infilling.data.report import data_report, format_report, save_report

    inputs = experiment.inputs
    report = data_report(
        inputs.corpus,
        inputs.vocabulary,
        setting.mask_rate,
        setting.blanks,
        setting.masking,
        inputs.hparams["train"]["min_count"],
    )
    folder = inputs.workdir / inputs.corpus.name / "data" / setting.blanks_name
    files.make_folder(folder, "--workdir")
    save_report(report, folder)
    print(f"\n{format_report(report)}\n", flush=True)


def _print_time(experiment: Experiment, todo: list[Cell]) -> None:
    """Prints the estimated time of the cells that still have to be trained."""
    seconds = {cell.model: estimate(experiment, cell) for cell in todo}
    training = [model for model in seconds if seconds[model]]
    if training:
        names, time = ", ".join(training), duration(sum(seconds.values()))
        print(f"training {names} with preset {todo[0].setting.preset} takes about {time}", flush=True)


def _free_memory() -> None:
    """Frees the graphs of a finished cell, which Keras would keep alive."""
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()  # collects garbage too
