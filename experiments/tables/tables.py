"""The content of a table: the paper's numbers and ours, as pure functions of metrics and of the paper's numbers.

`text` formats it for the terminal; `formats` has Markdown, LaTeX and CSV.
"""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from experiments.tables import paper
from text_infilling.utils.columns import aligned

NOT_RUN, NO_VALUE = "not run", "-"


class Line(NamedTuple):
    """A line of a setting: metric, whose numbers it shows, their key in the authors' or our metrics, best of a row."""

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
# They show whether long infills end too early or repeat themselves.
LINES_OF_LONG_INFILLS = (
    Line("words per infill", "ours", "mean_infill_length", None),
    Line("infills that repeat a trigram", "ours", "repeating_infills", None),
)
# The number of the paper that each of ours is compared with.
BESIDE = {"bleu_paper": "bleu", "ppl_paper": "ppl", "human": "human"}
# Names of the paper's corpora in captions, by family.
CAPTIONS = {
    "yelp": "Yelp",
    "long_content": "Grimm's tales and NBA reports",
    "prepositions": "Grimm's tales",
}
# Columns of the training table after the first two.
TRAINED_HEADER = ("Model", "Optimizer", "Epochs", "Batch", "Parameters", "TFLOP", "Minutes")
# Titles of the columns after the first.
HEADER = ("Blanks", "Metric", "Whose", *(paper.TITLES[model] for model in paper.MODELS))


class Machine(NamedTuple):
    """The machine on which a model was trained."""

    processor: str
    cores: int | None


class Trained(NamedTuple):
    """How a model was trained and at what cost; values that its record lacks are None.

    Attributes:
        optimizer: e.g. `Adam`.
        batch_size: sentences per batch.
        epochs: epochs of all phases.
        parameters: number of weights, trainable and not.
        tflop: useful work of the training, see `text_infilling.training.cost`.
        minutes: training time without evaluation.
        machine: the machine that it ran on.
        gemm_gflops: rates of a product of two 2048 x 2048 float32 matrices before and after the training, in GFLOP/s.
        commit: Git commit of the code.
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
        mask_rate: fraction of tokens blanked, in (0, 1); None if a rule selects the masked words.
        blanks: blanks per sentence.
        results: `{model: {seed: test metrics}}` of the cells that were run.
        task: one of `paper.TASKS`.
        changed: `{model: how its hyperparameters differ from the preset's}`; models without differences are missing.
        trained: `{model: {seed: how it was trained}}` of the trained cells.
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
        """The text of the first column."""
        return paper.TASKS[self.task] if self.mask_rate is None else percent(self.mask_rate)

    @property
    def title(self) -> str:
        return f"{self.name}, {self.blanks} blank{'s' if self.blanks > 1 else ''}"


@dataclasses.dataclass(frozen=True)
class Table:
    """Settings, and what all their cells have in common.

    Attributes:
        corpus: `family` of the corpora.
        origin: a short phrase that says where the sentences come from.
        note: a note on the sentences; may be empty.
        masking, protocol, preset: as in `Cell`.
        seeds: seeds of all cells; a footnote names each model that was run with fewer.
        settings: the settings from top to bottom.
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
    """One number as shown; `value` is None if there is no number, `spread` if there are fewer than two seeds."""

    text: str
    value: float | None = None
    spread: float | None = None
    is_best: bool = False

    @property
    def shown(self) -> float:
        """The value, rounded as it is shown."""
        return float(self.text.split()[0])


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of a setting with one entry per model, in the paper's order; `is_first` marks the setting's first row."""

    setting: Setting
    line: Line
    entries: Sequence[Entry]
    is_first: bool

    @property
    def titles(self) -> tuple[str, str, str, str]:
        """The first four columns: mask rate and blanks (only in the first row of a setting), metric, whose numbers."""
        pair = (self.setting.name, str(self.setting.blanks)) if self.is_first else ("", "")
        return (*pair, self.line.metric, self.line.whose)


def rows(settings: Sequence[Setting]) -> list[Row]:
    """Returns all rows of all settings, with the best number of each row marked."""
    return [
        Row(setting, line, _entries(setting, line), i == 0)
        for setting in settings
        for i, line in enumerate(lines_of(setting))
    ]


def lines_of(setting: Setting) -> tuple[Line, ...]:
    """Returns the lines of a setting; the authors' lines only if the authors have a number for the setting."""
    lines = LINES if setting.task == "yelp" else (*LINES, *LINES_OF_LONG_INFILLS)
    return tuple(
        line
        for line in lines
        if not line.whose.startswith("authors'")
        or any(paper.printed(setting.key, model, line.key) for model in paper.MODELS)
    )


