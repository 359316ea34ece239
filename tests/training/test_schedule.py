"""Learning-rate schedules, protocols and presets; each default is written once."""

import numpy as np
import pytest
from golden import golden

from text_infilling.configs.defaults import MODELS
from text_infilling.configs.presets import PRESETS
from text_infilling.configs.protocols import PROTOCOLS, run_hparams
from text_infilling.hparams import flatten
from text_infilling.models.gan import GANModel
from text_infilling.training.schedule import WarmupSchedule


@pytest.mark.parametrize(
    "name, dim, model",
    [
        ("self_attn_d400", 400, "self_attention"),
        ("self_attn_d512", 512, "self_attention"),
        ("seq2seq_d400", 400, "seq2seq"),
        ("gan_d400", 400, "gan"),
    ],
)
def test_inverse_sqrt_equals_the_original(name, dim, model):
    data = golden("noam")
    hparams = run_hparams("released", "full", model=model)["schedule"]
    schedule = WarmupSchedule(dim, total_steps=1, hparams=hparams)
    rates = [float(schedule(step)) for step in data["steps"]]
    np.testing.assert_allclose(rates, data[name], rtol=1e-5)


def test_under_paper_the_first_update_is_step_1():
    hparams = run_hparams("paper", "full")["schedule"]
    schedule = WarmupSchedule(400, total_steps=1, hparams=hparams)
    assert float(schedule(0)) == pytest.approx(0.3 * 400**-0.5 / 10000**1.5)
    assert float(schedule(9999)) == pytest.approx(0.3 * 400**-0.5 / 10000**0.5)  # the peak
    assert float(schedule(39999)) == pytest.approx(0.3 * 400**-0.5 / 40000**0.5)


def test_linear_rises_to_its_peak_and_falls_to_zero():
    schedule = WarmupSchedule(8, 100, {"shape": "linear", "peak": 0.5, "warmup_steps": 10})
    rates = [float(schedule(step)) for step in range(102)]
    assert rates[0] == pytest.approx(0.05) and rates[9] == pytest.approx(0.5) == max(rates)
    assert rates[55] == pytest.approx(0.25) and rates[99] > 0 and rates[100] == rates[101] == 0


def test_a_schedule_is_restored_from_its_config():
    schedule = WarmupSchedule(8, 100, {"shape": "linear"})
    again = WarmupSchedule.from_config(schedule.get_config())
    assert float(again(50)) == float(schedule(50))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("task", ["own", "yelp"])
def test_a_preset_changes_sizes_batch_optimizer_schedule_epochs_and_patience_only(model, protocol, preset, task):
    before = flatten(run_hparams(protocol, "full", model=model, task=task))
    after = flatten(run_hparams(protocol, preset, model=model, task=task))
    changed = {key for key in before if after[key] != before[key]}
    assert {key for key in changed if key.split(".")[0] not in ("schedule", "optimizer")} <= {
        "decoder.dim", "decoder.num_blocks", "decoder.num_heads", "decoder.ffn_dim",
        "embedder.dim", "encoder.units", "decoder.units", "gan.discriminator_dim", "classifier.filters",
        "train.epochs", "train.batch_size", "train.patience",
    }  # fmt: skip


def test_an_assignment_applies_to_the_models_that_have_its_key():
    assignments = ["decoder.num_blocks=1", "gan.weight=0.5", "train.epochs=2"]
    hparams = {model: run_hparams("paper", "full", assignments, model=model, models=MODELS) for model in MODELS}
    assert hparams["self_attention"]["decoder"]["num_blocks"] == 1
    assert hparams["gan"]["gan"]["weight"] == 0.5
    assert "gan" not in hparams["seq2seq"] and "num_blocks" not in hparams["seq2seq"]["decoder"]
    assert all(each["train"]["epochs"] == 2 for each in hparams.values())
    with pytest.raises(ValueError, match="gan.wait"):
        run_hparams("paper", "full", ["gan.wait=1"], model="gan", models=MODELS)
    with pytest.raises(ValueError, match="gan"):
        run_hparams("paper", "full", ["gan.weight=1.0"], model="seq2seq")


@pytest.mark.parametrize(
    "model, assignment, word",
    [
        ("seq2seq", "encoder.units=8", "decoder.units must equal"),
        ("seq2seq", "embedder.dim=7", "even"),
        ("seq2seq", "encoder.length=all", "sentence"),
        ("gan", "gan.objective=wasserstein", "standard"),
        ("seq2seq", "optimizer.name=sgd", "muon"),
        ("gan", "gan.temperature_floor=0.0", "temperature_floor"),
        ("gan", "classifier.kernel_sizes=[3, 0]", "kernel_sizes"),
    ],
)
def test_a_wrong_value_of_a_model_specific_key_is_reported_with_its_key(model, assignment, word):
    with pytest.raises(ValueError, match=word):
        run_hparams("paper", "laptop", [assignment], model=model)


