"""Training that is interrupted at the worst moments, in one process, gives the weights of uninterrupted training."""

import dataclasses
import functools
import json
import shutil
import types
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer

from text_infilling.configs.defaults import MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.corpora.synthetic import reviews
from text_infilling.hparams import merge
from text_infilling.models.gan import GANModel
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.runs.layout import RESUME_POINT, WEIGHTS
from text_infilling.templates import TemplateFormat
from text_infilling.training import optimizers, trainer
from text_infilling.training.callbacks import BestWeights, Validation
from text_infilling.training.resume import ResumePoint
from text_infilling.training.task import Task
from text_infilling.training.trainer import TrainingRun
from text_infilling.vocabulary import Vocabulary

STEPS = 6  # of an epoch
SIZES = ["decoder.dim=16", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=32"]
# The rate rises until the model gets worse, so that early stopping ends training after some epochs.
ASSIGNMENTS = [
    *SIZES, "train.epochs=12", "train.batch_size=20", "train.patience=2", "train.resume_seconds=1000.0",
    "embedder.dim=16", "encoder.units=16", "decoder.units=16", "gan.discriminator_dim=8", "gan.adversarial_epochs=0.7",
    "schedule.shape=inverse_sqrt", "schedule.scale=4.0", "schedule.warmup_steps=60",
    "gan.weight=1000.0",  # so large that the adversarial phase spoils the generator
]  # fmt: skip
OPTIMIZERS = {"self_attention": "muon", "seq2seq": "adam", "gan": "adam"}
HPARAMS = {
    model: run_hparams("paper", "smoke", [*ASSIGNMENTS, f"optimizer.name={name}"], model=model, models=MODELS)
    for model, name in OPTIMIZERS.items()
}
# Moments to stop at, one after the other. Of the GAN only those of its second phase: its first is as any training.
STOPS = {
    "self_attention": ["validation", "saving", "epoch end", "finished"],
    "gan": ["begin", "begun", "step", "adversarial validation"],
}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = list(reviews.sentences(seed=5, count=140))
    for name, part in (("train", lines[:120]), ("valid", lines[120:130]), ("test", lines[130:])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in part))
    files = (folder / f"{name}.txt" for name in ("train", "valid", "test"))
    corpus = Corpus("synthetic", *files, source="test", note="", checksum="")
    return Task(corpus, Vocabulary.build(lines, 1), "fixed", 0.4, 2, seed=1)


def train(task, folder, model):
    said = []
    _, timing = trainer.train(TrainingRun(task, model, HPARAMS[model], folder, log=said.append))
    loaded = trainer.load(task, model, HPARAMS[model], folder)
    check_size(folder, loaded)
    return timing["steps"], [weight.numpy() for weight in loaded.weights], said


@dataclasses.dataclass
class Undisturbed:
    """A training that nothing stopped: its folder, steps and weights, and for each epoch `val_ppl` and the weights."""

    folder: Path
    steps: int = 0
    traces: int = 0  # of the training step
    weights: list = dataclasses.field(default_factory=list)
    after_epoch: list = dataclasses.field(default_factory=list)
    pretraining_epochs: int = 0
    begun_from: np.ndarray | None = None  # weights at the start of the adversarial phase


def trainable(model):
    """All trainable weights in one row."""
    return np.concatenate([weight.numpy().ravel() for weight in model.trainable_variables])


@pytest.fixture(scope="module")
def undisturbed(task, tmp_path_factory):
    """`undisturbed(model)`: such a training, made once."""

    @functools.cache
    def made(model):
        run = Undisturbed(tmp_path_factory.mktemp("undisturbed"))
        epoch_end, begin, loss = Validation.on_epoch_end, ResumePoint.next_phase, InfillingModel.compute_loss

        def compute_loss(self, *args, **kwargs):
            run.traces += 1
            return loss(self, *args, **kwargs)

        def validation_end(self, epoch, logs=None):
            epoch_end(self, epoch, logs)
            run.after_epoch.append((logs["val_ppl"], trainable(self.model)))

        def begin_adversarial(self):
            run.pretraining_epochs, run.begun_from = len(run.after_epoch), trainable(self.model)
            begin(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Validation, "on_epoch_end", validation_end)
            patch.setattr(ResumePoint, "next_phase", begin_adversarial)
            patch.setattr(InfillingModel, "compute_loss", compute_loss)
            run.steps, run.weights, _ = train(task, run.folder, model)
        return run

    return made


