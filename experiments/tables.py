"""What stands in a table: the paper's numbers beside ours. Pure functions of metrics and of the paper's numbers.

`text` is for the terminal; Markdown, LaTeX and CSV are in `formats`.
"""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from experiments import paper
from text_infilling.columns import aligned

NOT_RUN, NO_VALUE = "not run", "-"


class Line(NamedTuple):
    """A line of a setting: title, whose numbers, their key in the authors' or in our metrics, what is best."""

    metric: str
    whose: str
    key: str
    best: Callable | None

    @property
    def is_ours(self) -> bool:
        return self.whose.startswith("ours")


LINES = (
    Line("BLEU", "paper", "bleu", max),
    Line("BLEU", "authors' outputs", "outputs_bleu", max),
    Line("BLEU", "ours, bleu_paper", "bleu_paper", max),
    Line("Perplexity", "paper", "ppl", min),
    Line("Perplexity", "authors' best epoch", "best_ppl", min),
    Line("Perplexity", "ours, ppl_paper", "ppl_paper", min),
    Line("Human Eval", "paper", "human", max),
    Line("Human Eval", "ours", "human", max),
    Line("clean BLEU", "authors' outputs", "outputs_bleu_clean", max),
    Line("clean BLEU", "ours, bleu", "bleu", max),
    Line("perplexity with <EOB>", "ours, ppl", "ppl", min),
    Line("perplexity of words", "ours, ppl_words", "ppl_words", min),
)
# Whether long infills end too early or go round in circles.
LINES_OF_LONG_INFILLS = (
    Line("words of an infill", "ours", "mean_infill_length", None),
    Line("infills with a trigram twice", "ours", "repeating_infills", None),
)
# Which number of the paper stands beside ours.
BESIDE = {"bleu_paper": "bleu", "ppl_paper": "ppl", "human": "human"}
# What a table's corpora are called in its caption, where they are the paper's.
CAPTIONS = {
    "yelp": "Yelp",
    "long_content": "Grimm's tales and NBA reports",
    "prepositions": "Grimm's tales",
}
# Columns of the table of how the models were trained, after the first two.
TRAINED_HEADER = ("Model", "Optimizer", "Epochs", "Batch", "Parameters", "TFLOP", "Minutes")
# Of the columns behind the first.
HEADER = ("Blanks", "Metric", "Whose", *(paper.TITLES[model] for model in paper.MODELS))


class Machine(NamedTuple):
    """Where a model was trained."""

    processor: str
    cores: int | None


class Trained(NamedTuple):
    """How a model was trained and what that took; None for what its record lacks.

    Attributes:
        optimizer: e.g. `Adam`.
        batch_size: sentences per batch.
        epochs: of all phases.
        parameters: trainable and other weights.
        tflop: useful work of the training, see `text_infilling.training.cost`.
        minutes: of training, without evaluation.
        machine: where it ran.
        gemm_gflops: rates of a product of two 2048 x 2048 float32 matrices before and after the training.
        commit: of the code.
    """

    optimizer: str
    batch_size: int
    epochs: int | None = None
    parameters: int | None = None
    tflop: float | None = None
    minutes: float | None = None
    machine: Machine | None = None
    gemm_gflops: tuple[float, ...] = ()
    commit: str | None = None


@dataclasses.dataclass(frozen=True)
class Setting:
    """Our results of one setting of the paper's table.

    Attributes:
        mask_rate: share of the tokens that is masked, in (0, 1); None where a rule decides.
        blanks: blanks of a sentence.
        results: `{model: {seed: test metrics}}` of what was run.
        task: of the paper.
        changed: `{model: what its hyperparameters have in place of the preset's}`, where they do.
        trained: `{model: {seed: how it was trained}}` of what was run and has something to learn.
    """

    mask_rate: float | None
    blanks: int
    results: Mapping[str, Mapping[int, Mapping[str, float]]]
    task: str = "yelp"
    changed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    trained: Mapping[str, Mapping[int, Trained]] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> paper.Key:
        return paper.Key(self.mask_rate, self.blanks, self.task)

    @property
    def name(self) -> str:
        """What stands in the first column."""
        return paper.TASKS[self.task] if self.mask_rate is None else percent(self.mask_rate)

    @property
    def title(self) -> str:
        return f"{self.name}, {self.blanks} blank{'s' if self.blanks > 1 else ''}"