@pytest.mark.parametrize(
    "assignment, word",
    [
        ("train.batch_size=0", "train.batch_size"),
        ("train.epochs=0", "train.epochs"),
        ("decoding.beam_width=0", "decoding.beam_width"),
        ("decoding.max_length=-1", "decoding.max_length"),
        ("loss.label_smoothing=1.0", "less than 1"),
        ("schedule.shape=cubic", "linear"),
        ("decoder.num_heads=3", "num_heads"),
        ("schedule.warmup=3", "schedule.warmup_steps"),
        ("train.epochs=2.5", "train.epochs"),
    ],
)
def test_a_wrong_value_is_reported_with_its_key(assignment, word):
    with pytest.raises(ValueError, match=word):
        run_hparams("paper", "laptop", [assignment])


# docs/fidelity.md, rows 1 to 3, 17, 20, 24 and 25
@pytest.mark.parametrize(
    ("task", "model", "expected"),
    [
        ("grimm", "self_attention", {"schedule.scale": 0.08, "train.batch_size": 150, "train.epochs": 350}),
        ("grimm", "seq2seq", {"schedule.scale": 0.08, "train.batch_size": 150, "train.epochs": 350}),
        ("grimm", "gan", {"schedule.scale": 0.08, "train.batch_size": 150, "gan.weight": 0.1}),
        ("prepositions", "self_attention", {"schedule.scale": 0.3, "train.batch_size": 400, "train.epochs": 350}),
        ("prepositions", "gan", {"schedule.scale": 0.3, "train.batch_size": 150, "gan.weight": 0.1}),
        ("nba", "self_attention", {"decoder.dim": 400, "train.batch_size": 200, "train.epochs": 150}),
        ("nba", "seq2seq", {"embedder.dim": 400, "schedule.scale": 0.3, "train.batch_size": 500}),
        ("nba", "gan", {"encoder.units": 1600, "train.batch_size": 200, "gan.weight": 0.1}),
        ("yelp", "gan", {"embedder.dim": 512, "train.batch_size": 250, "gan.weight": 1e-4, "train.min_count": 2}),
    ],
)
def test_released_equals_the_authors_settings_of_each_task(task, model, expected):
    values = flatten(run_hparams("released", "full", model=model, task=task))
    assert {key: values[key] for key in expected} == expected
    assert values["train.min_count"] == (2 if task == "yelp" else 1)


@pytest.mark.parametrize(
    ("task", "expected"), [("yelp", (121, 29)), ("nba", (121, 29)), ("prepositions", (121, 29)), ("grimm", (281, 69))]
)
def test_released_equals_the_authors_epochs_of_the_gan(task, expected):
    """The adversarial phase begins once more than 80% of all epochs are over, at half the temperature."""
    values = run_hparams("released", "full", model="gan", task=task)
    epochs = values["train"]["epochs"]
    assert (epochs, GANModel.adversarial_epochs(values, epochs)) == expected
    assert values["gan"]["temperature_start"] == 0.5 and values["gan"]["generator_dropout"]
    assert values["gan"]["discriminator_start"] == "pretraining"


@pytest.mark.parametrize("task", ["yelp", "grimm", "nba", "prepositions"])
@pytest.mark.parametrize("model", ["self_attention", "seq2seq", "gan"])
def test_decoding_of_both_protocols(task, model):
    """docs/fidelity.md, rows 21 to 23; 0: twice the longest answer of train."""
    decoding = {protocol: run_hparams(protocol, "full", model=model, task=task)["decoding"] for protocol in PROTOCOLS}
    width, longest = (2, 16) if model == "self_attention" else (1, 18)
    assert decoding == {
        "paper": {"beam_width": 1, "max_length": 0, "forbid_special": True, "cut_at_special": False},
        "released": {
            "beam_width": width,
            "max_length": longest,
            "forbid_special": False,
            "cut_at_special": True,
        },
    }


def test_under_paper_tasks_differ_only_in_their_vocabulary():
    values = [run_hparams("paper", "full", task=task) for task in ("yelp", "grimm", "nba", "prepositions")]
    assert [value["train"].pop("min_count") for value in values] == [2, 1, 1, 1]
    assert all(value == values[0] for value in values)