def header(table: Table) -> tuple[str, ...]:
    """Returns the titles of the columns."""
    return ("Mask rate" if is_yelps(table) else "Task", *HEADER)


def is_yelps(table: Table) -> bool:
    """Returns whether a table has only Yelp settings."""
    return all(setting.task == "yelp" for setting in table.settings)


def family(corpus: str) -> str:
    """Returns the name under which the tables of a corpus are stored; Grimm and NBA share one."""
    task = paper.task_of(corpus)
    return corpus.replace(task, paper.page_of(task), 1)


def tables_of(corpus: str) -> dict[str, Sequence[paper.Key]]:
    """Returns the paper's tables that use a corpus, by name."""
    return paper.TABLES.get(paper.page_of(paper.task_of(corpus)), {})


def values_of(setting: Setting, model: str, key: str) -> dict[int, float] | None:
    """Returns our number for each seed; empty if the cell was not run, None if the metric does not apply.

    The template is the same for every seed, and the metrics of every model include its BLEU scores.
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
    """Returns the mean and the sample standard deviation, which is None for a single value."""
    numbers = list(values.values())
    return statistics.fmean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else None


def caption(table: Table) -> str:
    """Returns a line on how our numbers were made, and a second line if they cannot be compared with the paper's."""
    papers = "Yelp" if is_yelps(table) else "the authors' pairs"
    what = CAPTIONS.get(table.corpus, f"{table.corpus} corpus, not {papers}")
    note = f"; {table.note}" if table.note else ""
    parts = [f"Corpus: {what} ({table.origin}{note}); masking {table.masking}; protocol {table.protocol}; "
             f"preset {table.preset}; {_seeds(table.seeds)}."]  # fmt: skip
    if len(table.seeds) > 1:
        parts[0] += f" Ours: mean ± sample standard deviation over these {len(table.seeds)} seeds."
    other = []
    if table.corpus not in CAPTIONS:
        other.append("for another corpus")
    if table.masking not in ("fixed", "pairs"):
        other.append("for other masks")
    if other:
        parts.append(f"The paper's numbers are {' and '.join(other)}; they cannot be compared with ours.")
    return "\n".join(parts)


def footnotes(table: Table) -> list[str]:
    """Returns notes on the paper's numbers and ours, one line each."""
    notes = []
    is_paired = table.corpus in CAPTIONS and table.masking == "pairs"  # the authors' own sentences and blanks
    for setting in table.settings:
        if not paper.setting(setting.key):
            notes.append(f"{setting.title}: the paper has no numbers for it.")
        epochs = {model: paper.best_epoch(setting.key, model) for model in paper.MODELS}
        if any(epochs.values()):
            best = ", ".join(f"{paper.TITLES[model]} {epoch}" for model, epoch in epochs.items() if epoch)
            notes.append(
                f"{setting.title}, authors' best epoch by test perplexity: {best}; the paper prints the last epoch."
            )
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
    """Returns the column titles of the training table."""
    return (*header(table)[:2], *TRAINED_HEADER)


