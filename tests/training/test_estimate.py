"""Estimates of the time of a training run: from its work, and from measured steps."""

import pytest

from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.corpora.synthetic import reviews
from text_infilling.models.registry import MODELS
from text_infilling.training import estimate
from text_infilling.training.cost import Plan, training_flop
from text_infilling.training.task import Task
from text_infilling.vocabulary import Vocabulary

HPARAMS = run_hparams(
    "paper", "smoke", ["embedder.dim=8", "encoder.units=8", "decoder.units=8", "train.batch_size=10"], model="gan"
)
PLAN = Plan(8, 2)  # and two adversarial epochs


@pytest.fixture
def task(tmp_path):
    lines = list(reviews.sentences(seed=5, count=160))
    paths = [tmp_path / f"{name}.txt" for name in ("train", "valid", "test")]
    for path, part in zip(paths, (lines[:120], lines[120:150], lines[150:])):
        path.write_text("".join(f"{line}\n" for line in part), "utf-8")
    return Task(Corpus("synthetic", *paths, "test", "", str(tmp_path)), Vocabulary.build(lines, 1), "fixed", 0.4, 2, 1)


def test_a_short_training_is_estimated_from_its_work_and_not_measured(task, monkeypatch):
    monkeypatch.setattr(estimate, "gemm_flops", lambda size, repeats: 1e9)
    work = training_flop(MODELS["gan"], HPARAMS, len(task.vocabulary), task.survey("train"), 2, (8, 2)) / 2
    monkeypatch.setattr(estimate, "_ends_of_steps", None)  # it would fail
    assert estimate.estimate_seconds(task, HPARAMS, PLAN, "gan") == pytest.approx(work / 0.6e9)


def test_a_long_training_is_estimated_from_the_steps_of_each_phase_and_its_validations(task, monkeypatch):
    """Each step has about 10 sentences and takes 1 s before the adversarial phase, 3 s in it."""
    monkeypatch.setattr(estimate, "SHORT", 0.0)
    phases = []

    def ends(model, batches):
        assert len(list(batches)) == estimate.WARMUP + estimate.STEPS
        phases.append(model.adversarial)
        return [(3.0 if model.adversarial else 1.0) * step for step in range(estimate.WARMUP + estimate.STEPS)]

    monkeypatch.setattr(estimate, "_ends_of_steps", ends)
    seconds = estimate.estimate_seconds(task, HPARAMS, PLAN, "gan")
    assert phases == [False, True]
    sentences = 120 / 2 + 30  # of half a pass and a validation
    assert seconds == pytest.approx((8 * 1 + 2 * 3) * sentences / 10, rel=0.1)


def test_steps_are_timed_one_by_one(task):
    model = estimate.compiled_model(task, "seq2seq", run_hparams("paper", "smoke", model="seq2seq"), 10)
    batches = task.pipeline("train", model.template_format, 60).training(120, 1, range(1))
    ends = estimate._ends_of_steps(model, batches)
    assert len(ends) == 2 and ends[0] < ends[1]
