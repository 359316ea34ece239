"""Formats a table for the terminal and as Markdown, LaTeX and CSV, and writes the last three.

The best values are computed, then set in bold type.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from experiments.cells.setting import CONTROL, Setting
from experiments.tables import paper
from experiments.tables.notes import caption, footnotes
from experiments.tables.table import (
    BESIDE,
    NO_VALUE,
    NOT_RUN,
    TRAINED,
    Entry,
    Table,
    header,
    lines_of,
    mean_and_spread,
    rows,
    values_of,
)
from experiments.tables.trained import trained_header, trained_notes, trained_rows
from text_infilling.utils import files
from text_infilling.utils.columns import aligned

CSV_HEADER = (
    "task", "mask_rate", "blanks", "model", "metric", "paper", "ours", "spread", "seeds",
    "corpus", "masking", "protocol", "preset",
    "optimizer", "batch_size", "epochs", "parameters", "train_tflop", "train_minutes", "processor", "commit", "budget",
)  # fmt: skip

# Characters that LaTeX needs escaped.
LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "—": "---",
        "–": "--",
        **{character: "\\" + character for character in "&%$#_{}"},
    }
)
LARGE = 4  # A LaTeX table of at most this many settings has room for the larger of two font sizes.


def text(table: Table) -> str:
    """Returns the table for the terminal: caption, table, footnotes, training table."""
    grid = [header(table), *((*row.titles, *(entry.text for entry in row.entries)) for row in rows(table))]
    parts = [caption(table), "", *_ruled(grid, range(4)), *footnotes(table)]
    if trained := trained_rows(table):
        parts += ["", "Trained as:", "", *_ruled([trained_header(table), *trained], range(4))]
        parts += trained_notes(table)
    return "\n".join(parts)


def stem(table: Table, name: str) -> str:
    """Returns the name of a table's files without suffix, e.g. `yelp.fixed.paper.laptop.main`."""
    one = table.settings[0]
    return f"{table.family}.{one.masking.replace(':', '-')}.{one.protocol}.{one.preset}.{name}"


def write(table: Table, name: str, results_dir: Path) -> list[Path]:
    """Writes a table in three formats to `results_dir/CORPUS/` and returns the paths.

    Args:
        table: the table.
        name: its name in `paper.TABLES`, used in the file names.
        results_dir: created if missing.

    Raises:
        OSError: the folder cannot be written.
    """
    folder = results_dir / table.family
    files.make_folder(folder, "--results_dir")
    made = {".md": markdown(table, name), ".tex": latex(table, name), ".csv": csv_text(table)}
    paths = [folder / f"{stem(table, name)}{suffix}" for suffix in made]
    for path, content in zip(paths, made.values(), strict=True):
        files.write_text(path, content)
    return paths


def title(table: Table, name: str) -> str:
    """Returns the title of a table, e.g. `Main table: mask rates 30%, 50%`."""
    what = dict.fromkeys(setting.name for setting in table.settings)
    rates = "mask rates " if table.settings[0].mask_rate is not None else ""
    return f"{name.capitalize().replace('_', ' ')} table: {rates}{', '.join(what)}"


