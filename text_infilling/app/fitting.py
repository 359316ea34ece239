"""Fits a model to custom texts: from text files to a run folder that `Infiller.load` reads.

The folder has config.json, vocabulary.txt and tokenizer.json, data/ with the sentences, the weights, TensorBoard's
events, log.txt, predictions.jsonl, report.txt, and metrics.json, which is written last.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from text_infilling.configs.checks import check_values, config_differences
from text_infilling.configs.defaults import MAX_SEED, MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora import own_texts, source_texts
from text_infilling.corpora.corpus import SPLITS, Corpus
from text_infilling.corpora.download import sha256
from text_infilling.hparams import assign, flatten, merge
from text_infilling.masking import masked_lines, rules
from text_infilling.masking.checks import check_blanks, check_mask_rate
from text_infilling.runs import layout
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

if TYPE_CHECKING:  # Imports TensorFlow, which takes seconds: check first what can be checked without it.
    from text_infilling.training.task import Task

DATA = "data"  # folder of the sentences in a run
# Folders for the old run while a new one replaces it: move in progress, move complete, no longer needed.
_MOVING, _ASIDE, _OLD = "aside.moving", "aside.run", "aside.old"
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy", "sacrebleu")
RECORD_ONLY = ("versions", "where", "answers")  # parts of config.json that do not affect training

MOST_WORDS = 254  # per sentence: 256 tokens with `<BOS>` and `<EOS>`
MOST_TYPES = 50_000  # words per vocabulary
LARGE = 2_000  # above this number of sentences, a word must occur twice to be in the vocabulary
WORD_DROPOUT = 0.25  # used if all words are in the vocabulary, so that `<UNK>` is learned
STEPS = 2_500  # approximate length of training, unless early stopping ends it
LARGE_EPOCHS = 12  # approximate number for a corpus whose pass is several epochs; one pass if that is longer
EXAMPLES = 10  # filled sentences in the report
MASK_RATE, BLANKS = 0.3, 4  # defaults
# Hyperparameters that the run of `init_from` determines.
_SIZES = ("dim", "num_blocks", "num_heads", "ffn_dim", "units", "filters", "kernel_sizes", "discriminator_dim")
_MADE = (  # everything a run may hold except its lock and its log
    layout.METRICS, layout.CONFIG, layout.VOCABULARY, layout.TOKENIZER, layout.WEIGHTS, layout.RESUME_POINT,
    layout.TENSORBOARD, layout.PREDICTIONS, layout.REPORT, DATA, layout.SAVEDMODEL, layout.KERAS_FILE,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Wishes:
    """Options of a fit.

    Attributes:
        model: name in `defaults.MODELS`.
        masking: `any` (random blanks), one of `masking.rules.MASKINGS`, or `module:function`.
        mask_rate: fraction of the words masked, in (0, 1), default 0.3; with `any` only.
        blanks: most blanks per sentence, default 4; with `any` only: the model learns any number from 1 up to it.
        keep_case: whether words keep their capitals; else they are lower-cased. `init_from` determines it if given.
        layout: `lines`: each line is a sentence; `paragraphs`: an empty line ends a paragraph.
        max_words: most words per sentence. A longer line or paragraph is cut into its sentences.
        preset: sizes and schedule.
        assignments: single hyperparameters, each `key=value`.
        seed: for weights, batches, masks and dropout.
        init_from: run folder that provides the initial weights and the sizes, or None.
        column: column of CSV or TSV, or key of JSON Lines, with the texts; None for plain text.

    Raises:
        ValueError: an option is invalid, or cannot be combined with another.
    """

    model: str = "self_attention"
    masking: str = "any"
    mask_rate: float | None = None
    blanks: int | None = None
    keep_case: bool = False
    layout: str = "lines"
    max_words: int = 60
    preset: str = "laptop"
    assignments: Sequence[str] = ()
    seed: int = 1
    init_from: str | None = None
    column: str | None = None

    def __post_init__(self):
        if not 4 <= self.max_words <= MOST_WORDS:
            raise ValueError(f"--max_words must be from 4 to {MOST_WORDS}. Received: {self.max_words}")
        if self.model not in MODELS:
            raise ValueError(f"--model takes one of {', '.join(MODELS)}. Received: {self.model!r}")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"--seed must be from 0 to {MAX_SEED}. Received: {self.seed}")
        if self.layout not in own_texts.LAYOUTS:
            raise ValueError(f"--layout takes one of {', '.join(own_texts.LAYOUTS)}. Received: {self.layout!r}")
        if self.masking == "any":
            # Set as dataclasses do it, because the class is frozen.
            object.__setattr__(self, "mask_rate", MASK_RATE if self.mask_rate is None else self.mask_rate)
            object.__setattr__(self, "blanks", BLANKS if self.blanks is None else self.blanks)
            check_mask_rate(self.mask_rate)
            check_blanks(self.blanks)
        else:
            if ":" not in self.masking and self.masking not in rules.MASKINGS:
                raise ValueError(
                    f"--masking must be any, one of {', '.join(rules.MASKINGS)}, or module:function. "
                    f"Received: {self.masking!r}"
                )
            rules.masker(self.masking)
            for name in ("mask_rate", "blanks"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"--{name} cannot be combined with --masking={self.masking}, which determines what is masked"
                    )
        if self.init_from and self.keep_case:
            raise ValueError(
                "--keep_case cannot be combined with --init_from: that run determines how capitals are treated"
            )
        self.hparams()  # report wrong assignments now

    def hparams(self, fitting: Sequence[str] = ()) -> dict:
        """Returns the hyperparameters: the preset, then the assignments in `fitting`, then those of the user."""
        return run_hparams("paper", self.preset, [*fitting, *self.assignments], model=self.model)


def fit(
    source: str | Path,
    out: str | Path,
    wishes: Wishes = Wishes(),
    overwrite: bool = False,
    say: Callable[[str], None] = files.say,
) -> dict:
    """Fits a model to the texts in `source`, saves it in `out`, and returns the metrics on held-out sentences.

    The same call resumes interrupted training.

    Args:
        source: a file of UTF-8 text, JSON Lines, CSV or TSV, or a gzip file of one; a folder of `*.txt` and
            `*.txt.gz`; a pipe, or `-` for standard input.
        out: a new folder, or the folder of an interrupted call.
        wishes: the options.
        overwrite: replace a run that is finished or has other options or sentences; if the new run fails before
            training begins, the old one is kept.
        say: receives the lines for people: progress and the report.

    Raises:
        ValueError: too few sentences, a file that is not UTF-8, options that differ from those of the run in `out`.
        OSError: a file cannot be read or written; another process uses `out`.
    """
    out = Path(out)
    source_texts.check_there(Path(source))
    init = _open_init(wishes.init_from, wishes.model) if wishes.init_from else None
    with _or_nothing(out), files.locked(out, "--out"), files.Log(out / layout.LOG, say) as log:
        with _replacing(out, overwrite):
            if (out / layout.METRICS).exists():
                raise ValueError(f"{out} holds a finished run: give another --out, or --overwrite")
            tokenizer = init.tokenizer if init else Tokenizer(lower=not wishes.keep_case)
            known = frozenset(init.vocabulary.words) if init else frozenset()
            corpus, counts = own_texts.corpus(
                Path(source), out / DATA, tokenizer, known, wishes.layout, wishes.max_words, wishes.masking, log,
                files.read_json(out / layout.CONFIG)["corpus"]["checksum"] if (out / layout.CONFIG).exists() else None,
                wishes.column,
            )  # fmt: skip
            fitting = ["train.min_count=2"]
            if counts["train"] <= LARGE:  # keep all words of a small corpus, but learn `<UNK>`
                fitting = ["train.min_count=1", f"train.word_dropout={WORD_DROPOUT}"]
            from text_infilling.training.task import Task
            from text_infilling.training.trainer import train

            start = _Start.of(init) if init else None
            vocabulary = _vocabulary(corpus, wishes.hparams(fitting)["train"]["min_count"], start)
            blanks = corpus.blanks or wishes.blanks
            mask_rate = None if corpus.blanks else wishes.mask_rate
            task = Task(corpus, vocabulary, wishes.masking, mask_rate, blanks, wishes.seed)
            hparams = _hparams(task, wishes, start, fitting)
            _begin(out, task, wishes, hparams, tokenizer, start, log)
        with log.traceback():
            begin = start and start.give
            evaluator, timing = train(task, wishes.model, hparams, out, log=log, begin=begin, parts=_parts_of(task))
            metrics, predictions = evaluator("test")
            shown = predictions if len(predictions) >= EXAMPLES else predictions + evaluator("valid")[1]
        metrics |= {"sentences_train": counts["train"], "vocabulary": len(vocabulary.words), **timing}
        metrics["unknown_rate"] = _unknown_rate(corpus, vocabulary)
        files.write_jsonl(out / layout.PREDICTIONS, predictions)
        files.write_text(out / layout.REPORT, report(metrics, shown, corpus))
        files.write_json(out / layout.METRICS, metrics)
        files.remove(out / layout.RESUME_POINT)
        say((out / layout.REPORT).read_text("utf-8").rstrip())
        return metrics


@contextlib.contextmanager
def _or_nothing(out: Path) -> Iterator[None]:
    """Creates `out` if missing; removes it again if the run fails before writing anything."""
    new = not out.exists()
    files.make_folder(out, "--out")
    if any(out.iterdir()) and not (out / files.LOCK).exists():
        raise ValueError(f"{out} holds what is no run: give a new folder as --out")
    try:
        yield
    except BaseException:
        if new and {path.name for path in out.iterdir()} <= {files.LOCK, layout.LOG}:
            files.remove(out)
        raise


@contextlib.contextmanager
def _replacing(out: Path, overwrite: bool) -> Iterator[None]:
    """Moves the old run aside while a new one begins in its place; restores the old one if that fails.

    An unfinished run with the same config is not replaced but resumed. A folder is renamed between all steps, so that
    the next process can restore the old run if this one is killed at any step.
    """
    _put_back(out)
    files.remove(out / _OLD)
    if not overwrite:
        yield
        return
    (out / _MOVING).mkdir()
    for name in _MADE:
        if (out / name).exists():
            (out / name).rename(out / _MOVING / name)
    (out / _MOVING).rename(out / _ASIDE)
    try:
        yield
    except BaseException:
        _put_back(out)
        raise
    if (out / _ASIDE / layout.CONFIG).exists() and not (out / _ASIDE / layout.METRICS).exists():
        if not _differences(files.read_json(out / _ASIDE / layout.CONFIG), files.read_json(out / layout.CONFIG)):
            _put_back(out)
            return
    (out / _ASIDE).rename(out / _OLD)
    files.remove(out / _OLD)


def _put_back(out: Path) -> None:
    if (out / _ASIDE).exists():
        for name in _MADE:
            files.remove(out / name)
        (out / _ASIDE).rename(out / _MOVING)
    if (out / _MOVING).exists():
        for path in (out / _MOVING).iterdir():
            path.rename(out / path.name)
        (out / _MOVING).rmdir()


def report(metrics: Mapping[str, float], predictions: Sequence[dict], corpus: Corpus) -> str:
    """Returns the report of a fitted model: metrics on held-out sentences, and some of `predictions`."""
    lines = [
        f"Fitted to {corpus.source}: {metrics['sentences_train']:,} sentences, {metrics['vocabulary']:,} words known",
        f"On {metrics['sentences']:,} held-out sentences:",
        f"  unknown words               {metrics['unknown_rate']:.2%}",
        f"  perplexity with <EOB> (ppl) {metrics['ppl']:.2f}",
        f"  BLEU of the whole (bleu)    {metrics['bleu']:.2f}",
        f"  blanks of the true length   {metrics['right_length']:.1%}",
    ]
    for prediction in predictions[:: max(1, len(predictions) // EXAMPLES)][:EXAMPLES]:
        for title, key in (("filled", "infill"), ("truth", "answer")):
            lines.append(f"{title:7}{masked_lines.filled(prediction['template'], prediction[key])}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _vocabulary(corpus: Corpus, min_count: int, start: "_Start | None") -> Vocabulary:
    """Returns the words of train, after those of the initial run, which keep their ids."""
    found = Vocabulary.build(corpus.texts("train"), min_count).words
    known = start.vocabulary.words if start else ()
    among = frozenset(known)
    new = [word for word in found if word not in among]
    return Vocabulary([*known, *new[: max(0, MOST_TYPES - len(known))]])


def _open_init(folder: str | Path, model: str) -> RunFolder:
    """Opens the run that `--init_from` names.

    Raises:
        ValueError: the folder is not a run, or its model is another one.
    """
    run = open_run(folder)
    if run.model != model:
        raise ValueError(
            f"--init_from={folder} holds a {run.model} model, not a {model} model: give --model={run.model}"
        )
    return run


def _hparams(task: "Task", wishes: Wishes, start: "_Start | None", fitting: Sequence[str]) -> dict:
    """Returns the preset, then `fitting`, then batch, epochs and positions for the corpus, then user assignments."""
    found = task.survey("train")
    batch = min(100, max(8, found.lines // 20))
    parts = _parts_of(task)
    if parts == 1:
        epochs = min(100, max(3, math.ceil(STEPS * batch / found.lines)))
    else:
        epochs = max(parts, min(3 * parts, LARGE_EPOCHS))
    steps = epochs * math.ceil(found.lines / batch) // parts
    longest = max(task.survey(split).longest for split in SPLITS)
    fitting = [
        *fitting,
        f"train.batch_size={batch}",
        f"train.epochs={epochs}",
        f"train.patience={max(3, epochs // 10)}",
        f"schedule.warmup_steps={max(1, min(300, steps // 10))}",
        f"position.base={max(256, 2 ** math.ceil(math.log2(2 * longest + 2)))}",
    ]
    hparams = run_hparams("paper", wishes.preset, fitting, model=wishes.model)
    if start:
        hparams = merge({group: start.hparams[group] for group in start.sizes}, hparams)
    for assignment in wishes.assignments:
        hparams = assign(hparams, assignment)
    if start:
        given, kept = (flatten({group: h[group] for group in start.sizes}) for h in (hparams, start.hparams))
        for key in kept:
            if key.rpartition(".")[2] in _SIZES and given[key] != kept[key]:
                raise ValueError(
                    f"--set {key}={given[key]} cannot be combined with --init_from={wishes.init_from}, whose model has "
                    f"{key}={kept[key]}: leave it out"
                )
    check_values(hparams)
    task.check_positions(hparams)
    return hparams


def _parts_of(task: "Task") -> int:
    """Returns the number of epochs per pass over the sentences."""
    return max(1, task.survey("train").lines // own_texts.EPOCH_SENTENCES)


def _begin(
    out: Path, task: "Task", wishes: Wishes, hparams: dict, tokenizer: Tokenizer, start: "_Start | None", log
) -> None:
    """Writes the config, vocabulary and tokenizer of a new run, or checks that an existing run has the same config."""
    config = {
        "cell": {
            "corpus": task.corpus.name,
            "masking": task.masking,
            "mask_rate": task.mask_rate,
            "blanks": task.blanks,
            "model": wishes.model,
            "protocol": "paper",
            "preset": wishes.preset,
            "seed": wishes.seed,
        },
        "hparams": hparams,
        "corpus": {"checksum": task.corpus.checksum},
        "vocabulary": {"hash": task.vocabulary.hash, "size": len(task.vocabulary)},
        "answers": {"empty": task.corpus.has_empty_answers},
        "init_from": start.checksum if start else None,
        "versions": files.versions(PACKAGES),
        "where": {"source": task.corpus.source, "init_from": wishes.init_from},
    }
    if not (out / layout.CONFIG).exists():
        task.vocabulary.save(out / layout.VOCABULARY)
        tokenizer.save(out / layout.TOKENIZER)
        files.write_json(out / layout.CONFIG, config)
        return
    if keys := _differences(files.read_json(out / layout.CONFIG), config):
        raise ValueError(f"{out} was begun with other {', '.join(keys)}: give the same again, or --overwrite")
    log(f"{out} was begun before")


def _differences(stored: dict, config: dict) -> list[str]:
    """Returns the keys in which two configs differ, except those that do not affect training."""
    return config_differences(
        *({key: part for key, part in each.items() if key not in RECORD_ONLY} for each in (stored, config))
    )


def _unknown_rate(corpus: Corpus, vocabulary: Vocabulary) -> float:
    known, words = frozenset(vocabulary.words), [word for text in corpus.texts("test") for word in text.split()]
    return sum(word not in known for word in words) / len(words)


@dataclasses.dataclass(frozen=True)
class _Start:
    """The run that provides the initial weights.

    Attributes:
        checksum: sha256 of its weights.
        model: its model, with its weights.
        hparams: its hyperparameters.
        vocabulary: its vocabulary.
        sizes: the groups of hyperparameters that the new run inherits.
    """

    checksum: str
    model: object
    hparams: dict
    vocabulary: Vocabulary
    sizes: Sequence[str]

    @classmethod
    def of(cls, run: RunFolder) -> "_Start":
        """Loads the model of a run.

        Raises:
            ValueError: the weights do not fit the model of the run.
        """
        from text_infilling.inference.infiller import Infiller

        model = Infiller.load(run).model
        sizes = [group for group in model.hparams if group != "loss"]
        return cls(sha256(run.path / layout.WEIGHTS), model, model.hparams, run.vocabulary, sizes)

    def give(self, model) -> None:
        """Copies the weights into a fresh model; rows of new words keep their fresh values."""
        for weight, old in zip(model.weights, self.model.weights, strict=True):
            value = np.array(weight.numpy())
            value[tuple(map(slice, old.shape))] = old  # weights with one row per word may have more rows now
            weight.assign(value)
