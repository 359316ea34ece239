"""Fills the templates of the paper's sample tables with trained models; prints the paper's infills next to ours.

Command:
    python -m experiments.samples --paper_tex=text_infilling.tex

Expected: RESULTS_DIR/samples.PROTOCOL.PRESET.md and .tex. For each template of the paper, they show the infills of each
model that has a finished cell with weights in WORKDIR (from `experiments.yelp --mask_rate=0.4 --blanks=2`,
`experiments.grimm`, `experiments.nba` or `experiments.prepositions`) and the paper's, read from its LaTeX source, both
underlined. Without --paper_tex there is no column of the paper. The table says so if a model was not trained.
Duration: under a minute.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from absl.flags import FlagValues

from experiments import collect
from experiments.cells import flags
from experiments.cells.setting import TASKS
from experiments.tables import formats, paper
from experiments.tables.notes import CAPTIONS
from experiments.tables.table import NOT_RUN, family
from text_infilling.masking import masked_lines
from text_infilling.utils import files
from text_infilling.vocabulary import TEMPLATE_BLANK

# The templates of the paper's sample tables.
TEMPLATES = (
    (paper.yelp(0.4, 2), "i live <m> and i was <m> chinese food ."),
    (paper.GRIMM, "<m> sound <m> be <m>"),
    (paper.GRIMM, "<m> laid <m> water <m>"),
    (paper.NBA, "<m> Toronto_Raptors <m> 114 - 110 <m>"),
    (paper.NBA, "<m> Bojan <m> 30 minutes <m>"),
    (paper.PREPOSITIONS, "<m> old woman went <m> , but saw <m> one on the stairs"),
)
MODELS = paper.MODELS[1:]  # the models that produce infills
# Rows of the paper's sample tables: the true sentence and the models.
ROWS = {"Golden": "truth", "Ground Truth": "truth", **{paper.TITLES[model]: model for model in MODELS}}
MASKINGS = ("fixed", "pairs")  # those of the paper


@dataclasses.dataclass(frozen=True)
class Sample:
    """One template with its filled sentences.

    Attributes:
        task: a key of `TASKS`.
        template: the text with each blank as `<m>`.
        papers: the paper's sentence by model, and under "truth", with filled parts in brackets.
        ours: our sentence by model, with filled parts in brackets.
    """

    task: str
    template: str
    papers: Mapping[str, str]
    ours: Mapping[str, str]


def of_paper(tex: str) -> dict[str, dict[str, str]]:
    """Returns the paper's filled sentences by template and model (or "truth"), with filled parts in brackets.

    Args:
        tex: LaTeX source of the paper.

    Raises:
        ValueError: it lacks one of the templates.
    """
    found: dict[str, dict[str, str]] = {}
    template = None
    for line in tex.splitlines():
        title, _, rest = line.partition("&")
        title = re.sub(r"\\textbf\{(.*?)\}", r"\1", title).strip()
        if title == "Template" and r"\infill" in rest:
            template = _plain(rest).replace("[__m__]", TEMPLATE_BLANK)
            found.setdefault(template, {})
        elif title in ROWS and template:
            found[template].setdefault(ROWS[title], _plain(rest))
        elif r"\end{tabular}" in line:
            template = None
    missing = [template for _, template in TEMPLATES if template not in found]
    if missing:
        raise ValueError(f"--paper_tex is not the paper's source: it has no template {missing[0]!r}")
    return found


def read_paper(paper_tex: str | None) -> dict[str, dict[str, str]]:
    """Returns `of_paper` of the file that `--paper_tex` names; empty for None.

    Raises:
        ValueError: the file is not the paper's source.
        OSError: it cannot be read.
    """
    if paper_tex is None:
        return {}
    try:
        return of_paper(Path(paper_tex).read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"--paper_tex={paper_tex} is not the paper's source: it is not UTF-8 text") from error


def run(values: FlagValues) -> None:
    """Fills all templates with the cells in `--workdir` and writes the tables."""
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    quoted = read_paper(values.paper_tex)
    found = filling_cells(Path(values.workdir), values.protocol, values.preset, values.seed)
    if not found:
        raise ValueError(
            f"no finished cell of protocol {values.protocol}, preset {values.preset}, seed {values.seed} in "
            f"{values.workdir}: train one first, or pass another --workdir"
        )
    print(*write(found, results_dir, quoted), sep="\n", flush=True)


def filling_cells(workdir: Path, protocol: str, preset: str, seed: int) -> list[collect.Finished]:
    """Returns the finished cells of models that were trained on the paper's corpora with its masks."""
    return [
        one
        for one in collect.read_cells(workdir, "*/*")
        if (one.cell.setting.protocol, one.cell.setting.preset, one.cell.seed) == (protocol, preset, seed)
        and one.cell.setting.masking in MASKINGS
        and one.cell.model in MODELS
        and family(one.cell.setting.corpus) in CAPTIONS
    ]


