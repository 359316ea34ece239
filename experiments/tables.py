"""The paper's table beside ours, as text or Markdown. Pure functions of metrics and of the paper's numbers."""

import dataclasses
from collections.abc import Mapping, Sequence

from experiments import paper

NOT_RUN, NO_VALUE = "not run", "-"

# Lines of a setting: title, whose numbers, key of the paper's or of our metrics.
LINES = (
    ("BLEU", "paper", "bleu"),
    ("BLEU", "ours, bleu_paper", "bleu_paper"),
    ("Perplexity", "paper", "ppl"),
    ("Perplexity", "ours, ppl_paper", "ppl_paper"),
    ("Human Eval", "paper", "human"),
    ("Human Eval", "ours", None),
    ("clean BLEU", "ours, bleu", "bleu"),
    ("perplexity with <EOB>", "ours, ppl", "ppl"),
    ("perplexity of words", "ours, ppl_words", "ppl_words"),
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Our results of one setting of the paper's table.

    Attributes:
        mask_rate: share of the tokens that is masked, in (0, 1).
        blanks: blanks of a sentence.
        results: test metrics of each model that was run.
    """

    mask_rate: float
    blanks: int
    results: Mapping[str, Mapping[str, float]]


def caption(corpus: str, source: str, note: str, masking: str, protocol: str, preset: str, seed: int) -> str:
    """A line that says where our numbers come from, and one more where the paper's cannot stand beside them."""
    what = "Yelp" if corpus == "yelp" else f"{corpus} corpus, not Yelp"
    parts = [f"Corpus: {what} ({source}{'; ' + note if note else ''}); masking {masking}; protocol {protocol}; "
             f"preset {preset}; seed {seed}."]  # fmt: skip
    other = []
    if corpus != "yelp":
        other.append("of another corpus")
    if masking != "fixed":
        other.append("of other masks")
    if other:
        parts.append(f"The paper's numbers are {' and '.join(other)}: they cannot be compared with ours.")
    return "\n".join(parts)


def text(settings: Sequence[Setting], title: str) -> str:
    """All settings as one aligned table for the terminal, `title` above it."""
    header, *rows = _grid(settings)
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    left = 4  # Columns of words; the rest are numbers.
    lines = ["  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
             for row in (header, *rows)]  # fmt: skip
    lines.insert(1, "-" * max(map(len, lines)))
    return "\n".join([title, "", *lines, *_footnotes(settings)])


def markdown(settings: Sequence[Setting], title: str) -> str:
    """All settings as one Markdown table, `title` above it."""
    header, *rows = _grid(settings)
    align = ["---"] * 4 + ["---:"] * (len(header) - 4)
    lines = ["| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;") for cell in row) + " |"
             for row in (header, align, *rows)]  # fmt: skip
    notes = [f"- {note}" for note in _footnotes(settings)]
    return "\n".join([title, "", *lines, *([""] if notes else []), *notes])


def paper_table(pairs: Sequence[tuple[float, int]]) -> str:
    """The paper's own table of `(mask_rate, blanks)` pairs, as aligned text."""
    rows = [["Mask rate", "Blanks", "Metric", *(paper.TITLES[model] for model in paper.MODELS)]]
    for mask_rate, blanks in pairs:
        for title, key in (("BLEU", "bleu"), ("Perplexity", "ppl"), ("Human Eval", "human")):
            numbers = (paper.printed(mask_rate, blanks, model, key) or NO_VALUE for model in paper.MODELS)
            rows.append([_percent(mask_rate), str(blanks), title, *numbers])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))
        )
        for row in rows
    )


def _grid(settings: Sequence[Setting]) -> list[list[str]]:
    """Header and rows of cells; mask rate and blanks stand in the first row of their setting only."""
    grid = [["Mask rate", "Blanks", "Metric", "Whose", *(paper.TITLES[model] for model in paper.MODELS)]]
    for setting in settings:
        pair = setting.mask_rate, setting.blanks
        for i, (metric, whose, key) in enumerate(LINES):
            first = [_percent(setting.mask_rate), str(setting.blanks)] if i == 0 else ["", ""]
            if whose == "paper":
                cells = [paper.printed(*pair, model, key) or NO_VALUE for model in paper.MODELS]
            else:
                cells = [_ours(setting.results, model, key) for model in paper.MODELS]
            grid.append([*first, metric, whose, *cells])
    return grid


def _ours(results: Mapping[str, Mapping[str, float]], model: str, key: str | None) -> str:
    """Our number with three decimals. The template's BLEUs stand in the metrics of every model."""
    if model == "template":
        if key not in ("bleu", "bleu_paper"):
            return NO_VALUE
        values = [metrics[f"template_{key}"] for metrics in results.values() if f"template_{key}" in metrics]
    else:
        values = [results[model][key]] if key in results.get(model, {}) else []
    return f"{values[0]:.3f}" if values else NOT_RUN


def _percent(mask_rate: float) -> str:
    return f"{100 * mask_rate:.6g}%"


def _footnotes(settings: Sequence[Setting]) -> list[str]:
    """What the reader should know of the paper's and of our numbers, one line each."""
    notes = []
    for setting in settings:
        where = f"{_percent(setting.mask_rate)}, {setting.blanks} blank{'s' if setting.blanks > 1 else ''}"
        if not paper.setting(setting.mask_rate, setting.blanks):
            notes.append(f"{where}: the paper has no such setting.")
        for (mask_rate, blanks, model), note in paper.NOTES.items():
            if (mask_rate, blanks) == (setting.mask_rate, setting.blanks):
                notes.append(f"{where}, {paper.TITLES[model]}, paper: {note}.")
        counts = {(int(m["sentences"]), int(m["left_out"])) for m in setting.results.values() if "sentences" in m}
        for sentences, left_out in sorted(counts):
            notes.append(f"{where}, ours: {sentences} test sentences, {left_out} too short for their blanks left out.")
    return notes
