"""Evaluates a base model on held-out texts, and writes the folder with which the package ships it."""

import datetime
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from text_infilling.corpora import own_texts
from text_infilling.corpora.base_texts import SOURCES
from text_infilling.corpora.corpus import Corpus
from text_infilling.inference.infiller import Infiller
from text_infilling.inference.load_model import load_model
from text_infilling.metrics.perplexity import Perplexity
from text_infilling.runs import layout
from text_infilling.runs.run_folder import RunFolder, open_run
from text_infilling.training.evaluation import Evaluator, Fill, computed
from text_infilling.training.task import Task
from text_infilling.utils import files

CARD, FILLS = "MODEL_CARD.md", "fills.json"
MOST_BYTES = 25_000_000  # of all files together
MAX_WORDS = 254  # per held-out sentence
BATCH = 100  # sentences that are scored together
ALL = "all"  # all held-out sentences together
SENTENCES = (  # their fills are stored, so that a test can compare them
    "I ____ the soup, but the ____ was cold.",
    "Thank you for ____, and see you ____.",
    "She opened the door and ____.",
    "My favorite ____ is ____ because it makes me happy.",
    "The government should ____ the ____ of its people.",
)


def evaluate(run: RunFolder, held_out: Path) -> dict[str, dict[str, float]]:
    """Returns the scores of a run on the texts of `held_out/SOURCE.txt`, per source and on all.

    The blanks are those of training: `any`, with the mask rate and the maximum number of blanks of the run, seed 1.

    Returns:
        For each source, and for "all": `sentences`; `ppl`; `exact`, the share of blanks filled with exactly the true
        words; `right_length`, the share of infills with the true number of words.

    Raises:
        ValueError: the folder has no texts, or the run was made with other masking than `any`.
        OSError: a file cannot be read.
    """
    cell = run.config["cell"]
    if cell.get("masking") != "any":
        raise ValueError(f"{run.path} must have been made with masking any. Received: {cell.get('masking')}")
    rate = tuple(cell["mask_rate"]) if isinstance(cell["mask_rate"], list) else cell["mask_rate"]
    paths = sorted(held_out.glob("*.txt"))
    if not paths:
        raise ValueError(f"{held_out} has no SOURCE.txt: give the folder held_out of `prepare`")
    model, scores, together = load_model(run), {}, _Scores()
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            with open(path, encoding="utf-8") as lines:
                task = held_out_task(lines, run, "any", rate, cell["blanks"], Path(folder) / path.name)
            evaluator, each = Evaluator(model, task, run.hparams), _Scores()
            fills = evaluator.fills("test")
            losses = list(computed(evaluator.score, task.batches("test", BATCH)))
            for counted in (each, together):
                counted.update(fills, losses)
            scores[path.stem] = each.result()
    return {**scores, ALL: together.result()}


def held_out_task(
    lines: Iterable[str],
    run: RunFolder,
    masking: str,
    mask_rate: float | tuple[float, float],
    blanks: int,
    path: Path,
) -> Task:
    """Returns the task of scoring a run on held-out lines of text.

    Args:
        lines: lines of text.
        run: the run, which tokenises them.
        masking, mask_rate, blanks: as in `Task`.
        path: the tokenised sentences are written to this file, which all splits of the task have.
    """
    found = own_texts.sentences(lines, run.tokenizer, MAX_WORDS, frozenset(run.vocabulary.words))
    files.write_text(path, "".join(f"{' '.join(words)}\n" for words in found))
    corpus = Corpus("own", path, path, path, path.name, "", files.sha256(path))
    return Task(corpus, run.vocabulary, masking, mask_rate, blanks, seed=1, perplexity_batch=BATCH)


