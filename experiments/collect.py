"""Makes the tables of results from finished cells, without running any cell.

Command:
    python -m experiments.collect
    python -m experiments.collect --cells=runs --results_dir=/tmp/results

Expected: the paper's tables as Markdown, LaTeX and CSV in RESULTS_DIR/CORPUS/ (Grimm and NBA share long_content/), for
each corpus, masking, protocol and preset that has a finished cell: a folder CELLS/CELL/ or CELLS/CORPUS/CELL/ with
metrics.json and config.json. RESULTS_DIR/README.md is an index of all tables, grouped by the tables of the paper;
synthetic.md is the index of the tables of made-up sentences.
Duration: under a second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from absl.flags import FlagValues

from experiments.cells import cell as cells
from experiments.cells import flags
from experiments.cells.experiment import result_of
from experiments.cells.setting import Cell, Setting
from experiments.evaluate import Finished
from experiments.tables import formats, paper
from experiments.tables.table import Table, family, tables_of
from text_infilling.configs.checks import config_differences
from text_infilling.runs import layout
from text_infilling.runs.checks import read_metrics
from text_infilling.utils import files

# The paper's tables, and patterns of our files for each.
PAPER_TABLES = {
    "Results of varying mask rates and number of blanks (main text)": "*/*.main",
    "Different mask rates and number of segments (appendix)": "*/*.appendix",
    "Long content infilling (main text)": "*/*.long_content",
    "Prepositions (appendix; the paper has a sample and no numbers)": "*/*.prepositions",
    "Sample outputs (main text and appendix)": "samples.*",
    "The paper's claims, checked": "claims",
    "The authors' released outputs, scored again": "replay",
    "BLEU with the true number of words per infill": "true_lengths",
}
# Parts of config.json that must be equal for all seeds of a setting and model.
OF_A_MODEL = ("hparams", "budget", *cells.HOW)


def common(setting: Setting) -> tuple[str, str, str, str]:
    """Returns what all cells of a table share: the family of the corpora, masking, protocol, preset."""
    return family(setting.corpus), setting.masking, setting.protocol, setting.preset


def read_cells(folder: Path, *patterns: str) -> list[Finished]:
    """Returns the finished cells in the folders that match `folder/pattern`, sorted by path; skips unfinished ones.

    Raises:
        ValueError: a folder's config.json does not describe a cell, or two folders contain the same cell.
        OSError: a folder has metrics.json but no config.json.
    """
    found: dict[Cell, Finished] = {}
    for path in sorted(path for pattern in patterns for path in folder.glob(f"{pattern}/{layout.METRICS}")):
        cell, config = cells.read_config(path.parent)
        if cell in found:
            raise ValueError(f"{found[cell].folder} and {path.parent} contain the same cell: move one elsewhere")
        found[cell] = Finished(path.parent, cell, config, read_metrics(path.parent))
    return list(found.values())


def read_all(folder: Path) -> list[Finished]:
    """Returns all finished cells in a folder of cells or a workdir.

    Raises:
        ValueError: it has no finished cell; see also `read_cells`.
    """
    if found := read_cells(folder, "*", "*/*"):
        return found
    raise ValueError(
        f"{folder} has no finished cell: expected {folder}/CELL/{layout.METRICS} or {folder}/CORPUS/CELL/"
        f"{layout.METRICS}. Pass another --cells"
    )


def table(finished: Sequence[Finished], rows: Iterable[Setting]) -> Table:
    """Returns the table of cells that have the same `common`.

    Args:
        finished: at least one cell.
        rows: the paper's settings of the table, with or without cells.

    Raises:
        ValueError: the cells have different corpora, or the seeds of a setting and model differ in their settings.
    """
    check_alike(finished)
    settings = [finished[0].cell.setting.of_the_same_kind(row) for row in rows]
    inside = [one for one in finished if one.cell.setting in settings]
    # The template is the same for every seed.
    trained = [one for one in inside if one.cell.model != "template"]
    where = {one.cell.setting.corpus: one.config["where"] for one in inside or finished}
    return Table(
        settings=settings,
        results={one.cell: result_of(one.folder, one.cell, one.config, one.metrics) for one in inside},
        seeds=tuple(sorted({one.cell.seed for one in trained or inside or finished})),
        origin=_each(where, "source"),
        note=_each(where, "note"),
    )


def _each(where: dict[str, dict], what: str) -> str:
    """Returns the entry `what` of each corpus, prefixed with the corpus name if there are several."""
    texts = {corpus: found[what] for corpus, found in where.items() if found[what]}
    return "; ".join(text if len(where) == 1 else f"{corpus}: {text}" for corpus, text in texts.items())


def check_alike(finished: Sequence[Finished]) -> None:
    """Raises ValueError, naming two folders and the keys that differ, if cells cannot be in one table."""
    first_of: dict[tuple, Finished] = {}
    for one in finished:
        cell = one.cell
        _compare(first_of.setdefault((cell.setting.corpus,), one), one, ("corpus", "vocabulary"))
        _compare(first_of.setdefault((cell.setting, cell.model), one), one, OF_A_MODEL)


def write_tables(finished: Sequence[Finished], results_dir: Path) -> list[Path]:
    """Writes the paper's tables that contain any of these cells and returns the paths.

    Args:
        finished: cells that have the same `common`.
        results_dir: folder for the tables; the index is written there too.

    Raises:
        ValueError: see `table`.
        OSError: the folder cannot be written.
    """
    wanted = tables_of(finished[0].cell.setting.corpus)
    if all(is_in_no_table(one.cell.setting) for one in finished):
        return []
    made = [path for name, rows in wanted.items() for path in formats.write(table(finished, rows), name, results_dir)]
    write_index(results_dir)
    return made


def is_in_no_table(setting: Setting) -> bool:
    """Returns whether none of the paper's tables has a row to compare a setting with."""
    return not any(paper.row_of(setting) in rows for rows in tables_of(setting.corpus).values())