def trained_rows(table: Table) -> list[tuple[str, ...]]:
    """Returns the rows of the training table, one per setting and trained model."""
    return [
        (setting.name, str(setting.blanks), paper.TITLES[model], *training_of(table.settings, setting, model))
        for setting in table.settings
        for model in paper.MODELS
        if model in setting.trained
    ]


def training_of(settings: Sequence[Setting], setting: Setting, model: str) -> tuple[str, ...]:
    """Returns the columns `TRAINED_HEADER[1:]` of a model in a setting; numbers are means over its seeds.

    The letter after the minutes names the machine, see `trained_notes`.
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
    """Returns notes on the numbers of `training_of`: definitions, machines, commits."""
    every = _every_training(settings)
    if not every:
        return []
    notes = [
        "TFLOP: useful work of the training, forward and backward, without padding. Minutes: training time only. "
        "The GAN's epochs include the adversarial epochs."
    ]
    if any(one.optimizer == "Muon" for one in every):
        notes.append("Muon updates the matrices; Adam updates the embeddings, biases and norms.")
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
    """Returns the table for the terminal: caption, table, footnotes, training table."""
    grid = [header(table), *((*row.titles, *(entry.text for entry in row.entries)) for row in rows(table.settings))]
    parts = [caption(table), "", *_ruled(grid, range(4)), *footnotes(table)]
    if trained := trained_rows(table):
        parts += ["", "Trained as:", "", *_ruled([trained_header(table), *trained], range(4))]
        parts += trained_notes(table.settings)
    return "\n".join(parts)


def percent(mask_rate: float) -> str:
    """Returns a mask rate as text, e.g. `30%`."""
    return f"{100 * mask_rate:.6g}%"


def _entries(setting: Setting, line: Line) -> list[Entry]:
    """Returns the entries of a row, with the best one (or all shown as equal to it) marked if there are two or more."""
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
    """Returns our entries of a row, with three decimals as in the paper, or two if the row shows a spread."""
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
    """Returns notes on the number of test sentences; a single note if it is the same for all settings."""
    settings_of: dict[tuple[int, int], list[str]] = {}
    for setting in settings:
        metrics = [metrics for by_seed in setting.results.values() for metrics in by_seed.values()]
        for count in sorted({(int(m["sentences"]), int(m["left_out"])) for m in metrics if "sentences" in m}):
            settings_of.setdefault(count, []).append(setting.title)
    return [
        f"{'Ours' if len(settings_of) == 1 else '; '.join(titles) + ', ours'}: "
        f"{sentences} test sentences; {left_out} left out as too short for their blanks."
        for (sentences, left_out), titles in settings_of.items()
    ]


def _answers(setting: Setting) -> list[str]:
    """Returns a note with the numbers of `LINES_OF_LONG_INFILLS` for the true answers."""
    keys = ("mean_answer_length", "repeating_answers")
    if setting.task != "yelp":
        for by_seed in setting.results.values():
            for metrics in by_seed.values():
                if all(key in metrics for key in keys):
                    length, repeating = (metrics[key] for key in keys)
                    return [f"{setting.title}: true answers have {length:.3f} words on average; "
                            f"a fraction of {repeating:.3f} repeats a trigram."]  # fmt: skip
    return []


def _ruled(grid: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Returns the lines of an aligned table with a rule below its header."""
    lines = aligned(grid, left=left)
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _every_training(settings: Sequence[Setting]) -> list[Trained]:
    return [one for setting in settings for of_seeds in setting.trained.values() for one in of_seeds.values()]


def _letters(settings: Sequence[Setting]) -> dict[Machine, str]:
    """Returns a letter for each machine, in order of first use."""
    machines = dict.fromkeys(one.machine for one in _every_training(settings) if one.machine)
    return {machine: chr(ord("a") + i) for i, machine in enumerate(machines)}


def _mean(numbers: Sequence[float | None], form: str) -> str:
    known = [number for number in numbers if number is not None]
    return format(statistics.fmean(known), form) if known else NO_VALUE


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
