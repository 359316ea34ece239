"""All flags of the experiments, and the frame every experiment runs in: parse, run, one line for what went wrong.

Nothing heavy is imported here, so that `--help` and a bad flag answer at once.
"""

import os
import shlex
import sys
from collections.abc import Callable, Sequence

from absl import flags

from experiments.paper import MODELS
from text_infilling import command, files
from text_infilling.command import EXIT_BAD_FLAG, EXIT_FAILED
from text_infilling.maskers import MASKINGS
from text_infilling.training.protocols import MAX_SEED, PROTOCOLS, run_hparams
from text_infilling.training.protocols import MODELS as TRAINED
from text_infilling.training.protocols import PRESETS as SIZES

PRESETS = ("auto", *SIZES)

# Flags that are only a shorter way to write a `--set`: they have no default and are applied before it.
SHORTHANDS = {"epochs": "train.epochs", "batch_size": "train.batch_size", "beam_width": "decoding.beam_width"}

Run = Callable[[flags.FlagValues], int | None]
Define = Callable[[flags.FlagValues], None]


def define_common(values: flags.FlagValues, task: str) -> None:
    """Defines what every command that trains takes.

    Args:
        values: get the flags.
        task: of `protocols.TASKS`; "all" where a command runs several, and `paper` names the corpus of each.
    """
    flags.DEFINE_enum(
        "protocol", "paper", list(PROTOCOLS), "The paper's text or its authors' code.", flag_values=values
    )
    flags.DEFINE_enum(
        "preset", "auto", PRESETS, "Sizes and schedule; auto: full with a GPU, else laptop.", flag_values=values
    )
    own = {"all": ("paper",), "prepositions": ("grimm",)}.get(task, (task,))
    flags.DEFINE_enum(
        "corpus", None, ("auto", *own, "synthetic"),
        "Sentences; auto: the paper's where they can be had. Default: auto, for smoke synthetic.", flag_values=values,
    )  # fmt: skip
    flags.DEFINE_string("data_dir", None, "Folder that holds yelp/, grimm/ and nba/.", flag_values=values)
    flags.DEFINE_string("workdir", "runs", "Folder that gets a folder for each cell.", flag_values=values)
    flags.DEFINE_integer(
        "epochs",
        None,
        "Epochs of training, for the GAN of pre-training (train.epochs).",
        lower_bound=1,
        flag_values=values,
    )
    flags.DEFINE_integer("batch_size", None, "Sentences a batch (train.batch_size).", lower_bound=1, flag_values=values)
    define_beam_width(values)
    flags.DEFINE_boolean(
        "resume", True, "Go on with an unfinished cell; --noresume starts it afresh.", flag_values=values
    )
    flags.DEFINE_boolean("overwrite", False, "Run a cell afresh even if it is finished.", flag_values=values)
    flags.DEFINE_boolean(
        "mixed_precision", False, "Compute in 16 bits where the device gains from it.", flag_values=values
    )
    flags.DEFINE_boolean("jit_compile", False, "Compile the training step with XLA.", flag_values=values)
    flags.DEFINE_multi_string(
        "set", [], "key=value: any hyperparameter, e.g. schedule.peak=5e-4. Repeatable.", flag_values=values
    )
    flags.DEFINE_string("models", ",".join(MODELS), f"Comma-separated, of: {', '.join(MODELS)}.", flag_values=values)
    flags.register_validator("models", _check_models, flag_values=values)


def define_setting(values: flags.FlagValues) -> None:
    """Defines what names one row of the paper's table."""
    flags.DEFINE_float("mask_rate", 0.4, "Share of the tokens that is masked, in (0, 1).", flag_values=values)
    flags.register_validator("mask_rate", lambda rate: 0 < rate < 1, "must lie between 0 and 1", flag_values=values)
    flags.DEFINE_integer("blanks", 2, "Blanks of a sentence.", lower_bound=1, flag_values=values)
    flags.DEFINE_enum("masking", "fixed", ["fixed", "random"], "How blanks are placed.", flag_values=values)
    _define_seed(values)


def define_masking(values: flags.FlagValues) -> None:
    """Defines what names the blanks of a task whose sentences have them, and the seed."""
    flags.DEFINE_string(
        "masking", "pairs",
        f"Which words are masked: pairs (the authors' own), {', '.join(MASKINGS)}, or a function of yours as "
        "module:function.", flag_values=values,
    )  # fmt: skip
    flags.register_validator("masking", _check_masking, flag_values=values)
    _define_seed(values)