@pytest.mark.parametrize("model", STOPS)
def test_interrupted_training_gives_the_same_weights(task, tmp_path, undisturbed, monkeypatch, model):
    expected_steps, expected = undisturbed(model).steps, undisturbed(model).weights

    stops, seen = list(STOPS[model]), []
    batch_end, epoch_end, save = ResumePoint.on_train_batch_end, Validation.on_epoch_end, ResumePoint.save
    last, begin = ResumePoint.on_epoch_end, ResumePoint.next_phase

    def stop(name):
        if stops and stops[0] == name:
            seen.append(stops.pop(0))
            raise KeyboardInterrupt

    def on_train_batch_end(self, batch, logs=None):
        batch_end(self, batch, logs)
        if self.step == 4 and self.phase:
            stop("step")

    def validation_end(self, epoch, logs=None):
        adversarial = getattr(self.model, "adversarial", False)
        stop("adversarial validation" if adversarial else "validation")  # before it says anything
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

    def begin_adversarial(self):
        stop("begin")  # the selected weights are loaded
        begin(self)
        stop("begun")

    monkeypatch.setattr(ResumePoint, "next_phase", begin_adversarial)
    monkeypatch.setattr(ResumePoint, "on_train_batch_end", on_train_batch_end)
    monkeypatch.setattr(Validation, "on_epoch_end", validation_end)
    monkeypatch.setattr(ResumePoint, "save", saving)
    monkeypatch.setattr(ResumePoint, "on_epoch_end", point_end)
    monkeypatch.setitem(HPARAMS[model]["train"], "resume_seconds", 0.0)  # a point at every step
    for _ in range(len(stops) + 1):
        try:
            steps, weights, said = train(task, tmp_path, model)
            break
        except KeyboardInterrupt:
            assert (tmp_path / RESUME_POINT).exists()
    assert seen == STOPS[model]
    assert any("resuming at epoch" in line for line in said)
    assert steps == expected_steps
    epochs = undisturbed(model).pretraining_epochs or steps // STEPS
    assert epochs < HPARAMS[model]["train"]["epochs"]  # early stopping acted
    for ours, theirs in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_training_step_is_traced_once_for_batches_of_all_widths_and_all_epochs(task, undisturbed):
    hparams = HPARAMS["self_attention"]
    pipeline = task.pipeline("train", TemplateFormat.from_hparams(hparams), hparams["train"]["batch_size"])
    batches = pipeline.training(task.survey("train").lines, task.seed, range(2))
    assert len({tuple(examples["template_ids"].shape) for examples in batches}) > 2
    assert len(undisturbed("self_attention").after_epoch) > 2 and undisturbed("self_attention").traces == 1


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_a_model_is_trained_by_the_papers_adam(task, protocol):
    """Appendix A, "Optimizing"."""
    hparams = run_hparams(protocol, "full", [*SIZES, "optimizer.beta_1=0.8"])
    optimizer = trainer.compiled_model(task, "self_attention", hparams, steps=10).optimizer
    assert type(optimizer) is optimizers.Adam
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.8, 0.997, 1e-9)
    full = run_hparams(protocol, "full")["optimizer"]
    assert full.items() >= {"name": "adam", "beta_1": 0.9, "beta_2": 0.997, "epsilon": 1e-9}.items()
    schedule = optimizer._learning_rate.get_config()
    assert schedule["hparams"] == hparams["schedule"] and (schedule["dim"], schedule["total_steps"]) == (16, 10)


