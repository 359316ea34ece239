"""Training as a command: it learns, and interrupting it at any point does not change the result."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiments import evaluate, yelp
from experiments.cells import flags
from text_infilling.corpora.synthetic import reviews

ROOT = Path(__file__).resolve().parents[2]
STEPS = 20  # per epoch
# Small enough for a test: 3 epochs of some 20 steps.
SMALL = [
    "--preset=smoke", "--models=template,self_attention", "--epochs=3", "--batch_size=20", "--corpus=yelp",
    "--set=decoder.dim=32", "--set=decoder.num_blocks=1", "--set=decoder.num_heads=2", "--set=decoder.ffn_dim=64",
    "--set=train.min_count=1",
]  # fmt: skip


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A corpus of 400 + 40 + 40 made-up sentences in Yelp's layout."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "yelp").mkdir()
    sentences = list(reviews.sentences(seed=3, count=480))
    for name, part in (("train", sentences[:400]), ("valid", sentences[400:440]), ("test", sentences[440:])):
        (folder / "yelp" / f"{name}.txt").write_text("".join(f"{s}\n" for s in part))
    return folder


def command(data_dir, workdir, *flags):
    flags = [*SMALL, f"--data_dir={data_dir}", f"--workdir={workdir}", *flags]
    return [sys.executable, "-m", "experiments.yelp", *flags]


def start(data_dir, workdir, *flags):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command(data_dir, workdir, *flags), env=environment, cwd=workdir,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_here(data_dir, workdir, *flags_):
    """Runs the same command in this process and returns what it prints."""
    _, _, _, *arguments = command(data_dir, workdir, *flags_)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert not yelp.run(flags.parse(arguments, yelp.define_flags))
    return out.getvalue()


def cell_folder(workdir):
    (folder,) = Path(workdir).glob("yelp/*.self_attention.*")
    return folder


@pytest.fixture(scope="module")
def undisturbed(data_dir, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("undisturbed")
    out = run_here(data_dir, workdir)
    return cell_folder(workdir), out


def test_the_printed_table_has_our_row_and_the_papers(undisturbed):
    folder, out = undisturbed
    assert "Self-attn" in out and "59.192" in out and "protocol paper" in out and "preset smoke" in out
    metrics = json.loads((folder / "metrics.json").read_text())
    for name in ("bleu_paper", "bleu", "ppl_paper", "ppl", "ppl_words"):
        assert np.isfinite(metrics[name])
    predictions = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert len(predictions) == metrics["sentences"] == 40
    assert all(len(p["infill"]) == len(p["scores"]) == p["template"].split().count("<m>") == 2 for p in predictions)
    assert not (folder / "resume.npz").exists()


def test_tensorboard_shows_losses_metrics_rate_infills_and_hparams(undisturbed):
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

    folder, _ = undisturbed
    events = EventMultiplexer().AddRunsFromDirectory(str(folder / "tensorboard"))
    events.Reload()
    tags = {run: set(found["tensors"]) for run, found in events.Runs().items()}
    assert {"epoch_loss", "epoch_learning_rate"} <= tags["train"]
    metrics = {f"epoch_{name}" for name in ("bleu_paper", "bleu", "ppl_paper", "ppl", "ppl_words")}
    assert metrics | {"infills"} <= tags["validation"]
    assert len(events.Tensors("validation", "infills")) == 3
    assert "_hparams_/session_start_info" in tags["."]


def test_a_run_that_was_killed_and_then_interrupted_ends_with_the_same_result(data_dir, tmp_path, undisturbed):
    process = start(data_dir, tmp_path, "--set=train.resume_seconds=0.2")
    wait_for(process, tmp_path, "resume.npz")
    wait_for_step(process, tmp_path, range(1, STEPS // 2))
    process.kill()
    process.communicate(timeout=120)
    folder = cell_folder(tmp_path)

    process = start(data_dir, tmp_path, "--set=train.resume_seconds=600")  # the signal makes a point of its own
    said = next(line for line in process.stdout if "resuming at epoch" in line)
    assert 0 < place_in(said)[1] < STEPS
    assert next(line for line in process.stdout if line.startswith("epoch 1: loss"))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Traceback" not in err, err[-2000:]
    assert not (folder / "metrics.json").exists()

    out = run_here(data_dir, tmp_path)
    assert place_in(out) > place_in(said)
    expected, _ = undisturbed
    for name in ("metrics.json", "predictions.jsonl"):
        assert (folder / name).read_bytes() == (expected / name).read_bytes(), name
    assert weights(folder) == weights(expected)
    assert not (folder / "resume.npz").exists()


def place_in(out):
    """Returns the epoch and step at which a run reports that it resumes."""
    return tuple(map(int, re.search(rf"resuming at epoch (\d+), step (\d+) of {STEPS} ", out).groups()))


def wait_for(process, workdir, name, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"ended too early: {process.communicate()[1][-2000:]}")
        if list(Path(workdir).glob(f"yelp/*.self_attention.*/{name}")):
            return
        time.sleep(0.05)
    pytest.fail(f"no {name} after {seconds} s")


def wait_for_step(process, workdir, steps, seconds=120):
    """Waits for a resume point at one of `steps` of an epoch."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with np.load(cell_folder(workdir) / "resume.npz") as point:
            if json.loads(str(point["state"]))["step"] in steps:
                return
        time.sleep(0.01)
    pytest.fail(f"no resume point at a step of {steps}")


