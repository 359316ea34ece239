"""Opens and checks the folder of a trained run without TensorFlow, so that errors are reported at once."""

import dataclasses
from pathlib import Path

from text_infilling.runs.checks import check_weights, read_config
from text_infilling.runs.layout import CONFIG, RESUME_POINT, TOKENIZER, VOCABULARY, WEIGHTS
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary

LONGEST_FILL = 32  # words; used if a run does not set `decoding.max_length`


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The contents of the folder of a trained run, except the weights.

    Attributes:
        path: the folder.
        config: the content of config.json.
        model: name of the model, one of `defaults.MODELS`.
        hparams: all hyperparameters of the run.
        longest: default maximum number of words per infill.
        least: default minimum number of words per infill; 0 if training answers may be empty, else 1.
        beam_width: default beam width; 1 is greedy search.
        vocabulary: the words of the model.
        tokenizer: tokenizer of the corpus; inferred from the vocabulary if the run does not record it.
    """

    path: Path
    config: dict
    model: str
    hparams: dict
    longest: int
    least: int
    beam_width: int
    vocabulary: Vocabulary
    tokenizer: Tokenizer


def open_run(folder: str | Path) -> RunFolder:
    """Opens the folder of a trained run and checks everything that does not require building the model.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder does not hold a trained run, or its files do not belong together.
    """
    path = Path(folder)
    missing = [name for name in (CONFIG, VOCABULARY, WEIGHTS) if not (path / name).is_file()]
    if missing == [WEIGHTS] and (path / RESUME_POINT).is_file():
        raise ValueError(
            f"{path} has no {WEIGHTS} yet: training was stopped before the end of its first epoch; run the same "
            "command again to resume it"
        )
    if missing:
        raise ValueError(
            f"{path} has no {', '.join(missing)}: give the folder of a trained run, such as "
            "runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1"
        )
    vocabulary, config = Vocabulary.load(path / VOCABULARY), read_config(path)
    stored = path / TOKENIZER
    tokenizer = Tokenizer.load(stored) if stored.exists() else Tokenizer.infer(vocabulary.words)
    model, hparams = config["cell"]["model"], config["hparams"]
    longest, beam_width = hparams["decoding"]["max_length"] or LONGEST_FILL, hparams["decoding"]["beam_width"]
    vocabulary.check_hash(config["vocabulary"]["hash"], path)
    check_weights(path / WEIGHTS, model, len(vocabulary), hparams)
    least = 0 if config["answers"]["empty"] else 1
    return RunFolder(path, config, model, hparams, longest, least, beam_width, vocabulary, tokenizer)
