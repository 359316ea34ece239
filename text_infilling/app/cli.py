"""The command `text-infill`: fills blanks in texts, trains a model on your own texts, serves and exports it."""

import argparse
import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import PRESETS
from text_infilling.inference.batch import fill_each
from text_infilling.inference.export_path import check_export_path
from text_infilling.inference.fill_options import MOST_RESULTS, OPTIONS, check_options
from text_infilling.runs.checks import read_metrics
from text_infilling.runs.layout import KERAS_FILE, METRICS, SAVEDMODEL
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.text.tokenizer import blank_warning, check_blank_token
from text_infilling.utils import files
from text_infilling.utils.command import EXIT_FAILED, on_terminate, prepare, stopped
from text_infilling.utils.progress import LinesProgress

CHUNK = 256  # texts of a file that are filled in one batch
MOST_BYTES = 64 * 1024  # of a line of a file; longer than any model can read
DEMO = (  # no regularization: one minute of training does not overfit
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
        resumes = (
            "; the same command resumes where it stopped, and `fill --run` already works once an epoch is complete"
        )
        _say(text + (resumes if args.command == "fit" else ""))
        sys.exit(code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (ValueError, OSError, ArithmeticError) as error:
        _say(f"error: {' '.join(str(error).split())}")
        sys.exit(EXIT_FAILED)
    except ImportError as error:
        _say(f"error: {' '.join(str(error).split())}; run `text-infill doctor` to see how to fix it")
        sys.exit(EXIT_FAILED)


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands and their flags."""
    parser = argparse.ArgumentParser(prog="text-infill", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, function, description):
        sub = commands.add_parser(name, help=description, description=description, allow_abbrev=False)
        sub.set_defaults(function=function)
        return sub.add_argument

    def which(name):
        one = commands.choices[name].add_mutually_exclusive_group(required=True)
        one.add_argument("--run", metavar="FOLDER", help="run folder of `text-infill fit` or of an experiment")
        one.add_argument(
            "--demo",
            action="store_true",
            help="use a small demo model of synthetic restaurant reviews; trained on first use (about a minute)",
        )

    add = command("fill", fill, "Fills the blanks (____) in texts with a trained model.")
    add("texts", nargs="*", metavar="TEXT", help="text with blanks (default: standard input, one text per line)")
    which("fill")
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
    one = commands.choices["fill"].add_mutually_exclusive_group()
    one.add_argument(
        "--min_words", type=int, help="minimum words per infill; 0 allows empty infills (default: the run's setting)"
    )
    one.add_argument(
        "--limits",
        type=_json,
        metavar="JSON",
        help="""limits on the infills, e.g. {"max_words": 3}, or a list with one entry per blank""",
    )

    add = command("serve", serve, "Serves a web page that fills blanks, and a JSON API at /fill.")
    which("serve")
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    add("--port", type=int, default=8000, help="port to listen on; 0 picks a free one (default: %(default)s)")

    add = command("fit", fit, "Trains a model on your own texts.")
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
        help="what is masked: any (random blanks), the name of a rule, or your own module:function (default: any)",
    )
    add("--mask_rate", type=float, help="fraction of words masked, between 0 and 1 (default: 0.3)")
    add("--blanks", type=int, help="maximum blanks per sentence; trains on 1 to this many (default: 4)")
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
        help="set a hyperparameter, e.g. train.epochs=5; repeatable",
    )
    add("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    add("--init_from", metavar="FOLDER", help="run to initialize weights and sizes from, for fine-tuning")
    add("--overwrite", action="store_true", help="train from scratch if the run is finished or has other settings")

    add = command("export", export, "Exports a run as a SavedModel or a Keras file, to use without the run folder.")
    add("run", metavar="FOLDER", help="run folder of `text-infill fit` or of an experiment")
    add(
        "--format",
        choices=["savedmodel", "keras"],
        default="savedmodel",
        help="savedmodel: texts in, texts out; keras: ids in, losses out (default: %(default)s)",
    )
    add("--out", metavar="PATH", help="output path (default: FOLDER/savedmodel/1 or FOLDER/model.keras)")
    add("--beam_width", type=int, help="beam size of a SavedModel; 1 is greedy (default: the run's setting)")
    add("--overwrite", action="store_true", help="replace an existing export")

    add = command("info", info, "Prints the model, corpus, versions and scores of a run.")
    add("folder", help="run folder")

    add = command("doctor", doctor, "Checks the installation, the data and a run, and prints how to fix problems.")
    add("--data_dir", help="folder of corpora or texts to check")
    add("--run", metavar="FOLDER", help="run folder to check")
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
        from text_infilling.inference.limits import Limits

        for each in limits if isinstance(limits, list) else [limits]:
            Limits.of(each, "--limits" if args.min_words is None else "--min_words")
    with _Texts(args.texts, args.file or "-") as texts:  # fails on a missing file before TensorFlow is imported
        run = _run(args)
        from text_infilling.inference.infiller import Infiller

        infiller = Infiller.load(run)
        probe = f"{args.blank_token or '____'} " * (len(limits) if isinstance(limits, list) else 1)
        infiller.fill(probe, limits=limits, **options)  # reports wrong options now, and traces the graph
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
    """Opens the run of `--run`, or the demo's."""
    return open_run(_demo() if args.demo else args.run)


def _demo() -> Path:
    """Returns the run folder of the demo; trains it on first use, or waits while another process does."""
    from text_infilling.app import demo, fitting
    from text_infilling.corpora.corpus import cache_folder

    wishes = fitting.Wishes(preset="smoke", mask_rate=0.5, blanks=3, assignments=DEMO)
    # Other sentences or settings get another folder. Hashes the source, which is faster than making the sentences.
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
                fitting.fit(source, folder, wishes, say=_say)  # stdout is for the results
    return folder


def serve(args: argparse.Namespace) -> None:
    """Answers until Ctrl-C or SIGTERM; SIGTERM lets the running request end."""
    from text_infilling.app.server import Server

    with Server(args.host, args.port) as server:  # a port in use is an error before TensorFlow is imported
        run = _run(args)
        from text_infilling.inference.infiller import Infiller

        infiller = Infiller.load(run)
        for order in ("left", "confident"):
            for seed in (None, 0):
                infiller.fill("____", order=order, seed=seed)  # traces the graph, so that no request waits for it
        if server.is_public:
            _say(
                f"warning: everyone who can reach {args.host} over the network can use this server; --host=127.0.0.1 "
                "accepts requests from this machine only"
            )
        print(f"ready at {server.url} (press Ctrl-C to stop)", flush=True)
        on_terminate(server.shutdown)
        server.serve(infiller, {"run": str(run.path), "model": run.model})
        _say("stopped by SIGTERM")


def fit(args: argparse.Namespace) -> None:
    """Trains a model and prints its report."""
    from text_infilling.app.fitting import Wishes
    from text_infilling.app.fitting import fit as fit_

    sys.path.append(os.getcwd())  # for your own module:function, as with `python -m`
    wishes = {field.name: getattr(args, field.name) for field in dataclasses.fields(Wishes)}
    fit_(args.source, args.out, Wishes(**wishes), args.overwrite)


def export(args: argparse.Namespace) -> None:
    """Writes a SavedModel or a Keras file and prints its path."""
    if args.beam_width is not None and not 1 <= args.beam_width <= MOST_RESULTS:
        raise ValueError(f"--beam_width must be from 1 to {MOST_RESULTS}. Received: {args.beam_width}")
    if args.format == "keras" and args.beam_width is not None:
        raise ValueError("--beam_width cannot be combined with --format=keras: a Keras file contains no search")
    run = open_run(args.run)
    # TensorFlow Serving expects a version number as the folder name.
    default = Path(KERAS_FILE) if args.format == "keras" else Path(SAVEDMODEL) / "1"
    out = Path(args.out or run.path / default)
    check_export_path(out, args.format, args.overwrite)
    from text_infilling.inference import export as exports
    from text_infilling.inference.infiller import Infiller

    infiller = Infiller.load(run)
    if args.format == "keras":
        exports.to_keras(infiller, out, args.overwrite)
    else:
        exports.to_savedmodel(infiller, out, args.beam_width, args.overwrite)
    print(f"written to {out}", flush=True)


def info(args: argparse.Namespace) -> None:
    """Prints the model, corpus, versions and scores of a run."""
    run = open_run(args.folder)
    from text_infilling.inference.infiller import Infiller

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
    """Prints the checks of the installation, the data and a run; returns 1 if something needs a fix."""
    from text_infilling.app.doctor import checks

    failed = False
    for check in checks(args.data_dir, args.run):
        print(check, flush=True)
        failed |= bool(check.fix)
    return EXIT_FAILED if failed else 0


def _shown(number, result, as_json, several, warning) -> str:
    """Returns the output lines for a text: its results, or its error."""
    if isinstance(result, ValueError):
        message = " ".join(str(result).split())
        if as_json:
            return json.dumps({"line": number, "error": message})
        return f"line {number}: error: {message}" + "\n" * several
    if as_json:
        record = {"line": number, **dataclasses.asdict(result[0])}
        return json.dumps(record | ({"warning": warning.message} if warning else {}), ensure_ascii=False)
    alternatives = [one.text for one in result[0].alternatives]
    return "\n".join([*alternatives, ""] if several else alternatives)  # an empty line ends the results of a text


class _Texts(contextlib.AbstractContextManager):
    """The texts of the command line, or else the lines of a file, in batches of up to `CHUNK`.

    A batch holds what can be read without blocking, so that a program that writes a line and waits gets its answer. A
    line that is too long or not UTF-8 is a ValueError in the batch.
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
            line = (line + rest)[: MOST_BYTES + 1]  # enough to know that it is too long
            yield texts
        if line:
            yield [_text(line, bom)]

    def say_progress(self, lines: int) -> None:
        """Prints the progress after `lines` lines."""
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
    except (ValueError, RecursionError) as error:  # RecursionError: deeply nested brackets
        raise argparse.ArgumentTypeError(f"expected JSON. Received: {text[:1000]!r}") from error


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


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