def shares(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> dict[str, float]:
    """Returns the shares of infills that equal the true words, and that have as many words.

    >>> shares([(["the", "soup"], ["the", "bread"]), (["good"], ["good"])])
    {'exact': 0.5, 'right_length': 1.0}

    Args:
        pairs: infill and true words of each blank.
    """
    return {
        "exact": sum(infill == answer for infill, answer in pairs) / len(pairs),
        "right_length": sum(len(infill) == len(answer) for infill, answer in pairs) / len(pairs),
    }


class _Scores:
    """Accumulator of the scores of one source or of several."""

    def __init__(self):
        self._perplexity, self._sentences, self._pairs = Perplexity(), 0, []

    def update(self, fills: Sequence[Fill], losses: Sequence[Sequence[np.ndarray]]) -> None:
        """Adds the infills of sentences and the batches of their losses, as `Perplexity.update` takes them."""
        self._sentences += len(fills)
        self._pairs += [pair for fill in fills for pair in zip(fill.infills, fill.answers, strict=True)]
        for batch in losses:
            self._perplexity.update(*batch)

    def result(self) -> dict[str, float]:
        return {"sentences": self._sentences, "ppl": self._perplexity.result()["ppl"], **shares(self._pairs)}


def table(scores: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """Returns the rows of a table of the scores, with a header.

    >>> table({"all": {"sentences": 1200, "ppl": 31.237, "exact": 0.2, "right_length": 0.625}})[1]
    ['all', '1,200', '31.24', '20.0%', '62.5%']
    """
    rows = [["source", "sentences", "ppl", "exact blanks", "right length"]]
    for name, row in scores.items():
        shares = (f"{row[key]:.1%}" for key in ("exact", "right_length"))
        rows.append([name, f"{row['sentences']:,}", f"{row['ppl']:.2f}", *shares])
    return rows


def ship(run: RunFolder, held_out: Path, out: Path, command: str) -> dict[str, dict[str, float]]:
    """Writes the folder of a base model; returns its scores on the held-out texts.

    The weights are rounded to float16; the scores and the stored fills are those of the rounded weights. The folder
    replaces `out` once it is complete.

    Args:
        run: a finished run.
        held_out: folder of SOURCE.txt.
        out: folder to write.
        command: the command that wrote it, for the model card.

    Raises:
        ValueError: the run is not finished; the files together exceed `MOST_BYTES`; or see `evaluate`.
        OSError: a file cannot be read or written.
    """
    if not (run.path / layout.METRICS).is_file():
        raise ValueError(f"{run.path} is not a finished run: it has no {layout.METRICS}; run `train` again")
    files.make_folder(out.parent, "--out")
    with files.written_aside(out) as aside:
        aside.mkdir()
        files.write_json(aside / layout.CONFIG, run.config)
        run.vocabulary.save(aside / layout.VOCABULARY)
        run.tokenizer.save(aside / layout.TOKENIZER)
        arrays = {f"{i:03}": np.asarray(w, np.float16) for i, w in enumerate(load_model(run).get_weights())}
        np.savez(aside / layout.BASE_WEIGHTS, **arrays)
        written = open_run(aside)
        scores = evaluate(written, held_out)
        infiller = Infiller.load(written)
        fills = [{"text": text, "filled": infiller.fill(text).text} for text in SENTENCES]
        files.write_json(aside / FILLS, fills)
        parameters = sum(array.size for array in arrays.values())
        files.write_text(aside / CARD, model_card(run.config, parameters, scores, fills, command))
        size = sum(path.stat().st_size for path in aside.iterdir())
        if size >= MOST_BYTES:
            raise ValueError(f"the base model must have less than {MOST_BYTES:,} bytes. Received: {size:,}")
        sums = {path.name: files.sha256(path) for path in sorted(aside.iterdir())}
        files.write_json(aside / layout.CHECKSUMS, sums)
    return scores


def model_card(
    config: Mapping,
    parameters: int,
    scores: Mapping[str, Mapping[str, float]],
    fills: list[dict[str, str]],
    command: str,
) -> str:
    """Returns the model card in Markdown."""
    hparams, cell = config["hparams"], config["cell"]
    lines = [
        "# Base model of everyday English",
        "",
        f"A {cell['model']} model with {parameters:,} parameters (stored as float16), {config['vocabulary']['size']:,} "
        f"words and special tokens, written on {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d} by",
        "",
        f"    {command}",
        "",
        "after `python -m text_infilling.app.base_model prepare` and `train` with the settings in `config.json`: "
        f"{hparams['train']['epochs']} epochs at most, blanks 1 to {cell['blanks']}, mask rate {cell['mask_rate']}.",
        "",
        "## Training text",
        "",
        *_markdown([["source", "text and licence", "package"]] + [
            [source.name, source.about, f"{source.package.name} {source.package.version}"] for source in SOURCES
        ]),
        "",
        "`docs/base-model.md` describes the sources and `NOTICE` has their licence notices.",
        "",
        "## Scores on held-out sentences",
        "",
        *_markdown(table(scores)),
        "",
        "`ppl`: perplexity of the words of the blanks with `<EOB>`. Exact blanks: filled with exactly the true words. "
        "Perplexities of models with other vocabularies do not compare.",
        "",
        "## Fills of fixed sentences (greedy, unselected)",
        "",
        *_markdown([["text", "filled"]] + [[fill["text"].replace("_", r"\_"), fill["filled"]] for fill in fills]),
        "",
        "## Limits",
        "",
        "- It completes sentences plausibly, not truly: infills are not facts.",
        "- It knows one sentence at a time; a text longer than "
        f"{hparams['position']['base'] - 2} words and blanks is refused.",
        "- Its text is small and partly old: conversations of 2018 between volunteers, speeches, novels, the Bible, "
        "dictionary examples. Infills can repeat the views and prejudices of these texts.",
        "- It has not been tested for decisions about people, and is not meant for them.",
        "",
    ]  # fmt: skip
    return "\n".join(lines)


def _markdown(rows: list[list[str]]) -> list[str]:
    """Returns the lines of a Markdown table; the first row is its header."""
    header, *others = (f"| {' | '.join(row)} |" for row in rows)
    return [header, "|" + "---|" * len(rows[0]), *others]
