"""Errors and help texts that need no TensorFlow, the imports of filling, and resuming after SIGTERM."""

import importlib.metadata
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from text_infilling.app import cli

ROOT = Path(__file__).resolve().parents[2]


def environment(folder=None):
    """Returns the environment of a child process, which finds modules in `folder` before all others."""
    found = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return {**found, "PYTHONPATH": ":".join(map(str, [*([folder] if folder else []), ROOT]))}


@pytest.fixture(scope="module")
def no_tensorflow(tmp_path_factory):
    """A folder with a `tensorflow` and a `keras` whose import ends the process."""
    folder = tmp_path_factory.mktemp("modules")
    for name in ("tensorflow", "keras"):
        (folder / f"{name}.py").write_text(f"import os\nos.write(2, b'{name} is imported')\nos._exit(99)\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def folders(infiller_run, tmp_path_factory):
    """A run, damaged runs, a text file, and a path for a new run."""
    folder = tmp_path_factory.mktemp("folders")

    def damaged(name, file, content):
        run = shutil.copytree(infiller_run, folder / name)
        (run / file).write_bytes(content)
        return run

    config = json.loads((infiller_run / "config.json").read_text("utf-8"))
    config["cell"]["model"] = "template"
    (folder / "texts.txt").write_text("one\ntwo\n", "utf-8")
    return {
        "RUN": infiller_run,
        "NO_JSON": damaged("no_json", "config.json", b"{"),
        "NO_MODEL": damaged("no_model", "config.json", json.dumps(config).encode()),
        "NO_VOCABULARY": damaged("no_vocabulary", "vocabulary.txt", b"\xff"),
        "OTHER_VOCABULARY": damaged("other_vocabulary", "vocabulary.txt", b"other\n"),
        "NO_WEIGHTS": damaged("no_weights", "best.weights.h5", b"weights"),
        "TEXTS": folder / "texts.txt",
        "OUT": folder / "out",
    }


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("text_infilling --help", 0, ""),
        ("text_infilling --version", 0, ""),
        ("text_infilling fill --help", 0, ""),
        ("text_infilling export", 1, "give --out to export the base model"),
        ("text_infilling fill --run=nowhere x", 1, "nowhere has no config.json"),
        ("text_infilling fill --run=NO_JSON x", 1, "config.json"),
        ("text_infilling fill --run=NO_MODEL x", 1, "cell.model must be one of self_attention"),
        ("text_infilling fill --run=NO_VOCABULARY x", 1, "is not a vocabulary with one word per line"),
        ("text_infilling fill --run=OTHER_VOCABULARY x", 1, "is not the one that"),
        ("text_infilling fill --run=NO_WEIGHTS x", 1, "does not hold the weights of the self_attention model"),
        ("text_infilling fill --run=RUN --file=nowhere", 1, "cannot read nowhere"),
        ("text_infilling fill --run=RUN --top_p=3 x", 1, "top_p must be from 1e-30 to 1. Received: top_p=3.0"),
        ("text_infilling fill --run=RUN --num_results=0 x", 1, "num_results must be a whole number from 1"),
        ("text_infilling fill --run=RUN --seed=1 --beam_width=2 x", 1, "beam_width cannot be combined"),
        ('text_infilling fill --run=RUN --limits={"max_word":3} x', 1, "did you mean 'max_words'?"),
        ("text_infilling serve --run=nowhere --port=0", 1, "nowhere has no config.json"),
        ("text_infilling info nowhere", 1, "nowhere has no config.json"),
        ("text_infilling info NO_JSON", 1, "config.json"),
        ("text_infilling export nowhere", 1, "nowhere has no config.json"),
        ("text_infilling export RUN --format=keras --out=x.h5", 1, "the name of a Keras file must end in .keras"),
        ("text_infilling export RUN --out=TEXTS", 1, "already exists"),
        ("text_infilling fit nowhere --out=OUT", 1, "nowhere does not exist"),
        ("text_infilling fit TEXTS --out=OUT --mask_rate=2", 1, "mask_rate must be a number"),
        ("text_infilling fit TEXTS --out=OUT --mask_rate=low-high", 2, "expected a fraction like 0.3 or a range"),
        ("text_infilling fit TEXTS --out=OUT --init_from=nowhere", 1, "nowhere has no config.json"),
        ("text_infilling fit TEXTS --out=OUT --init_from=RUN --model=gan", 1, "give model=self_attention"),
        ("text_infilling fit TEXTS --out=OUT --set=train.epoch=1", 1, "train.epoch"),
        ("experiments.yelp --help", 0, ""),
        ("experiments.yelp --mask_rate=1.5", 2, "must be between 0 and 1"),
        ("experiments.evaluate nowhere", 1, "nowhere has no config.json"),
        ("experiments.run_all --preset=foo", 2, "--preset=foo"),
        ("benchmarks.fill --preset=foo", 2, "invalid choice: 'foo'"),
    ],
)
def test_help_and_early_errors_do_not_import_tensorflow(no_tensorflow, folders, tmp_path, command, code, message):
    words = [
        "=".join(str(folders.get(part, part)) for part in word.split("=", maxsplit=1))
        if word.startswith("--") else str(folders.get(word, word))
        for word in command.split()
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tmp_path, env=environment(no_tensorflow), capture_output=True, text=True
    )
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert code != 1 or done.stderr.count("\n") == 1
    assert not folders["OUT"].exists()


