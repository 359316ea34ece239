"""The command `text-infill`: fills blanks in texts, trains a model on your own texts, serves and exports it."""

import argparse
import importlib.metadata
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from text_infilling.app import commands
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import PRESETS
from text_infilling.configs.protocols import PROTOCOLS
from text_infilling.text.blanks import check_blank_token
from text_infilling.utils.command import run_command

RUN_HELP = "run folder of `text-infill fit` or of an experiment (default: the base model of the package)"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and exits: 2 for a bad flag, otherwise with the codes of `run_command`."""
    args = new_parser().parse_args(arguments)
    hint = "the same command resumes where it stopped, and `fill --run` already works once an epoch is complete"
    run_command(partial(args.function, args), hint if args.command == "fit" else "")


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and their flags."""
    parser = argparse.ArgumentParser(prog="text-infill", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for function, define_flags, description in COMMANDS:
        sub = subparsers.add_parser(function.__name__, help=description, description=description, allow_abbrev=False)
        sub.set_defaults(function=function)
        define_flags(sub)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--run", metavar="FOLDER", help=RUN_HELP)
    one.add_argument(
        "--demo",
        action="store_true",
        help="use a small demo model of synthetic restaurant reviews; trained on first use (about a minute)",
    )


def _fill_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("texts", nargs="*", metavar="TEXT", help="text with blanks (default: standard input, one text per line)")
    _add_run(parser)
    add("--file", metavar="FILE", help="read texts from FILE, one per line, instead of TEXT; - is standard input")
    add(
        "--blank_token",
        type=_blank_token,
        metavar="MASK",
        help="also treat MASK as a blank, e.g. '[MASK]'; <extra_id_0> matches every <extra_id_N>",
    )
    add("--json", action="store_true", help="print one JSON object per text, with log probabilities and alternatives")
    add("--num_results", type=int, default=1, help="number of distinct results per text (default: %(default)s)")
    add("--beam_width", type=int, help="beam size of the search; 1 is greedy (default: the run's setting)")
    add(
        "--length_penalty",
        type=float,
        metavar="ALPHA",
        help="rank results by log probability / ((5 + tokens) / 6) ** ALPHA, with --beam_width or samples; a larger "
        "one prefers longer infills (default: 0)",
    )
    add(
        "--temperature",
        type=float,
        help="sampling temperature; lower is closer to greedy (default: no sampling; 1.0 if --top_k, --top_p or --seed "
        "is given)",
    )
    add("--top_k", type=int, help="sample from the K most probable words only (default: all words)")
    add(
        "--top_p",
        type=float,
        help="nucleus sampling: sample from the most probable words whose probabilities add up to P, up to 1 (default: "
        "all words)",
    )
    add("--seed", type=int, help="random seed of sampling (default: 0)")
    add(
        "--order",
        choices=["left", "confident"],
        default="left",
        help="order of filling: left to right, or the most confident blank first (default: %(default)s)",
    )
    add(
        "--no_repeat_ngram",
        type=int,
        metavar="N",
        help="no infill contains the same N consecutive words twice; 0 turns this off (default: 3)",
    )
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--min_words", type=int, help="minimum words per infill; 0 allows empty infills (default: the run's setting)"
    )
    one.add_argument(
        "--limits",
        type=_json,
        metavar="JSON",
        help="""limits on the infills, e.g. {"max_words": 3}, or a list with one entry per blank""",
    )


def _serve_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_run(parser)
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    add("--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: %(default)s)")
    add(
        "--allow_origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let the web pages of ORIGIN, e.g. https://example.com, use the server; * is all pages; repeatable",
    )


def _fit_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "source",
        help="training texts: a file of UTF-8 text, JSON Lines, CSV or TSV, also as .gz; a folder of *.txt and "
        "*.txt.gz; or - for standard input",
    )
    add("--out", required=True, metavar="FOLDER", help="run folder to create, or to resume")
    add("--model", choices=MODELS, default="self_attention", help="model type (default: %(default)s)")
    add(
        "--masking",
        default="any",
        help="what is masked: any (random blanks), the name of a rule (see docs/reproduce.md), or your own "
        "module:function (default: any)",
    )
    add(
        "--mask_rate",
        type=_mask_rate,
        metavar="RATE",
        help="fraction of words masked, between 0 and 1; 0.15-0.6 draws it for each sentence; with --masking=any only "
        "(default: 0.3)",
    )
    add(
        "--blanks",
        type=int,
        help="maximum blanks per sentence, which has 1 to this many; with --masking=any only (default: 4)",
    )
    add("--keep_case", action="store_true", help="keep upper case (default: lower-case all texts)")
    add(
        "--layout",
        choices=["lines", "paragraphs"],
        default="lines",
        help="lines: one sentence per line; paragraphs: joins lines up to an empty line (default: %(default)s)",
    )
    add("--column", metavar="NAME", help="CSV or TSV column, or JSON Lines key, that holds the texts")
    add(
        "--max_words",
        type=int,
        default=60,
        help="maximum words per sentence; longer lines are cut (default: %(default)s)",
    )
    add("--preset", choices=list(PRESETS), default="laptop", help="model size and schedule (default: %(default)s)")
    add(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a hyperparameter, e.g. train.epochs=5; see text_infilling/configs/defaults.py; repeatable",
    )
    add(
        "--seed", type=int, default=1, help="random seed of weights, batches, blanks and dropout (default: %(default)s)"
    )
    add(
        "--init_from",
        metavar="FOLDER",
        help="run to initialize weights and sizes from, for fine-tuning (default: the base model for fewer than 20,000 "
        "sentences)",
    )
    add("--from_scratch", action="store_true", help="start from fresh weights, not from the base model")
    add("--overwrite", action="store_true", help="start afresh, also if the run is unfinished")