@dataclasses.dataclass(frozen=True)
class Table:
    """Settings, and what all their cells have in common.

    Attributes:
        corpus: `family` of the corpora.
        origin: a short phrase on where its sentences were had.
        note: what is to be known of them; may be empty.
        masking, protocol, preset: as in `Cell`.
        seeds: of all cells; a footnote names a cell that was run with fewer.
        settings: from top to bottom.
    """

    corpus: str
    origin: str
    note: str
    masking: str
    protocol: str
    preset: str
    seeds: tuple[int, ...]
    settings: Sequence[Setting]


class Entry(NamedTuple):
    """One number as shown; `value` is None where there is none, `spread` with fewer than two seeds."""

    text: str
    value: float | None = None
    spread: float | None = None
    is_best: bool = False

    @property
    def shown(self) -> float:
        """The value with the decimals it is shown with."""
        return float(self.text.split()[0])


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of a setting and its entries, one a model in the paper's order; `is_first` of its setting."""

    setting: Setting
    line: Line
    entries: Sequence[Entry]
    is_first: bool

    @property
    def titles(self) -> tuple[str, str, str, str]:
        """The first four columns: mask rate and blanks (of the first row of a setting only), metric, whose."""
        pair = (self.setting.name, str(self.setting.blanks)) if self.is_first else ("", "")
        return (*pair, self.line.metric, self.line.whose)


def rows(settings: Sequence[Setting]) -> list[Row]:
    """All rows of all settings; the best of the paper's numbers and the best of ours are marked in each."""
    return [
        Row(setting, line, _entries(setting, line), i == 0)
        for setting in settings
        for i, line in enumerate(lines_of(setting))
    ]


def lines_of(setting: Setting) -> tuple[Line, ...]:
    """The lines that a setting has in a table: of those of the authors' record where it has a number of it."""
    lines = LINES if setting.task == "yelp" else (*LINES, *LINES_OF_LONG_INFILLS)
    return tuple(
        line
        for line in lines
        if not line.whose.startswith("authors'")
        or any(paper.printed(setting.key, model, line.key) for model in paper.MODELS)
    )


def header(table: Table) -> tuple[str, ...]:
    """The titles of the columns."""
    return ("Mask rate" if is_yelps(table) else "Task", *HEADER)


def is_yelps(table: Table) -> bool:
    """Whether a table has no settings but Yelp's."""
    return all(setting.task == "yelp" for setting in table.settings)


def family(corpus: str) -> str:
    """What the tables of a corpus are filed under: those of Grimm and NBA share theirs."""
    task = paper.task_of(corpus)
    return corpus.replace(task, paper.page_of(task), 1)


def tables_of(corpus: str) -> dict[str, Sequence[paper.Key]]:
    """The paper's tables that a corpus is for, by name."""
    return paper.TABLES.get(paper.page_of(paper.task_of(corpus)), {})


def values_of(setting: Setting, model: str, key: str) -> dict[int, float] | None:
    """Our number of each seed; empty where the cell was not run, None where such a number cannot be.

    The template is the same for every seed, and its BLEUs stand in the metrics of every model.
    """
    if model != "template":
        by_seed = sorted(setting.results.get(model, {}).items())
        return {seed: metrics[key] for seed, metrics in by_seed if key in metrics}
    if key not in ("bleu", "bleu_paper"):
        return None
    for by_seed in setting.results.values():
        for seed, metrics in sorted(by_seed.items()):
            if f"template_{key}" in metrics:
                return {seed: metrics[f"template_{key}"]}
    return {}


