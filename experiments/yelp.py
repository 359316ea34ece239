"""Fills the blanks of Yelp reviews with one mask rate and number of blanks, and prints the row beside the paper's.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Varying Mask Rates and #Blanks" and its appendix. It prints:

Mask rate  Blanks  Metric      Template  Seq2Seq      GAN  Self-attn
      30%       1  BLEU          63.916   69.097   68.470     71.104
      30%       1  Perplexity         -  107.480  144.127     38.304
      30%       1  Human Eval         -    1.950    1.775      2.275
      30%       2  BLEU          42.233   64.174   64.337     65.914
      30%       2  Perplexity         -   43.044   36.704     21.028
      30%       2  Human Eval         -    1.838    1.975      2.188
      40%       1  BLEU          56.838   61.309   61.778     63.543
      40%       1  Perplexity         -  202.714  230.569     44.864
      40%       1  Human Eval         -    2.075    1.865      2.055
      40%       2  BLEU          38.279   55.460   55.326     59.192
      40%       2  Perplexity         -   59.877   70.195     25.914
      40%       2  Human Eval         -    2.005    1.900      2.045
      50%       1  BLEU          44.369   48.865   48.861      51.55
      50%       1  Perplexity         -  244.862  287.415     43.688
      50%       1  Human Eval         -    1.725    1.863      2.412
      50%       2  BLEU          32.498   42.613   42.535     44.418
      50%       2  Perplexity         -   99.421  107.558     32.397
      50%       2  Human Eval         -    1.875    1.913      2.238

Command:
    python -m experiments.yelp --mask_rate=0.4 --blanks=2 --data_dir=FOLDER_THAT_HOLDS_yelp/

Expected: BLEU of Template as printed (to 0.1, it depends on the vocabulary). With the preset laptop, seed 1 and the
stand-in train file: at 50% and one blank BLEU 49.8 and perplexity 51.6 for Seq2Seq, 51.1 and 43.6 for Self-attn; at 40%
and two 57.9 and 23.8 for Self-attn.
Duration on 2 slow cores: preset laptop 24 minutes for Self-attn with one blank, 44 with two, 26 for Seq2Seq with one;
GAN is not timed yet; smoke (made-up sentences) 3.5 minutes. The preset full has the paper's sizes and wants a GPU.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import cell as cells
from experiments import files, flags, tables
from text_infilling.training.protocols import MODELS, run_hparams


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What a command runs its cells with.

    Attributes:
        inputs: what the cells share; its hyperparameters are those of `cell_inputs`.
        models: which are run.
        masking, protocol, preset, seed: as in `Cell`; the preset is never `auto`.
        assignments: of single hyperparameters, `key=value`.
    """

    inputs: cells.Inputs
    models: list[str]
    masking: str
    protocol: str
    preset: str
    seed: int
    assignments: list[str]

    def cell_inputs(self, cell: cells.Cell) -> cells.Inputs:
        """The inputs with the hyperparameters of a cell's model and number of blanks."""
        if cell.model == "template":  # it depends on the vocabulary alone
            hparams = {"train": {"min_count": self.inputs.hparams["train"]["min_count"]}}
        else:
            trained = [model for model in self.models if model in MODELS]
            hparams = run_hparams(self.protocol, self.preset, self.assignments, cell.blanks, cell.model, trained)
        return dataclasses.replace(self.inputs, hparams=hparams)

    def cell(self, mask_rate: float, blanks: int, model: str) -> cells.Cell:
        """The name of one cell."""
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
        """A table of these cells."""
        corpus = self.inputs.corpus
        return tables.Table(
            corpus.name, corpus.source, corpus.note, self.masking, self.protocol, self.preset, (self.seed,), settings
        )


def prepare(values, masking: str, seed: int) -> Experiment:
    """Everything that the flags ask for, found and said: preset, hyperparameters, corpus and vocabulary."""
    workdir = Path(values.workdir)
    # What is soonest found to be wrong comes first; TensorFlow, which takes seconds, last.
    files.make_folder(workdir, "--workdir")

    from text_infilling.data.corpora import load_corpus

    corpus = load_corpus(
        flags.corpus_name(values), values.data_dir, log=lambda warning: print(f"warning: {warning}", flush=True)
    )
    from text_infilling.vocabulary import Vocabulary

    preset = choose_preset(values.preset)
    trained = flags.trained_models(values) or MODELS
    # Of whatever model: all share what is read of it here.
    hparams = run_hparams(values.protocol, preset, flags.assignments(values), model=trained[0], models=trained)
    if corpus.name == "synthetic" and values.data_dir is not None:
        if not Path(values.data_dir).is_dir():
            raise FileNotFoundError(f"--data_dir={values.data_dir} does not exist (nor is it read: see --corpus)")
        print("note: --data_dir is not read, the corpus is the synthetic one (--corpus=yelp reads it)", flush=True)
    with open(corpus.train, encoding="utf-8") as lines:
        vocabulary = Vocabulary.build(lines, hparams["train"]["min_count"])
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
        jit_compile=values.jit_compile,
    )
    return Experiment(
        inputs,
        models=flags.models(values),
        masking=masking,
        protocol=values.protocol,
        preset=preset,
        seed=seed,
        assignments=flags.assignments(values),
    )


