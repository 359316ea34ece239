"""Compares searches on the validation sentences of a finished cell: beams, length penalties, no repetitions, samples.

Command:
    python -m experiments.searches runs/grimm/grimm.pairs.blanks3.self_attention.paper.laptop.seed1 --sentences=300

Expected: a table of `right_length`, words per infill, diversity, repeated trigrams and BLEU for each search, printed
and written to CELL/searches.json. `rerank`: of several nucleus samples (top_p 0.9) the one with the largest total log
probability. The tables of results keep greedy search.
Duration: minutes; a beam of 4 takes about four times as long as greedy search.
"""

from pathlib import Path

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments.cells import cell as cells
from experiments.cells import flags
from experiments.evaluate import load_inputs, read_cell
from text_infilling.utils import files
from text_infilling.utils.columns import aligned

BEAM, SAMPLES, TOP_P = 4, 8, 0.9
SEARCHES: dict[str, dict] = {
    "greedy": {},
    "greedy, no repeated trigrams": {"no_repeat_ngram": 3},
    f"beam {BEAM}": {"beam_width": BEAM},
    **{f"beam {BEAM}, length penalty {x:g}": {"beam_width": BEAM, "length_penalty": x} for x in (0.6, 1.0, 2.0)},
    f"beam {BEAM}, length penalty 1, no repeated trigrams":
        {"beam_width": BEAM, "length_penalty": 1.0, "no_repeat_ngram": 3},
    "one nucleus sample": {"top_p": TOP_P, "seed": 1},
    f"rerank {SAMPLES} nucleus samples": {"top_p": TOP_P, "seed": 1, "num_results": SAMPLES},
    f"rerank {SAMPLES} nucleus samples, length penalty 1":
        {"top_p": TOP_P, "seed": 1, "num_results": SAMPLES, "length_penalty": 1.0},
}  # fmt: skip
COLUMNS = ("bleu_paper", "bleu", "right_length", "mean_infill_length", "distinct_1", "distinct_2", "repeating_infills")


def run(values: FlagValues) -> None:
    """Compares all searches and writes the scores."""
    finished = read_cell(Path(values.cell))
    corpus, vocabulary = load_inputs(finished, values.data_dir, values.masking)

    from experiments.refill import Refiller  # imports TensorFlow
    from text_infilling.training.evaluation import unfilled

    task = cells.make_task(finished.cell, corpus, vocabulary)
    predictions = [fill.prediction() for fill in unfilled(task, "valid")[: values.sentences]]
    refiller, found = Refiller(finished.folder), {}
    for name, options in SEARCHES.items():
        found[name] = refiller(predictions, **options).metrics
        print(f"{name}: bleu {found[name]['bleu']:.2f}", flush=True)
    files.write_json(finished.folder / "searches.json", {"sentences": len(predictions), "searches": found})
    answers = [len(answer.split()) for one in predictions for answer in one["answer"]]
    rows = [("search", *COLUMNS), *((name, *(f"{m[key]:.3f}" for key in COLUMNS)) for name, m in found.items())]
    print(f"\n{finished.folder.name}: {len(predictions)} validation sentences, true answers have "
          f"{sum(answers) / len(answers):.3f} words\n", *aligned(rows), sep="\n", flush=True)  # fmt: skip


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_integer("sentences", 500, "Validation sentences to fill.", lower_bound=1, flag_values=values)
    flags.define_corpus_of_cell(values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__, positional=["CELL"])
