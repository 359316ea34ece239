"""Makes the tables from finished cells, without running any.

Command:
    python -m experiments.collect
    python -m experiments.collect --cells=runs --results_dir=/tmp/results

Expected: for each corpus, masking, protocol and preset among the folders CELLS/CELL/ and CELLS/CORPUS/CELL/ that have
metrics.json and config.json, the paper's tables of them as Markdown, LaTeX and CSV in RESULTS_DIR/CORPUS/ (Grimm and
NBA share long_content/), and RESULTS_DIR/README.md, an index of all tables there by those of the paper (synthetic.md of
those of made-up sentences).
Duration: under a second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments import cell as cells
from experiments import flags, formats, paper, record, tables
from experiments.evaluate import Finished
from text_infilling import files
from text_infilling.training import layout
from text_infilling.training.protocols import config_differences
from text_infilling.training.run_checks import read_metrics

# The paper's tables, and the files of ours.
PAPER_TABLES = {
    "Results of varying mask rates and number of blanks (main text)": "*/*.main",
    "Different mask rates and number of segments (appendix)": "*/*.appendix",
    "Long content infilling (main text)": "*/*.long_content",
    "Prepositions (appendix; the paper has a sample and no numbers)": "*/*.prepositions",
    "Sample outputs (main text and appendix)": "samples.*",
}
# Parts of config.json in which two seeds of the same setting and model must agree.
OF_A_MODEL = ("hparams", *cells.HOW)


def common(cell: cells.Cell) -> tuple[str, str, str, str]:
    """What the cells of a table share: the family of the corpora, masking, protocol, preset."""
    return tables.family(cell.corpus), cell.masking, cell.protocol, cell.preset


def read_cells(folder: Path, *patterns: str) -> list[Finished]:
    """The finished cells in the folders `folder/pattern` of each pattern, by name; of unfinished ones nothing.

    Raises:
        ValueError: a folder's config.json is not that of a cell, or two folders hold the same cell.
        OSError: metrics.json stands alone.
    """
    found: dict[cells.Cell, Finished] = {}
    for path in sorted(path for pattern in patterns for path in folder.glob(f"{pattern}/{layout.METRICS}")):
        cell, config = cells.read_config(path.parent)
        if cell in found:
            raise ValueError(f"{found[cell].folder} and {path.parent} hold the same cell: move one of them elsewhere")
        found[cell] = Finished(path.parent, cell, config, read_metrics(path.parent))
    return list(found.values())


def read_all(folder: Path) -> list[Finished]:
    """Returns all finished cells of a folder of cells or a workdir.

    Raises:
        ValueError: there is none; see also `read_cells`.
    """
    if found := read_cells(folder, "*", "*/*"):
        return found
    raise ValueError(
        f"{folder} has no finished cell: expected {folder}/CELL/{layout.METRICS} or {folder}/CORPUS/CELL/"
        f"{layout.METRICS}. Give another --cells"
    )


def table(finished: Sequence[Finished], keys: Iterable[paper.Key]) -> tables.Table:
    """The table of cells that have the same `common`.

    Args:
        finished: at least one.
        keys: of each setting of the table, whether or not there are cells of it.

    Raises:
        ValueError: cells of different corpora, or seeds of one setting and model that were run differently.
    """
    check_alike(finished)
    keys = tuple(keys)
    results, changed, trainings = ({key: {} for key in keys} for _ in range(3))
    inside = [one for one in finished if key_of(one.cell) in results]
    for one in inside:
        by_model = results[key_of(one.cell)]
        by_model.setdefault(one.cell.model, {})[one.cell.seed] = one.metrics
        if said := cells.changed(one.cell, one.config):  # the same for all seeds
            changed[key_of(one.cell)][one.cell.model] = said
        if one.cell.model != "template":
            by_seed = trainings[key_of(one.cell)].setdefault(one.cell.model, {})
            by_seed[one.cell.seed] = record.read(one.folder, one.config)
    # Every seed has the same template.
    trained = [one for one in inside if one.cell.model != "template"]
    cell = finished[0].cell
    where = {one.cell.corpus: one.config["where"] for one in inside or finished}
    return tables.Table(
        corpus=tables.family(cell.corpus),
        origin=_each(where, "source"),
        note=_each(where, "note"),
        masking=cell.masking,
        protocol=cell.protocol,
        preset=cell.preset,
        seeds=tuple(sorted({one.cell.seed for one in trained or inside or finished})),
        settings=[
            tables.Setting(*key[:2], by_model, key.task, changed[key], trainings[key])
            for key, by_model in results.items()
        ],
    )


def key_of(cell: cells.Cell) -> paper.Key:
    """The setting of a cell."""
    return paper.Key(cell.mask_rate, cell.blanks, paper.task_of(cell.corpus))


def _each(where: dict[str, dict], what: str) -> str:
    """What is to be known of each corpus; its name with it where there are several."""
    said = {corpus: found[what] for corpus, found in where.items() if found[what]}
    return "; ".join(text if len(where) == 1 else f"{corpus}: {text}" for corpus, text in said.items())


def check_alike(finished: Sequence[Finished]) -> None:
    """Raises ValueError, naming two folders and the keys, where cells do not belong into one table."""
    first_of: dict[tuple, Finished] = {}
    for one in finished:
        cell = one.cell
        _compare(first_of.setdefault((cell.corpus,), one), one, ("corpus", "vocabulary"))
        _compare(first_of.setdefault((key_of(cell), cell.model), one), one, OF_A_MODEL)


def write_tables(finished: Sequence[Finished], results_dir: Path) -> list[Path]:
    """Writes the paper's tables of cells that have the same `common`, if they have a place for one; the paths.

    Raises:
        ValueError: see `table`.
        OSError: the folder cannot be written.
    """
    wanted = tables.tables_of(finished[0].cell.corpus)
    if not any(key_of(one.cell) in keys for one in finished for keys in wanted.values()):
        return []
    made = [path for name, keys in wanted.items() for path in formats.write(table(finished, keys), name, results_dir)]
    write_index(results_dir)
    return made


def write_index(results_dir: Path) -> None:
    """Writes the pages of links to all tables in a folder: README.md, and synthetic.md to those of made-up sentences.

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
    """A page of links to tables, by those of the paper."""
    lines = [f"# {title}", "", "Made by `experiments.run_all`, `experiments.collect` and `experiments.samples`."]
    for name, paths in found.items():
        lines += ["", f"## {name}", ""]
        lines += [f"- [{path.stem}]({path.as_posix()})" for path in paths] or ["Not made yet."]
    return "\n".join(lines) + "\n"


