"""The commands: flags, the settings they select, and one-line error messages."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from absl import flags as absl_flags

from experiments import yelp
from experiments.cells import experiment, flags
from text_infilling.configs.protocols import run_hparams
from text_infilling.utils.files import write_jsonl

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments):
    """Runs Python with these arguments in the project root; returns exit code, stdout and stderr."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def parse(*arguments):
    return flags.parse(arguments, yelp.define_flags)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--mask_rate=1.5"], "--mask_rate=1.5"),
        (["--mask_rate=0"], "--mask_rate=0"),
        (["--mask_rate=nan"], "--mask_rate=nan"),
        (["--mask_rate=half"], "--mask_rate=half"),
        (["--blanks=0"], "--blanks=0"),
        (["--blanks=1.5"], "--blanks=1.5"),
        (["--masking=some"], "--masking=some"),
        (["--models=template,transformer"], "'transformer'"),
        (["--models="], "--models="),
        (["--protocol=mine"], "--protocol=mine"),
        (["--preset=huge"], "--preset=huge"),
        (["--corpus=imdb"], "--corpus=imdb"),
        (["--seed=-1"], "--seed=-1"),
        (["--epochs=0"], "--epochs=0"),
        (["--budget=0"], "--budget=0"),
        (["--budget=5", "--epochs=2"], "omit --epochs"),
        (["--budget=5", "--set=train.epochs=2"], "omit --epochs"),
        (["--batch_size=0"], "--batch_size=0"),
        (["--beam_width=0"], "--beam_width=0"),
        (["--set=train.epoch=3"], "did you mean 'train.epochs'"),
        (["--set=train.epochs=many"], "train.epochs"),
        (["--set=train.epochs"], "key=value"),
        (["--mask_rat=0.4"], "mask_rate"),
        (["leftover"], "leftover"),
    ],
)
def test_a_bad_flag_is_an_error_that_names_it(arguments, named):
    with pytest.raises(absl_flags.Error) as error:
        parse(*arguments)
    assert named in str(error.value)


@pytest.mark.parametrize("arguments", [["--mask_rate=1.5"], ["--blanks=0"], ["--models=foo"], ["--set=a.b=1"], ["--x"]])
def test_a_bad_flag_prints_one_line_and_exits_with_code_2(arguments):
    code, out, err = command("-m", "experiments.yelp", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")


@pytest.mark.parametrize(
    ("module", "flag"),
    [("yelp", "--mask_rate"), ("evaluate", "--beam_width"), ("run_all", "--seeds"), ("collect", "--cells")],
)
def test_help_shows_the_docstring_and_the_flags(module, flag):
    code, out, err = command("-m", f"experiments.{module}", "--help")
    assert (code, err) == (0, "")
    assert "Command:" in out and flag in out


def test_flags_and_help_need_no_tensorflow():
    code, out, _ = command(
        "-c", "import sys; from experiments import yelp, run_all, evaluate, collect; print('tensorflow' in sys.modules)"
    )
    assert (code, out) == (0, "False\n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--corpus=yelp", "--data_dir=no/such/folder", "--workdir={tmp}/runs"], "no/such/folder"),
        (["--preset=smoke", "--workdir={tmp}/file/runs"], "--workdir"),
    ],
)
def test_a_missing_or_unwritable_folder_prints_one_line_and_exits_with_code_1(tmp_path, arguments, named):
    (tmp_path / "file").touch()
    code, _, err = command("-m", "experiments.yelp", *(argument.format(tmp=tmp_path) for argument in arguments))
    assert (code, err.count("\n")) == (1, 1), err
    assert err.startswith("error: ") and named in err


def test_evaluate_requires_a_finished_cell_with_weights(tmp_path):
    assert command("-m", "experiments.evaluate")[0] == 2
    code, _, err = command("-m", "experiments.evaluate", str(tmp_path))
    assert (code, err.count("\n")) == (1, 1)
    assert "config.json" in err
    cell = next((ROOT / "results" / "cells").glob("yelp.*self_attention*"))  # committed cells have no weights
    code, _, err = command("-m", "experiments.evaluate", str(cell))
    assert (code, err.count("\n")) == (1, 1)
    assert "only metrics: pass the cell's folder in --workdir" in err


