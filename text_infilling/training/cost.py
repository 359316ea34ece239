"""Counts the useful work of training: floating-point operations at real positions, forward and backward, no padding.

The benchmarks count with these functions too, so a rate there and the work of a training here are comparable.
"""

FORWARD_AND_BACKWARD = 3  # times the work of the forward pass


def flop(multiply_adds: tuple[int, int], answer_positions: float, template_positions: float) -> float:
    """Returns the floating-point operations of training on this many positions, two per multiply-add.

    Args:
        multiply_adds: at an answer position and at a template position, of a model's `multiply_adds`.
        answer_positions: words of the answers and an `<EOB>` each.
        template_positions: tokens of the templates of all blanks.
    """
    per_answer, per_template = multiply_adds
    return FORWARD_AND_BACKWARD * 2 * (answer_positions * per_answer + template_positions * per_template)


def flop_per_sentence(multiply_adds: tuple[int, int], words: float, mask_rate: float, blanks: int) -> float:
    """Returns the floating-point operations of training on one sentence, see `flop`.

    In the template of blank k of K, counted from 0, k blanks are filled.

    Args:
        multiply_adds: as in `flop`.
        words: of a sentence.
        mask_rate: share of the words masked.
        blanks: of a sentence.
    """
    masked = words * mask_rate
    templates = sum(words + 2 + (blanks - k) * (1 - masked / blanks) for k in range(blanks))
    return flop(multiply_adds, masked + blanks, templates)


def phases(cls, hparams: dict, epochs: int) -> tuple[int, int]:
    """Returns how many of the epochs of a finished training were pre-training and how many adversarial.

    Args:
        cls: class of the model.
        hparams: of the run.
        epochs: of both phases, as `timing.json` counts them.

    Raises:
        ValueError: no number of pre-training epochs gives this sum.
    """
    for pretraining in range(epochs + 1):
        if pretraining + cls.adversarial_epochs(hparams, pretraining) == epochs:
            return pretraining, epochs - pretraining
    raise ValueError(f"a training of {cls.__name__} cannot have {epochs} epochs with gan.adversarial_epochs as it is")


def training_flop(cls, hparams: dict, vocabulary_size: int, found, blanks: int, epochs: tuple[int, int]) -> float:
    """Returns the useful floating-point operations of a whole training.

    Args:
        cls: class of the model.
        hparams: of the run.
        vocabulary_size: words and special tokens.
        found: the `Survey` of the training sentences.
        blanks: of a sentence.
        epochs: of pre-training and of the adversarial phase, see `phases`.
    """
    pretraining, adversarial = epochs
    setting = (found.words / found.lines, found.mask_rate, blanks)
    work = pretraining * flop_per_sentence(cls.multiply_adds(hparams, vocabulary_size), *setting)
    if adversarial:
        per_position = cls.adversarial_multiply_adds(hparams, vocabulary_size)
        work += adversarial * flop_per_sentence(per_position, *setting)
    return work * found.lines
