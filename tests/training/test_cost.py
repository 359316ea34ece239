"""The counted work of a training run."""

import pytest

from text_infilling.configs.protocols import run_hparams
from text_infilling.data.pipeline import SplitStats
from text_infilling.models.registry import MODELS
from text_infilling.training.cost import Plan, flop_per_sentence, phases, planned, training_flop

FOUND = SplitStats(lines=10, left_out=0, longest=12, longest_answer=4, words=100, masked_words=40)


def test_the_work_of_a_sentence_equals_a_count_by_hand():
    # 10 words, 4 of them in 2 blanks: 4 + 2 answer positions; templates of 10 + 2 - 4 + 2 and 10 + 2 - 2 + 1 tokens.
    assert flop_per_sentence((1000, 1), 10, 0.4, 2) == 3 * 2 * (6 * 1000 + 10 + 11)


def test_training_work_is_the_sum_over_epochs_and_adversarial_epochs_cost_more():
    hparams, gan = run_hparams("paper", "laptop", model="gan"), MODELS["gan"]
    one, four, adversarial = (training_flop(gan, hparams, 50, FOUND, 2, epochs) for epochs in ((1, 0), (4, 0), (0, 1)))
    assert one == 10 * flop_per_sentence(gan.multiply_adds(hparams, 50), 10, 0.4, 2)
    assert four == 4 * one and adversarial > 2 * one
    assert training_flop(gan, hparams, 50, FOUND, 2, (4, 1)) == four + adversarial


@pytest.mark.parametrize(
    ("model", "epochs", "expected"),
    [("seq2seq", 6, (6, 0)), ("gan", 5, (4, 1)), ("gan", 2, (1, 1)), ("gan", 10, (8, 2))],
)
def test_phases_splits_the_total_number_of_epochs(model, epochs, expected):
    assert phases(MODELS[model], run_hparams("paper", "laptop", model=model), epochs) == expected


def test_an_impossible_number_of_epochs_is_an_error():
    with pytest.raises(ValueError, match="cannot have 0 epochs"):
        phases(MODELS["gan"], run_hparams("paper", "laptop", model="gan"), 0)


@pytest.mark.parametrize("name", ["self_attention", "seq2seq", "gan"])
@pytest.mark.parametrize("passes", [3, 4.2, 5.37, 10.2])
def test_a_budget_gives_epochs_with_its_work(name, passes):
    cls, hparams = MODELS[name], run_hparams("paper", "laptop", model=name)
    budget = passes * training_flop(cls, hparams, 50, FOUND, 2, (1, 0)) / 1e12
    epochs, per_pass = planned(cls, hparams, 50, FOUND, 2, budget)
    adversarial = cls.adversarial_epochs(hparams, epochs)
    work = training_flop(cls, hparams, 50, FOUND, 2, (epochs, adversarial)) / per_pass / 1e12
    assert work == pytest.approx(budget, rel=0.03)
    if name == "gan":  # the phases have their proportion
        assert adversarial / epochs == pytest.approx(0.25, abs=0.05)
    elif passes == 3:
        assert (epochs, per_pass) == (3, 1)


def test_without_a_budget_the_epochs_are_those_of_the_hyperparameters():
    assert planned(MODELS["gan"], run_hparams("paper", "laptop", model="gan"), 50, FOUND, 2, None) == Plan(2, 1)


def test_a_budget_below_the_shortest_training_is_an_error():
    with pytest.raises(ValueError, match="a budget of 1e-12 TFLOP is too small"):
        planned(MODELS["gan"], run_hparams("paper", "laptop", model="gan"), 50, FOUND, 2, 1e-12)