def write_index(results_dir: Path) -> None:
    """Writes pages of links to all tables in a folder: README.md, and synthetic.md for the tables of made-up sentences.

    Raises:
        OSError: the folder cannot be written.
    """
    found = {
        title: sorted(path.relative_to(results_dir) for path in results_dir.glob(f"{pattern}.md"))
        for title, pattern in PAPER_TABLES.items()
    }
    for page, title, synthetic in (
        (results_dir / "README.md", "Results", False),
        (results_dir / "synthetic.md", "Results on synthetic (made-up) sentences", True),
    ):
        of_page = {
            name: [path for path in paths if path.parts[0].endswith("synthetic") == synthetic]
            for name, paths in found.items()
        }
        if any(of_page.values()) or not synthetic:
            files.write_text(page, _index(title, of_page))


def _index(title: str, found: dict[str, list[Path]]) -> str:
    """Returns a page of links to our tables, grouped by the tables of the paper."""
    lines = [f"# {title}", "", "Made by `experiments.run_all`, `collect`, `samples`, `claims` and `replay`."]
    for name, paths in found.items():
        lines += ["", f"## {name}", ""]
        lines += [f"- [{path.stem}]({path.as_posix()})" for path in paths] or ["Not made yet."]
    return "\n".join(lines) + "\n"


def run(values: FlagValues) -> None:
    """Writes the tables of all cells in `--cells`."""
    folder, results_dir = Path(values.cells), Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    with files.held(results_dir):  # else another command could overwrite these tables with older ones
        _write_all(folder, results_dir)


def _write_all(folder: Path, results_dir: Path) -> None:
    """Writes the tables of all cells in `folder`."""
    by_table: dict[tuple, list[Finished]] = {}
    for one in read_all(folder):
        by_table.setdefault(common(one.cell.setting), []).append(one)
    for finished in by_table.values():
        for path in write_tables(finished, results_dir):
            print(path, flush=True)
        for one in finished:
            if is_in_no_table(one.cell.setting):
                print(f"left out, in no table of the paper: {one.folder}", flush=True)


def _compare(first: Finished, other: Finished, parts: Sequence[str]) -> None:
    a, b = ({part: one.config[part] for part in parts} for one in (first, other))
    if keys := config_differences(a, b):
        raise ValueError(
            f"{first.folder} and {other.folder} cannot be in one table, they differ in {', '.join(keys)}: "
            "run one of them again with --overwrite, or move it elsewhere"
        )


if __name__ == "__main__":
    flags.main(run, flags.define_collect, __doc__)
