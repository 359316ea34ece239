"""Makes one HTML file of all results: tables, claims, plots, samples, divergences, environment and commands.

Command:
    python -m experiments.report --original_dir=../shared/original

Expected: RESULTS_DIR/report.html, which needs no other file, and its plots as PNG files and TensorBoard images in
RESULTS_DIR/plots/; made from the cells in --cells, which is also the --workdir of a command. Learning curves need the
cells' log.txt (the authors' curves --original_dir), lengths and BLEU intervals predictions.jsonl, and the attention
plot the weights of a self-attention cell. Needs matplotlib: pip install -e '.[report]'.
Duration: seconds per cell with predictions, and half a minute for the plots.
"""

import base64
import functools
import html
import importlib.util
import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import claims, collect, curves, effects, samples
from experiments.cells import cell as cells
from experiments.cells import flags
from experiments.cells.setting import Setting
from experiments.effects import Effect
from experiments.evaluate import Finished
from experiments.tables import formats, paper
from experiments.tables.table import tables_of
from text_infilling.metrics.bleu import OPTIONS
from text_infilling.runs.layout import VOCABULARY, WEIGHTS
from text_infilling.utils import files, machine
from text_infilling.vocabulary import TEMPLATE_BLANK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDED = ("matplotlib", "markdown")
MISSING = "the report needs matplotlib: pip install -e '.[report]'"
ROOT = Path(__file__).parents[1]
STYLE = Path(__file__).with_name("report.css")
# Pages of other commands that the report contains if they exist, in this order.
PAGES = {
    "samples.*.md": "Samples", "true_lengths.md": "True lengths", "long_content.md": "Long content",
    "ablations.md": "Ablations", "replay.md": "The authors' released outputs",
}  # fmt: skip


def is_possible() -> bool:
    """Returns whether the packages of the extra `report` are installed."""
    return all(importlib.util.find_spec(name) for name in NEEDED)


def write(finished: Sequence[Finished], results_dir: Path, original_dir: Path | None = None) -> Path:
    """Writes report.html and its plots from finished cells and returns the path of the former.

    Args:
        finished: at least one cell.
        results_dir: output folder, which may contain pages of other commands.
        original_dir: folder that contains the authors' curves.csv; None leaves their curves out.

    Raises:
        ValueError: matplotlib is not installed, or cells cannot be in one table.
        OSError: a file cannot be read or written.
    """
    if not is_possible():
        raise ValueError(MISSING)
    path = results_dir / "report.html"
    kinds: dict[tuple, list[Finished]] = {}
    order = list(paper.TABLES)
    for one in sorted(finished, key=lambda one: order.index(paper.page_of(one.cell.setting.task))):
        kinds.setdefault(collect.common(one.cell.setting), []).append(one)
    made, notes = _plots(kinds, original_dir)
    from experiments.tables import plots  # imports matplotlib, which is optional

    files.make_folder(results_dir / "plots", "--results_dir")
    images = plots.write(made, results_dir / "plots")
    sections = [*_claims(finished, results_dir), _pictures(images, notes), *_tables(kinds)]
    sections += [(title, one.read_text("utf-8")) for name, title in PAGES.items() for one in results_dir.glob(name)]
    sections += [_document("fidelity.md", "Divergences from the paper"), ("Environment", _environment(finished)),
                 _document("reproduce.md", "Commands")]  # fmt: skip
    files.write_text(path, page(sections, _banner(finished)))
    return path


def page(sections: Sequence[tuple[str, str]], banner: str) -> str:
    """Returns one self-contained HTML page from sections of title and Markdown, with a table of contents."""
    from markdown import markdown  # optional, like matplotlib

    parts, contents = [], []
    for number, (title, text) in enumerate(sections, start=1):
        text = re.sub(r"^#(?=#* )", "##", re.sub(r"\A# .*\n", "", text), flags=re.M)  # below the title of the section
        body = markdown(text, extensions=["tables"])
        body = re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", body, flags=re.S)  # to files that are elsewhere
        body = body.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
        contents.append(f'<li><a href="#s{number}">{html.escape(title)}</a></li>')
        parts.append(f'<section id="s{number}"><h2>{html.escape(title)}</h2>\n{body}</section>')
    return "\n".join([
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>Text infilling: report</title>\n<style>\n{STYLE.read_text('utf-8')}</style>",
        "<h1>Text infilling: the paper's results and ours</h1>",
        f'<p class="banner">{html.escape(banner)}</p>' if banner else "",
        f"<nav><ol>{''.join(contents)}</ol></nav>",
        *parts,
        "</html>\n",
    ])  # fmt: skip