@pytest.mark.parametrize(
    ("model", "by_adam"),
    [("self_attention", {"embedding"}), ("seq2seq", {"embedding", "output_kernel"})],
)
def test_muon_moves_all_matrices_except_those_with_one_row_per_word(task, model, by_adam):
    chosen = ["name=muon", "beta_1=0.8", "adam_lr_ratio=0.25", "ns_steps=4", "weight_decay=0.5"]
    hparams = run_hparams("paper", "smoke", [f"optimizer.{each}" for each in chosen], model=model)
    compiled = trainer.compiled_model(task, model, hparams, steps=10)
    optimizer, weights = compiled.optimizer, compiled.trainable_variables
    assert type(optimizer) is optimizers.Muon
    assert (optimizer.adam_beta_1, optimizer.adam_beta_2, optimizer.epsilon) == (0.8, 0.98, 1e-9)
    assert (optimizer.adam_lr_ratio, optimizer.ns_steps) == (0.25, 4)
    with_second_moments = {id(w) for w, v in zip(weights, optimizer.adam_velocities, strict=True) if v is not None}
    matrices = {id(w) for w in weights if len(w.shape) == 2 and w.name not in by_adam}
    assert matrices and with_second_moments == {id(w) for w in weights} - matrices

    rate, before = float(optimizer.learning_rate), [w.numpy() for w in weights]
    optimizer.apply([tf.zeros_like(w) for w in weights], weights)  # so that nothing moves but by decay
    for weight, earlier in zip(weights, before, strict=True):
        left = 1 - 0.5 * rate if id(weight) in matrices else 1.0
        np.testing.assert_allclose(weight.numpy(), left * earlier, rtol=1e-6)


@pytest.mark.parametrize(("select", "expected"), [("best", 1.0), ("last", 2.0)])
def test_the_saved_weights_are_those_of_the_selected_epoch(tmp_path, select, expected):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.OPTIMIZERS = ()
    best = BestWeights(tmp_path / WEIGHTS, select)
    best.set_model(model)
    for epoch, ppl in enumerate([9.0, 5.0, 7.0]):
        model.set_weights([np.full((1, 1), epoch)])
        best.on_epoch_end(epoch, {"val_ppl": ppl})
    assert best.best == 5.0
    model.load_weights(tmp_path / WEIGHTS)
    assert model.get_weights()[0] == expected


def test_early_stopping_ends_a_training_whose_best_weights_are_an_earlier_epochs(task, undisturbed):
    run = undisturbed("self_attention")
    best = best_of(run.after_epoch)
    assert best == len(run.after_epoch) - 1 - HPARAMS["self_attention"]["train"]["patience"]
    np.testing.assert_array_equal(selected(task, run, "self_attention"), run.after_epoch[best][1])


def test_the_adversarial_phase_begins_from_the_best_weights_and_selects_among_its_own(task, undisturbed):
    run = undisturbed("gan")
    pretraining, adversarial = run.after_epoch[: run.pretraining_epochs], run.after_epoch[run.pretraining_epochs :]
    best = best_of(pretraining)
    assert best < len(pretraining) - 1
    np.testing.assert_array_equal(run.begun_from, pretraining[best][1])
    chosen = best_of(adversarial)
    assert len(adversarial) > 1 and adversarial[chosen][0] > pretraining[best][0]
    np.testing.assert_array_equal(selected(task, run, "gan"), adversarial[chosen][1])


def best_of(after_epoch):
    """The epoch of the lowest perplexity."""
    return min(range(len(after_epoch)), key=lambda epoch: after_epoch[epoch][0])


def selected(task, run, model):
    """The weights that a training has left, in one row."""
    return trainable(trainer.load(task, model, HPARAMS[model], run.folder))


def test_the_adversarial_phase_is_shown(undisturbed):
    run = undisturbed("gan")

    events = EventMultiplexer().AddRunsFromDirectory(str(run.folder / "tensorboard"))
    events.Reload()
    tags = set().union(*(found["tensors"] for found in events.Runs().values()))
    shown = ("d_loss", "g_loss", "temperature", "distinct_1", "distinct_2", *GANModel.DIAGNOSTICS)
    assert {f"epoch_{name}" for name in shown} <= tags
    temperatures = [tf.make_ndarray(event.tensor_proto) for event in events.Tensors("train", "epoch_temperature")]
    epochs = len(run.after_epoch) - run.pretraining_epochs
    of_steps = np.geomspace(1, 0.1, epochs * STEPS).reshape(epochs, STEPS)  # shown: the mean of an epoch
    np.testing.assert_allclose(temperatures, of_steps.mean(axis=1), rtol=1e-5)
    assert epochs > 1


def test_noresume_starts_afresh_and_results_in_16_bits_are_those_of_plain_float32(task, tmp_path, undisturbed):
    hparams = merge({"train": {"epochs": 1}}, HPARAMS["self_attention"])
    shutil.copy(undisturbed("self_attention").folder / RESUME_POINT, tmp_path)
    said = []
    run = TrainingRun(task, "self_attention", hparams, tmp_path, said.append, resume=False, mixed_precision=True)
    evaluator, timing = trainer.train(run)
    assert timing["steps"] == STEPS and not any("resuming" in line for line in said)
    assert evaluator.model.compute_dtype == "float32"
    for weight, loaded in zip(evaluator.model.weights, trainer.load(task, "self_attention", hparams, tmp_path).weights):
        np.testing.assert_array_equal(weight, loaded)


