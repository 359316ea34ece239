"""Fits a model to custom texts: from text files to a run folder that `Infiller.load` reads.

The folder has config.json, vocabulary.txt and tokenizer.json, data/ with the sentences, the weights, TensorBoard's
events, log.txt, predictions.jsonl, report.txt, and metrics.json, which is written last.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from text_infilling.app.fit_config import FitConfig
from text_infilling.app.initial_run import InitialRun, base_run, open_initial
from text_infilling.configs.checks import check_values
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora import own_texts, source_texts
from text_infilling.corpora.corpus import SPLITS, Corpus
from text_infilling.hparams import assign, merge
from text_infilling.masking import masked_lines
from text_infilling.runs import layout
from text_infilling.runs.checks import changed_keys
from text_infilling.runs.replace import replacing
from text_infilling.runs.run_folder import RunFolder
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

if TYPE_CHECKING:  # Imports TensorFlow, which takes seconds: check first what can be checked without it.
    from text_infilling.training.evaluation import Evaluator
    from text_infilling.training.task import Task

PACKAGES = ("tensorflow", "tensorflow-text", "keras", "numpy", "sacrebleu")

MAX_VOCABULARY = 50_000  # words
LARGE = 2_000  # above this number of sentences, a word must occur twice to be in the vocabulary
WORD_DROPOUT = 0.25  # used if all words are in the vocabulary, so that `<UNK>` is learned
STEPS = 2_500  # approximate length of training, unless early stopping ends it
LARGE_EPOCHS = 12  # approximate number for a corpus whose pass is several epochs; one pass if that is longer
EXAMPLES = 10  # filled sentences in the report


class Recipe(NamedTuple):
    """Defaults of training that depend on the initial weights.

    Attributes:
        most_epochs: largest number of epochs.
        assignments: hyperparameters, each `key=value`; the user's take precedence.
    """

    most_epochs: int
    assignments: tuple[str, ...] = ()


FROM_SCRATCH = Recipe(100)
FINE_TUNING = Recipe(100)  # to be chosen with `python -m experiments.base_model --tune`


def fit(
    source: str | Path,
    out: str | Path,
    config: FitConfig | None = None,
    overwrite: bool = False,
    say: Callable[[str], None] = files.say,
    recipe: Recipe | None = None,
) -> dict:
    """Fits a model to the texts in `source`, saves it in `out`, and returns the metrics on held-out sentences.

    The same call resumes interrupted training. `fit("my.txt", "my_model", FitConfig(mask_rate=0.2))["ppl"]` is the
    perplexity.

    Args:
        source: a file of UTF-8 text, JSON Lines, CSV or TSV, or a gzip file of one; a folder of `*.txt` and
            `*.txt.gz`; a pipe, or `-` for standard input.
        out: a new folder, or the folder of an interrupted call.
        config: the options; default: `FitConfig()`.
        overwrite: start afresh and replace the run in `out`, finished or not; if the new run fails before training
            begins, the old one is kept.
        say: receives each line of the progress, and the report.
        recipe: default: `FINE_TUNING` if training starts from a run, else `FROM_SCRATCH`.

    Raises:
        ValueError: too few sentences, a file that is not UTF-8, options that differ from those of the run in `out`.
        OSError: a file cannot be read or written; another process uses `out`.
    """
    out, config = Path(out), config or FitConfig()
    source_texts.check_there(Path(source))
    run = open_initial(config.init_from, config.model) if config.init_from else None
    with _or_nothing(out), files.locked(out, "out"), files.Log(out / layout.LOG, say) as log:
        with replacing(out, overwrite):
            prepared = _prepare(Path(source), out, config, run, recipe, log)
        with log.traceback():
            evaluator, timing = _train(prepared, config.model, out, log)
            metrics, predictions = evaluator("test")
            shown = predictions if len(predictions) >= EXAMPLES else predictions + evaluator("valid")[1]
        corpus, vocabulary = prepared.task.corpus, prepared.task.vocabulary
        metrics |= {"sentences_train": prepared.sentences_train, "vocabulary": len(vocabulary.words), **timing}
        metrics["unknown_rate"] = _unknown_rate(corpus, vocabulary)
        files.write_jsonl(out / layout.PREDICTIONS, predictions)
        files.write_text(out / layout.REPORT, report(metrics, shown, corpus))
        files.write_json(out / layout.METRICS, metrics)
        files.remove(out / layout.RESUME_POINT)
        say((out / layout.REPORT).read_text("utf-8").rstrip())
        return metrics


class _Prepared(NamedTuple):
    """What training needs.

    Attributes:
        task: the corpus, its vocabulary and masking.
        hparams: all hyperparameters.
        initial: the run that training starts from, or None.
        sentences_train: number of sentences to train on.
    """

    task: "Task"
    hparams: dict
    initial: InitialRun | None
    sentences_train: int


def _prepare(
    source: Path, out: Path, config: FitConfig, run: RunFolder | None, recipe: Recipe | None, log: files.Log
) -> _Prepared:
    """Makes the corpus, the vocabulary and the config of a run, or checks that they are those of the run in `out`.

    Args:
        source, out, config, recipe: as in `fit`.
        run: the run of `init_from`; None to decide here about the base model.
        log: receives one line of text at a time.
    """
    if (out / layout.METRICS).exists():
        raise ValueError(f"{out} is a finished run: give another out, or set overwrite")
    stored = files.read_json(out / layout.CONFIG) if (out / layout.CONFIG).exists() else None
    with source_texts.source_files(source, out, log) as sources:
        if not run and not (stored and stored["init_from"] is None):
            run, which = base_run(config, sources)
            log(which)
        if stored and stored["init_from"] != (files.sha256(run.weights) if run else None):
            raise ValueError(f"{out} was started with other init_from: give the same as before, or set overwrite")
        tokenizer = run.tokenizer if run else Tokenizer(lower=not config.keep_case)
        reading = config.reading(tokenizer, run.vocabulary.words if run else ())
        started_with = stored and stored["corpus"]["checksum"]
        corpus, counts = own_texts.corpus(sources, out / layout.SENTENCES, reading, config.masking, log, started_with)
    fitting = ["train.min_count=2"]
    if counts["train"] <= LARGE:  # keep all words of a small corpus, but learn `<UNK>`
        fitting = ["train.min_count=1", f"train.word_dropout={WORD_DROPOUT}"]
    from text_infilling.training.task import Task

    initial = InitialRun.load(run) if run else None
    vocabulary = _vocabulary(corpus, config.hparams(fitting)["train"]["min_count"], initial)
    mask_rate = None if corpus.blanks else config.mask_rate
    task = Task(corpus, vocabulary, config.masking, mask_rate, corpus.blanks or config.blanks, config.seed)
    recipe = recipe or (FINE_TUNING if initial else FROM_SCRATCH)
    prepared = _Prepared(task, _hparams(task, config, initial, fitting, recipe), initial, counts["train"])
    record = _record(prepared, config, config.init_from or (run and run.name))
    _write_or_check(out, record, vocabulary, tokenizer, log)
    return prepared


def _train(
    prepared: _Prepared, model: str, out: Path, log: Callable[[str], None]
) -> tuple["Evaluator", dict[str, float]]:
    """Trains the model; returns its evaluator and the duration, see `trainer.train`."""
    from text_infilling.training.trainer import TrainingRun, train

    task, initial = prepared.task, prepared.initial
    run = TrainingRun(task, model, prepared.hparams, out, log, epochs_per_pass=_epochs_per_pass(task))
    return train(dataclasses.replace(run, initialize=initial.copy_weights) if initial else run)


@contextlib.contextmanager
def _or_nothing(out: Path) -> Iterator[None]:
    """Creates `out` if missing; removes it again if the run fails before writing anything."""
    new = not out.exists()
    files.make_folder(out, "out")
    if any(out.iterdir()) and not (out / files.LOCK).exists():
        raise ValueError(f"{out} contains other files and is not a run: give a new folder as out")
    try:
        yield
    except BaseException:
        if new and {path.name for path in out.iterdir()} <= {files.LOCK, layout.LOG}:
            files.remove(out)
        raise


def report(metrics: Mapping[str, float], predictions: Sequence[dict], corpus: Corpus) -> str:
    """Returns the report of a fitted model: metrics on held-out sentences, and some of `predictions`."""
    lines = [
        f"Fitted to {corpus.source}: {metrics['sentences_train']:,} sentences, {metrics['vocabulary']:,} words known",
        f"On {metrics['sentences']:,} held-out sentences:",
        f"  unknown words               {metrics['unknown_rate']:.2%}",
        f"  perplexity with <EOB> (ppl) {metrics['ppl']:.2f}",
        f"  BLEU of sentences (bleu)    {metrics['bleu']:.2f}",
        f"  blanks of the true length   {metrics['right_length']:.1%}",
    ]
    for prediction in predictions[:: max(1, len(predictions) // EXAMPLES)][:EXAMPLES]:
        for title, key in (("filled", "infill"), ("truth", "answer")):
            lines.append(f"{title:7}{masked_lines.filled(prediction['template'], prediction[key])}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _vocabulary(corpus: Corpus, min_count: int, initial: InitialRun | None) -> Vocabulary:
    """Returns the words of train, after those of the initial run, which keep their ids."""
    found = Vocabulary.build(corpus.texts("train"), min_count).words
    known = initial.vocabulary.words if initial else ()
    among = frozenset(known)
    new = [word for word in found if word not in among]
    return Vocabulary([*known, *new[: max(0, MAX_VOCABULARY - len(known))]])


def _hparams(
    task: "Task", config: FitConfig, initial: InitialRun | None, fitting: Sequence[str], recipe: Recipe
) -> dict:
    """Returns the preset, then `fitting`, batch, epochs and positions for the corpus, recipe, user assignments."""
    found = task.survey("train")
    batch = min(100, max(8, found.lines // 20))
    epochs_per_pass = _epochs_per_pass(task)
    if epochs_per_pass == 1:
        epochs = min(recipe.most_epochs, max(3, math.ceil(STEPS * batch / found.lines)))
    else:
        epochs = max(epochs_per_pass, min(3 * epochs_per_pass, LARGE_EPOCHS))
    steps = epochs * math.ceil(found.lines / batch) // epochs_per_pass
    longest = max(task.survey(split).longest for split in SPLITS)
    fitting = [
        *fitting,
        f"train.batch_size={batch}",
        f"train.epochs={epochs}",
        f"train.patience={max(3, epochs // 10)}",
        f"schedule.warmup_steps={max(1, min(300, steps // 10))}",
        f"position.base={max(256, 2 ** math.ceil(math.log2(2 * longest + 2)))}",
        *recipe.assignments,
    ]
    hparams = run_hparams("paper", config.preset, fitting, model=config.model)
    if initial:
        hparams = merge(initial.sizes, hparams)
    for assignment in config.assignments:
        hparams = assign(hparams, assignment)
    if initial and config.init_from:
        initial.check_sizes(hparams, config.init_from)
    check_values(hparams)
    task.check_positions(hparams)
    return hparams


def _epochs_per_pass(task: "Task") -> int:
    """Returns the number of epochs per pass over the sentences."""
    return max(1, task.survey("train").lines // own_texts.EPOCH_SENTENCES)


def _record(prepared: _Prepared, config: FitConfig, init_from: str | None) -> dict:
    """Returns the content of config.json."""
    task = prepared.task
    mask_rate = list(task.mask_rate) if isinstance(task.mask_rate, tuple) else task.mask_rate  # as JSON returns it
    return {
        "cell": {
            "corpus": task.corpus.name,
            "masking": task.masking,
            "mask_rate": mask_rate,
            "blanks": task.blanks,
            "model": config.model,
            "protocol": "paper",
            "preset": config.preset,
            "seed": config.seed,
        },
        "hparams": prepared.hparams,
        "corpus": {"checksum": task.corpus.checksum},
        "vocabulary": {"hash": task.vocabulary.hash, "size": len(task.vocabulary)},
        "answers": {"empty": task.corpus.has_empty_answers},
        "init_from": prepared.initial.checksum if prepared.initial else None,
        "versions": files.versions(PACKAGES),
        "where": {"source": task.corpus.source, "init_from": init_from},
    }


def _write_or_check(out: Path, record: dict, vocabulary: Vocabulary, tokenizer: Tokenizer, log: files.Log) -> None:
    """Writes the config, vocabulary and tokenizer of a new run, or checks that an existing run has the same config."""
    if not (out / layout.CONFIG).exists():
        vocabulary.save(out / layout.VOCABULARY)
        tokenizer.save(out / layout.TOKENIZER)
        files.write_json(out / layout.CONFIG, record)
        return
    if keys := changed_keys(files.read_json(out / layout.CONFIG), record):
        raise ValueError(f"{out} was started with other {', '.join(keys)}: give the same as before, or set overwrite")
    log(f"{out} was started before")


def _unknown_rate(corpus: Corpus, vocabulary: Vocabulary) -> float:
    known, words = frozenset(vocabulary.words), [word for text in corpus.texts("test") for word in text.split()]
    return sum(word not in known for word in words) / len(words)
