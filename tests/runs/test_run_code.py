"""No command imports code that a run names; `evaluate` imports what its own flag names."""

import json
import shutil
import sys

import pytest
from finished_cells import finish, other

from experiments import collect, evaluate, samples
from experiments.cells import flags
from text_infilling.app import cli
from text_infilling.app.server import Server
from text_infilling.inference.infiller import Infiller

DEEP = "[" * 2000 + "]" * 2000
DIGITS = "1" * 5000


@pytest.fixture
def evil_cell(tmp_path, monkeypatch):
    """A finished cell with weights whose config names `evil:f`; to import evil.py leaves a file `imported`."""
    (tmp_path / "evil.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w').close()\ndef f(tokens): return [(1, 1)] * 3\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    yield other(corpus="grimm_synthetic", masking="evil:f", mask_rate=None, blanks=3)
    sys.modules.pop("evil", None)


@pytest.fixture
def evil_run(evil_cell, infiller_run, tmp_path):
    run = json.loads((infiller_run / "config.json").read_text("utf-8"))
    folder = finish(tmp_path / "runs", evil_cell, {"bleu": 1.0}, run["hparams"], vocabulary=run["vocabulary"])
    for name in ("vocabulary.txt", "best.weights.h5"):
        shutil.copy(infiller_run / name, folder)
    return folder


def experiment(module, define, *arguments, positional=()):
    module.run(flags.parse(arguments, define, positional))


COMMANDS = {
    "evaluate": lambda run: experiment(evaluate, flags.define_evaluate, str(run), positional=["CELL"]),
    "collect": lambda run: experiment(collect, flags.define_collect, "--cells=runs", "--results_dir=results"),
    "samples": lambda run: experiment(samples, flags.define_samples, "--workdir=runs", "--results_dir=results"),
    **{
        name: lambda run, line=line: cli.main(line.format(run=run).split())
        for name, line in {
            "info": "info {run}",
            "doctor": "doctor --run={run}",
            "fill": "fill --run={run} ____",
            "serve": "serve --run={run} --port=0",
            "export": "export {run} --format=keras",
            "fit": "fit evil.py --out=fitted --init_from={run}",
        }.items()
    },
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_imports_code_that_a_run_names(evil_run, tmp_path, monkeypatch, command):
    monkeypatch.setattr(Server, "serve", lambda *_: None)
    if command == "serve":  # it fills, before it serves, as the command `fill`, but in all orders
        monkeypatch.setattr(Infiller, "fill", lambda *_, **__: None)
    try:
        COMMANDS[command](evil_run)
    except SystemExit:
        assert command != "evaluate"
    except ValueError as error:
        assert command in ("evaluate", "samples") and "\n" not in str(error)
    assert not (tmp_path / "imported").exists() and "evil" not in sys.modules


def test_evaluate_names_the_flag_that_a_function_needs(evil_run):
    for given in ([], ["--masking=evil:g"], ["--masking=pairs"]):
        with pytest.raises(ValueError, match="--masking=evil:f"):
            experiment(evaluate, flags.define_evaluate, str(evil_run), *given, positional=["CELL"])


def test_evaluate_imports_the_function_that_its_own_flag_names(evil_run, tmp_path):
    with pytest.raises(ValueError, match="has checksum"):  # of the corpus, which the cell's config does not know
        experiment(evaluate, flags.define_evaluate, str(evil_run), "--masking=evil:f", positional=["CELL"])
    assert (tmp_path / "imported").exists()
