"""Fits a model to texts of one's own: from text files to a run folder that `Infiller.load` takes.

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

from text_infilling import files, maskers
from text_infilling.data import masked_lines, own_texts, source_texts
from text_infilling.data.corpora import SPLITS, Corpus
from text_infilling.data.download import sha256
from text_infilling.hparams import assign, flatten, merge
from text_infilling.mask_checks import check_blanks, check_mask_rate
from text_infilling.run_folder import RunFolder, open_run
from text_infilling.tokenizer import Tokenizer
from text_infilling.training import layout
from text_infilling.training.protocols import MAX_SEED, MODELS, check_values, config_differences, run_hparams
from text_infilling.vocabulary import Vocabulary

if TYPE_CHECKING:  # It imports TensorFlow, which takes seconds: errors that can be found without it come first.
    from text_infilling.training.task import Task

DATA = "data"  # folder of the sentences in a run
# Folders of what a run held before, while another is begun in its place: not all of it, all of it, no longer needed.
_MOVING, _ASIDE, _OLD = "aside.moving", "aside.run", "aside.old"
PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy", "sacrebleu")
RECORD_ONLY = ("versions", "where", "answers")  # parts of config.json that do not add to what is learned

MOST_WORDS = 254  # of a sentence: 256 tokens with `<BOS>` and `<EOS>`
MOST_TYPES = 50_000  # words of a vocabulary
LARGE = 2_000  # sentences from which on a word must stand twice to be in the vocabulary
WORD_DROPOUT = 0.25  # where all words are in the vocabulary, so that `<UNK>` is learned
STEPS = 2_500  # of training, about, if early stopping does not end it
LARGE_EPOCHS = 12  # of a corpus of which a pass is several, about, or one pass if that is longer
EXAMPLES = 10  # filled sentences in the report
MASK_RATE, BLANKS = 0.3, 4  # unless asked for otherwise
# Hyperparameters that a run which is gone on from decides.
_SIZES = ("dim", "num_blocks", "num_heads", "ffn_dim", "units", "filters", "kernel_sizes", "discriminator_dim")
_MADE = (  # what a run may hold, but for its lock and its log
    layout.METRICS, layout.CONFIG, layout.VOCABULARY, layout.TOKENIZER, layout.WEIGHTS, layout.RESUME_POINT,
    layout.TENSORBOARD, layout.PREDICTIONS, layout.REPORT, DATA, layout.SAVEDMODEL, layout.KERAS_FILE,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Wishes:
    """What a model is to learn, and how.

    Attributes:
        model: of `protocols.MODELS`.
        masking: `any` (random blanks), one of `maskers.MASKINGS`, or `module:function`.
        mask_rate: share of the words that is masked, in (0, 1), default 0.3; with `any` alone.
        blanks: of a sentence, at most, default 4; with `any` alone: then the model learns any number from 1 on.
        keep_case: whether words keep their capitals; else all is lower-cased. With `init_from` it is as it was there.
        layout: `lines`: each line is a sentence; `paragraphs`: lines go on until an empty one.
        max_words: of a sentence. A longer line or paragraph is cut into its sentences.
        preset: sizes and schedule.
        assignments: of single hyperparameters, `key=value`.
        seed: of weights, batches, masks and dropout.
        init_from: run folder whose weights and sizes it goes on from, or None.
        column: of CSV or TSV, or key of JSON Lines, that has the texts; None for plain text.
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
            # Frozen: set as dataclasses do it.
            object.__setattr__(self, "mask_rate", MASK_RATE if self.mask_rate is None else self.mask_rate)
            object.__setattr__(self, "blanks", BLANKS if self.blanks is None else self.blanks)
            check_mask_rate(self.mask_rate)
            check_blanks(self.blanks)
        else:
            if ":" not in self.masking and self.masking not in maskers.MASKINGS:
                raise ValueError(
                    f"--masking must be any, one of {', '.join(maskers.MASKINGS)}, or module:function. "
                    f"Received: {self.masking!r}"
                )
            maskers.masker(self.masking)
            for name in ("mask_rate", "blanks"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"--{name} has no meaning with --masking={self.masking}, which says what is masked"
                    )
        if self.init_from and self.keep_case:
            raise ValueError(
                "--keep_case has no meaning with --init_from: capitals are treated as that run treats them"
            )
        self.hparams()  # wrong assignments are an error now

    def hparams(self, fitting: Sequence[str] = ()) -> dict:
        """Those of the preset, with assignments that fit a corpus, and then one's own."""
        return run_hparams("paper", self.preset, [*fitting, *self.assignments], model=self.model)


