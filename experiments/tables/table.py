"""The rows of a table: the paper's numbers and ours, as pure functions of metrics and of the paper's numbers."""

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from experiments.cells.record import Trained
from experiments.cells.setting import CONTROL, Cell, Setting, task_of
from experiments.statistics import SCORES, Difference, Scores, difference, mean
from experiments.tables import paper
from experiments.tables.outputs import Outputs

NOT_RUN, NO_VALUE = "not run", "-"
# Titles of the columns after the first.
HEADER = ("Blanks", "Metric", "Whose", *(paper.TITLES[model] for model in paper.MODELS))


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
# The models that are trained, in the order of the training table.
TRAINED = (*paper.MODELS[1:3], CONTROL, *paper.MODELS[3:])
BESIDE = {"bleu_paper": "bleu", "ppl_paper": "ppl", "human": "human"}


class Result(NamedTuple):
    """The result of one finished cell.

    Attributes:
        metrics: its test metrics.
        changed: how its hyperparameters differ from those of its preset; empty if they do not.
        trained: how it was trained; None for the template.
        outputs: its predictions; None if they are missing.
    """

    metrics: Mapping[str, float]
    changed: str = ""
    trained: Trained | None = None
    outputs: Outputs | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """Settings and the results of their cells.

    Attributes:
        settings: the settings from top to bottom, at least one. They differ only in mask rate, blanks and task.
        results: the result of each finished cell of these settings.
        seeds: seeds of all cells; a footnote names each model that was run with fewer.
        origin: a short phrase that says where the sentences come from.
        note: a note on the sentences; may be empty.
    """

    settings: Sequence[Setting]
    results: Mapping[Cell, Result]
    seeds: tuple[int, ...]
    origin: str
    note: str

    @property
    def family(self) -> str:
        """The name under which the table is stored, see the function `family`."""
        return family(self.settings[0].corpus)

    def of_model(self, setting: Setting, model: str) -> dict[int, Result]:
        """Returns the results of a model in a setting by seed, in ascending order of the seeds."""
        cells = [cell for cell in self.results if (cell.setting, cell.model) == (setting, model)]
        return {cell.seed: self.results[cell] for cell in sorted(cells, key=lambda cell: cell.seed)}

    def trained(self, setting: Setting, model: str) -> dict[int, Trained]:
        """Returns how a model was trained in a setting, by seed; empty if it was not trained."""
        return {seed: one.trained for seed, one in self.of_model(setting, model).items() if one.trained}

    def all_metrics(self, setting: Setting) -> list[Mapping[str, float]]:
        """Returns the metrics of all cells of a setting, model by model in the paper's order and seed by seed."""
        return [result.metrics for model in paper.MODELS for result in self.of_model(setting, model).values()]

    def scores(self, setting: Setting, model: str, metric: str) -> Scores | None:
        """Returns the resampled scores of a model, as means over its seeds; None if a cell did not record them."""
        outputs = [one.outputs for one in self.of_model(setting, model).values()]
        if metric not in SCORES or not outputs or None in outputs:
            return None
        found = [one.scores(metric) for one in outputs]
        return None if None in found else mean(found)

    def difference(self, setting: Setting, metric: str, first: str, second: str) -> Difference | None:
        """Returns how much larger a metric of one model is than that of another, with its interval.

        It is None if the predictions of a cell are missing or do not have the counts of the metric.

        Raises:
            ValueError: the cells have different test sentences.
        """
        scores = [self.scores(setting, model, metric) for model in (first, second)]
        if None in scores:
            return None
        results = [one for model in (first, second) for one in self.of_model(setting, model).values()]
        if len({one.outputs.sentences for one in results}) > 1:
            raise ValueError(f"the predictions of {first} and {second} are of different test sentences: {setting}")
        return difference(*scores)


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


def rows(table: Table) -> list[Row]:
    """Returns all rows of all settings, with the best number of each row marked.

    A printed number is best as printed, a number of ours only if `is_clear`.
    """
    return [
        Row(setting, line, _entries(table, setting, line), i == 0)
        for setting in table.settings
        for i, line in enumerate(_shown_lines(table, setting))
    ]


