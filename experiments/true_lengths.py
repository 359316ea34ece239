"""Makes the table of BLEU with the true number of words per infill beside BLEU with free lengths.

Commands:
    python -m experiments.evaluate CELL --true_lengths
    python -m experiments.true_lengths --cells=runs

The first one fills a cell's test sentences so that each infill has as many words as the true answer, and writes the
scores to CELL/true_lengths.json; it needs the cell's weights and predictions.jsonl. The gap is what a model loses
because it ends infills itself; it may be negative.
Expected: RESULTS_DIR/true_lengths.md, from the cells that have true_lengths.json.
Duration: half a minute per cell; a second for the table.
"""

from collections.abc import Sequence
from pathlib import Path

from absl.flags import FlagValues

from experiments import collect, effects
from experiments.cells import flags
from experiments.evaluate import Finished
from experiments.lengths import FILE, METRICS
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from text_infilling.utils import files


def page(finished: Sequence[Finished]) -> str:
    """Returns the page of the cells that have been measured."""
    grid = [
        ("corpus", "setting", "model", "seed", "right length", *(
            f"`{metric}`: {what}" for metric in METRICS for what in ("free", "true lengths", "gap [95%]")
        )),
        ("---",) * 3 + ("---:",) * (2 + 3 * len(METRICS)),
    ]  # fmt: skip
    for one in finished:
        if (one.folder / FILE).exists():
            found = files.read_object(one.folder / FILE, "free", "true_lengths", "gap")
            row = [one.cell.setting.corpus, one.cell.setting.title, paper.TITLES[one.cell.model], str(one.cell.seed)]
            row.append(f"{found['free']['right_length']:.1%}")
            for metric in METRICS:
                value, low, high = found["gap"][metric]
                row += [f"{found[key][metric]:.2f}" for key in ("free", "true_lengths")]
                row.append(f"{value:+.2f} [{low:+.2f}, {high:+.2f}]")
            grid.append(tuple(row))
    return "\n\n".join([
        "# True lengths",
        "Made by `experiments.true_lengths`. *Free*: the model ends each infill itself, as in all other tables. *True "
        "lengths*: each infill is the most probable one, by greedy search, with as many words as the true answer. "
        "*Right length*: fraction of the free infills that have that many. Intervals: paired bootstrap over the test "
        f"sentences, {effects.RESAMPLES} resamples.",
        markdown_rows(grid) if len(grid) > 2 else "No cell was measured yet: see `experiments.evaluate CELL "
        "--true_lengths`.",
    ]) + "\n"  # fmt: skip


def run(values: FlagValues) -> None:
    """Writes the table and prints its path."""
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    with files.held(results_dir):  # else another command could write an index without this page
        path = results_dir / "true_lengths.md"
        files.write_text(path, page(collect.read_all(Path(values.cells))))
        print(path, flush=True)
        collect.write_index(results_dir)


if __name__ == "__main__":
    flags.main(run, flags.define_collect, __doc__)