def write(found: Sequence[collect.Finished], results_dir: Path, quoted: Mapping[str, Mapping[str, str]]) -> list[Path]:
    """Fills all templates with cells of one protocol, preset and seed, and returns the paths of the tables.

    Args:
        found: the cells.
        results_dir: output folder of the tables.
        quoted: the paper's filled sentences, from `read_paper`.

    Raises:
        ValueError: a cell has no model.
        OSError: a file cannot be read or written.
    """
    ours: dict[str, dict[str, str]] = {template: {} for _, template in TEMPLATES}
    used = []
    for one in found:
        templates = [template for row, template in TEMPLATES if row == paper.row_of(one.cell.setting)]
        if templates:
            used.append(one.folder.name)
            for template, sentence in zip(templates, _fills(one.folder, templates), strict=True):
                ours[template][one.cell.model] = sentence
    made = [Sample(row.task, template, quoted.get(template, {}), ours[template]) for row, template in TEMPLATES]
    cell, setting = found[0].cell, found[0].cell.setting
    about = (
        f"Models: protocol {setting.protocol}, preset {setting.preset}, seed {cell.seed}. Greedy decoding without "
        "special tokens, at most 32 words per infill unless decoding.max_length sets another limit; infills may be "
        "empty and may repeat words, as in the tables. Filled parts are underlined."
    )
    if quoted:
        about += " The column of the paper quotes it."
    paths = []
    with files.held(results_dir):  # else another command could write an index without these
        for suffix, content in ((".md", markdown(made, about, used)), (".tex", latex(made, about, used))):
            paths.append(results_dir / f"samples.{setting.protocol}.{setting.preset}{suffix}")
            files.write_text(paths[-1], content)
        collect.write_index(results_dir)
    return paths


def rows(sample: Sample) -> Iterator[tuple[str, ...]]:
    """Yields title and our sentence per model; if the paper is quoted, its sentence between them, and its truth."""
    if sample.papers:
        yield "Truth", sample.papers.get("truth", "-"), ""
    for model in MODELS:
        quoted = (sample.papers.get(model, "-"),) if sample.papers else ()
        yield paper.TITLES[model], *quoted, sample.ours.get(model, NOT_RUN)


def columns(samples: Sequence[Sample]) -> tuple[str, ...]:
    """Returns the titles of the columns of sentences."""
    return ("paper", "ours") if samples[0].papers else ("ours",)


def markdown(samples: Sequence[Sample], about: str, cells: Sequence[str]) -> str:
    """Returns a page with one table per template and the names of the cells that filled them."""
    parts = ["# The paper's samples", about]
    titles = columns(samples)
    for sample in samples:
        lines = [f"| | {' | '.join(titles)} |", "|---" * (1 + len(titles)) + "|"]
        for title, *texts in rows(sample):
            shown = (_underlined(_escaped(text), "<u>{}</u>") for text in texts)
            lines.append(f"| {title} | {' | '.join(shown)} |")
        template = sample.template.replace(TEMPLATE_BLANK, "____")
        parts += [f"## {TASKS[sample.task]}: `{template}`", "\n".join(lines)]
    parts += ["## Cells", "\n".join(f"- `{cell}`" for cell in cells)]
    return "\n\n".join(parts) + "\n"


def latex(samples: Sequence[Sample], about: str, cells: Sequence[str]) -> str:
    r"""Returns a `table` environment for `\input`; comments at its end name the cells that filled the templates."""
    lines, titles = [], columns(samples)
    for sample in samples:
        template = sample.template.replace(TEMPLATE_BLANK, "__m__").translate(formats.LATEX)
        across = rf"\multicolumn{{{len(titles)}}}{{l}}{{\textbf{{{template}}}}}"
        lines += [r"\midrule", rf"\textbf{{Template}} & {across} \\"]
        for title, *texts in rows(sample):
            shown = (_underlined(text.translate(formats.LATEX), r"\underline{{{}}}") for text in texts)
            lines.append(f"{title} & {' & '.join(shown)} \\\\")
    return "\n".join(
        [
            r"% \usepackage{booktabs,graphicx}",
            r"\begin{table}[p]",
            r"\centering",
            rf"\caption{{The paper's samples. {about.translate(formats.LATEX)}}}",
            r"\label{tab:samples}",
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{r{'l' * len(titles)}}}",
            r"\toprule",
            rf" & {' & '.join(titles)} \\",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            *(f"% cell: {cell}" for cell in cells),
            "",
        ]
    )


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_samples(values)


def _fills(folder: Path, templates: Sequence[str]) -> list[str]:
    """Returns the templates filled by the model of a finished cell, with filled parts in brackets."""
    from text_infilling.inference.infiller import Infiller

    texts = [template.replace(TEMPLATE_BLANK, "____") for template in templates]
    results = Infiller.load(folder).fill(texts, limits={"min_words": 0}, no_repeat_ngram=0)
    return [
        masked_lines.filled(template, [" ".join(words) for words in result.words])
        for template, result in zip(templates, results, strict=True)
    ]


def _plain(cell: str) -> str:
    """Returns the text of a LaTeX cell, with the arguments of `\\infill` in brackets."""
    cell = re.sub(r"\\\\.*$", "", cell.strip()).strip()
    cell = re.sub(r"\\infill\{(?:\\underline\{(.*?)\}|(.*?))\}", lambda found: f"[{found[1] or found[2]}]", cell)
    return re.sub(r"^\\textbf\{(.*)\}$", r"\1", cell).replace(r"\_", "_").strip()


def _underlined(text: str, form: str) -> str:
    return re.sub(r"\[(.*?)\]", lambda found: form.format(found[1]) if found[1] else "", text)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_")


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