def _export_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="FOLDER", nargs="?", help=RUN_HELP)
    add(
        "--format",
        choices=["savedmodel", "keras"],
        default="savedmodel",
        help="savedmodel: texts in, texts out; keras: ids in, logits out (default: %(default)s)",
    )
    add(
        "--out",
        metavar="PATH",
        help="output path (default: FOLDER/savedmodel/1 or FOLDER/model.keras; required for the base model)",
    )
    add("--beam_width", type=int, help="beam size of a SavedModel; 1 is greedy (default: the run's setting)")
    add("--overwrite", action="store_true", help="replace an existing export")


def _explain_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", metavar="TEXT", help="words separated by spaces; ____ is a blank")
    add(
        "--infill",
        dest="infills",
        action="append",
        default=[],
        metavar="WORDS",
        help="infill of the next blank, left to right; repeatable (default: two placeholder words)",
    )
    add(
        "--protocol",
        choices=list(PROTOCOLS),
        help="how templates are numbered: as the paper's text says, or as the authors' code did (default: paper; with "
        "--run that of the run)",
    )
    add(
        "--run",
        metavar="FOLDER",
        help="trained run: also shows its five most probable next words and its attention over the template; it writes "
        "the infills that are not given",
    )
    add("--html", metavar="FILE", help="with --run: write one self-contained HTML page instead of text")


def _info_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="FOLDER", nargs="?", help=RUN_HELP)


def _doctor_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data_dir", help="folder of corpora or texts to check")
    add("--run", metavar="FOLDER", help="run folder to check")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: deeply nested brackets
        raise argparse.ArgumentTypeError(f"expected JSON. Received: {text[:1000]!r}") from error


def _mask_rate(text: str) -> float | tuple[float, float]:
    try:
        rates = tuple(float(rate) for rate in text.split("-"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"expected a fraction like 0.3 or a range like 0.15-0.6. Received: {text!r}"
        ) from error
    return rates[0] if len(rates) == 1 else rates


def _blank_token(text: str) -> str:
    try:
        return check_blank_token(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _version() -> str:
    try:
        return importlib.metadata.version("text_infilling")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


COMMANDS = (  # function, function that defines its flags, description
    (commands.fill, _fill_flags, "Fills the blanks (____) in texts with a trained model."),
    (commands.serve, _serve_flags, "Serves a web page that fills blanks, and a JSON API at /fill."),
    (commands.fit, _fit_flags, "Trains a model on your own texts."),
    (commands.export, _export_flags, "Exports a run as a SavedModel or a Keras file, to use without the run folder."),
    (
        commands.explain,
        _explain_flags,
        "Shows the template of a text, the position of each token, and what each blank attends to.",
    ),
    (commands.info, _info_flags, "Prints the model, corpus, versions and scores of a run."),
    (commands.doctor, _doctor_flags, "Checks the installation, the data and a run, and prints how to fix problems."),
)


if __name__ == "__main__":
    main()
