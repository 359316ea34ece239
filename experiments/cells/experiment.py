"""What all experiments share: loads the corpus and vocabulary, runs the cells of a setting, prints the table."""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.cells import cell as cells
from experiments.cells import flags, record
from experiments.tables import paper, tables
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.masking import masked_lines
from text_infilling.runs import layout
from text_infilling.utils import files
from text_infilling.utils.progress import duration


@dataclasses.dataclass(frozen=True)
class Experiment:
    """The configuration with which a command runs its cells.

    Attributes:
        task: one of `paper.TASKS`.
        inputs: what the cells share; `cell_inputs` replaces its hyperparameters for each cell.
        models: the models to run.
        masking, protocol, preset, seed: as in `Cell`; the preset is never `auto`.
        assignments: overrides of hyperparameters, each `key=value`.
    """

    task: str
    inputs: cells.Inputs
    models: list[str]
    masking: str
    protocol: str
    preset: str
    seed: int
    assignments: list[str]

    def cell_inputs(self, cell: cells.Cell) -> cells.Inputs:
        """Returns `inputs` with the hyperparameters for a cell's model and number of blanks."""
        if cell.model == "template":  # it depends only on the vocabulary
            hparams = {"train": {"min_count": self.inputs.hparams["train"]["min_count"]}}
        else:
            trained = [model for model in self.models if model in MODELS]
            hparams = run_hparams(
                self.protocol, self.preset, self.assignments, cell.blanks, cell.model, trained, self.task
            )
        return dataclasses.replace(self.inputs, hparams=hparams)

    def cell(self, mask_rate: float | None, blanks: int, model: str) -> cells.Cell:
        """Returns the name of one cell."""
        return cells.Cell(
            corpus=self.inputs.corpus.name,
            masking=self.masking,
            mask_rate=mask_rate,
            blanks=blanks,
            model=model,
            protocol=self.protocol,
            preset=self.preset,
            seed=self.seed,
        )

    def table(self, settings: Sequence[tables.Setting]) -> tables.Table:
        """Returns a table of settings that this experiment ran."""
        corpus = self.inputs.corpus
        return tables.Table(
            tables.family(corpus.name),
            corpus.source,
            corpus.note,
            self.masking,
            self.protocol,
            self.preset,
            (self.seed,),
            settings,
        )


def prepare(values, task: str, masking: str, seed: int) -> Experiment:
    """Loads what the flags request and prints it: preset, hyperparameters, corpus and vocabulary."""
    workdir = Path(values.workdir)
    # The fastest checks come first; importing TensorFlow, which takes seconds, last.
    files.make_folder(workdir, "--workdir")

    corpus = load_corpus(task, flags.corpus_name(values), masking, values.data_dir)
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
    return Experiment(
        task,
        inputs,
        models=flags.models(values),
        masking=masking,
        protocol=values.protocol,
        preset=preset,
        seed=seed,
        assignments=flags.assignments(values),
    )


def load_corpus(task: str, name: str, masking: str, data_dir: str | None):
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


def command(task: str) -> tuple[flags.Run, flags.Define]:
    """Returns `run` and `define_flags` of a command for a task whose corpus comes with blanks."""

    def run(values) -> None:
        prepared = prepare(values, task, values.masking, values.seed)
        show(prepared, [run_setting(prepared, None, prepared.inputs.corpus.blanks)])

    def define_flags(values) -> None:
        flags.define_masking(values)
        flags.define_common(values, task)

    return run, define_flags


def choose_preset(preset: str) -> str:
    """Returns `preset`; for `auto`, `full` if TensorFlow finds a GPU and `laptop` otherwise."""
    if preset != "auto":
        return preset
    import tensorflow as tf

    return "full" if tf.config.list_physical_devices("GPU") else "laptop"