def run(values) -> None:
    """Writes the tables of all cells in `--cells`."""
    folder, results_dir = Path(values.cells), Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    with files.held(results_dir):  # so that no other command writes tables of fewer cells after this one
        _write_all(folder, results_dir)


def _write_all(folder: Path, results_dir: Path) -> None:
    """Writes the tables of all cells in `folder`."""
    by_table: dict[tuple, list[Finished]] = {}
    for one in read_all(folder):
        by_table.setdefault(common(one.cell), []).append(one)
    for finished in by_table.values():
        for path in write_tables(finished, results_dir):
            print(path, flush=True)
        settings = {key for keys in tables.tables_of(finished[0].cell.corpus).values() for key in keys}
        for one in finished:
            if key_of(one.cell) not in settings:
                print(f"in no table of the paper, left out: {one.folder}", flush=True)


def _compare(first: Finished, other: Finished, parts: Sequence[str]) -> None:
    a, b = ({part: one.config[part] for part in parts} for one in (first, other))
    if keys := config_differences(a, b):
        raise ValueError(
            f"{first.folder} and {other.folder} cannot stand in one table, they differ in {', '.join(keys)}: "
            "run one of them again with --overwrite, or move it elsewhere"
        )


if __name__ == "__main__":
    flags.main(run, flags.define_collect, __doc__)
