"""Counts the useful work of training: floating-point operations at real positions, forward and backward, no padding.

The benchmarks use the same functions, so their rates and the work of a training run are comparable.
"""

import itertools
from typing import NamedTuple

FORWARD_AND_BACKWARD = 3  # times the work of the forward pass
MOST_PER_PASS = 8  # epochs per pass over the sentences; each ends with a validation


class Plan(NamedTuple):
    """The length of a training run.

    Attributes:
        epochs: `train.epochs`; of the GAN without adversarial epochs.
        epochs_per_pass: epochs per pass over the sentences, see `trainer.train`.
    """

    epochs: int
    epochs_per_pass: int


def flop(multiply_adds: tuple[int, int], answer_positions: float, template_positions: float) -> float:
    """Returns the floating-point operations of training on this many positions, two per multiply-add.

    Args:
        multiply_adds: per answer position and per template position, from the model's `multiply_adds`.
        answer_positions: words of the answers plus one `<EOB>` per answer.
        template_positions: tokens of the templates, summed over all blanks.
    """
    per_answer, per_template = multiply_adds
    return FORWARD_AND_BACKWARD * 2 * (answer_positions * per_answer + template_positions * per_template)


def flop_per_sentence(multiply_adds: tuple[int, int], words: float, mask_rate: float, blanks: int) -> float:
    """Returns the floating-point operations of training on one sentence, see `flop`.

    In the template of blank k of K, counted from 0, k blanks are filled.

    Args:
        multiply_adds: as in `flop`.
        words: words per sentence.
        mask_rate: fraction of the words masked, in (0, 1).
        blanks: blanks per sentence.
    """
    masked = words * mask_rate
    templates = sum(words + 2 + (blanks - k) * (1 - masked / blanks) for k in range(blanks))
    return flop(multiply_adds, masked + blanks, templates)


def phases(cls, hparams: dict, epochs: int) -> tuple[int, int]:
    """Returns the number of pre-training epochs and of adversarial epochs of a finished training run.

    Args:
        cls: class of the model.
        hparams: of the run.
        epochs: total of both phases, as in `timing.json`.

    Raises:
        ValueError: no number of pre-training epochs gives this sum.
    """
    for pretraining in range(epochs + 1):
        if pretraining + cls.adversarial_epochs(hparams, pretraining) == epochs:
            return pretraining, epochs - pretraining
    raise ValueError(f"a training of {cls.__name__} cannot have {epochs} epochs with gan.adversarial_epochs as it is")


def training_flop(cls, hparams: dict, vocabulary_size: int, found, blanks: int, epochs: tuple[int, int]) -> float:
    """Returns the useful floating-point operations of a whole training run.

    Args:
        cls: class of the model.
        hparams: of the run.
        vocabulary_size: words and special tokens.
        found: the `SplitStats` of the training sentences.
        blanks: blanks per sentence.
        epochs: pre-training epochs and adversarial epochs, see `phases`.
    """
    pretraining, adversarial = epochs
    setting = (found.words / found.lines, found.mask_rate, blanks)
    work = pretraining * flop_per_sentence(cls.multiply_adds(hparams, vocabulary_size), *setting)
    if adversarial:
        per_position = cls.adversarial_multiply_adds(hparams, vocabulary_size)
        work += adversarial * flop_per_sentence(per_position, *setting)
    return work * found.lines


def planned(cls, hparams: dict, vocabulary_size: int, found, blanks: int, budget: float | None) -> Plan:
    """Returns the length of the training run whose work is nearest to a budget.

    Epochs are parts of a pass over the sentences if whole passes miss the budget by more than 1%, or the phases of the
    GAN their proportion (`gan.adversarial_epochs`) by more than 2% of all epochs; a pass has at most `MOST_PER_PASS`
    parts. The learning-rate schedule spans the planned epochs of both phases.

    Args:
        cls: class of the model.
        hparams: of the run; `train.epochs` is not read if there is a budget.
        vocabulary_size: words and special tokens.
        found: the `SplitStats` of the training sentences.
        blanks: blanks per sentence.
        budget: useful work of the whole training run in TFLOP; None: `train.epochs` whole passes.

    Raises:
        ValueError: the budget is too small for the shortest training run.
    """
    if budget is None:
        return Plan(hparams["train"]["epochs"], 1)
    share = hparams.get("gan", {}).get("adversarial_epochs", 0)
    best = None
    for per_pass in range(1, MOST_PER_PASS + 1):
        for epochs in itertools.count(1):
            adversarial = cls.adversarial_epochs(hparams, epochs)
            work = training_flop(cls, hparams, vocabulary_size, found, blanks, (epochs, adversarial)) / per_pass
            error, skew = abs(work / (1e12 * budget) - 1), abs(adversarial - share * epochs) / (epochs + adversarial)
            if best is None or error + skew < sum(best[0]):
                best = (error, skew), Plan(epochs, per_pass)
            if work > 1e12 * budget:
                break
        if best[0][0] <= 0.01 and best[0][1] <= 0.02:
            break
    if best[0][0] > 0.5:
        raise ValueError(f"a budget of {budget:.3g} TFLOP is too small for one training epoch of {cls.__name__}")
    return best[1]