def _banner(finished):
    """Returns a warning if the cells were trained on made-up sentences."""
    made_up = {one.cell.setting.corpus for one in finished if one.cell.setting.corpus.endswith("synthetic")}
    return f"Synthetic: {', '.join(sorted(made_up))} are made-up sentences; their numbers say nothing about the " \
        "paper." if made_up else ""  # fmt: skip


def _tables(kinds) -> Iterator[tuple[str, str]]:
    """Yields a title and a page for each table of the paper that contains a cell, except those contained in another."""
    for (family, masking, protocol, preset), finished in kinds.items():
        named = tables_of(finished[0].cell.setting.corpus)
        for name, rows in named.items():
            is_part = any(set(rows) < set(others) for others in named.values())
            if not is_part and any(paper.row_of(one.cell.setting) in rows for one in finished):
                title = f"Table: {family.replace('_', ' ')} (masking {masking}, protocol {protocol}, preset {preset})"
                yield title, formats.markdown(collect.table(finished, rows), name)


def _claims(finished, results_dir) -> Iterator[tuple[str, str]]:
    """Yields the page of claims if there are cells of the paper's corpora."""
    if real := claims.of_real_corpora(finished):
        yield "The paper's claims, checked", claims.page(real, claims.read_replay(results_dir))


def _plots(kinds, original_dir) -> tuple[dict[str, "Figure"], list[str]]:
    """Returns all plots by file name, and notes on what is missing."""
    from experiments.tables import plots  # imports matplotlib, which is optional

    made: dict[str, Figure | None] = {}
    for kind, finished in kinds.items():
        cells_of: dict[Setting, dict[str, list[Finished]]] = {}
        for one in sorted(finished, key=lambda one: (one.cell.setting.mask_rate or 0, one.cell.setting.blanks)):
            cells_of.setdefault(one.cell.setting, {}).setdefault(one.cell.model, []).append(one)

        @functools.cache
        def of(setting: Setting, model: str, key: str, cells_of=cells_of) -> Effect | None:
            return _of_metric(cells_of.get(setting, {}).get(model, []), key)

        def template_of(setting: Setting, cells_of=cells_of) -> Effect | None:
            every = [one.metrics for ones in cells_of[setting].values() for one in ones]
            return next((Effect(m["template_bleu"]) for m in every if "template_bleu" in m), None)

        name = ".".join(part.replace(":", "-") for part in kind)
        settings = list(cells_of)
        of_paper = [settings[0].of_the_same_kind(row) for row in paper.APPENDIX_TABLE if row.task == settings[0].task]
        every = sorted({*settings, *of_paper}, key=lambda one: one.mask_rate or 0)
        made[f"{name}.difficulty"] = plots.difficulty(every, of)
        made[f"{name}.against_template"] = plots.against_template(settings, of, template_of)
        made[f"{name}.infill_lengths"] = plots.infill_lengths(
            {one: {model: effects.lengths(ones[0].folder) for model, ones in cells_of[one].items()} for one in settings}
        )
        for setting in settings:
            ours = {model: curves.of_cell(ones[0].folder) for model, ones in cells_of[setting].items()}
            authors = {}
            if original_dir and not setting.corpus.endswith("synthetic"):
                authors = {model: curves.of_authors(original_dir, setting, model) for model in plots.MODELS}
            made[f"{name}.learning.{setting.corpus}.{setting.blanks_name}"] = plots.learning(setting, ours, authors)
    attention = _attention([one for finished in kinds.values() for one in finished])
    notes = (
        []
        if attention
        else ["No plot of the attention: no self-attention cell of a setting with samples has weights here."]
    )
    if original_dir is None:
        notes.append("The authors' learning curves are left out: pass --original_dir.")
    return {name: figure for name, figure in (made | attention).items() if figure}, notes


