"""Learning rates, and that defaults stand in one place."""

import numpy as np
import pytest

from text_infilling.models.self_attention import SelfAttentionModel
from text_infilling.training.protocols import PAPER, PRESETS, PROTOCOLS, run_hparams
from text_infilling.training.schedule import WarmupSchedule


@pytest.mark.parametrize(
    "name, dim, constant", [("self_attn_d400", 400, 0.3), ("self_attn_d512", 512, 0.3), ("seq2seq_d400", 400, 1.0)]
)
def test_inverse_sqrt_equals_the_original(shared, name, dim, constant):
    data = np.load(shared / "original" / "golden" / "noam.npz")
    hparams = {**run_hparams("released", "full")["schedule"], "constant": constant}
    schedule = WarmupSchedule(dim, total_steps=1, hparams=hparams)
    rates = [float(schedule(step)) for step in data["steps"]]
    np.testing.assert_allclose(rates, data[name], rtol=1e-5)


def test_under_paper_the_first_update_is_step_1():
    hparams = run_hparams("paper", "full")["schedule"]
    schedule = WarmupSchedule(400, total_steps=1, hparams=hparams)
    assert float(schedule(0)) == pytest.approx(0.3 * 400**-0.5 / 10000**1.5)
    assert float(schedule(9999)) == pytest.approx(0.3 * 400**-0.5 / 10000**0.5)  # the top
    assert float(schedule(39999)) == pytest.approx(0.3 * 400**-0.5 / 40000**0.5)


def test_linear_rises_to_its_peak_and_falls_to_nothing():
    schedule = WarmupSchedule(8, 100, {"shape": "linear", "peak": 0.5, "warmup_steps": 10})
    rates = [float(schedule(step)) for step in range(102)]
    assert rates[0] == pytest.approx(0.05) and rates[9] == pytest.approx(0.5) == max(rates)
    assert rates[55] == pytest.approx(0.25) and rates[99] > 0 and rates[100] == rates[101] == 0


def test_a_schedule_is_saved_with_its_config():
    schedule = WarmupSchedule(8, 100, {"shape": "linear"})
    again = WarmupSchedule.from_config(schedule.get_config())
    assert float(again(50)) == float(schedule(50))


def test_the_paper_protocol_is_what_the_classes_default_to():
    for group, defaults in SelfAttentionModel.default_hparams().items():
        assert PAPER[group] == defaults
    assert PAPER["schedule"] == WarmupSchedule.default_hparams()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_changes_sizes_batch_optimizer_schedule_epochs_and_patience_only(protocol, preset):
    for blanks in (1, 2):
        before, after = run_hparams(protocol, "full"), run_hparams(protocol, preset, blanks=blanks)
        for group in ("template", "position", "answer", "loss", "decoding"):
            assert after[group] == before[group]
        assert {key for key in before["train"] if after["train"][key] != before["train"][key]} <= {
            "epochs", "batch_size", "patience",
        }  # fmt: skip


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
def test_a_wrong_value_is_told_by_its_key(assignment, word):
    with pytest.raises(ValueError, match=word):
        run_hparams("paper", "laptop", [assignment])