def _shown_lines(table: Table, setting: Setting) -> list[Line]:
    """Returns the lines of a setting, without that of our human evaluation if no annotations were imported for it."""
    was_annotated = any("human" in metrics for metrics in table.all_metrics(setting))
    return [line for line in lines_of(setting) if was_annotated or not (line.is_ours and line.key == "human")]


def lines_of(setting: Setting) -> tuple[Line, ...]:
    """Returns the lines of a setting; the authors' lines only if the authors have a number for the setting."""
    lines = LINES if setting.task == "yelp" else (*LINES, *LINES_OF_LONG_INFILLS)
    return tuple(
        line
        for line in lines
        if not line.whose.startswith("authors'")
        or any(paper.printed(setting, model, line.key) for model in paper.MODELS)
    )


def header(table: Table) -> tuple[str, ...]:
    """Returns the titles of the columns."""
    return ("Mask rate" if is_yelps(table) else "Task", *HEADER)


def is_yelps(table: Table) -> bool:
    """Returns whether a table has only Yelp settings."""
    return all(setting.task == "yelp" for setting in table.settings)


def family(corpus: str) -> str:
    """Returns the name under which the tables of a corpus are stored; Grimm and NBA share one."""
    task = task_of(corpus)
    return corpus.replace(task, paper.page_of(task), 1)


def tables_of(corpus: str) -> dict[str, Sequence[Setting]]:
    """Returns the paper's tables that use a corpus, by name."""
    return paper.TABLES.get(paper.page_of(task_of(corpus)), {})


def values_of(table: Table, setting: Setting, model: str, key: str) -> dict[int, float] | None:
    """Returns our number for each seed; empty if the cell was not run, None if the metric does not apply.

    The template is the same for every seed, and the metrics of every model include its BLEU scores.
    """
    if model != "template":
        by_seed = table.of_model(setting, model)
        return {seed: one.metrics[key] for seed, one in by_seed.items() if key in one.metrics}
    if key not in ("bleu", "bleu_paper"):
        return None
    for any_model in paper.MODELS:
        for seed, one in table.of_model(setting, any_model).items():
            if f"template_{key}" in one.metrics:
                return {seed: one.metrics[f"template_{key}"]}
    return {}


def mean_and_spread(values: Mapping[int, float]) -> tuple[float, float | None]:
    """Returns the mean and the sample standard deviation, which is None for a single value."""
    numbers = list(values.values())
    return statistics.fmean(numbers), statistics.stdev(numbers) if len(numbers) > 1 else None


def is_clear(table: Table, setting: Setting, key: str, best: str, others: Sequence[str]) -> bool:
    """Returns whether a metric of `best` differs from that of each other model by an interval that excludes 0."""
    found = [table.difference(setting, key, best, other) for other in others]
    return bool(found) and all(one is not None and one.is_clear for one in found)


def _entries(table: Table, setting: Setting, line: Line) -> list[Entry]:
    """Returns the entries of a row, with the best one marked if there are two or more; see `rows`."""
    entries = (
        [_papers(setting, line, model) for model in paper.MODELS] if not line.is_ours else _ours(table, setting, line)
    )
    shown = [entry.shown for entry in entries if entry.value is not None]
    if len(shown) < 2:
        return entries
    best = line.best(shown) if line.best else None
    is_best = [entry.value is not None and entry.shown == best for entry in entries]
    if line.is_ours and any(is_best):
        having = [model for model, entry in zip(paper.MODELS, entries, strict=True) if entry.value is not None]
        model = paper.MODELS[is_best.index(True)]
        others = [other for other in having if other not in ("template", model)]
        is_best = [one and is_clear(table, setting, line.key, model, others) for one in is_best]
    return [entry._replace(is_best=one) for entry, one in zip(entries, is_best, strict=True)]


def _papers(setting: Setting, line: Line, model: str) -> Entry:
    printed = paper.printed(setting, model, line.key)
    return Entry(NO_VALUE) if printed is None else Entry(printed, float(printed))


def _ours(table: Table, setting: Setting, line: Line) -> list[Entry]:
    """Returns our entries of a row, with three decimals as in the paper, or two if the row shows a spread."""
    found = [values_of(table, setting, model, line.key) for model in paper.MODELS]
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
