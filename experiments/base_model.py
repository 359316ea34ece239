"""Compares fits from the base model with fits from scratch, and the base model alone with other fillers.

Command:
    python -m experiments.base_model --data_dir=FOLDER --workdir=runs/base_results --base_text=runs/base_text
    python -m experiments.base_model --data_dir=FOLDER --workdir=runs/base_results --base_text=runs/base_text --tune

FOLDER contains yelp/ and grimm/tales/; `--base_text` is the folder that `text_infilling.app.base_model prepare` wrote.
Expected: RESULTS_DIR/base_model.md and base_model.csv, rewritten after each of about 45 units, small ones first. Each
finished unit is a file in WORKDIR/units, and is not run again; an interrupted fit is resumed. `--tune` tries learning
rates, epochs and rates of dropout on 300 lines of two corpora instead, judged by validation perplexity, and writes
base_model_tuning.csv; the winner is to be put into `fitting.FINE_TUNING`.
Duration: about 4 hours on 2 cores; `--tune` 20 minutes.
"""

from pathlib import Path

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments.base import page, texts, tuning, units
from experiments.cells import flags
from text_infilling.runs.run_folder import open_run
from text_infilling.utils import files


def run(values: FlagValues) -> None:
    """Runs all units, or the trials of `--tune`, and writes their results."""
    base = open_run(values.base)
    corpora = {"yelp": texts.yelp(values.data_dir), "grimm": texts.grimm(values.data_dir)}
    results_dir = Path(values.results_dir)
    work = units.Work(base, corpora, Path(values.base_text), Path(values.workdir))
    files.make_folder(work.folder, "--workdir")
    with files.locked(work.folder):
        if values.tune:
            best = tuning.run(work, results_dir / "base_model_tuning.csv")
            print("best setting: " + ", ".join(f"{key} {value:g}" for key, value in best.items()))
            return
        sources = texts.sources(values.base_text)
        work.texts = {**corpora, **sources}
        planned = units.planned(list(sources))
        files.make_folder(results_dir, "--results_dir")

        def write() -> None:
            finished = work.finished(planned)
            about = f"Base model: {base.name}, {len(base.vocabulary.words):,} words."
            files.write_text(results_dir / "base_model.md", page.page(finished, list(sources), about))
            files.write_text(results_dir / "base_model.csv", page.csv_text(finished))

        write()
        work.run(planned, write)
    print(results_dir / "base_model.md", flush=True)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_string(
        "base", None, "Run folder of the base model. Default: the base model of the package.", flag_values=values
    )
    absl_flags.DEFINE_string(
        "base_text", "runs/base_text", "Folder of the base model's text, with train.txt and held_out/.",
        flag_values=values,
    )  # fmt: skip
    absl_flags.DEFINE_string("data_dir", None, "Folder that contains yelp/ and grimm/tales/.", flag_values=values)
    absl_flags.DEFINE_string("workdir", "runs/base_results", "Work folder of the units.", flag_values=values)
    absl_flags.DEFINE_boolean("tune", False, "Choose rate, epochs and dropout of fine-tuning.", flag_values=values)
    flags.define_results_dir(values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