def define_selection(values: flags.FlagValues, groups: Sequence[str], in_smoke: Sequence[str]) -> None:
    """Defines which groups of cells are run, with which seeds, in place of the flags of one row.

    Args:
        values: get the flags.
        groups: that there are.
        in_smoke: that the preset smoke runs unasked.
    """
    flags.DEFINE_string("seeds", "1", "Comma-separated seeds; every cell is run with each.", flag_values=values)
    flags.register_validator("seeds", _check_seeds, flag_values=values)
    flags.DEFINE_string(
        "only", None,
        f"Comma-separated, of: {', '.join(groups)}. Default: all, for smoke {', '.join(in_smoke)}.",
        flag_values=values,
    )  # fmt: skip
    flags.register_validator("only", lambda text: text is None or _check_only(text, groups), flag_values=values)
    flags.DEFINE_integer(
        "jobs", None, "Settings run at the same time, each with its share of the cores. Default: 1, for smoke 2.",
        lower_bound=1, flag_values=values,
    )  # fmt: skip
    _define_paper_tex(values)
    define_results_dir(values)


def define_results_dir(values: flags.FlagValues) -> None:
    """Defines `--results_dir`."""
    flags.DEFINE_string("results_dir", "results", "Folder that gets the tables.", flag_values=values)


def define_cells(values: flags.FlagValues) -> None:
    """Defines `--cells`."""
    flags.DEFINE_string("cells", "results/cells", "Folder of the cells' folders, or a --workdir.", flag_values=values)


def define_collect(values: flags.FlagValues) -> None:
    """Defines what the making of tables from finished cells takes."""
    define_cells(values)
    define_results_dir(values)


