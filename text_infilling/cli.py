"""The command `text-infill`: fills blanks, fits a model to one's own texts, and tells what a run is."""

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from text_infilling import files
from text_infilling.batch import fill_each
from text_infilling.command import EXIT_FAILED, on_terminate, prepare, stopped
from text_infilling.export_path import check_export_path
from text_infilling.fill_options import MOST_RESULTS, OPTIONS, check_options
from text_infilling.progress import LinesProgress
from text_infilling.run_folder import RunFolder, open_run
from text_infilling.tokenizer import blank_warning, check_blank_token
from text_infilling.training.layout import KERAS_FILE, METRICS, SAVEDMODEL
from text_infilling.training.protocols import MODELS, PRESETS
from text_infilling.training.run_checks import read_metrics

CHUNK = 256  # texts of a file that are filled together
MOST_BYTES = 64 * 1024  # of a line of a file, which no model's positions reach to
DEMO = (  # in a minute nothing is learned too well
    "train.epochs=1", "train.batch_size=12", "schedule.warmup_steps=50", "schedule.peak=3e-3",
    "loss.label_smoothing=0.0", "decoder.embedding_dropout=0.0", "decoder.attention_dropout=0.0",
    "decoder.residual_dropout=0.0",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command and exits: 2 for a bad flag, 1 for another error, 130 for Ctrl-C, 143 for SIGTERM."""
    args = new_parser().parse_args(arguments)
    try:
        prepare()
        sys.exit(args.function(args))
    except KeyboardInterrupt as error:
        text, code = stopped(error)
        resumes = "; the same command resumes where it stopped, and after an epoch `fill --run` works already"
        _say(text + (resumes if args.command == "fit" else ""))
        sys.exit(code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (ValueError, OSError, ArithmeticError) as error:
        _say(f"error: {' '.join(str(error).split())}")
        sys.exit(EXIT_FAILED)
    except ImportError as error:
        _say(f"error: {' '.join(str(error).split())}; `text-infill doctor` says how to mend it")
        sys.exit(EXIT_FAILED)


def new_parser() -> argparse.ArgumentParser:
    """All commands and their flags."""
    parser = argparse.ArgumentParser(prog="text-infill", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, function, description):
        sub = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub.add_argument

    def which(name):
        one = commands.choices[name].add_mutually_exclusive_group(required=True)
        one.add_argument("--run", metavar="FOLDER", help="of `text-infill fit` or of an experiment")
        one.add_argument(
            "--demo", action="store_true", help="a small model of made-up restaurant reviews, trained once"
        )

    add = command("fill", fill, "Fills the blanks (____) of texts with a trained run.")
    add("texts", nargs="*", metavar="TEXT", help="default: standard input, a text a line")
    which("fill")
    add("--file", metavar="FILE", help="a text a line, in place of TEXT; - is standard input")
    add(
        "--blank_token",
        type=_blank_token,
        metavar="MASK",
        help="another mask that counts as a blank, e.g. '[MASK]'; <extra_id_0> is any numbered mask",
    )
    add("--json", action="store_true", help="one JSON object a line, with log probabilities and alternatives")
    add("--num_results", type=int, default=1, help="distinct results for each text (default: %(default)s)")
    add("--beam_width", type=int, help="of the search (default: as the run has it, 1 is greedy)")
    add("--temperature", type=float, help="of samples")
    add("--top_k", type=int, help="samples come from so many words")
    add("--top_p", type=float, help="samples come from the most probable words of this share")
    add("--seed", type=int, help="of samples")
    add("--order", choices=["left", "confident"], default="left", help="of the blanks (default: %(default)s)")
    add("--no_repeat_ngram", type=int, metavar="N", help="no infill has the same N words twice; 0: any (default: 3)")
    one = commands.choices["fill"].add_mutually_exclusive_group()
    one.add_argument("--min_words", type=int, help="words per infill; 0 allows empty ones (default: as the run has it)")
    one.add_argument(
        "--limits", type=_json, metavar="JSON", help="""e.g. {"max_words": 3}, or a list with those of each blank"""
    )

    add = command("serve", serve, "Fills blanks on a web page, and as JSON at /fill.")
    which("serve")
    add("--host", default="127.0.0.1", help="to listen on (default: %(default)s, this machine alone)")
    add("--port", type=int, default=8000, help="0 is a free one (default: %(default)s)")

    add = command("fit", fit, "Fits a model to texts of your own.")
    add(
        "source",
        help="a file of UTF-8 text, JSON Lines, CSV or TSV, also as .gz; a folder of *.txt and *.txt.gz; or - for "
        "standard input",
    )
    add("--out", required=True, metavar="FOLDER", help="gets the run")
    add("--model", choices=MODELS, default="self_attention", help="default: %(default)s")
    add("--masking", default="any", help="any (random blanks), a rule by name, or module:function (default: any)")
    add("--mask_rate", type=float, help="share of the words masked (default: 0.3)")
    add("--blanks", type=int, help="of a sentence at most; it learns any number (default: 4)")
    add("--keep_case", action="store_true", help="words keep their capitals; else all is lower-cased")
    add(
        "--layout",
        choices=["lines", "paragraphs"],
        default="lines",
        help="lines: each is a sentence; paragraphs: lines go on until an empty one (default: %(default)s)",
    )
    add("--column", metavar="NAME", help="column of CSV or TSV, or key of JSON Lines, that has the texts")
    add("--max_words", type=int, default=60, help="of a sentence; longer lines are cut (default: %(default)s)")
    add("--preset", choices=list(PRESETS), default="laptop", help="sizes (default: %(default)s)")
    add("--set", dest="assignments", action="append", default=[], metavar="KEY=VALUE", help="any hyperparameter")
    add("--seed", type=int, default=1, help="default: %(default)s")
    add("--init_from", metavar="FOLDER", help="a run to go on from")
    add("--overwrite", action="store_true", help="start afresh what is finished or was begun otherwise")

    add = command("export", export, "Writes a run as one thing that is used without its folder.")
    add("run", metavar="FOLDER", help="of `text-infill fit` or of an experiment")
    add(
        "--format",
        choices=["savedmodel", "keras"],
        default="savedmodel",
        help="savedmodel: texts in, texts out; keras: ids in, losses out (default: %(default)s)",
    )
    add("--out", metavar="PATH", help="default: FOLDER/savedmodel/1 or FOLDER/model.keras")
    add("--beam_width", type=int, help="of a SavedModel's search (default: as the run has it, 1 is greedy)")
    add("--overwrite", action="store_true", help="in place of what is there")

    add = command("info", info, "Tells what a run is.")
    add("folder", help="of a run")

    add = command("doctor", doctor, "Looks whether everything needed is there, and says how to mend what is not.")
    add("--data_dir", help="folder of corpora to look into")
    add("--run", metavar="FOLDER", help="a run to look at")
    return parser


def fill(args: argparse.Namespace) -> int:
    """Fills texts and prints the results in their order; returns 1 if a text could not be filled."""
    if args.texts and args.file:
        raise ValueError("give texts or --file, not both")
    failed, number, warned = False, 0, set()
    options = {name: getattr(args, name) for name in OPTIONS}
    check_options(**options)
    limits = args.limits if args.min_words is None else {"min_words": args.min_words}
    if limits is not None:
        from text_infilling.limits import Limits

        for each in limits if isinstance(limits, list) else [limits]:
            Limits.of(each, "--limits" if args.min_words is None else "--min_words")
    with _Texts(args.texts, args.file or "-") as texts:  # a missing file is an error before TensorFlow is imported
        run = _run(args)
        from text_infilling.infiller import Infiller

        infiller = Infiller.load(run)
        probe = f"{args.blank_token or '____'} " * (len(limits) if isinstance(limits, list) else 1)
        infiller.fill(probe, limits=limits, **options)  # wrong options are an error now, and the graph is made
        for chunk in texts:
            read = [([text], [limits]) for text in chunk if isinstance(text, str)]
            results = iter(fill_each(infiller, read, options))
            for text in chunk:
                number += 1
                result = next(results) if isinstance(text, str) else text
                failed |= isinstance(result, ValueError)
                warning = None
                if not isinstance(result, ValueError):
                    warning = blank_warning(text, f"text {number}", args.blank_token, "--blank_token")
                if warning and not warning.kinds <= warned:
                    warned |= warning.kinds
                    _say(warning.message)
                print(_shown(number, result, args.json, args.num_results > 1, warning), flush=True)
            texts.say_progress(number)
    return EXIT_FAILED if failed else 0


def _run(args: argparse.Namespace) -> RunFolder:
    """Opens the run that `--run` or `--demo` asks for."""
    return open_run(_demo() if args.demo else args.run)


def _demo() -> Path:
    """Returns the folder of the demo's run; trains it the first time, or waits until another process has."""
    from text_infilling import fitting
    from text_infilling.data import demo
    from text_infilling.data.corpora import cache_folder

    wishes = fitting.Wishes(preset="smoke", mask_rate=0.5, blanks=3, assignments=DEMO)
    # One of other sentences or settings is another; to make the sentences would take longer than to read their source.
    learned = Path(demo.__file__).read_bytes() + json.dumps(wishes.hparams()).encode()
    folder = cache_folder() / f"demo-{hashlib.sha256(learned).hexdigest()[:8]}"
    if not (folder / METRICS).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        waiting = partial(_say, f"another process is training the demo model in {folder}: waiting until it is done")
        with files.held(folder.with_suffix(".lock"), waiting):
            if not (folder / METRICS).exists():
                _say(f"training the demo model once, which takes about a minute; it is kept in {folder}")
                source = folder.with_suffix(".txt")
                files.write_text(source, "".join(f"{sentence}\n" for sentence in demo.sentences()))
                fitting.fit(source, folder, wishes, say=_say)  # stdout is for the fills
    return folder


def serve(args: argparse.Namespace) -> None:
    """Answers until Ctrl-C or SIGTERM; SIGTERM lets the running request end."""
    from text_infilling.serving import Server

    with Server(args.host, args.port) as server:  # a port in use is an error before TensorFlow is imported
        run = _run(args)
        from text_infilling.infiller import Infiller

        infiller = Infiller.load(run)
        for order in ("left", "confident"):
            for seed in (None, 0):
                infiller.fill("____", order=order, seed=seed)  # makes a graph, for which nobody has to wait later
        if server.is_public:
            _say(
                f"warning: whoever reaches {args.host} over the network can use this; --host=127.0.0.1 is for you alone"
            )
        print(f"ready at {server.url} (Ctrl-C ends it)", flush=True)
        on_terminate(server.shutdown)
        server.serve(infiller, {"run": str(run.path), "model": run.model})
        _say("stopped by SIGTERM")


def fit(args: argparse.Namespace) -> None:
    """Fits a model and prints its report."""
    from text_infilling.fitting import Wishes
    from text_infilling.fitting import fit as fit_

    sys.path.append(os.getcwd())  # for a function of one's own, as `python -m` has it
    wishes = {field.name: getattr(args, field.name) for field in dataclasses.fields(Wishes)}
    fit_(args.source, args.out, Wishes(**wishes), args.overwrite)


def export(args: argparse.Namespace) -> None:
    """Writes a SavedModel or a Keras file and says how to use it."""
    if args.beam_width is not None and not 1 <= args.beam_width <= MOST_RESULTS:
        raise ValueError(f"--beam_width is from 1 to {MOST_RESULTS}. Received: {args.beam_width}")
    if args.format == "keras" and args.beam_width is not None:
        raise ValueError("--beam_width is of --format=savedmodel: a Keras file has no search in it")
    run = open_run(args.run)
    # TensorFlow Serving needs a number as the name.
    default = Path(KERAS_FILE) if args.format == "keras" else Path(SAVEDMODEL) / "1"
    out = Path(args.out or run.path / default)
    check_export_path(out, args.format, args.overwrite)
    from text_infilling import export as exports
    from text_infilling.infiller import Infiller

    infiller = Infiller.load(run)
    if args.format == "keras":
        exports.to_keras(infiller, out, args.overwrite)
    else:
        exports.to_savedmodel(infiller, out, args.beam_width, args.overwrite)
    print(f"written to {out}", flush=True)


def info(args: argparse.Namespace) -> None:
    """Prints what is in a run's folder."""
    run = open_run(args.folder)
    from text_infilling.infiller import Infiller

    infiller, config = Infiller.load(run), run.config
    rows = {
        "model": run.model,
        "parameters": f"{infiller.model.count_params():,}",
        "vocabulary": f"{len(infiller.vocabulary.words):,} words",
        "corpus": f"{config['cell'].get('corpus')} ({config.get('where', {}).get('source')})",
        "masking": config["cell"].get("masking"),
        "longest text": f"{infiller.model.protocol.base - 2} words and blanks",
        "made with": ", ".join(f"{name} {version}" for name, version in config.get("versions", {}).items()),
    }
    metrics = read_metrics(run.path) if (run.path / METRICS).exists() else {}
    rows |= {name: f"{metrics[name]:.2f}" for name in ("bleu_paper", "bleu", "ppl_paper", "ppl") if name in metrics}
    for name, value in rows.items():
        print(f"{name:14}{value}")


def doctor(args: argparse.Namespace) -> int:
    """Prints what is there and what is not; 1 if something needs mending."""
    from text_infilling.doctor import checks

    failed = False
    for check in checks(args.data_dir, args.run):
        print(check, flush=True)
        failed |= bool(check.mend)
    return EXIT_FAILED if failed else 0


def _shown(number, result, as_json, several, warning) -> str:
    """Returns the lines that the command prints for a text: its results, or the error that it has."""
    if isinstance(result, ValueError):
        message = " ".join(str(result).split())
        if as_json:
            return json.dumps({"line": number, "error": message})
        return f"line {number}: error: {message}" + "\n" * several
    if as_json:
        record = {"line": number, **dataclasses.asdict(result[0])}
        return json.dumps(record | ({"warning": warning.message} if warning else {}), ensure_ascii=False)
    alternatives = [one.text for one in result[0].alternatives]
    return "\n".join([*alternatives, ""] if several else alternatives)  # an empty line ends those of a text


class _Texts(contextlib.AbstractContextManager):
    """The texts given, or else the lines of a file, in lists of up to `CHUNK` that are filled together.

    Such a list holds what could be read without waiting for more, so that a program that writes a line and waits gets
    its answer. A line that is too long or not UTF-8 is a ValueError in the list.
    """

    def __init__(self, texts: Sequence[str], name: str):
        self._texts, self._file, self._place = texts, None, 0
        if not texts:
            try:
                self._file = sys.stdin.buffer if name == "-" else open(name, "rb")
            except OSError as error:
                raise OSError(f"cannot read {name}: {error.strerror}. Give another --file") from error
            self._progress = LinesProgress(None if name == "-" else os.path.getsize(name), _say)

    def __exit__(self, *_):
        if self._file and self._file is not sys.stdin.buffer:
            self._file.close()

    def __iter__(self) -> Iterator[list[str | ValueError]]:
        for texts in self._read() if self._file else [self._texts]:
            for start in range(0, len(texts), CHUNK):
                yield texts[start : start + CHUNK]

    def _read(self) -> Iterator[list[str | ValueError]]:
        """Yields the lines of each read."""
        bom, line = "\ufeff", b""
        while part := self._file.read1(MOST_BYTES):
            self._place += len(part)
            texts = []
            *ends, rest = part.split(b"\n")
            for end in ends:
                texts.append(_text(line + end, bom))
                bom, line = "", b""
            line = (line + rest)[: MOST_BYTES + 1]  # more is not needed to know that it is too long
            yield texts
        if line:
            yield [_text(line, bom)]

    def say_progress(self, lines: int) -> None:
        """Prints how far the filling is; `lines` are done."""
        if self._file:
            self._progress(lines, self._place)


def _text(line: bytes, bom: str) -> str | ValueError:
    if len(line) > MOST_BYTES:
        return ValueError(f"longer than {MOST_BYTES:,} bytes: cut the line into parts")
    try:
        return line.decode("utf-8").removeprefix(bom).rstrip("\r")
    except UnicodeDecodeError:
        return ValueError("not UTF-8 text; convert it, e.g. with iconv -f ISO-8859-1 -t UTF-8")


def _json(text: str):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # of brackets in brackets
        raise argparse.ArgumentTypeError(f"expected JSON. Received: {text[:1000]!r}") from error


def _blank_token(text: str) -> str:
    try:
        return check_blank_token(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
