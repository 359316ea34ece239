"""Runs all cells of the paper's Yelp table one after another and prints the table beside the paper's.

Command:
    python -m experiments.run_all --preset=smoke
    python -m experiments.run_all --data_dir=FOLDER_THAT_HOLDS_yelp/

Expected: a table, also as Markdown in WORKDIR/results/CORPUS/, and three filled sentences. A finished cell is not run
again; one that fails is named at the end with its log and does not keep the others from running.
Duration on 2 cores: smoke (one setting of made-up sentences) under 3 minutes; laptop (six settings) about 3.5 hours.
"""

from pathlib import Path

from experiments import files, flags, paper, tables, yelp

SMOKE_SETTINGS = ((0.4, 2),)


def settings_of(preset: str) -> tuple[tuple[float, int], ...]:
    """The `(mask_rate, blanks)` pairs that a preset runs: one for `smoke`, else all of the paper."""
    return SMOKE_SETTINGS if preset == "smoke" else paper.APPENDIX_TABLE


def write_results(experiment: yelp.Experiment, settings: list[tables.Setting]) -> Path:
    """Writes the table as Markdown; folder and file are named after the corpus. The file."""
    corpus = experiment.inputs.corpus.name
    folder = experiment.inputs.workdir / "results" / corpus
    files.make_folder(folder, "--workdir")
    name = f"{corpus}.{experiment.masking}.{experiment.protocol}.{experiment.preset}.seed{experiment.seed}.md"
    files.write_text(folder / name, tables.markdown(settings, experiment.caption()) + "\n")
    return folder / name


def run(values) -> int:
    """Runs the settings of the preset; 1 if a cell failed."""
    experiment = yelp.prepare(values)
    failures: list[str] = []
    settings = [
        yelp.run_setting(experiment, mask_rate, blanks, failures)
        for mask_rate, blanks in settings_of(experiment.preset)
    ]
    path = write_results(experiment, settings)
    yelp.show(experiment, settings)
    print(f"\nThe table as Markdown: {path}", flush=True)
    for failure in failures:
        print(failure, flush=True)
    return flags.EXIT_FAILED if failures else 0


if __name__ == "__main__":
    flags.main(run, flags.define_common, __doc__)