def define_facts(values: flags.FlagValues) -> None:
    """Defines what the completion of the records of finished cells takes."""
    define_cells(values)
    flags.DEFINE_string(
        "data_dir", None, "Folder of the corpora, as when the cells were run; default: as in their config.json.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_string("processor", None, "Processor that the cells were trained on.", flag_values=values)
    flags.DEFINE_string("commit", None, "Commit that the cells were trained with.", flag_values=values)


def define_readme(values: flags.FlagValues) -> None:
    """Defines what the writing of the tables in README.md and docs/ takes."""
    define_cells(values)
    flags.DEFINE_string("root", ".", "Folder of README.md and docs/.", flag_values=values)


def define_samples(values: flags.FlagValues) -> None:
    """Defines what the filling of the paper's samples takes."""
    flags.DEFINE_string("workdir", "runs", "Folder of the cells, as of the command that ran them.", flag_values=values)
    flags.DEFINE_enum("protocol", "paper", list(PROTOCOLS), "Of the cells.", flag_values=values)
    flags.DEFINE_enum("preset", "laptop", PRESETS[1:], "Of the cells.", flag_values=values)
    _define_seed(values)
    _define_paper_tex(values)
    define_results_dir(values)


def _define_paper_tex(values: flags.FlagValues) -> None:
    flags.DEFINE_string("paper_tex", None, "LaTeX source of the paper, for its own samples.", flag_values=values)


def define_beam_width(values: flags.FlagValues) -> None:
    """Defines `--beam_width`."""
    flags.DEFINE_integer(
        "beam_width", None, "Width of the beam, 1: greedy (decoding.beam_width).", lower_bound=1, flag_values=values
    )


def define_evaluate(values: flags.FlagValues) -> None:
    """Defines what the rescoring of a finished cell takes."""
    define_beam_width(values)
    flags.DEFINE_enum("split", "test", ["valid", "test"], "Which sentences are scored.", flag_values=values)
    flags.DEFINE_string(
        "data_dir", None, "Folder of the corpus, as when the cell was run; default: as in its config.json.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_string(
        "masking", None, "Only for a cell whose masking is a function of yours: module:function, as it was run with.",
        flag_values=values,
    )  # fmt: skip


def models(values: flags.FlagValues) -> list[str]:
    """The models asked for, each once, in their order."""
    return list(dict.fromkeys(name.strip() for name in values.models.split(",")))


def trained_models(values: flags.FlagValues) -> list[str]:
    """Those of the models asked for that have something to learn."""
    return [name for name in models(values) if name in TRAINED]


def seeds(values: flags.FlagValues) -> list[int]:
    """The seeds asked for, in their order."""
    return [int(seed) for seed in values.seeds.split(",")]


def jobs(values: flags.FlagValues) -> int:
    """How many settings run at the same time: `--jobs`, or for `smoke` two where there are two cores, else one."""
    return values.jobs or (min(2, files.cores()) if values.preset == "smoke" else 1)


def groups(values: flags.FlagValues, known: Sequence[str], in_smoke: Sequence[str]) -> list[str]:
    """The groups of cells asked for, each once, in their order; by default all, for `smoke` those meant for it."""
    if values.only is None:
        return list(in_smoke if values.preset == "smoke" else known)
    return list(dict.fromkeys(name.strip() for name in values.only.split(",")))


def corpus_name(values: flags.FlagValues) -> str:
    """The corpus asked for: `--corpus`, or what the preset makes its default."""
    return values.corpus or ("synthetic" if values.preset == "smoke" else "auto")


def assignments(values: flags.FlagValues) -> list[str]:
    """The `key=value` assignments in the order of their application: short flags where given, then each `--set`."""
    short = [f"{key}={values[name].value}" for name, key in SHORTHANDS.items() if values[name].value is not None]
    return short + list(values["set"].value)


def parse(arguments: Sequence[str], define: Define, positional: Sequence[str] = ()) -> flags.FlagValues:
    """Checked flag values; the values of `positional` arguments are under their names in lower case.

    Raises:
        flags.Error: an unknown flag, a value that is not allowed, an unknown hyperparameter in `--set`, or an argument
            missing or too many.
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
        try:  # Every preset has the same keys, so in place of `auto` any of them tells a wrong one.
            preset = "laptop" if values.preset == "auto" else values.preset
            models_ = trained_models(values) or TRAINED
            for model in models_:
                run_hparams(values.protocol, preset, assignments(values), model=model, models=models_)
        except ValueError as error:
            raise flags.Error(str(error)) from error
    return values


def main(run: Run, define: Define, doc: str, positional: Sequence[str] = ()) -> None:
    """Parses the command line, runs, and leaves the process with a code and at most one line of ours on stderr.

    Codes: what `run` returns (0 for None); 2 for a bad flag; 1 for a ValueError, OSError or ArithmeticError of the run;
    130 for Ctrl-C and 143 for SIGTERM, with a word on how to go on. Any other exception is a bug: it keeps its
    traceback.
    """
    try:
        values = parse(sys.argv[1:], define, positional)
    except flags.Error as error:
        _say(f"error: {error}")
        sys.exit(EXIT_BAD_FLAG)
    try:
        command.prepare()
        if values.help:
            print(f"{doc.strip()}\n\nFlags:\n{values.get_help()}", flush=True)
            sys.exit(0)
        sys.exit(run(values))
    except KeyboardInterrupt as error:
        text, code = command.stopped(error)
        _say(f"{text}: {_way_on(values)}")
        sys.exit(code)
    except BrokenPipeError:  # The reader of a pipe, such as `head`, has seen enough; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (ValueError, OSError, ArithmeticError) as error:
        _say(f"error: {error}")
        sys.exit(EXIT_FAILED)


def _define_seed(values: flags.FlagValues) -> None:
    flags.DEFINE_integer(
        "seed", 1, "Seed of weights, batches and dropout.", lower_bound=0, upper_bound=MAX_SEED, flag_values=values
    )


def _check_masking(name: str) -> bool:
    if name not in ("pairs", *MASKINGS) and not all(name.partition(":")):
        raise flags.ValidationError(f"expected pairs, {', '.join(MASKINGS)} or module:function")
    return True


def _check_models(text: str) -> bool:
    for name in text.split(","):
        if name.strip() not in MODELS:
            raise flags.ValidationError(f"no model {name.strip()!r}, expected of: {', '.join(MODELS)}")
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
            raise flags.ValidationError(f"no group {name.strip()!r}, expected of: {', '.join(groups_)}")
    return True


def _way_on(values: flags.FlagValues) -> str:
    """How an interrupted run goes on: the same command, unless a flag in it would start afresh."""
    afresh = [flag for name, flag, on in (("overwrite", "--overwrite", True), ("resume", "--noresume", False))
              if name in values and values[name].value is on]  # fmt: skip
    return f"the same command{' without ' + ' and '.join(afresh) if afresh else ''} goes on from where it was"


def _say(text: str) -> None:
    print(" ".join(text.split()), file=sys.stderr, flush=True)