@pytest.mark.parametrize("version", ["1.2.3", None])
def test_the_version_is_that_of_the_installed_package(monkeypatch, capsys, version):
    def installed(name):
        assert name == "text_infilling"
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"text-infill {version or '(not installed)'}\n"


NOT_FOR_FILLING = (
    "text_infilling.training.task", "text_infilling.training.trainer", "text_infilling.training.callbacks",
    "text_infilling.corpora", "text_infilling.data", "text_infilling.metrics", "text_infilling.app.fitting",
    "text_infilling.app.server",
    "tensorflow_text", "tensorboard", "sacrebleu", "nltk", "http.server", "starlette", "uvicorn",
)  # fmt: skip


def test_filling_prints_only_the_text_and_imports_no_training_code(infiller_run):
    script = (
        "import sys\nfrom text_infilling.app import cli\n"
        "try:\n    cli.main(sys.argv[1:])\n"
        f"finally:\n    print([name for name in {NOT_FOR_FILLING} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "fill", "--run", str(infiller_run), "The ____ was good."],
        env=environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    filled, imported = done.stdout.splitlines()
    assert filled.startswith("The ") and imported == "[]"


def test_after_sigterm_the_same_fit_command_resumes_at_the_step_where_it_stopped(tmp_path):
    lines = [f"gardener {i} waters the {what} in the evening ." for i in range(40) for what in ("roses", "beans")]
    (tmp_path / "texts.txt").write_text("\n".join(lines), "utf-8")
    settings = ["decoder.dim=8", "decoder.num_heads=1", "decoder.ffn_dim=8", "decoder.num_blocks=1"]
    settings += ["train.batch_size=8", "train.epochs=1000", "train.patience=0", "train.resume_seconds=3600"]
    command = [
        sys.executable, "-m", "text_infilling", "fit", "texts.txt", "--out=run", *(f"--set={s}" for s in settings),
    ]  # fmt: skip

    def stopped_after(beginning):
        """Runs the command, sends SIGTERM after a line with this beginning, and returns all lines of stdout."""
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].startswith(beginning):
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err.count("\n")) == (143, 1), err
        assert err.startswith("stopped by SIGTERM: the same command resumes where it stopped")
        return [*lines, *out.splitlines()]

    first = stopped_after("epoch 2:")
    epoch, step = re.fullmatch(r"stopped in epoch (\d+) at step (\d+); .*", first[-1]).groups()
    resumed = next(line for line in stopped_after("resuming at") if line.startswith("resuming at"))
    assert resumed.startswith(f"resuming at epoch {epoch}, step {step} of ")
