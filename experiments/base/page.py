"""The page and the CSV of what the base model helps with, made from the results of the finished units."""

import csv
import io
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from experiments.base import scores
from experiments.base.texts import HELD_OUT, LINES
from experiments.base.units import ALL_LINES, BASE, FRESH, NGRAM, SEEDS, YELP_LINES, Unit
from experiments.statistics import Difference, paired_bootstrap
from experiments.tables.formats import markdown_rows
from experiments.tables.table import NO_VALUE, NOT_RUN

RESAMPLES = 2_000
BLEU_TARGET, EXACT_TARGET = 6.0, 2.0  # at 300 Yelp lines: points more, times as many
TITLES = {BASE: "from the base model", FRESH: "from scratch", NGRAM: "n-grams"}
COLUMNS = (
    "corpus", "lines", "start", "seed", "blanks", "bleu_blanks", "bleu", "ppl", "exact", "right_length", "minutes",
    "epochs", "vocabulary", "sentences",
)  # fmt: skip
METRICS = ("bleu_blanks", "bleu", "ppl", "exact", "right_length")
FORMS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(("bleu_blanks", "bleu", "ppl", "minutes"), "{:.1f}".format),
    **dict.fromkeys(("exact", "right_length"), "{:.1%}".format),
}


class Pair(NamedTuple):
    """Results of two ways on the same held-out sentences, for the same seeds.

    Attributes:
        ours, other: result of each seed, see `scores.of_fills`.
    """

    ours: list[dict]
    other: list[dict]

    def bleu(self, key: str) -> Difference:
        """Returns the difference in BLEU of the infills of all seeds together, with its interval over sentences.

        Args:
            key: `blank_counts` or `full_counts`.
        """
        ours, other = (np.sum([one[key] for one in side], axis=0) for side in self)
        return paired_bootstrap(
            ours, other, RESAMPLES, seed=1, metric="bleu_paper" if key == "blank_counts" else "bleu"
        )

    def factor(self, key: str) -> float:
        """Returns the mean of a metric over the seeds, divided by that of the other way."""
        ours, other = (statistics.mean(one[key] for one in side) for side in self)
        return ours / other if other else float("inf")


def values(result: Mapping, blanks: int) -> dict[str, float | None]:
    """Returns the metrics of a unit's result for a number of blanks."""
    found = result["scores"][str(blanks)]
    bleu_blanks, bleu = scores.bleus(found)
    return {"bleu_blanks": bleu_blanks, "bleu": bleu, **{key: found[key] for key in METRICS[2:]}}


