"""A training that is stopped at the worst moments, in one process, ends with the weights of one that was not."""

import numpy as np
import pytest

from text_infilling.data import synthetic
from text_infilling.data.corpora import Corpus
from text_infilling.training import trainer
from text_infilling.training.callbacks import ResumePoint, Validation
from text_infilling.training.layout import RESUME_POINT, WEIGHTS
from text_infilling.training.protocols import run_hparams
from text_infilling.training.task import Task
from text_infilling.vocabulary import Vocabulary

STEPS = 6  # of an epoch
# The rate rises until the model gets worse, so that early stopping acts after some epochs.
HPARAMS = run_hparams(
    "paper",
    "smoke",
    ["train.epochs=12", "train.batch_size=20", "train.patience=2", "train.resume_seconds=1000.0"]
    + ["decoder.dim=16", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=32"]
    + ["schedule.shape=inverse_sqrt", "schedule.constant=4.0", "schedule.warmup_steps=60"],
)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = list(synthetic.sentences(seed=5, count=140))
    for name, part in (("train", lines[:120]), ("valid", lines[120:130]), ("test", lines[130:])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part))
    files = (folder / f"{name}.txt" for name in ("train", "valid", "test"))
    corpus = Corpus("synthetic", *files, source="test", note="", checksum="")
    return Task(corpus, Vocabulary.build(lines, 1), "random", 0.4, 2, seed=1)


def train(task, folder):
    said = []
    timing = trainer.train(task, "self_attention", HPARAMS, folder, log=said.append)
    model = trainer.load(task, "self_attention", HPARAMS, folder)
    return timing["steps"], [weight.numpy() for weight in model.weights], said


@pytest.fixture(scope="module")
def undisturbed(task, tmp_path_factory):
    return train(task, tmp_path_factory.mktemp("undisturbed"))


def test_stopped_in_an_epoch_in_validation_and_while_saving(task, undisturbed, tmp_path, monkeypatch):
    stops = ["step", "validation", "saving", "epoch end", "finished"]
    seen = []
    batch_end, epoch_end, save = ResumePoint.on_train_batch_end, Validation.on_epoch_end, ResumePoint.save
    last = ResumePoint.on_epoch_end

    def stop(name):
        if stops and stops[0] == name:
            seen.append(stops.pop(0))
            raise KeyboardInterrupt

    def on_train_batch_end(self, batch, logs=None):
        batch_end(self, batch, logs)
        if int(self.model.optimizer.iterations) in (4, 5):
            stop("step")

    def validation_end(self, epoch, logs=None):
        stop("validation")  # before it says anything
        epoch_end(self, epoch, logs)

    def saving(self):
        if self.step == 3:
            stop("saving")
        save(self)

    def point_end(self, epoch, logs=None):
        last(self, epoch, logs)
        stop("epoch end")
        if self.finished:
            stop("finished")

    monkeypatch.setattr(ResumePoint, "on_train_batch_end", on_train_batch_end)
    monkeypatch.setattr(Validation, "on_epoch_end", validation_end)
    monkeypatch.setattr(ResumePoint, "save", saving)
    monkeypatch.setattr(ResumePoint, "on_epoch_end", point_end)
    monkeypatch.setitem(HPARAMS["train"], "resume_seconds", 0.0)  # a point at every step
    for _ in range(10):
        try:
            steps, weights, said = train(task, tmp_path)
            break
        except KeyboardInterrupt:
            assert (tmp_path / RESUME_POINT).exists()
    assert seen == ["step", "validation", "saving", "epoch end", "finished"]
    assert any("going on from" in line for line in said)
    expected_steps, expected, _ = undisturbed
    assert steps == expected_steps < HPARAMS["train"]["epochs"] * STEPS  # early stopping acted, at the same epoch
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_file_of_weights_holds_no_state_of_the_optimizer(task, undisturbed, tmp_path):
    hparams = {**HPARAMS, "train": {**HPARAMS["train"], "epochs": 1}}
    trainer.train(task, "self_attention", hparams, tmp_path, log=lambda line: None)
    model = trainer.load(task, "self_attention", hparams, tmp_path)
    assert (tmp_path / WEIGHTS).stat().st_size < 1.5 * 4 * model.count_params() + 200_000


def test_a_damaged_resume_point_is_told(task, tmp_path):
    (tmp_path / RESUME_POINT).write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(ValueError, match="--noresume"):
        trainer.train(task, "self_attention", HPARAMS, tmp_path, log=lambda line: None)


def test_a_test_sentence_too_long_for_the_base_is_told_before_training(task, tmp_path):
    hparams = {**HPARAMS, "position": {**HPARAMS["position"], "base": 12}}
    with pytest.raises(ValueError, match="position.base"):
        trainer.train(task, "self_attention", hparams, tmp_path, log=lambda line: None)
    assert not list(tmp_path.iterdir())