def weights(folder):
    import h5py

    found = {}
    with h5py.File(folder / "best.weights.h5") as file:
        file.visititems(lambda name, x: found.update({name: x[()].tobytes()}) if isinstance(x, h5py.Dataset) else None)
    assert found
    return found


def test_a_finished_cell_is_not_run_again_and_other_settings_are_refused(data_dir, undisturbed):
    folder, _ = undisturbed
    before = (folder / "metrics.json").stat().st_mtime_ns
    assert "is finished" in run_here(data_dir, folder.parents[1])
    assert (folder / "metrics.json").stat().st_mtime_ns == before

    with pytest.raises(ValueError, match="decoder.num_blocks"):
        run_here(data_dir, folder.parents[1], "--set=decoder.num_blocks=2", "--models=self_attention")


def test_a_loss_that_is_nan_or_infinite_ends_with_a_clear_error(data_dir, tmp_path):
    with pytest.raises(ValueError, match="schedule.peak"):  # the command prints only the message
        run_here(data_dir, tmp_path, "--set=schedule.peak=1e9", "--models=self_attention")


def test_a_finished_cell_is_rescored_without_changing_it(undisturbed):
    folder, _ = undisturbed
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    evaluate.run(flags.parse([str(folder), "--beam_width=4"], flags.define_evaluate, ["CELL"]))
    assert {name: (folder / name).read_bytes() for name in before} == before
    stored = json.loads((folder / "metrics.json").read_text())
    rescored = json.loads((folder / "evaluation.test.beam4.json").read_text())
    # The beam changes the infills, not the scores of the true answers.
    for name in ("ppl", "ppl_paper", "ppl_words", "template_bleu_paper"):
        assert rescored[name] == stored[name]
    # The beam finds infills that are more probable on average.
    assert mean_score(folder / "predictions.test.beam4.jsonl") >= mean_score(folder / "predictions.jsonl")


def mean_score(predictions):
    lines = [json.loads(line) for line in predictions.read_text().splitlines()]
    return np.mean([sum(line["scores"]) for line in lines])


def test_the_released_protocol_and_random_masks_run_to_the_end(data_dir, tmp_path):
    more = ["--protocol=released", "--masking=random", "--epochs=1", "--models=self_attention"]
    out = run_here(data_dir, tmp_path, *more)
    assert "protocol released" in out and "masking random" in out and "for other masks" in out
    metrics = json.loads((cell_folder(tmp_path) / "metrics.json").read_text())
    assert metrics["ppl_paper"] > 1