def fit(
    source: str | Path,
    out: str | Path,
    wishes: Wishes = Wishes(),
    overwrite: bool = False,
    say: Callable[[str], None] = files.say,
) -> dict:
    """Fits a model to the texts in `source` and leaves it in the folder `out`; the metrics on held-out sentences.

    The same call goes on with a training that was stopped.

    Args:
        source: a file of UTF-8 text, JSON Lines, CSV or TSV, or a gzip file of one; a folder of `*.txt` and
            `*.txt.gz`; a pipe, or `-` for standard input.
        out: a new folder, or one that such a call was stopped in.
        wishes: what to learn.
        overwrite: start afresh what is finished, or was begun with other wishes or sentences; where that fails before
            the training begins, what was there stays.
        say: takes lines for people: how far it is, and the report.

    Raises:
        ValueError: too few sentences, a file that is not UTF-8, wishes that contradict what `out` was begun with.
        OSError: a file cannot be read or written; another process works in `out`.
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
            if counts["train"] <= LARGE:  # of few sentences no word is to be lost, and yet unknown ones are to be known
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
    """Makes the folder, unless it is there; and where nothing comes to be in it, takes it away again."""
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
    """Puts what a run holds aside while another is begun in its place, and back where that comes to nothing.

    What was begun alike and is not finished is not replaced. A folder is renamed between all steps, so that a process
    that was killed at any of them leaves what the next one puts back.
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
    """What a fitted model is worth, for people: numbers on held-out sentences, and some of `predictions`."""
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
    """The words of train; behind those of the run it goes on from, which keep their ids."""
    found = Vocabulary.build(corpus.texts("train"), min_count).words
    known = start.vocabulary.words if start else ()
    among = frozenset(known)
    new = [word for word in found if word not in among]
    return Vocabulary([*known, *new[: max(0, MOST_TYPES - len(known))]])


def _open_init(folder: str | Path, model: str) -> RunFolder:
    """Opens the run that `--init_from` names.

    Raises:
        ValueError: it is no run, or of another model.
    """
    run = open_run(folder)
    if run.model != model:
        raise ValueError(
            f"--init_from={folder} holds a model of {run.model} and none of {model}: give --model={run.model}"
        )
    return run


def _hparams(task: "Task", wishes: Wishes, start: "_Start | None", fitting: Sequence[str]) -> dict:
    """The preset, with `fitting` and with batch, epochs and positions that fit the corpus, then the wishes."""
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
                    f"--set {key}={given[key]} has no meaning with --init_from={wishes.init_from}, whose model has "
                    f"{key}={kept[key]}: leave it out"
                )
    check_values(hparams)
    task.check_positions(hparams)
    return hparams


def _parts_of(task: "Task") -> int:
    """The epochs that one pass over the sentences makes."""
    return max(1, task.survey("train").lines // own_texts.EPOCH_SENTENCES)


def _begin(
    out: Path, task: "Task", wishes: Wishes, hparams: dict, tokenizer: Tokenizer, start: "_Start | None", log
) -> None:
    """Writes what the run is, or checks that it is what was begun."""
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
    """The keys in which what is learned differs."""
    return config_differences(
        *({key: part for key, part in each.items() if key not in RECORD_ONLY} for each in (stored, config))
    )


def _unknown_rate(corpus: Corpus, vocabulary: Vocabulary) -> float:
    known, words = frozenset(vocabulary.words), [word for text in corpus.texts("test") for word in text.split()]
    return sum(word not in known for word in words) / len(words)


@dataclasses.dataclass(frozen=True)
class _Start:
    """The run that a training goes on from.

    Attributes:
        checksum: sha256 of its weights.
        model: of that run, built, with its weights.
        sizes: the groups of hyperparameters that are taken over.
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
            ValueError: its weights are not those of its model.
        """
        from text_infilling.infiller import Infiller

        model = Infiller.load(run).model
        sizes = [group for group in model.hparams if group != "loss"]
        return cls(sha256(run.path / layout.WEIGHTS), model, model.hparams, run.vocabulary, sizes)

    def give(self, model) -> None:
        """Gives a fresh model the weights; those of words that the run did not know stay as they are."""
        for weight, old in zip(model.weights, self.model.weights, strict=True):
            value = np.array(weight.numpy())
            value[tuple(map(slice, old.shape))] = old  # alike but for the first axis of what has a row for each word
            weight.assign(value)