@pytest.mark.parametrize(
    ("error", "code"), [("ValueError('two\\nlines')", 1), ("OSError('disk')", 1), ("FloatingPointError('NaN')", 1)]
)
def test_an_error_of_the_run_prints_one_line(error, code):
    script = (
        "from experiments import yelp\nfrom experiments.cells import flags\n"
        f"def run(values): raise {error}\nflags.main(run, yelp.define_flags, '')"
    )
    got, _, err = command("-c", script)
    assert (got, err.count("\n")) == (code, 1)


@pytest.mark.parametrize(
    ("number", "arguments", "code", "hint"),
    [
        (signal.SIGINT, [], 130, "the same command resumes"),
        (signal.SIGTERM, [], 143, "the same command resumes"),
        (signal.SIGTERM, ["--overwrite"], 143, "the same command without --overwrite resumes"),
        (signal.SIGTERM, ["--noresume"], 143, "the same command without --noresume resumes"),
    ],
)
def test_a_stopped_run_says_how_to_resume(number, arguments, code, hint):
    script = (
        "import time; from experiments import yelp\nfrom experiments.cells import flags\n"
        "def run(values): print('running', flush=True); time.sleep(60)\n"
        "flags.main(run, yelp.define_flags, '')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == "running\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.count("\n")) == (code, 1)
    assert hint in err


def test_set_overrides_the_shorthand_flags():
    values = parse("--set=train.epochs=7", "--epochs=3", "--batch_size=50", "--set", "schedule.peak=5e-4")
    hparams = run_hparams("paper", "laptop", flags.assignments(values))
    assert hparams["train"]["epochs"] == 7
    assert hparams["train"]["batch_size"] == 50
    assert hparams["schedule"]["peak"] == 5e-4


def test_omitted_flags_assign_nothing():
    assert flags.assignments(parse()) == []
    assert flags.assignments(parse("--beam_width=4")) == ["decoding.beam_width=4"]


def test_the_default_corpus_of_smoke_is_synthetic():
    assert flags.corpus_name(parse()) == "auto"
    assert flags.corpus_name(parse("--preset=smoke")) == "synthetic"
    assert flags.corpus_name(parse("--preset=smoke", "--corpus=yelp")) == "yelp"


def test_models_keep_their_order_without_duplicates():
    assert flags.models(parse()) == ["template", "seq2seq", "gan", "self_attention"]
    assert flags.models(parse("--models=self_attention, template,self_attention")) == ["self_attention", "template"]


def test_a_named_preset_is_not_changed():
    assert experiment.choose_preset("smoke") == "smoke"


@pytest.mark.parametrize(("devices", "preset"), [([], "laptop"), (["GPU:0"], "full")])
def test_auto_is_full_with_a_gpu_and_laptop_without(monkeypatch, devices, preset):
    import tensorflow as tf

    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices if kind == "GPU" else ["CPU:0"])
    assert experiment.choose_preset("auto") == preset


def test_samples_show_template_infill_and_truth(tmp_path):
    prediction = {"template": "the <m> was good .", "answer": ["soup"], "infill": ["pizza"], "scores": [-0.5]}
    write_jsonl(tmp_path / "predictions.jsonl", [prediction] * 5)
    text = experiment.samples(tmp_path)
    assert text.splitlines()[:3] == [
        "template  the <m> was good .",
        "filled    the [pizza] was good .",
        "truth     the [soup] was good .",
    ]
    assert text.count("filled") == 3


def test_new_metrics_are_shown_next_to_the_stored_ones():
    from experiments.evaluate import compare

    lines = compare({"bleu": 40.0, "sentences": 9}, {"bleu": 41.5, "ppl": 7.25, "sentences": 9}, "beam 4").splitlines()
    assert [line.split() for line in lines] == [
        ["stored", "beam", "4"],
        ["bleu", "40.0000", "41.5000"],
        ["ppl", "-", "7.2500"],
        ["sentences", "9", "9"],
    ]


def test_a_hyperparameter_of_a_model_that_is_not_run_is_an_error():
    parse("--models=self_attention,gan", "--set=gan.weight=0.5", "--set=decoder.num_heads=2")
    with pytest.raises(absl_flags.Error, match="Unknown hyperparameter 'gan'"):
        parse("--models=self_attention", "--set=gan.weight=0.5")
    parse("--models=seq2seq", "--preset=smoke", "--set=encoder.dropout=0.5")
    with pytest.raises(absl_flags.Error, match="decoder.num_heads"):
        parse("--models=seq2seq", "--set=decoder.num_heads=7")