def run_setting(
    experiment: Experiment,
    mask_rate: float | None,
    blanks: int,
    failures: list[str] | None = None,
    around: Callable[[cells.Cell], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> tables.Setting:
    """Runs the cells of one row of the table and returns our results; first prints the data report and an estimate.

    Args:
        experiment: the configuration.
        mask_rate, blanks: the row.
        failures: if given, a failed cell is appended here with its log and the other cells still run.
        around: returns the context in which a cell runs.
    """
    todo = [experiment.cell(mask_rate, blanks, model) for model in experiment.models]
    _report(experiment, mask_rate, blanks)
    _say_time(experiment, todo)
    results, changed, trained = {}, {}, {}
    for cell in todo:
        inputs = experiment.cell_inputs(cell)
        try:
            with around(cell):
                results[cell.model] = {cell.seed: cells.run_cell(cell, inputs)}
            config = cells.cell_config(cell, inputs)
            if changes := cells.changed(cell, config):
                changed[cell.model] = changes
            if cell.model != "template":
                trained[cell.model] = {cell.seed: record.read(cell.folder(inputs.workdir), config)}
        except Exception as error:
            if failures is None:
                raise
            log = cell.folder(experiment.inputs.workdir) / layout.LOG
            failures.append(f"{cell.folder('')} failed: {' '.join(str(error).split())} (log: {log})")
            print(failures[-1], flush=True)
        finally:
            _free_memory()
    return tables.Setting(mask_rate, blanks, results, experiment.task, changed, trained)


def estimate(experiment: Experiment, cell: cells.Cell) -> float:
    """Returns the estimated seconds of training a cell on this machine; 0 if it is finished or has no model."""
    inputs = experiment.cell_inputs(cell)
    if cell.model == "template" or (cells.is_finished(cell.folder(inputs.workdir)) and not inputs.overwrite):
        return 0.0
    from text_infilling.training.estimate import estimate_seconds

    task = cells.make_task(cell, inputs.corpus, inputs.vocabulary)
    return estimate_seconds(task, inputs.hparams, cell.model)


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


def show(experiment: Experiment, settings: Sequence[tables.Setting]) -> None:
    """Prints the table of settings, then three filled sentences of the first setting on which a model was run."""
    print(f"\n{tables.text(experiment.table(settings))}", flush=True)
    show_samples(experiment, settings)


def show_samples(experiment: Experiment, settings: Sequence[tables.Setting]) -> None:
    """Prints three filled sentences of the first setting on which a model was run."""
    for setting in settings:
        for model in reversed([name for name in paper.MODELS if name in setting.results]):  # the paper's model first
            seeded = dataclasses.replace(experiment, seed=min(setting.results[model]))
            folder = seeded.cell(setting.mask_rate, setting.blanks, model).folder(experiment.inputs.workdir)
            if (folder / layout.PREDICTIONS).exists():
                print(f"\nFilled by {model} ({experiment.inputs.corpus.name}):\n\n{samples(folder)}", flush=True)
                return


def _report(experiment: Experiment, mask_rate: float | None, blanks: int) -> None:
    """Prints the data report of the corpus and saves it in `WORKDIR/CORPUS/data/`."""
    from text_infilling.data.report import data_report, format_report, save_report

    inputs = experiment.inputs
    report = data_report(
        inputs.corpus, inputs.vocabulary, mask_rate, blanks, experiment.masking, inputs.hparams["train"]["min_count"]
    )
    name = cells.setting_name(experiment.masking, mask_rate, blanks)
    folder = inputs.workdir / inputs.corpus.name / "data" / name
    files.make_folder(folder, "--workdir")
    save_report(report, folder)
    print(f"\n{format_report(report)}\n", flush=True)


def _say_time(experiment: Experiment, todo: list[cells.Cell]) -> None:
    """Prints the estimated time of the cells that still have to be trained."""
    seconds = {cell.model: estimate(experiment, cell) for cell in todo}
    training = [model for model in seconds if seconds[model]]
    if training:
        names, time = ", ".join(training), duration(sum(seconds.values()))
        print(f"training {names} with preset {experiment.preset} takes about {time}", flush=True)


def _free_memory() -> None:
    """Frees the graphs of a finished cell, which Keras would keep alive."""
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()  # collects garbage too
