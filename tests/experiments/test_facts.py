"""The training record: written for new cells, and added to finished cells that lack it."""

import json

import pytest
from finished_cells import finish, other

from experiments import facts
from experiments.cells import flags, record
from experiments.cells.experiment import load_corpus
from text_infilling.configs.protocols import run_hparams
from text_infilling.metrics.bleu import bleu, bleu_paper
from text_infilling.utils import files, machine
from text_infilling.vocabulary import Vocabulary


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """The folder of a finished seq2seq cell of made-up sentences without timing.json."""
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))
    checksum = load_corpus("yelp", "synthetic", "fixed", None).checksum
    hparams = run_hparams("paper", "smoke", model="seq2seq")
    cell = other(corpus="synthetic", model="seq2seq", preset="smoke")
    return finish(tmp_path / "runs", cell, {}, hparams, checksum, vocabulary={"hash": "f00d", "size": 300})


def add_facts(cell, *arguments):
    facts.run(flags.parse([f"--cells={cell.parent.parent}", *arguments], facts.define_flags))
    return json.loads((cell / "timing.json").read_text("utf-8"))


def test_facts_adds_missing_values_and_keeps_recorded_ones(cell):
    added = add_facts(cell, "--processor=AMD EPYC", "--commit=c6a095d")
    hparams = run_hparams("paper", "smoke", model="seq2seq")
    assert added["epochs"] == hparams["train"]["epochs"] and added["parameters"] > 0
    assert (added["processor"], added["commit"]) == ("AMD EPYC", "c6a095d")
    files.write_json(cell / "timing.json", {"training_seconds": 5.0, "epochs": 1, "commit": "56e69d8"})
    again = add_facts(cell, "--commit=c6a095d")
    assert (again["training_seconds"], again["epochs"], again["commit"]) == (5.0, 1, "56e69d8")
    assert again["train_tflop"] == pytest.approx(added["train_tflop"] / hparams["train"]["epochs"])


def test_the_epochs_of_a_training_with_early_stopping_are_not_guessed(cell):
    config = json.loads((cell / "config.json").read_text("utf-8"))
    config["hparams"]["train"]["patience"] = 3
    files.write_json(cell / "config.json", config)
    with pytest.raises(ValueError, match="records no epochs, and early stopping"):
        add_facts(cell)
    assert not (cell / "timing.json").exists()


def test_the_record_names_processor_cores_and_commit(tmp_path, monkeypatch):
    made = record.of_machine()
    assert made["processor"] and made["cores"] >= 1 and made["commit"]
    monkeypatch.setattr(machine, "ROOT", tmp_path)  # not a checkout
    assert machine.commit().startswith("version ")
    (tmp_path / ".git").mkdir()  # a checkout that Git refuses to read
    assert machine.commit().startswith("version ")


def test_the_optimizer_of_old_cells_that_do_not_name_one_is_adam(tmp_path):
    config = {"hparams": {"optimizer": {}, "train": {"batch_size": 100}}}
    assert record.read(tmp_path, config) == record.Trained("Adam", 100)


PREDICTIONS = [
    {"template": "the <m> was very good <m> .", "answer": ["hot soup", ""], "infill": ["soup", "too"]},
    {"template": "we will come <m> .", "answer": ["back soon"], "infill": ["back soon"]},
]


def with_predictions(cell, **metrics):
    """Adds predictions and a vocabulary, in which `soup` is unknown, to a cell with these metrics; returns the file."""
    files.write_json(cell / "metrics.json", metrics)
    files.write_json(cell / "timing.json", {"parameters": 1, "train_tflop": 1.0, "epochs": 1})
    Vocabulary(["the", "was", "very", "good", ".", "we", "will", "come", "back", "soon"]).save(cell / "vocabulary.txt")
    files.write_jsonl(cell / "predictions.jsonl", PREDICTIONS)
    return cell / "predictions.jsonl"


def test_facts_adds_the_counts_of_each_sentence_whose_sum_is_the_score_of_all(cell):
    same = "we will come back soon ."
    plain = bleu(["the soup was very good too .", same], ["the hot soup was very good .", same])
    filled, true = "<BOS> the <UNK> was very good <UNK> .", "<BOS> the <UNK> <UNK> was very good ."
    papers = bleu_paper([filled, f"<BOS> {same}"], [true, f"<BOS> {same}"])
    path = with_predictions(cell, bleu=plain, bleu_paper=papers)
    add_facts(cell)
    made = files.read_jsonl(path)
    assert made[1]["counts"]["bleu"] == [6, 6, 6, 5, 4, 3, 6, 5, 4, 3]
    assert made[1]["counts"]["bleu_paper"][:2] == [9, 9]  # `<BOS>` is three tokens
    assert [{key: one[key] for key in PREDICTIONS[0]} for one in made] == PREDICTIONS
    add_facts(cell)
    assert files.read_jsonl(path) == made


def test_counts_that_do_not_give_the_recorded_score_are_an_error(cell):
    path = with_predictions(cell, bleu=12.0, bleu_paper=12.0)
    with pytest.raises(ValueError, match="predictions have bleu .*, metrics.json 12.0"):
        add_facts(cell)
    assert files.read_jsonl(path) == PREDICTIONS