def csv_text(finished: Mapping[Unit, dict]) -> str:
    """Returns CSV with one row per finished unit and number of blanks."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for unit, result in finished.items():
        for blanks in scores.BLANKS:
            row = {"corpus": unit.corpus, "lines": unit.lines, "start": unit.start, "seed": unit.seed, "blanks": blanks}
            if unit.lines == ALL_LINES:
                row["lines"] = "all"
            row |= {key: result[key] for key in ("minutes", "epochs", "vocabulary") if key in result}
            writer.writerow({**row, **values(result, blanks), "sentences": result["scores"][str(blanks)]["sentences"]})
    return out.getvalue()


def pair(finished: Mapping[Unit, dict], corpus: str, lines: int, blanks: int) -> Pair | None:
    """Returns the fits from the base model and from scratch of the seeds that have both; None if none has."""
    both = [
        [finished[unit]["scores"][str(blanks)] for unit in units]
        for units in ([Unit(corpus, lines, start, seed) for start in (BASE, FRESH)] for seed in SEEDS)
        if all(unit in finished for unit in units)
    ]
    return Pair(*map(list, zip(*both, strict=True))) if both else None


def statements(finished: Mapping[Unit, dict], sources: Sequence[str]) -> list[str]:
    """Returns what the numbers show about each goal, one sentence per goal and number of blanks."""
    return [
        f"{blanks} blank{'s' * (blanks > 1)}, {goal}: {found or NOT_RUN}"
        for blanks in scores.BLANKS
        for goal, found in (*_goals_of_fits(finished, blanks), *_goals_alone(finished, sources, blanks))
    ]


def _goals_of_fits(finished: Mapping[Unit, dict], blanks: int) -> Iterator[tuple[str, str | None]]:
    """Yields each goal of the fits, and the finding, or None if the fits are not finished."""
    least, most = YELP_LINES[0], YELP_LINES[-1]
    small, large = (pair(finished, "yelp", count, blanks) for count in (least, most))
    for key, name in (("blank_counts", "blanks' words"), ("full_counts", "sentences")):
        goal, found = f"{least} Yelp lines, BLEU of the {name} {BLEU_TARGET:g} points higher", None
        if small:
            found = small.bleu(key)
            found = f"{_reached(found.value >= BLEU_TARGET)}, {_shown(found)}"
        yield goal, found
    factor = small and small.factor("exact")
    found = small and f"{_reached(factor >= EXACT_TARGET)}, factor {factor:.2f}"
    yield f"{least} Yelp lines, exact blanks doubled", found
    goal, found = f"{most:,} Yelp lines, BLEU of the blanks' words not clearly lower", None
    if large:
        found = large.bleu("blank_counts")
        found = f"{_reached(found.high >= 0)}, {_shown(found)}; `ppl` factor {large.factor('ppl'):.3f}"
    yield goal, found


def _goals_alone(
    finished: Mapping[Unit, dict], sources: Sequence[str], blanks: int
) -> Iterator[tuple[str, str | None]]:
    """Yields in how many sources the base model alone is better than each other filler."""
    for start, name in ((FRESH, f"a model of {LINES} lines"), (NGRAM, "n-grams")):
        found = [one for source in sources if (one := alone_pair(finished, source, start, blanks))]
        better = sum(one.bleu("blank_counts").low > 0 for one in found)
        goal = f"base model alone, BLEU of the blanks' words clearly higher than {name}"
        yield goal, f"in {better} of {len(found)} sources that were run" if found else None


def alone_pair(finished: Mapping[Unit, dict], source: str, start: str, blanks: int) -> Pair | None:
    """Returns the base model alone and another filler on a source; None if one of them is not finished."""
    units = (Unit(source, None, BASE, 1), other_unit(source, start))
    if not all(unit in finished for unit in units):
        return None
    return Pair(*([finished[unit]["scores"][str(blanks)]] for unit in units))


def other_unit(source: str, start: str) -> Unit:
    """Returns the unit of a filler of a source: `BASE`, `NGRAM`, or `FRESH` for the fit from scratch."""
    return Unit(source, LINES if start == FRESH else None, start, 1)


def page(finished: Mapping[Unit, dict], sources: Sequence[str], about: str) -> str:
    """Returns the page.

    Args:
        finished: results of the finished units.
        sources: names of the sources of the base model.
        about: a sentence on the base model.
    """
    return "\n\n".join([
        "# What the base model helps with",
        f"Made by `experiments.base_model`. {about}",
        "\n".join(f"- {line}." for line in statements(finished, sources)),
        f"Scores are on {HELD_OUT} held-out sentences with random blanks that mask {scores.MASK_RATE:.0%} of their "
        "words; the same blanks for all. `bleu_blanks`: BLEU of the blanks' words, each blank as a separate text, "
        "smoothed as `bleu_paper`; `bleu`: of the filled sentences. Exact: blanks filled with exactly the true words; "
        "right length: with the true number of words. Intervals (95%) are from a paired bootstrap of the sentences, "
        "all seeds together; the verdicts on 300 lines are on the value, not on the interval.",
        "## Fits from the base model and from scratch",
        "Both fits have the base model's sizes and vocabulary, with the words of the text added, so that their `ppl` "
        "compares; each has its own defaults of `fit`. A seed chooses lines, weights, batches and blanks. "
        f"Mean ± sample standard deviation over seeds {', '.join(map(str, SEEDS))}, as far as they were run.",
        _fits(finished),
        "### Differences: from the base model minus from scratch",
        _differences(finished),
        "## The base model alone",
        f"On held-out sentences of its own sources, against a model from scratch of {LINES} other held-out lines of "
        "the same source, and against a filler that counts words, pairs and triples in the base model's training text "
        "(greedy as well). All have the base model's vocabulary.",
        _alone(finished, sources),
    ]) + "\n"  # fmt: skip


def _fits(finished: Mapping[Unit, dict]) -> str:
    titles = ("corpus", "lines", "blanks", "start", "seeds", *METRICS, "minutes")
    grid = [titles, ("---", "---:", "---:", "---", *("---:",) * (len(titles) - 4))]
    for corpus, lines in _rows():
        for blanks in scores.BLANKS:
            for start in (BASE, FRESH):
                found = [finished[unit] for seed in SEEDS if (unit := Unit(corpus, lines, start, seed)) in finished]
                rows = [{**values(one, blanks), "minutes": one["minutes"]} for one in found]
                entries = [_mean([row[key] for row in rows], FORMS[key]) for key in (*METRICS, "minutes")]
                grid.append((*_named(corpus, lines), str(blanks), TITLES[start], str(len(rows)), *entries))
    return markdown_rows(grid)


def _differences(finished: Mapping[Unit, dict]) -> str:
    titles = ("corpus", "lines", "blanks", "seeds", "`bleu_blanks`", "`bleu`", "`ppl`, factor", "exact, factor")
    grid = [titles, ("---", *("---:",) * (len(titles) - 1))]
    for corpus, lines in _rows():
        for blanks in scores.BLANKS:
            found = pair(finished, corpus, lines, blanks)
            entries = ("0", *(NOT_RUN,) * 4)
            if found:
                shown = (_shown(found.bleu(key)) for key in ("blank_counts", "full_counts"))
                factors = (f"{found.factor(key):.2f}" for key in ("ppl", "exact"))
                entries = (str(len(found.ours)), *shown, *factors)
            grid.append((*_named(corpus, lines), str(blanks), *entries))
    return markdown_rows(grid)


def _alone(finished: Mapping[Unit, dict], sources: Sequence[str]) -> str:
    titles = ("source", "blanks", "filler", *METRICS, "`bleu_blanks`: base model minus this")
    grid = [titles, ("---", "---:", "---", *("---:",) * (len(titles) - 3))]
    names = {BASE: "base model", FRESH: f"from scratch, {LINES} lines", NGRAM: TITLES[NGRAM]}
    for source in sources:
        for blanks in scores.BLANKS:
            for start, name in names.items():
                result = finished.get(other_unit(source, start))
                row = values(result, blanks) if result else {}
                entries = (NOT_RUN if not row else _mean([row[key]], FORMS[key]) for key in METRICS)
                found = alone_pair(finished, source, start, blanks) if start != BASE else None
                shown = _shown(found.bleu("blank_counts")) if found else NO_VALUE
                grid.append((source, str(blanks), name, *entries, shown))
    return markdown_rows(grid)


def _rows() -> list[tuple[str, int]]:
    return [*(("yelp", lines) for lines in YELP_LINES), ("grimm", ALL_LINES)]


def _named(corpus: str, lines: int) -> tuple[str, str]:
    return {"yelp": "Yelp", "grimm": "Grimm's tales"}[corpus], f"{lines:,}" if lines else "all"


def _mean(numbers: Sequence[float | None], form: Callable[[float], str]) -> str:
    """Returns the mean of numbers with their spread, as text."""
    if not numbers:
        return NOT_RUN
    if None in numbers:
        return NO_VALUE
    mean = form(statistics.mean(numbers))
    return mean if len(numbers) == 1 else f"{mean} ± {form(statistics.stdev(numbers))}"


def _judged(goal: str, found: Difference, target: float) -> str:
    return f"{goal}: {_reached(found.value >= target)}, {_shown(found)}"


def _reached(reached: bool) -> str:
    return "reached" if reached else "not reached"


def _shown(found: Difference) -> str:
    return f"{found.value:+.1f} [{found.low:+.1f}, {found.high:+.1f}]"
