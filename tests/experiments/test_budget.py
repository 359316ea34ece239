"""A cell with a budget: its plan, its record, the control beside the GAN."""

import numpy as np
import pytest

from experiments.cells import cell as cells
from experiments.cells.cell import Inputs
from experiments.cells.experiment import Experiment
from experiments.cells.setting import CONTROL, Cell, Setting
from experiments.statistics import SCORES
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora.corpus import Corpus
from text_infilling.corpora.synthetic import reviews
from text_infilling.utils import files
from text_infilling.vocabulary import Vocabulary

SETTING = Setting("synthetic", "fixed", 0.4, 2, "paper", "smoke")
SMALL = [
    "embedder.dim=8", "encoder.units=8", "decoder.units=8", "gan.discriminator_dim=4", "train.batch_size=20",
    "decoder.dim=8", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=8",
]  # fmt: skip
BUDGET = 0.0005  # TFLOP


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    lines = list(reviews.sentences(seed=5, count=140))
    paths = []
    for name, part in (("train", lines[:120]), ("valid", lines[120:130]), ("test", lines[130:])):
        paths.append(folder / f"{name}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in part), "utf-8")
    corpus = Corpus("synthetic", *paths, source="test", note="", checksum=str(folder))
    inputs = Inputs(corpus, Vocabulary.build(lines, 1), run_hparams("paper", "smoke"), folder / "runs")
    return Experiment(inputs, ["seq2seq", "gan", "self_attention"], SMALL, BUDGET)


def run(experiment, model):
    cell = Cell(SETTING, model, 1)
    metrics = cells.run_cell(cell, experiment.cell_inputs(cell))
    return experiment.folder(cell), metrics


def test_a_cell_of_a_budget_does_its_work_and_records_what_intervals_and_times_need(experiment):
    folder, metrics = run(experiment, "seq2seq")
    config, timing = (files.read_json(folder / f"{name}.json") for name in ("config", "timing"))
    assert config["budget"] == BUDGET and timing["train_tflop"] == pytest.approx(BUDGET, rel=0.05)
    plan = config["plan"]
    assert (timing["epochs"], timing["epochs_per_pass"]) == (plan["epochs"], plan["epochs_per_pass"])
    epochs = files.read_jsonl(folder / "epochs.jsonl")
    assert [line["epoch"] for line in epochs] == list(range(1, plan["epochs"] + 1))
    assert all(a["seconds"] <= b["seconds"] and a["steps"] < b["steps"] for a, b in zip(epochs, epochs[1:]))
    assert epochs[-1]["steps"] == timing["steps"] and epochs[-1]["val_ppl"] > 1
    predictions = files.read_jsonl(folder / "predictions.jsonl")
    for metric, (score, _) in SCORES.items():
        sums = [sum(column) for column in zip(*(one["counts"][metric] for one in predictions), strict=True)]
        assert float(score(np.array(sums, "float64"))) == pytest.approx(metrics[metric], rel=1e-4)
    assert cells.changed(Cell(SETTING, "seq2seq", 1), config).endswith("a budget of 0.0005 TFLOP instead of 2 epochs")


def test_an_unfinished_cell_with_another_plan_is_not_resumed(experiment):
    folder, _ = run(experiment, "seq2seq")
    config = files.read_json(folder / "config.json")
    files.write_json(folder / "config.json", config | {"plan": {"epochs": 77, "epochs_per_pass": 1}})
    (folder / "metrics.json").rename(folder / "kept")
    with pytest.raises(ValueError, match="was started with epochs 77, epochs_per_pass 1, now the code plans"):
        run(experiment, "seq2seq")
    (folder / "kept").rename(folder / "metrics.json")
    files.write_json(folder / "config.json", config)


def test_the_control_is_a_gan_without_weight_and_with_the_epochs_of_the_gan(experiment):
    folder, _ = run(experiment, CONTROL)
    control, timing = files.read_json(folder / "config.json"), files.read_json(folder / "timing.json")
    cell = Cell(SETTING, "gan", 1)
    inputs = experiment.cell_inputs(cell)
    task = cells.make_task(cell, inputs.corpus, inputs.vocabulary)
    assert cells.plan(cell, task, inputs)._asdict() == control["plan"]
    assert control["hparams"]["gan"]["weight"] == 0 and inputs.hparams["gan"]["weight"] > 0
    assert timing["epochs"] > control["plan"]["epochs"]  # the adversarial phase
    assert "gan.weight" not in cells.changed(Cell(SETTING, CONTROL, 1), control)


def test_given_epochs_replace_a_budget(experiment):
    cell = Cell(SETTING, "gan", 1)
    assert experiment.cell_inputs(cell).budget == BUDGET
    inputs = Experiment(experiment.inputs, ["gan"], ["train.epochs=3"]).cell_inputs(cell)
    assert inputs.budget is None and inputs.hparams["train"]["epochs"] == 3
    laptop = Cell(Setting("yelp", "fixed", 0.4, 2, "paper", "laptop"), "gan", 1)
    assert Experiment(experiment.inputs, ["gan"], []).cell_inputs(laptop).budget == 145
    assert Experiment(experiment.inputs, ["gan"], ["train.epochs=3"]).cell_inputs(laptop).budget is None
