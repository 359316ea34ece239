"""The tuning command: the same space for all models, and trials that are run once."""

import csv

import pytest

from experiments import tune
from experiments.cells import flags
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import TUNED
from text_infilling.configs.protocols import run_hparams
from text_infilling.hparams import flatten
from text_infilling.training.evaluation import Evaluator


@pytest.mark.parametrize("model", MODELS)
def test_trials_are_valid_and_drawn_from_one_space(model):
    keys = None
    optimizers = []
    for number in range(1, 9):
        assignments = tune.drawn(model, number)
        assert assignments == tune.drawn(model, number) != tune.drawn(model, number + 1)
        for preset in tune.WIDTHS:
            tune.hparams_of(tune.Trial(model, number), preset)  # raises ValueError if it is not valid
        hparams = run_hparams("paper", "laptop", assignments, model, task="yelp")
        optimizers.append(hparams["optimizer"]["name"])
        names = [assignment.partition("=")[0] for assignment in assignments]
        keys = keys or names
        assert names == keys
    assert sorted(optimizers) == ["adam"] * 4 + ["muon"] * 4
    shared = {"optimizer.name", "schedule.peak", "train.batch_size"}
    assert shared <= set(keys)


def test_every_winner_in_the_presets_can_be_a_trial():
    for model, winner in TUNED.items():
        keys = {assignment.partition("=")[0] for assignment in tune.drawn(model, 1)}
        assert set(flatten(winner)) <= keys, "a key of the winner is not in the search space"


def test_with_all_models_each_has_had_the_same_number_of_trials():
    trials = tune.order(MODELS, 8)
    assert len(trials) == 24
    for stop in range(len(trials)):
        counts = [sum(trial.model == model for trial in trials[:stop]) for model in MODELS]
        assert max(counts) - min(counts) <= 1


def test_a_finished_trial_is_not_run_again_and_the_test_split_is_never_decoded(tmp_path, monkeypatch, capsys):
    small = ["encoder.units=8", "decoder.units=8", "embedder.dim=8", "train.batch_size=200"]
    monkeypatch.setattr(tune, "drawn", lambda model, number, preset: [*small, f"schedule.peak={0.001 * number}"])
    seen = []
    for name in ("fills", "perplexities", "diagnostics"):
        plain = getattr(Evaluator, name)
        monkeypatch.setattr(Evaluator, name, lambda self, split, plain=plain: seen.append(split) or plain(self, split))
    arguments = [f"--workdir={tmp_path}/runs", f"--results_dir={tmp_path}/results", "--corpus=synthetic"]
    values = flags.parse(
        ["--model=seq2seq", "--preset=smoke", "--trials=2", "--budget=0.001", *arguments], tune.define_flags
    )
    tune.run(values)
    assert set(seen) == {"valid"}
    out = capsys.readouterr().out
    assert "trial 1 of 2, about " in out and "left for all trials" in out and "best trial of seq2seq: " in out
    with open(tmp_path / "results" / "tuning.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["trial"] for row in rows) == ["1", "2"]
    assert float(rows[0]["ppl"]) <= float(rows[1]["ppl"])
    assert all(abs(float(row["train_tflop"]) / 0.001 - 1) < 0.1 for row in rows)
    page = (tmp_path / "results" / "tuning.md").read_text("utf-8")
    assert all(small_ in page for small_ in small)

    del seen[:]
    tune.run(values)
    assert not seen