def _of_metric(seeds: Sequence[Finished], key: str) -> Effect | None:
    """Returns a metric of the cells of one model: over seeds, or BLEU of one seed with its bootstrap interval.

    None if there are no cells or they have no such metric.
    """
    values = [one.metrics[key] for one in seeds if key in one.metrics]
    if len(values) == 1 and key in OPTIONS:
        found = effects.counts(seeds[0].folder, key)
        if found is not None:
            return effects.difference(found, np.zeros_like(found), key)  # BLEU of no output is 0
    return effects.of_seeds(values) if values else None


def _attention(finished) -> dict[str, "Figure"]:
    """Returns plots of the attention of a self-attention cell with weights, if possible one that fills a sample.

    Empty if no cell has weights.
    """
    able = [
        one
        for one in finished
        if one.cell.model == "self_attention" and all((one.folder / name).exists() for name in (WEIGHTS, VOCABULARY))
    ]
    for row, template in samples.TEMPLATES:
        for one in able:
            if paper.row_of(one.cell.setting) == row:
                return _attention_of(one, template.replace(TEMPLATE_BLANK, "____"))
    return {}


def _attention_of(one, text):
    """Returns a plot for each blank of a text that a cell fills."""
    from experiments.tables import plots  # imports matplotlib, which is optional
    from text_infilling.app.explain_run import explained  # imports TensorFlow
    from text_infilling.runs.run_folder import open_run

    found, _ = explained(open_run(one.folder), text)
    return {
        f"attention.blank{turn.blank}": plots.attention(
            f"Attention over the template, blank {turn.blank} ({plots.named(one.cell.setting)})",
            [token.token for token in turn.template], [step.token for step in steps],
            [step.attention for step in steps],
        )
        for turn, steps in found
    }  # fmt: skip


def _pictures(images, notes) -> tuple[str, str]:
    """Returns the section of plots, embedded."""
    intro = (
        "Error bars are 95% intervals: over seeds, or for BLEU of one seed from resampled test sentences; a point "
        "without one has neither. Our learning curves are validation scores of the first seed, those of the authors "
        "test scores. Attention weights are means over all blocks and heads."
    )
    figures = [
        f'<figure><img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(content).decode()}">'
        f"<figcaption>{html.escape(name)}</figcaption></figure>"
        for name, content in images.items()
    ]
    return "Plots", "\n\n".join([intro, *notes, *figures])


def _document(name, title) -> tuple[str, str]:
    """Returns a document of the project as a section."""
    path = ROOT / "docs" / name
    return title, path.read_text("utf-8") if path.exists() else f"docs/{name} is not part of this installation."


def _environment(finished) -> str:
    """Returns a table of the machine and packages that made the report, and of the code of the cells."""
    versions = files.versions((*cells.PACKAGES, "matplotlib"))
    of_cells = sorted({str(one.config["versions"].get("tensorflow")) for one in finished if "versions" in one.config})
    rows = {
        "Python": platform.python_version(), **versions, "processor": machine.processor(),
        "cores": str(files.cores()), "commit": machine.commit() or "-",
        "TensorFlow of the cells": ", ".join(of_cells) or "-",
    }  # fmt: skip
    return formats.markdown_rows([("what", "value"), ("---", "---"), *((k, str(v)) for k, v in rows.items())])


def run(values: FlagValues) -> None:
    """Writes the report and prints its path."""
    if not is_possible():
        raise ValueError(MISSING)
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    original_dir = None if values.original_dir is None else Path(values.original_dir)
    finished = collect.read_all(Path(values.cells))
    with files.held(results_dir):
        print(write(finished, results_dir, original_dir), flush=True)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_string(
        "original_dir", None, "Folder that contains curves.csv, the authors' logs as a table. Default: their learning "
        "curves are left out.", flag_values=values,
    )  # fmt: skip
    flags.define_collect(values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
