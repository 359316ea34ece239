"""Makes the tables from finished cells, without running any.

Command:
    python -m experiments.collect
    python -m experiments.collect --cells=runs/yelp --results_dir=/tmp/results

Expected: for each corpus, masking, protocol and preset among the folders CELLS/CELL/ that have metrics.json and
config.json, the main and the appendix table as Markdown, LaTeX and CSV in RESULTS_DIR/CORPUS/.
Duration: under a second.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments import cell as cells
from experiments import files, flags, formats, paper, tables
from experiments.evaluate import Finished
from text_infilling.hparams import differences
from text_infilling.training.protocols import NO_DIFFERENCE

# Parts of config.json in which two seeds of the same setting and model must agree.
OF_A_MODEL = ("hparams", "vocabulary", "mixed_precision", "jit_compile")


def common(cell: cells.Cell) -> tuple[str, str, str, str]:
    """What the cells of a table share: corpus, masking, protocol, preset."""
    return cell.corpus, cell.masking, cell.protocol, cell.preset


def read_cells(folder: Path) -> list[Finished]:
    """The finished cells in the folders of `folder`, by name; of unfinished ones nothing.

    Raises:
        ValueError: a folder's config.json is not that of a cell, or two folders hold the same cell.
        OSError: metrics.json stands alone.
    """
    found: dict[cells.Cell, Finished] = {}
    for path in sorted(folder.glob(f"*/{cells.METRICS}")):
        config = files.read_json(path.with_name(cells.CONFIG))
        try:
            cell = cells.Cell(**config["cell"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path.with_name(cells.CONFIG)} does not name a cell: {error}") from error
        if cell in found:
            raise ValueError(f"{found[cell].folder} and {path.parent} hold the same cell: move one of them elsewhere")
        found[cell] = Finished(path.parent, cell, config, files.read_json(path))
    return list(found.values())


def table(finished: Sequence[Finished], pairs: Iterable[tuple[float, int]]) -> tables.Table:
    """The table of cells that share corpus, masking, protocol and preset.

    Args:
        finished: at least one.
        pairs: mask rate and blanks of each setting of the table, whether or not there are cells of it.

    Raises:
        ValueError: cells of different corpora, or seeds of one setting and model that were run differently.
    """
    check_alike(finished)
    results = {pair: {} for pair in pairs}
    inside = [one for one in finished if (one.cell.mask_rate, one.cell.blanks) in results]
    for one in inside:
        by_model = results[one.cell.mask_rate, one.cell.blanks]
        by_model.setdefault(one.cell.model, {})[one.cell.seed] = one.metrics
    # Every seed has the same template.
    trained = [one for one in inside if one.cell.model != "template"]
    cell, where = finished[0].cell, finished[0].config["where"]
    return tables.Table(
        corpus=cell.corpus,
        origin=where["source"],
        note=where["note"],
        masking=cell.masking,
        protocol=cell.protocol,
        preset=cell.preset,
        seeds=tuple(sorted({one.cell.seed for one in trained or inside or finished})),
        settings=[tables.Setting(*pair, by_model) for pair, by_model in results.items()],
    )


def check_alike(finished: Sequence[Finished]) -> None:
    """Raises ValueError, naming two folders and the keys, where cells do not belong into one table."""
    first_of: dict[tuple, Finished] = {}
    for one in finished:
        cell = one.cell
        _compare(finished[0], one, ("corpus",))
        _compare(first_of.setdefault((cell.mask_rate, cell.blanks, cell.model), one), one, OF_A_MODEL)


def write_tables(finished: Sequence[Finished], settings: dict[str, Sequence], results_dir: Path) -> list[Path]:
    """Writes each table of `{name: pairs}`; the paths.

    Raises:
        ValueError: see `table`.
        OSError: the folder cannot be written.
    """
    return [
        path for name, pairs in settings.items() for path in formats.write(table(finished, pairs), name, results_dir)
    ]


def run(values) -> None:
    """Writes the tables of all cells in `--cells`."""
    folder = Path(values.cells)
    by_table: dict[tuple, list[Finished]] = {}
    for one in read_cells(folder):
        by_table.setdefault(common(one.cell), []).append(one)
    if not by_table:
        raise ValueError(f"{folder} has no finished cell: expected {folder}/CELL/{cells.METRICS}. Give another --cells")
    for finished in by_table.values():
        for path in write_tables(finished, paper.YELP_TABLES, Path(values.results_dir)):
            print(path, flush=True)
        for one in finished:
            if (one.cell.mask_rate, one.cell.blanks) not in paper.APPENDIX_TABLE:
                print(f"in no table of the paper, left out: {one.folder}", flush=True)


def _compare(first: Finished, other: Finished, parts: Sequence[str]) -> None:
    a, b = ({part: one.config[part] for part in parts} for one in (first, other))
    keys = [key for key in differences(a, b) if key.removeprefix("hparams.") not in NO_DIFFERENCE]
    if keys:
        raise ValueError(
            f"{first.folder} and {other.folder} cannot stand in one table, they differ in {', '.join(keys)}: "
            "run one of them again with --overwrite, or move it elsewhere"
        )


if __name__ == "__main__":
    flags.main(run, flags.define_collect, __doc__)