def choose_preset(preset: str) -> str:
    """`preset`, or for `auto` the one that fits this machine: `full` where TensorFlow sees a GPU, else `laptop`."""
    if preset != "auto":
        return preset
    import tensorflow as tf

    return "full" if tf.config.list_physical_devices("GPU") else "laptop"


def run_setting(
    experiment: Experiment,
    mask_rate: float,
    blanks: int,
    failures: list[str] | None = None,
    around: Callable[[cells.Cell], contextlib.AbstractContextManager] = contextlib.nullcontext,
) -> tables.Setting:
    """Our results of one row of the table; says the data report and the time it takes first.

    Args:
        experiment: what to run with.
        mask_rate, blanks: the row.
        failures: where given, a cell that fails is noted here with its log and the others are still run.
        around: makes the context that a cell is run in.
    """
    todo = [experiment.cell(mask_rate, blanks, model) for model in experiment.models]
    _report(experiment, mask_rate, blanks)
    _say_time(experiment, todo)
    results = {}
    for cell in todo:
        try:
            with around(cell):
                results[cell.model] = {cell.seed: cells.run_cell(cell, experiment.cell_inputs(cell))}
        except Exception as error:
            if failures is None:
                raise
            log = cell.folder(experiment.inputs.workdir) / cells.LOG
            failures.append(f"{cell.folder('')} failed: {' '.join(str(error).split())} (log: {log})")
            print(failures[-1], flush=True)
        finally:
            _free_memory()
    return tables.Setting(mask_rate, blanks, results)


def estimate(experiment: Experiment, cell: cells.Cell) -> float:
    """About how many seconds the training of a cell takes here; 0 where it is finished or has nothing to learn."""
    inputs = experiment.cell_inputs(cell)
    if cell.model == "template" or (cells.is_finished(cell.folder(inputs.workdir)) and not inputs.overwrite):
        return 0.0
    from text_infilling.training.trainer import estimate_seconds

    task = cells.make_task(cell, inputs.corpus, inputs.vocabulary)
    return estimate_seconds(task, inputs.hparams, cell.model)


def samples(folder: Path, count: int = 3) -> str:
    """The first filled test sentences of a finished cell, for reading: template, infills in brackets, truth."""
    lines = []
    for prediction in cells.read_predictions(folder, count):
        template = prediction["template"]
        lines += [
            f"template  {template}",
            f"filled    {fill(template, prediction['infill'])}",
            f"truth     {fill(template, prediction['answer'])}",
            "",
        ]
    return "\n".join(lines).rstrip()


def fill(template: str, infills: list[str]) -> str:
    """The template with each `<m>` replaced by its infill in brackets, e.g. `i live [down the street] .`"""
    remaining = iter(infills)
    return " ".join(f"[{next(remaining, token)}]" if token == "<m>" else token for token in template.split())


def show(experiment: Experiment, table: tables.Table) -> None:
    """Prints the table, and three filled sentences of the first setting that a model was run on."""
    print(f"\n{tables.text(table)}", flush=True)
    for setting in table.settings:
        for model, by_seed in reversed(setting.results.items()):  # the last column is the paper's own model
            seeded = dataclasses.replace(experiment, masking=table.masking, seed=min(by_seed))
            folder = seeded.cell(setting.mask_rate, setting.blanks, model).folder(experiment.inputs.workdir)
            if (folder / cells.PREDICTIONS).exists():
                print(f"\nFilled by {model} ({experiment.inputs.corpus.name}):\n\n{samples(folder)}", flush=True)
                return


def run(values) -> None:
    """Runs the row that the flags name and prints it."""
    experiment = prepare(values, values.masking, values.seed)
    show(experiment, experiment.table([run_setting(experiment, values.mask_rate, values.blanks)]))


def define_flags(values) -> None:
    """Defines the flags of this command."""
    flags.define_setting(values)
    flags.define_common(values)


def _report(experiment: Experiment, mask_rate: float, blanks: int) -> None:
    """Prints what the corpus is made of and saves it in `WORKDIR/CORPUS/data/`."""
    from text_infilling.data.report import data_report, format_report, save_report

    inputs = experiment.inputs
    report = data_report(
        inputs.corpus, inputs.vocabulary, mask_rate, blanks, experiment.masking, inputs.hparams["train"]["min_count"]
    )
    name = f"{experiment.masking}.rate{mask_rate!r}.blanks{blanks}"
    folder = inputs.workdir / inputs.corpus.name / "data" / name
    files.make_folder(folder, "--workdir")
    save_report(report, folder)
    print(f"\n{format_report(report)}\n", flush=True)


def _say_time(experiment: Experiment, todo: list[cells.Cell]) -> None:
    """Says how long the cells will take that are still to be trained."""
    seconds = {cell.model: estimate(experiment, cell) for cell in todo}
    training = [model for model in seconds if seconds[model]]
    if training:
        names, time = ", ".join(training), duration(sum(seconds.values()))
        print(f"training {names} with preset {experiment.preset} takes about {time}", flush=True)


def _free_memory() -> None:
    """Lets go of the graphs of a cell that has run, which Keras would keep for the next ones."""
    if "keras" in sys.modules:
        sys.modules["keras"].utils.clear_session()  # collects garbage too


def duration(seconds: float) -> str:
    """E.g. `25 min` or `3.5 h`."""
    return f"{max(1, round(seconds / 60))} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