def test_a_full_disk_is_reported_before_training(task, tmp_path, monkeypatch):
    full = types.SimpleNamespace(f_bavail=0, f_frsize=4096)
    monkeypatch.setattr(trainer.os, "statvfs", lambda path: full)
    with pytest.raises(OSError, match=r"needs \d+ MiB, 0 MiB are free: make room"):
        train(task, tmp_path, "self_attention")


def check_size(folder, model):
    """The file of weights holds no state of an optimizer."""
    assert (folder / WEIGHTS).stat().st_size < 1.5 * 4 * model.count_params() + 200_000


def test_a_damaged_resume_point_is_reported(task, tmp_path):
    (tmp_path / RESUME_POINT).write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(ValueError, match="remove this file, and the same command starts from the first epoch"):
        trainer.train(TrainingRun(task, "self_attention", HPARAMS["self_attention"], tmp_path))


def test_a_test_sentence_too_long_for_the_base_is_reported_before_training(task, tmp_path):
    hparams = merge({"position": {"base": 12}}, HPARAMS["self_attention"])
    with pytest.raises(ValueError, match="position.base"):
        trainer.train(TrainingRun(task, "self_attention", hparams, tmp_path))
    assert not list(tmp_path.iterdir())


STATE = {
    "epoch": 1, "step": 2, "phase": 0, "phase_start": 0, "finished": False, "seconds": 1.5, "callbacks": None
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([], "it is not an object"),
        ({**STATE, "step": "2"}, "step must be int"),
        ({**STATE, "finished": 1}, "finished must be bool"),
        ({**STATE, "callbacks": [{"best": 1}]}, "callbacks must be dict or null"),
        ({**STATE, "callbacks": {"other": {"best": 1}}}, "it has no selection"),
        ({**STATE, "callbacks": {"selection": {"wait": 1}}}, "it has no selection.best"),
        ({**STATE, "callbacks": {"selection": {"best": "os"}}}, "selection.best must be"),
        ({name: value for name, value in STATE.items() if name != "epoch"}, "it has no epoch"),
        ({**STATE, "path": "/elsewhere", "save": 1, "_stateful": {}}, None),
        ({**STATE, "callbacks": {"selection": {"best": 1.0, "model": 1}, "other": {}}}, None),
    ],
)
def test_of_a_resume_point_nothing_is_restored_but_its_numbers(tmp_path, state, message):
    callback = keras.callbacks.Callback()
    point = ResumePoint(tmp_path / RESUME_POINT, 5, 60, {"selection": (callback, ["best"])})
    variable = keras.Variable([1.0])
    point.set_model(types.SimpleNamespace(OPTIMIZERS=(), variables=[variable], metrics_variables=[]))
    np.savez(point.path, state=json.dumps(state), variable_0=[2.0])
    if message:
        with pytest.raises(ValueError, match=f"{point.path} is not a resume point of this run .*{message}"):
            point.restore()
        assert variable.numpy() == [1.0]
    else:
        before = point.path, point.save, point._stateful
        assert point.restore() and (point.epoch, point.step, point.seconds) == (1, 2, 1.5)
        assert (point.path, point.save, point._stateful) == before and variable.numpy() == [2.0]
        point.on_train_begin()
        assert vars(callback).get("best") == (state["callbacks"] and 1.0) and vars(callback)["_model"] is None


def test_a_resume_point_is_never_unpickled(tmp_path):
    class Evil:
        def __reduce__(self):
            return Path.touch, (tmp_path / "unpickled",)

    point = ResumePoint(tmp_path / RESUME_POINT, 5, 60, {})
    point.set_model(types.SimpleNamespace(OPTIMIZERS=(), variables=[keras.Variable([1.0])], metrics_variables=[]))
    np.savez(point.path, state=json.dumps(STATE), variable_0=np.array([Evil()], object))
    with pytest.raises(ValueError, match="is not a resume point of this run"):
        point.restore()
    assert not (tmp_path / "unpickled").exists()