def markdown(table: Table, name: str) -> str:
    """Returns a page: heading, caption, table, list of footnotes, table of how the models were trained."""
    grid = [header(table), ("---",) * 4 + ("---:",) * len(paper.MODELS)]
    for row in rows(table):
        grid.append((*map(_markdown_escape, row.titles), *(_bold(entry, "**{}**") for entry in row.entries)))
    parts = [f"# {title(table, name)}", _markdown_escape(caption(table)), markdown_rows(grid)]
    parts.append(_markdown_list(footnotes(table)))
    if trained := trained_rows(table):
        grid = [trained_header(table), ("---",) * 4 + ("---:",) * (len(trained[0]) - 4), *trained]
        parts += ["## Trained as", markdown_rows(grid), _markdown_list(trained_notes(table))]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_rows(grid: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table; the second row of `grid` contains the alignments."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in grid)


def latex(table: Table, name: str) -> str:
    r"""Returns a `table` environment for `\input`; its first line lists the packages that it needs."""
    size = r"\footnotesize" if len(table.settings) <= LARGE else r"\scriptsize"
    lines = []
    for row in rows(table):
        if row.is_first and lines:
            lines.append(r"\midrule")
        numbers = (_bold(entry, r"\textbf{{{}}}", _latex_escape) for entry in row.entries)
        lines.append(" & ".join((*map(_latex_escape, row.titles), *numbers)) + r" \\")
    above = " ".join(map(_latex_escape, (f"{title(table, name)}.", *caption(table).splitlines())))
    notes = " ".join(map(_latex_escape, footnotes(table)))
    trained = trained_rows(table)
    return "\n".join(
        [
            r"% \usepackage{booktabs,graphicx}",
            r"\begin{table}[p]",
            r"\centering",
            rf"\caption{{{above}}}",
            rf"\label{{tab:{stem(table, name).replace('.', '-')}}}",
            rf"{size}\renewcommand{{\arraystretch}}{{0.9}}",
            *_latex_tabular(f"rrll{'r' * len(paper.MODELS)}", header(table), lines),
            *([rf"\par\smallskip\raggedright {notes}"] if notes else []),
            *(_latex_trained(table, trained) if trained else []),
            r"\end{table}",
            "",
        ]
    )


def _ruled(grid: Sequence[Sequence[str]], left: Sequence[int]) -> list[str]:
    """Returns the lines of an aligned table with a rule below its header."""
    lines = aligned(grid, left=left)
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def _latex_tabular(columns: str, titles: Sequence[str], lines: Sequence[str]) -> list[str]:
    r"""Returns a `tabular` that shrinks to the text width if it is wider."""
    return [
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(map(_latex_escape, titles)) + r" \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}}",
    ]


def _latex_trained(table: Table, trained: Sequence[Sequence[str]]) -> list[str]:
    lines = [" & ".join(map(_latex_escape, row)) + r" \\" for row in trained]
    notes = " ".join(map(_latex_escape, trained_notes(table)))
    columns = "rrll" + "r" * (len(trained[0]) - 4)
    return [
        r"\par\smallskip\raggedright Trained as:\par\smallskip",
        *_latex_tabular(columns, trained_header(table), lines),
        rf"\par\smallskip {notes}",
    ]


def csv_text(table: Table) -> str:
    """Returns CSV with one row per setting, model and metric: the paper's number and ours, not rounded."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    one = table.settings[0]
    common = (table.family, one.masking, one.protocol, one.preset)
    for setting in table.settings:
        setting_of = (setting.task, setting.mask_rate, setting.blanks)
        for line in lines_of(setting):
            if not line.is_ours:
                continue
            for model in ("template", *TRAINED):
                values = values_of(table, setting, model, line.key)
                if values is None or (model == CONTROL and not values):
                    continue
                printed = paper.printed(setting, model, BESIDE.get(line.key, ""))
                mean, spread = mean_and_spread(values) if values else (NOT_RUN, None)
                numbers = (printed, mean, spread, " ".join(map(str, values)))
                writer.writerow((*setting_of, model, line.key, *numbers, *common, *_csv_trained(table, setting, model)))
    return out.getvalue()


def _csv_trained(table: Table, setting: Setting, model: str) -> tuple[str, ...]:
    """Returns how a model was trained: one value per column if all seeds agree, else one per seed, joined by `; `."""
    columns = zip(
        *(
            (*one[:6], one.machine.processor if one.machine else None, one.commit, one.budget)
            for _, one in table.trained(setting, model).items()
        ),
        strict=True,
    )
    shown = [[NO_VALUE if value is None else str(value) for value in column] for column in columns]
    return tuple("; ".join(column if len(set(column)) > 1 else column[:1]) for column in shown) or ("",) * 9


def _markdown_list(notes: Sequence[str]) -> str:
    return "\n".join(f"- {_markdown_escape(note)}" for note in notes)


def _bold(entry: Entry, form: str, escape=str) -> str:
    return form.format(escape(entry.text)) if entry.is_best else escape(entry.text)


def _markdown_escape(string: str) -> str:
    return string.replace("|", "\\|").replace("<", "&lt;")


def _latex_escape(string: str) -> str:
    return string.translate(LATEX)