def mean_and_spread(values: Mapping[int, float]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; None for that of a single value."""
    numbers = list(values.values())
    return statistics.fmean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else None


def caption(table: Table) -> str:
    """A line that says where our numbers come from, and one more where the paper's cannot stand beside them."""
    papers = "Yelp" if is_yelps(table) else "the authors' pairs"
    what = CAPTIONS.get(table.corpus, f"{table.corpus} corpus, not {papers}")
    note = f"; {table.note}" if table.note else ""
    parts = [f"Corpus: {what} ({table.origin}{note}); masking {table.masking}; protocol {table.protocol}; "
             f"preset {table.preset}; {_seeds(table.seeds)}."]  # fmt: skip
    if len(table.seeds) > 1:
        parts[0] += f" Ours: mean ± sample standard deviation over these {len(table.seeds)} seeds."
    other = []
    if table.corpus not in CAPTIONS:
        other.append("of another corpus")
    if table.masking not in ("fixed", "pairs"):
        other.append("of other masks")
    if other:
        parts.append(f"The paper's numbers are {' and '.join(other)}: they cannot be compared with ours.")
    return "\n".join(parts)


def footnotes(table: Table) -> list[str]:
    """Returns what the reader should know about the paper's numbers and ours, one line each."""
    notes = []
    is_paired = table.corpus in CAPTIONS and table.masking == "pairs"  # the authors' own sentences and blanks
    for setting in table.settings:
        if not paper.setting(setting.key):
            notes.append(f"{setting.title}: the paper has no numbers of it.")
        epochs = {model: paper.best_epoch(setting.key, model) for model in paper.MODELS}
        if any(epochs.values()):
            said = ", ".join(f"{paper.TITLES[model]} {epoch}" for model, epoch in epochs.items() if epoch)
            notes.append(f"{setting.title}, authors' best epoch by test perplexity: {said}; printed is the last one.")
        for (key, model), note in paper.NOTES.items():
            if key == setting.key:
                notes.append(f"{setting.title}, {paper.TITLES[model]}, paper: {note}.")
        for model in paper.MODELS:
            seeds = sorted(setting.results.get(model, {}))
            if model != "template" and seeds and seeds != sorted(table.seeds):
                notes.append(f"{setting.title}, {paper.TITLES[model]}, ours: {_seeds(seeds)} only.")
            if model in setting.changed:
                notes.append(f"{setting.title}, {paper.TITLES[model]}, ours: {setting.changed[model]}.")
        notes += _answers(setting)
        if is_paired and setting.task in paper.NOTES_OF_TASKS:
            notes.append(f"{setting.title}: {paper.NOTES_OF_TASKS[setting.task]}.")
    if is_paired:
        notes.append(paper.padding_note([setting.task for setting in table.settings]))
    notes += [f"Ours: {note}." for phrase, note in paper.NOTES_OF_CORPORA.items() if phrase in table.note]
    if any(paper.setting(setting.key) for setting in table.settings):
        notes += [f"{paper.TITLES[model]}, paper: {note}." for model, note in paper.NOTES_OF_MODELS.items()]
    return notes + _sentences(table.settings)


def trained_header(table: Table) -> tuple[str, ...]:
    """Returns the column titles of the table of how the models were trained."""
    return (*header(table)[:2], *TRAINED_HEADER)


def trained_rows(table: Table) -> list[tuple[str, ...]]:
    """Returns one row per setting and trained model, under `trained_header`; none if no model was trained."""
    return [
        (setting.name, str(setting.blanks), paper.TITLES[model], *training_of(table.settings, setting, model))
        for setting in table.settings
        for model in paper.MODELS
        if model in setting.trained
    ]


def training_of(settings: Sequence[Setting], setting: Setting, model: str) -> tuple[str, ...]:
    """Returns how a model of a setting was trained, under `TRAINED_HEADER[1:]`; numbers are means over its seeds.

    A letter after the minutes names the machine, see `trained_notes`.
    """
    of_seeds = list(setting.trained[model].values())
    letters = _letters(settings)
    machines = sorted({letters[one.machine] for one in of_seeds if one.machine})
    minutes = _mean([one.minutes for one in of_seeds], ".1f") + (f" ({', '.join(machines)})" if machines else "")
    return (
        of_seeds[0].optimizer,
        _mean([one.epochs for one in of_seeds], ".4g"),
        str(of_seeds[0].batch_size),
        _mean([one.parameters for one in of_seeds], ",.0f"),
        _mean([one.tflop for one in of_seeds], ".1f"),
        minutes,
    )


def trained_notes(settings: Sequence[Setting]) -> list[str]:
    """Returns what explains the numbers of `training_of`: what they count, the machines, the commits."""
    every = _every_training(settings)
    if not every:
        return []
    notes = [
        "TFLOP: useful work of the training, forward and backward, without padding. Minutes: of training alone. "
        "The GAN's epochs include the adversarial ones."
    ]
    if any(one.optimizer == "Muon" for one in every):
        notes.append("Muon updates the matrices; the embeddings, biases and norms beside it are updated by Adam.")
    for machine, letter in _letters(settings).items():
        cores = "" if machine.cores is None else f", {machine.cores} core{'s' if machine.cores > 1 else ''}"
        rates = [rate for one in every if one.machine == machine for rate in one.gemm_gflops]
        low, high = (f"{limit(rates):.0f}" for limit in (min, max)) if rates else ("", "")
        rate = f"; a 2048 x 2048 float32 matrix product ran at {low if low == high else f'{low} to {high}'} GFLOP/s"
        notes.append(f"({letter}) {machine.processor}{cores}{rate if rates else ''}.")
    if commits := sorted({one.commit for one in every if one.commit}):
        notes.append(f"Code: {', '.join(commits)}.")
    return notes


def text(table: Table) -> str:
    """Returns the table aligned for the terminal: caption, table, footnotes, how the models were trained."""
    grid = [header(table), *((*row.titles, *(entry.text for entry in row.entries)) for row in rows(table.settings))]
    parts = [caption(table), "", *_ruled(grid, range(4)), *footnotes(table)]
    if trained := trained_rows(table):
        parts += ["", "Trained as:", "", *_ruled([trained_header(table), *trained], range(4))]
        parts += trained_notes(table.settings)
    return "\n".join(parts)


def percent(mask_rate: float) -> str:
    """E.g. `30%`."""
    return f"{100 * mask_rate:.6g}%"


def _entries(setting: Setting, line: Line) -> list[Entry]:
    """The entries of a row, the best one marked where there are two or more; all of them if several are shown alike."""
    entries = [_papers(setting, line, model) for model in paper.MODELS] if not line.is_ours else _ours(setting, line)
    shown = [entry.shown for entry in entries if entry.value is not None]
    if len(shown) < 2:
        return entries
    best = line.best(shown) if line.best else None
    return [entry._replace(is_best=entry.value is not None and entry.shown == best) for entry in entries]


def _papers(setting: Setting, line: Line, model: str) -> Entry:
    printed = paper.printed(setting.key, model, line.key)
    return Entry(NO_VALUE) if printed is None else Entry(printed, float(printed))


def _ours(setting: Setting, line: Line) -> list[Entry]:
    """Three decimals, as the paper has them; in a row that shows a spread, two."""
    found = [values_of(setting, model, line.key) for model in paper.MODELS]
    decimals = 2 if any(values and len(values) > 1 for values in found) else 3
    entries = []
    for values in found:
        if not values:
            entries.append(Entry(NO_VALUE if values is None else NOT_RUN))
            continue
        mean, spread = mean_and_spread(values)
        shown = f"{mean:.{decimals}f}" + ("" if spread is None else f" ± {spread:.{decimals}f}")
        entries.append(Entry(shown, mean, spread))
    return entries


def _sentences(settings: Sequence[Setting]) -> list[str]:
    """How many test sentences our numbers are of; one line where it is the same throughout."""
    settings_of: dict[tuple[int, int], list[str]] = {}
    for setting in settings:
        metrics = [metrics for by_seed in setting.results.values() for metrics in by_seed.values()]
        for count in sorted({(int(m["sentences"]), int(m["left_out"])) for m in metrics if "sentences" in m}):
            settings_of.setdefault(count, []).append(setting.title)
    return [
        f"{'Ours' if len(settings_of) == 1 else '; '.join(titles) + ', ours'}: "
        f"{sentences} test sentences, {left_out} too short for their blanks left out."
        for (sentences, left_out), titles in settings_of.items()
    ]


def _answers(setting: Setting) -> list[str]:
    """What stands beside the lines of long infills: the same of the true answers."""
    keys = ("mean_answer_length", "repeating_answers")
    if setting.task != "yelp":
        for by_seed in setting.results.values():
            for metrics in by_seed.values():
                if all(key in metrics for key in keys):
                    length, repeating = (metrics[key] for key in keys)
                    return [f"{setting.title}: true answers have {length:.3f} words, "
                            f"{repeating:.3f} of them a trigram twice."]  # fmt: skip
    return []


def _ruled(grid: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Returns the lines of an aligned table with a rule under its header."""
    lines = aligned(grid, left=left)
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _every_training(settings: Sequence[Setting]) -> list[Trained]:
    return [one for setting in settings for of_seeds in setting.trained.values() for one in of_seeds.values()]


def _letters(settings: Sequence[Setting]) -> dict[Machine, str]:
    """Returns a letter for each machine, in the order of their first training."""
    machines = dict.fromkeys(one.machine for one in _every_training(settings) if one.machine)
    return {machine: chr(ord("a") + i) for i, machine in enumerate(machines)}


def _mean(numbers: Sequence[float | None], form: str) -> str:
    known = [number for number in numbers if number is not None]
    return format(statistics.fmean(known), form) if known else NO_VALUE


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
