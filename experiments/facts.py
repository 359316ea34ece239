"""Adds what older code did not record to finished cells: epochs, parameters, work, counts of each test sentence.

Command:
    python -m experiments.facts --cells=results/cells --data_dir=FOLDER_OF_THE_CORPORA

Expected: `epochs`, `parameters` and `train_tflop` in CELL/timing.json of every cell with a model, computed from its
config.json and its corpus; also --processor and --commit if given. If a cell has predictions.jsonl and vocabulary.txt,
each prediction gets the BLEU counts that intervals are computed from. Existing values are kept. Then run
`python -m experiments.collect` and `python -m experiments.readme` to make the tables.
Duration: under a minute.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import collect
from experiments.cells import cell as cells
from experiments.cells import flags, record
from experiments.evaluate import Finished, load_trained_corpus
from experiments.statistics import SCORES
from experiments.tables.outputs import filled_text
from text_infilling.runs.layout import PREDICTIONS, TIMING, VOCABULARY
from text_infilling.utils import files

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.corpora.corpus import Corpus


def run(values: FlagValues) -> None:
    """Completes timing.json of all cells in `--cells`."""
    given = {key: values[key].value for key in ("processor", "commit") if values[key].value is not None}
    corpora: dict[str, Corpus] = {}
    for one in collect.read_all(Path(values.cells)):
        if one.cell.model == "template":
            continue
        if (one.folder / PREDICTIONS).exists() and (one.folder / VOCABULARY).exists():
            add_counts(one)
        path = one.folder / TIMING
        timing = files.read_json(path) if path.exists() else {}
        known = {**given, **timing}
        if "parameters" not in known or "train_tflop" not in known:
            checksum = one.config["corpus"]["checksum"]
            if checksum not in corpora:
                corpora[checksum] = load_trained_corpus(one, values.data_dir)
            known |= computed(one, corpora[checksum], known.get("epochs"))
        if "cores" in one.config["where"]:
            known.setdefault("cores", one.config["where"]["cores"])
        if known != timing:
            files.write_json(path, known)
            print(path, flush=True)


def add_counts(one: Finished) -> None:
    """Adds the BLEU counts to the predictions of a cell that have none, and prints the path if it changed.

    Raises:
        ValueError: the sum of the counts is not the BLEU in metrics.json.
    """
    from text_infilling.metrics.bleu import prepare_for_paper, sentence_counts
    from text_infilling.vocabulary import Vocabulary

    predictions = cells.read_predictions(one.folder)
    if any("counts" in prediction for prediction in predictions):
        return
    vocabulary = Vocabulary.load(one.folder / VOCABULARY)
    for metric in ("bleu", "bleu_paper"):
        pair = [[filled_text(line["template"], line[key]) for line in predictions] for key in ("infill", "answer")]
        if metric == "bleu_paper":
            pair = [[prepare_for_paper(text.split(), vocabulary.replace_unknown) for text in texts] for texts in pair]
        counts = sentence_counts(*pair, metric)
        score, expected = float(SCORES[metric][0](np.sum(counts, axis=0))), one.metrics[metric]
        if abs(score - expected) > 1e-6:
            raise ValueError(f"{one.folder}: the predictions have {metric} {score:.6f}, metrics.json {expected:.6f}")
        for prediction, of_sentence in zip(predictions, counts, strict=True):
            prediction.setdefault("counts", {})[metric] = of_sentence
    files.write_jsonl(one.folder / PREDICTIONS, predictions)
    print(one.folder / PREDICTIONS, flush=True)


def computed(one: Finished, corpus: "Corpus", epochs: int | None) -> dict:
    """Returns `epochs`, `parameters` and `train_tflop` of a finished cell.

    Args:
        one: the cell.
        corpus: the corpus that it was trained on.
        epochs: the number of epochs run; None if not recorded.

    Raises:
        ValueError: the number of epochs is not recorded and early stopping may have changed it.
    """
    from text_infilling.data.blank_rule import BlankRule
    from text_infilling.data.pipeline import cached_split_stats
    from text_infilling.models.registry import MODELS
    from text_infilling.training.task import built_model

    setting, hparams, size = one.cell.setting, one.config["hparams"], one.config["vocabulary"]["size"]
    cls, train = MODELS[one.cell.network], hparams["train"]
    if epochs is None:
        if train["patience"]:
            raise ValueError(f"{one.folder} records no epochs, and early stopping may have ended its training")
        epochs = train["epochs"] + cls.adversarial_epochs(hparams, train["epochs"])
    rule = BlankRule("given" if corpus.blanks else setting.masking, setting.mask_rate, setting.blanks)
    found = cached_split_stats(corpus.train, rule, corpus.checksum)
    return {
        "epochs": epochs,
        "parameters": built_model(one.cell.network, size, hparams).count_params(),
        "train_tflop": record.train_tflop(cls, hparams, size, found, setting.blanks, epochs),
    }


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_cells(values)
    absl_flags.DEFINE_string(
        "data_dir", None, "Folder of the corpora that the cells were trained with. Default: that of their config.json.",
        flag_values=values,
    )  # fmt: skip
    for name, what in (("processor", "Processor that the cells were trained on"),
                       ("commit", "Git commit that the cells were trained with")):  # fmt: skip
        absl_flags.DEFINE_string(name, None, f"{what}, for cells that do not record it.", flag_values=values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
