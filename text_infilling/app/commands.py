"""The commands of `text-infill`; each takes its parsed flags and returns an exit code, or None for 0.

TensorFlow takes seconds to import, so each command imports it only once its flags and files are checked.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from text_infilling.app.demo import demo_run
from text_infilling.app.text_stream import TextStream, answer
from text_infilling.configs.protocols import PROTOCOLS
from text_infilling.inference.batch import fill_each
from text_infilling.inference.export_path import check_export_path
from text_infilling.inference.fill_options import MOST_RESULTS, OPTIONS, check_options
from text_infilling.runs.checks import read_metrics
from text_infilling.runs.layout import KERAS_FILE, METRICS, SAVEDMODEL
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.text.blanks import blank_warning
from text_infilling.utils.command import EXIT_FAILED, Terminated, note, printable
from text_infilling.utils.files import write_text


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
    with TextStream(args.texts, args.file or "-") as texts:  # fails on a missing file before TensorFlow is imported
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
                    note(warning.message)
                if not isinstance(result, ValueError) and "far" not in warned:
                    if far := run.learned.warning(text, args.blank_token):
                        warned.add("far")
                        note(f"text {number} is far from what the model learned: {far}")
                print(answer(number, result, args.json, args.num_results > 1, warning), flush=True)
            texts.report_progress(number)
    return EXIT_FAILED if failed else 0


def _run(args: argparse.Namespace) -> RunFolder:
    """Opens the run of `--run`, the demo's, or the base model."""
    return open_run(demo_run()) if args.demo else _opened(args.run)


def _opened(folder: str | None) -> RunFolder:
    """Opens a run; without a folder the base model, which is noted on stderr."""
    run = open_run(folder)
    if folder is None:
        note("no run is given: using the base model, which knows everyday English")
    return run


def serve(args: argparse.Namespace) -> None:
    """Answers until Ctrl-C or SIGTERM; both let the requests end that are being filled."""
    try:
        from text_infilling.app.server import Server
    except ModuleNotFoundError as error:
        missing = error.name.partition(".")[0]
        if missing not in ("prometheus_client", "starlette", "uvicorn"):
            raise
        raise OSError(
            f"serve needs {missing}: run `pip install -e '.[serve]'` in the folder of the project, or `pip install "
            "starlette uvicorn prometheus-client`"
        ) from error

    with Server(args.host, args.port, args.allow_origin) as server:  # fails on a port in use before TensorFlow's import
        run = _run(args)
        from text_infilling.inference.infiller import Infiller

        infiller = Infiller.load(run)
        for order in ("left", "confident"):
            for seed in (None, 0):
                infiller.fill("____", order=order, seed=seed)  # traces the graph, so that no request waits for it
        if server.is_public:
            note(
                f"warning: everyone who can reach {args.host} over the network can use this server; --host=127.0.0.1 "
                "accepts requests from this machine only"
            )
        print(f"ready at {server.url} (press Ctrl-C to stop)", flush=True)
        try:
            server.serve(infiller, {"run": str(args.run or run.name), "model": run.model}, run.learned)
        except Terminated:
            note("stopped by SIGTERM")


def fit(args: argparse.Namespace) -> None:
    """Trains a model and prints its report."""
    from text_infilling.app import fitting  # imports NLTK's tagger and more, which no other command must wait for

    sys.path.append(os.getcwd())  # for your own module:function, as with `python -m`
    options = {field.name: getattr(args, field.name) for field in dataclasses.fields(fitting.FitConfig)}
    fitting.fit(args.source, args.out, fitting.FitConfig(**options), args.overwrite)


def export(args: argparse.Namespace) -> None:
    """Writes a SavedModel or a Keras file and prints its path."""
    if args.beam_width is not None and not 1 <= args.beam_width <= MOST_RESULTS:
        raise ValueError(f"--beam_width must be from 1 to {MOST_RESULTS}. Received: {args.beam_width}")
    if args.format == "keras" and args.beam_width is not None:
        raise ValueError("--beam_width cannot be combined with --format=keras: a Keras file contains no search")
    if args.run is None and args.out is None:
        raise ValueError("give --out to export the base model")
    run = _opened(args.run)
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


def explain(args: argparse.Namespace) -> None:
    """Prints how the self-attention model sees a text; with a run, also what its model computes."""
    if args.run is None:
        if args.html is not None:
            raise ValueError("--html needs --run=FOLDER, a trained run")
        from text_infilling.app.explain import as_text
        from text_infilling.configs.protocols import run_hparams
        from text_infilling.templates import TemplateFormat

        hparams = run_hparams(args.protocol or PROTOCOLS[0], "full", model="self_attention")
        print(as_text(args.text, args.infills, TemplateFormat.from_hparams(hparams)), flush=True)
        return
    if args.protocol is not None:
        raise ValueError("--protocol cannot be combined with --run, which has its own")
    run = open_run(args.run)
    from text_infilling.app import explain_run
    from text_infilling.app.explain import turns_as_text

    found, filled = explain_run.explained(run, args.text, args.infills)
    if args.html is not None:
        about = f"{run.model}, run {run.name}; text: {args.text}"
        write_text(Path(args.html), explain_run.as_html(found, filled, about))
        print(f"written to {args.html}", flush=True)
        return
    base = run.hparams["position"]["base"]
    print(turns_as_text([one.turn for one in found], filled, base), flush=True)
    print(f"\n{explain_run.as_text(found, filled)}", flush=True)


def info(args: argparse.Namespace) -> None:
    """Prints the model, corpus, versions and scores of a run."""
    run = _opened(args.run)
    from text_infilling.inference.load_model import load_model

    model, config = load_model(run), run.config
    rows = {
        "model": run.model,
        "parameters": f"{model.count_params():,}",
        "vocabulary": f"{len(run.vocabulary.words):,} words",
        "corpus": f"{config['cell'].get('corpus')} ({config.get('where', {}).get('source')})",
        "masking": config["cell"].get("masking"),
        "learned": run.learned.summary,
        "longest text": f"{model.template_format.base - 2} words and blanks",
        "made with": ", ".join(f"{name} {version}" for name, version in config.get("versions", {}).items()),
    }
    metrics = read_metrics(run.path) if (run.path / METRICS).exists() else {}
    rows |= {name: f"{metrics[name]:.2f}" for name in ("bleu_paper", "bleu", "ppl_paper", "ppl") if name in metrics}
    for name, value in rows.items():
        print(f"{name:14}{printable(value)}")


def doctor(args: argparse.Namespace) -> int:
    """Prints the checks of the installation, the data and a run; returns 1 if something needs a fix."""
    from text_infilling.app.doctor import checks

    failed = False
    for check in checks(args.data_dir, args.run):
        print(check, flush=True)
        failed |= bool(check.fix)
    return EXIT_FAILED if failed else 0
