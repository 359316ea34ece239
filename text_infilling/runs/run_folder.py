"""Opens and checks the folder of a trained run without TensorFlow, so that errors are reported at once."""

import dataclasses
from pathlib import Path

from text_infilling.runs.checks import check_types, check_weights, read_config
from text_infilling.runs.layout import BASE_WEIGHTS, CHECKSUMS, CONFIG, RESUME_POINT, TOKENIZER, VOCABULARY, WEIGHTS
from text_infilling.runs.learned import Learned
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

BASE_MODEL = Path(__file__).parents[1] / "base_model"  # the model of the package; written by `app.base_model`
LONGEST_FILL = 32  # words; used if a run does not set `decoding.max_length`


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The contents of the folder of a trained run, except the weights.

    Attributes:
        path: the folder.
        name: its name, or "base model".
        weights: the file of the weights: best.weights.h5 of a trained run, weights.npz of a base model.
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
    name: str
    weights: Path
    config: dict
    model: str
    hparams: dict
    longest: int
    least: int
    beam_width: int
    vocabulary: Vocabulary
    tokenizer: Tokenizer

    @property
    def learned(self) -> Learned:
        """What the model has learned."""
        return Learned.of(self.config["cell"], self.tokenizer, self.vocabulary)


def open_run(folder: str | Path | None = None) -> RunFolder:
    """Opens the folder of a trained run and checks everything that does not require building the model.

    Args:
        folder: default: the base model of the package, whose files are also compared with their checksums.

    Raises:
        OSError: a file cannot be read.
        ValueError: the folder does not hold a trained run, or its files do not belong together; without a folder, also
            if the installation has no base model.
    """
    if folder is None:
        _check_base_model()
    path = BASE_MODEL if folder is None else Path(folder)
    weights = BASE_WEIGHTS if not (path / WEIGHTS).is_file() and (path / BASE_WEIGHTS).is_file() else WEIGHTS
    missing = [name for name in (CONFIG, VOCABULARY, weights) if not (path / name).is_file()]
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
    check_weights(path / weights, model, len(vocabulary), hparams)
    least = 0 if config["answers"]["empty"] else 1
    name = "base model" if folder is None else path.resolve().name
    return RunFolder(
        path, name, path / weights, config, model, hparams, longest, least, beam_width, vocabulary, tokenizer
    )


def has_base_model() -> bool:
    """Returns whether the installation has a base model."""
    return (BASE_MODEL / CHECKSUMS).is_file()


def _check_base_model() -> None:
    """Checks that the files of the base model are there and have their checksums.

    Raises:
        OSError: a file cannot be read.
        ValueError: the installation has no base model, or a file of it is missing or has another checksum.
    """
    if not has_base_model():
        raise ValueError(
            "this installation has no base model: train one on your own texts with `text-infill fit`, and give its "
            "folder, such as --run FOLDER"
        )
    sums = files.read_json(BASE_MODEL / CHECKSUMS)
    names = (CONFIG, VOCABULARY, TOKENIZER, BASE_WEIGHTS)
    try:
        check_types(sums, dict.fromkeys(names, str))
    except ValueError as error:
        raise ValueError(f"{BASE_MODEL / CHECKSUMS} does not hold the checksums of a base model: {error}") from error
    for name in names:
        if files.sha256(BASE_MODEL / name) != sums[name]:
            raise ValueError(f"{BASE_MODEL / name} has another checksum than {CHECKSUMS} states: install again")
