"""Scores a finished cell again without training, e.g. with another beam width.

Command:
    python -m experiments.evaluate runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1 --beam_width=4

Expected: a table of the new and the stored metrics; without flags they are equal. The cell's own files do not change:
the new metrics are written to evaluation.SPLIT.beamWIDTH.json, the infills to predictions.SPLIT.beamWIDTH.jsonl.
With --true_lengths: BLEU with the true number of words per infill instead, see `experiments.true_lengths`.
Duration: seconds to a minute.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from absl.flags import FlagValues

from experiments import lengths
from experiments.cells import cell as cells
from experiments.cells import flags
from experiments.cells.experiment import load_corpus
from experiments.cells.setting import Cell
from text_infilling.hparams import merge
from text_infilling.runs import layout
from text_infilling.runs.checks import read_metrics
from text_infilling.utils import files
from text_infilling.utils.columns import aligned

if TYPE_CHECKING:  # These import TensorFlow.
    from text_infilling.corpora.corpus import Corpus
    from text_infilling.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Finished:
    """A finished cell as read from its folder: name, config and test metrics."""

    folder: Path
    cell: Cell
    config: dict
    metrics: dict[str, float]


def read_cell(folder: Path) -> Finished:
    """Returns the finished cell in `folder`.

    Raises:
        ValueError: the folder has no finished cell of a model, or no weights.
    """
    for name in (layout.CONFIG, layout.METRICS):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}: expected the folder of a finished cell")
    cell, config = cells.read_config(folder)
    if cell.model == "template":
        raise ValueError(f"{folder} is a cell without a model: it has nothing to decode")
    for name in (layout.VOCABULARY, layout.WEIGHTS):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}, only metrics: pass the cell's folder in --workdir")
    return Finished(folder, cell, config, read_metrics(folder))


def load_inputs(finished: Finished, data_dir: str | None, masking: str | None = None) -> tuple["Corpus", "Vocabulary"]:
    """Returns the corpus and vocabulary of a finished cell, verified to be those it was trained with.

    Args:
        finished: the cell.
        data_dir: folder of the corpus; default: the one in the cell's config.json.
        masking: the cell's masking rule. Required if it is a custom function (`module:function`): its module is
            imported, and a folder from elsewhere must not decide what is imported.

    Raises:
        ValueError: the corpus or vocabulary.txt has changed; `masking` is not the cell's, or is required.
        OSError: the corpus was moved.
    """
    from text_infilling.vocabulary import Vocabulary

    corpus = load_trained_corpus(finished, data_dir, masking)
    vocabulary = Vocabulary.load(finished.folder / layout.VOCABULARY)
    vocabulary.check_hash(finished.config["vocabulary"]["hash"], finished.folder / layout.CONFIG)
    return corpus, vocabulary


def load_trained_corpus(finished: Finished, data_dir: str | None, masking: str | None = None) -> "Corpus":
    """Returns the corpus that a finished cell was trained with.

    Args:
        finished: the cell.
        data_dir: folder of the corpus; default: the one in the cell's config.json.
        masking: as in `load_inputs`.

    Raises:
        ValueError: the corpus has changed; `masking` is not the cell's, or is required.
        OSError: the corpus was moved.
    """
    setting, data_dir = finished.cell.setting, data_dir or finished.config["where"]["data_dir"]
    if masking is None and ":" in setting.masking:
        raise ValueError(
            f"{finished.folder} has blanks from the custom function {setting.masking}, which is only imported if the "
            f"command names it: if you trust it, pass --masking={setting.masking}"
        )
    if masking not in (None, setting.masking):
        raise ValueError(
            f"{finished.folder} was created with --masking={setting.masking}. Received: --masking={masking}"
        )
    corpus = load_corpus(setting.task, setting.corpus, setting.masking, data_dir)
    trained = finished.config["corpus"]["checksum"]
    if corpus.checksum != trained:
        raise ValueError(
            f"the {corpus.name} corpus ({corpus.source}) has checksum {corpus.checksum}, {finished.folder} was created "
            f"with {trained}: pass its --data_dir"
        )
    return corpus


def compare(stored: dict[str, float], now: dict[str, float], title: str) -> str:
    """Returns two sets of metrics side by side, one metric per line."""

    def number(metrics: dict[str, float], name: str) -> str:
        value = metrics.get(name, "-")
        return f"{value:.4f}" if isinstance(value, float) else str(value)

    rows = [("", "stored", title), *((name, number(stored, name), number(now, name)) for name in now)]
    return "\n".join(aligned(rows))


def run(values: FlagValues) -> None:
    """Scores the cell that the command line names."""
    finished = read_cell(Path(values.cell))
    if values.true_lengths:
        if values.split != "test" or values.beam_width is not None:
            raise ValueError("--true_lengths cannot be combined with --split or --beam_width")
        print(f"{finished.folder}: {lengths.of_cell(finished.folder)}", flush=True)
        return
    corpus, vocabulary = load_inputs(finished, values.data_dir, values.masking)
    hparams = finished.config["hparams"]
    if values.beam_width is not None:
        hparams = merge({"decoding": {"beam_width": values.beam_width}}, hparams)
    width = hparams["decoding"]["beam_width"]

    from text_infilling.training.evaluation import Evaluator
    from text_infilling.training.trainer import load

    task = cells.make_task(finished.cell, corpus, vocabulary)
    model = load(task, finished.cell.network, hparams, finished.folder)
    metrics, predictions = Evaluator(model, task, hparams)(values.split)
    if metrics["left_out"]:
        print(f"{metrics['left_out']} sentences left out: too short for {task.blanks} blanks")
    name = f"{values.split}.beam{width}"
    files.write_jsonl(finished.folder / f"predictions.{name}.jsonl", predictions)
    files.write_json(finished.folder / f"evaluation.{name}.json", metrics)
    stored = finished.metrics if values.split == "test" else {}
    print(f"{finished.folder} (corpus {corpus.name}), {values.split} sentences, beam {width}")
    print(compare(stored, metrics, f"beam {width}"))


if __name__ == "__main__":
    flags.main(run, flags.define_evaluate, __doc__, positional=["CELL"])
