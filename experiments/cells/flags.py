"""All flags of the experiments, and `main`, which every experiment runs in: parses, runs, prints errors as one line.

Nothing heavy is imported here, so that `--help` and flag errors appear at once.
"""

import shlex
import sys
from collections.abc import Callable, Sequence

from absl import flags

from experiments.cells.setting import CONTROL, network_of
from experiments.tables.paper import MODELS
from text_infilling.configs.defaults import MAX_SEED
from text_infilling.configs.defaults import MODELS as TRAINED
from text_infilling.configs.presets import PRESETS as SIZES
from text_infilling.configs.protocols import PROTOCOLS, run_hparams
from text_infilling.masking.rules import MASKINGS
from text_infilling.utils import files
from text_infilling.utils.command import EXIT_BAD_FLAG, note, one_line, run_command

PRESETS = ("auto", *SIZES)

# Flags that are shorthands for a `--set`: they have no default and are applied before `--set`.
SHORTHANDS = {"epochs": "train.epochs", "batch_size": "train.batch_size", "beam_width": "decoding.beam_width"}

Run = Callable[[flags.FlagValues], int | None]
Define = Callable[[flags.FlagValues], None]


def define_common(values: flags.FlagValues, task: str) -> None:
    """Defines the flags of every command that trains.

    Args:
        values: receives the flags.
        task: a key of `protocols.TASKS`, or "all" for a command that runs several; its `--corpus=paper` means the
            corpus of each task.
    """
    flags.DEFINE_enum(
        "protocol",
        "paper",
        list(PROTOCOLS),
        "Details of model, training and decoding. paper: as the paper's text says; released: as the authors' code did.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "preset",
        "auto",
        PRESETS,
        "Model sizes and training schedule. full: the paper's; laptop: for 2 cores; smoke: a functional check on "
        "made-up sentences; auto: full with a GPU, otherwise laptop.",
        flag_values=values,
    )
    own = {"all": ("paper",), "prepositions": ("grimm",)}.get(task, (task,))
    flags.DEFINE_enum(
        "corpus", None, ("auto", *own, "synthetic"),
        "Which sentences. auto: the paper's if they are found or can be downloaded, otherwise synthetic (made up). "
        "Default: auto; for the preset smoke: synthetic.", flag_values=values,
    )  # fmt: skip
    flags.DEFINE_string(
        "data_dir",
        None,
        "Folder that contains yelp/, grimm/ and nba/ (only those that the command needs). Default: the cache, "
        "~/.cache/text_infilling or $TEXT_INFILLING_DATA; Yelp and raw texts are downloaded to it if missing.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "workdir", "runs", "Output folder; each cell (table entry) gets a run folder in it.", flag_values=values
    )
    flags.DEFINE_float(
        "budget", None,
        "Useful work of each cell's training in TFLOP, the same for all models; the epochs follow from it. Default: "
        "the preset's.", lower_bound=1e-6, flag_values=values,
    )  # fmt: skip
    flags.DEFINE_integer(
        "epochs",
        None,
        "Training epochs instead of a budget; for the GAN, pre-training epochs. Short for --set=train.epochs=N.",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer(
        "batch_size",
        None,
        "Sentences per training batch. Short for --set=train.batch_size=N. Default: the preset's.",
        lower_bound=1,
        flag_values=values,
    )
    define_beam_width(values)
    flags.DEFINE_boolean(
        "resume", True, "Resume an unfinished cell from its resume point; --noresume restarts it.", flag_values=values
    )
    flags.DEFINE_boolean(
        "overwrite", False, "Run a cell again from scratch even if it is finished.", flag_values=values
    )
    flags.DEFINE_boolean(
        "mixed_precision",
        False,
        "Train in bfloat16 instead of float32; slower on a CPU without avx512_bf16 in /proc/cpuinfo.",
        flag_values=values,
    )
    flags.DEFINE_multi_string(
        "set",
        [],
        "Set a hyperparameter, KEY=VALUE, e.g. schedule.peak=5e-4; see text_infilling/configs/defaults.py. Repeatable.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "models",
        ",".join(MODELS),
        f"Models to run, a comma-separated list of: {', '.join((*MODELS, CONTROL))}; template is the unfilled "
        f"template, {CONTROL} the GAN with gan.weight=0, a control.",
        flag_values=values,
    )
    flags.register_validator("models", _check_models, flag_values=values)


def define_setting(values: flags.FlagValues) -> None:
    """Defines the flags that select one row of the paper's table."""
    flags.DEFINE_float(
        "mask_rate", 0.4, "Fraction of the words of a sentence that are masked, in (0, 1).", flag_values=values
    )
    flags.register_validator("mask_rate", lambda rate: 0 < rate < 1, "must be between 0 and 1", flag_values=values)
    flags.DEFINE_integer("blanks", 2, "Blanks per sentence.", lower_bound=1, flag_values=values)
    flags.DEFINE_enum(
        "masking",
        "fixed",
        ["fixed", "random"],
        "How blanks are placed. fixed: by the length of the sentence, as in the paper's results; random: new places in "
        "each epoch.",
        flag_values=values,
    )
    _define_seed(values)


def define_masking(values: flags.FlagValues) -> None:
    """Defines the masking and seed of a task whose corpus comes with blanks."""
    flags.DEFINE_string(
        "masking", "pairs",
        f"Which words are masked: pairs (as in the authors' pairs of template and sentence), a rule ("
        f"{', '.join(MASKINGS)}), or a custom function, module:function.", flag_values=values,
    )  # fmt: skip
    flags.register_validator("masking", _check_masking, flag_values=values)
    _define_seed(values)


def define_selection(
    values: flags.FlagValues, groups: Sequence[str], default: Sequence[str], in_smoke: Sequence[str]
) -> None:
    """Defines the flags that select groups of cells and seeds, instead of one row.

    Args:
        values: receives the flags.
        groups: all groups.
        default: the groups that run by default.
        in_smoke: the groups that the preset smoke runs by default.
    """
    flags.DEFINE_string(
        "seeds", "1", "Comma-separated random seeds; every cell is run with each of them.", flag_values=values
    )
    flags.register_validator("seeds", _check_seeds, flag_values=values)
    flags.DEFINE_string(
        "only", None,
        f"Groups of table rows to run, a comma-separated list of: {', '.join(groups)}. Default: "
        f"{', '.join(default)}; for the preset smoke: {', '.join(in_smoke)}.",
        flag_values=values,
    )  # fmt: skip
    flags.register_validator("only", lambda text: text is None or _check_only(text, groups), flag_values=values)
    flags.DEFINE_integer(
        "jobs", None,
        "Number of settings (table rows) to run in parallel, each in a process with its share of the cores. Default: "
        "1; for the preset smoke: 2.",
        lower_bound=1, flag_values=values,
    )  # fmt: skip
    flags.DEFINE_boolean(
        "control", None, f"Also run {CONTROL}, the GAN with gan.weight=0, beside the GAN where this repository has "
        "results. Default: true; for the preset smoke: false.", flag_values=values,
    )  # fmt: skip
    _define_paper_tex(values)
    define_results_dir(values)


def define_results_dir(values: flags.FlagValues) -> None:
    """Defines `--results_dir`."""
    flags.DEFINE_string(
        "results_dir", "results", "Output folder of the tables (Markdown, LaTeX, CSV).", flag_values=values
    )


def define_cells(values: flags.FlagValues) -> None:
    """Defines `--cells`."""
    flags.DEFINE_string(
        "cells",
        "results/cells",
        "Folder that contains the folders of finished cells; also the --workdir of a command.",
        flag_values=values,
    )


def define_collect(values: flags.FlagValues) -> None:
    """Defines the flags of `experiments.collect`."""
    define_cells(values)
    define_results_dir(values)


def define_samples(values: flags.FlagValues) -> None:
    """Defines the flags of `experiments.samples`."""
    flags.DEFINE_string(
        "workdir",
        "runs",
        "Folder of the finished cells: the --workdir of the command that trained them.",
        flag_values=values,
    )
    flags.DEFINE_enum("protocol", "paper", list(PROTOCOLS), "Use cells of this protocol.", flag_values=values)
    flags.DEFINE_enum("preset", "laptop", PRESETS[1:], "Use cells of this preset.", flag_values=values)
    _define_seed(values)
    _define_paper_tex(values)
    define_results_dir(values)


def _define_paper_tex(values: flags.FlagValues) -> None:
    flags.DEFINE_string(
        "paper_tex",
        None,
        "LaTeX file of the paper, to show its own infills beside ours. Default: they are left out.",
        flag_values=values,
    )


def define_beam_width(values: flags.FlagValues) -> None:
    """Defines `--beam_width`."""
    flags.DEFINE_integer(
        "beam_width",
        None,
        "Beam width; 1 is greedy. Short for --set=decoding.beam_width=N. Default: the preset's or the cell's.",
        lower_bound=1,
        flag_values=values,
    )


def define_evaluate(values: flags.FlagValues) -> None:
    """Defines the flags of `experiments.evaluate`."""
    define_beam_width(values)
    flags.DEFINE_enum("split", "test", ["valid", "test"], "Split of the corpus to score.", flag_values=values)
    flags.DEFINE_boolean(
        "true_lengths", False, "Only fill the test sentences with the true number of words per infill, and write "
        "true_lengths.json to the cell; see `experiments.true_lengths`.", flag_values=values,
    )  # fmt: skip
    define_corpus_of_cell(values)


def define_corpus_of_cell(values: flags.FlagValues) -> None:
    """Defines the flags that find the corpus of a finished cell."""
    flags.DEFINE_string(
        "data_dir", None, "Folder of the corpus that the cell was trained with. Default: the one in its config.json.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_string(
        "masking", None, "The cell's masking; required only if it is a custom function, module:function.",
        flag_values=values,
    )  # fmt: skip


def models(values: flags.FlagValues) -> list[str]:
    """Returns the requested models in order, without duplicates."""
    return list(dict.fromkeys(name.strip() for name in values.models.split(",")))


def trained_models(values: flags.FlagValues) -> list[str]:
    """Returns the networks of the requested models that are trained, without duplicates."""
    return list(dict.fromkeys(network_of(name) for name in models(values) if name != "template"))


def seeds(values: flags.FlagValues) -> list[int]:
    """Returns the requested seeds in order."""
    return [int(seed) for seed in values.seeds.split(",")]


def jobs(values: flags.FlagValues) -> int:
    """Returns how many settings run in parallel: `--jobs`; by default 2 for `smoke` on two or more cores, else 1."""
    return values.jobs or (min(2, files.cores()) if values.preset == "smoke" else 1)


def control(values: flags.FlagValues) -> bool:
    """Returns whether to run the control beside the GAN: `--control`; by default not for `smoke`."""
    return values.preset != "smoke" if values.control is None else values.control


def groups(values: flags.FlagValues, known: Sequence[str], in_smoke: Sequence[str]) -> list[str]:
    """Returns the requested groups in order, without duplicates; by default all, or `in_smoke` for `smoke`."""
    if values.only is None:
        return list(in_smoke if values.preset == "smoke" else known)
    return list(dict.fromkeys(name.strip() for name in values.only.split(",")))


def corpus_name(values: flags.FlagValues) -> str:
    """Returns the requested corpus: `--corpus`, or the preset's default."""
    return values.corpus or ("synthetic" if values.preset == "smoke" else "auto")


def assignments(values: flags.FlagValues) -> list[str]:
    """Returns the `key=value` assignments in the order they apply: the given shorthands, then each `--set`."""
    short = [f"{key}={values[name].value}" for name, key in SHORTHANDS.items() if values[name].value is not None]
    return short + list(values["set"].value)


def parse(arguments: Sequence[str], define: Define, positional: Sequence[str] = ()) -> flags.FlagValues:
    """Returns validated flag values; `positional` arguments are stored under their names in lower case.

    Raises:
        flags.Error: an unknown flag, an invalid value, an unknown hyperparameter in `--set`, or the wrong number of
            positional arguments.
    """
    values = flags.FlagValues()
    flags.DEFINE_boolean("help", False, "Show this help.", short_name="h", flag_values=values)
    define(values)
    rest = values(["", *arguments])[1:]
    if values.help:
        return values
    if len(rest) != len(positional):
        raise flags.Error(f"expected {' '.join(positional) or 'flags only'}. Received: {shlex.join(rest) or 'nothing'}")
    for name, value in zip(positional, rest, strict=True):
        flags.DEFINE_string(name.lower(), value, f"The argument {name}.", flag_values=values)
    if "set" in values:
        if values.budget is not None and any(each.startswith("train.epochs") for each in assignments(values)):
            raise flags.Error("--budget determines the epochs: omit --epochs and --set=train.epochs, or --budget")
        try:  # All presets have the same keys, so any of them can check the keys for `auto`.
            preset = "laptop" if values.preset == "auto" else values.preset
            models_ = trained_models(values) or TRAINED
            for model in models_:
                run_hparams(values.protocol, preset, assignments(values), model=model, models=models_)
        except ValueError as error:
            raise flags.Error(str(error)) from error
    return values


def main(run: Run, define: Define, doc: str, positional: Sequence[str] = ()) -> None:
    """Parses the command line, runs, and exits: 2 for a flag error, otherwise with the codes of `run_command`."""
    try:
        values = parse(sys.argv[1:], define, positional)
    except flags.Error as error:
        note(f"error: {one_line(error)}")
        sys.exit(EXIT_BAD_FLAG)

    def function():
        if not values.help:
            return run(values)
        print(f"{doc.strip()}\n\nFlags:\n{values.get_help()}", flush=True)

    run_command(function, _how_to_resume(values))


def _define_seed(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "seed",
        1,
        "Random seed of weights, batches and dropout.",
        lower_bound=0,
        upper_bound=MAX_SEED,
        flag_values=values,
    )


def _check_masking(name: str) -> bool:
    if name not in ("pairs", *MASKINGS) and not all(name.partition(":")):
        raise flags.ValidationError(f"expected pairs, {', '.join(MASKINGS)} or module:function")
    return True


def _check_models(text: str) -> bool:
    for name in text.split(","):
        if name.strip() not in (known := (*MODELS, CONTROL)):
            raise flags.ValidationError(f"unknown model {name.strip()!r}, expected one of: {', '.join(known)}")
    return True


def _check_seeds(text: str) -> bool:
    seeds_ = [seed.strip() for seed in text.split(",")]
    if not all(seed.isdecimal() and int(seed) <= MAX_SEED for seed in seeds_):
        raise flags.ValidationError(f"expected whole numbers from 0 to {MAX_SEED}, e.g. 1,2,3")
    if len(set(map(int, seeds_))) < len(seeds_):
        raise flags.ValidationError("expected each seed once")
    return True


def _check_only(text: str, groups_: Sequence[str]) -> bool:
    for name in text.split(","):
        if name.strip() not in groups_:
            raise flags.ValidationError(f"unknown group {name.strip()!r}, expected one of: {', '.join(groups_)}")
    return True


def _how_to_resume(values: flags.FlagValues) -> str:
    """Returns how to resume an interrupted run: the same command without the flags that would restart it."""
    restarting = [flag for name, flag, on in (("overwrite", "--overwrite", True), ("resume", "--noresume", False))
                  if name in values and values[name].value is on]  # fmt: skip
    return f"the same command{' without ' + ' and '.join(restarting) if restarting else ''} resumes where it stopped"
