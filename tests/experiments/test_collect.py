"""Tables of finished cells: which cells share a table, which cannot, and what the table says about them."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from finished_cells import CELL, csv_of, finish, other

from experiments import collect
from experiments.cells import experiment, flags
from experiments.tables import paper
from experiments.tables.notes import footnotes
from experiments.tables.table import Result, Table
from text_infilling.configs.protocols import run_hparams
from text_infilling.utils import files


def test_tables_are_made_from_finished_cells_without_running_any(tmp_path, capsys):
    finish(tmp_path, CELL, {"bleu_paper": 58.0, "template_bleu_paper": 38.0})
    finish(tmp_path, other(seed=2), {"bleu_paper": 59.0, "template_bleu_paper": 38.0})
    finish(tmp_path, other(masking="random"), {"bleu_paper": 50.0}, checksum="decaf")
    odd = finish(tmp_path, other(mask_rate=0.25), {"bleu_paper": 70.0})
    (other(blanks=1).folder(tmp_path)).mkdir()  # started, not finished

    collect.run(flags.parse([f"--cells={tmp_path}/yelp", f"--results_dir={tmp_path}/results"], flags.define_collect))

    out = capsys.readouterr().out
    made = sorted(path.name for path in (tmp_path / "results" / "yelp").glob("*.csv"))
    assert made == [
        f"yelp.{masking}.paper.laptop.{name}.csv" for masking in ("fixed", "random") for name in ("appendix", "main")
    ]
    row = csv_of(tmp_path / "results/yelp/yelp.fixed.paper.laptop.appendix.csv")[0.4, 2, "self_attention", "bleu_paper"]
    assert (row["ours"], row["seeds"]) == ("58.5", "1 2")
    page = (tmp_path / "results/yelp/yelp.fixed.paper.laptop.appendix.md").read_text("utf-8")
    assert "58.50 ± 0.71" in page and "Yelp (data_dir; a stand-in)" in page and "seeds 1, 2" in page
    assert f"left out, in no table of the paper: {odd}" in out


def test_grimm_and_nba_cells_of_a_workdir_share_a_table(tmp_path):
    for corpus, ppl in (("grimm", 9.5), ("nba", 7.25)):
        finish(tmp_path, other(corpus=corpus, masking="pairs", mask_rate=None, blanks=3), {"ppl_paper": ppl})
    collect.run(flags.parse([f"--cells={tmp_path}", f"--results_dir={tmp_path}/results"], flags.define_collect))
    page = (tmp_path / "results/long_content/long_content.pairs.paper.laptop.long_content.md").read_text("utf-8")
    assert "9.500" in page and "7.250" in page


def test_tables_of_made_up_sentences_have_a_separate_index(tmp_path):
    finish(tmp_path, CELL, {"bleu_paper": 58.0, "template_bleu_paper": 38.0})
    collect.run(flags.parse([f"--cells={tmp_path}/yelp", f"--results_dir={tmp_path}/results"], flags.define_collect))
    before = (tmp_path / "results/README.md").read_bytes()
    assert b"(yelp/yelp.fixed.paper.laptop.main.md)" in before and not (tmp_path / "results/synthetic.md").exists()
    finish(tmp_path, other(corpus="synthetic"), {"bleu_paper": 70.0, "template_bleu_paper": 38.0})
    arguments = [f"--cells={tmp_path}/synthetic", f"--results_dir={tmp_path}/results"]
    collect.run(flags.parse(arguments, flags.define_collect))
    assert (tmp_path / "results/README.md").read_bytes() == before
    page = (tmp_path / "results/synthetic.md").read_text("utf-8")
    assert "made-up" in page and "(synthetic/synthetic.fixed.paper.laptop.main.md)" in page and "(yelp" not in page


def test_cells_of_different_corpora_are_not_mixed(tmp_path):
    folders = [finish(tmp_path, CELL, {}), finish(tmp_path, other(blanks=1), {}, checksum="decaf")]
    with pytest.raises(ValueError) as error:
        collect.table(collect.read_cells(tmp_path / "yelp", "*"), paper.MAIN_TABLE)
    message = str(error.value)
    assert all(str(folder) in message for folder in folders)
    assert "corpus.checksum" in message and "\n" not in message


def test_seeds_with_different_hyperparameters_are_not_mixed(tmp_path):
    finish(tmp_path, CELL, {})
    changed = run_hparams("paper", "laptop", ["train.epochs=9", "train.resume_seconds=5"], task="yelp")
    folder = finish(tmp_path, other(seed=2), {}, changed)
    with pytest.raises(ValueError) as error:
        collect.table(collect.read_cells(tmp_path / "yelp", "*"), paper.MAIN_TABLE)
    assert str(folder) in str(error.value) and "differ in hparams.train.epochs:" in str(error.value)


def test_settings_and_models_may_differ_in_hyperparameters_and_a_footnote_says_so(tmp_path):
    finish(tmp_path, CELL, {"bleu": 1.0})
    changed = ["train.epochs=9", "train.resume_seconds=5"]
    epochs = run_hparams("paper", "laptop", changed, task="yelp")
    finish(tmp_path, other(blanks=1), {"bleu": 2.0}, epochs, budget=None)
    hparams = run_hparams("paper", "laptop", ["loss.label_smoothing=0.0"], "gan", task="yelp")
    finish(tmp_path, other(model="gan"), {"bleu": 3.0}, hparams, mixed_precision=True)
    made = collect.table(collect.read_cells(tmp_path / "yelp", "*"), [paper.yelp(0.4, 1), paper.yelp(0.4, 2)])
    assert {cell: (one.metrics, one.changed) for cell, one in made.results.items()} == {
        other(blanks=1): ({"bleu": 2.0}, "9 epochs instead of a budget of 90 TFLOP"),
        CELL: ({"bleu": 1.0}, ""),
        other(model="gan"): ({"bleu": 3.0}, "loss.label_smoothing=0.0 instead of 0.1, mixed_precision"),
    }
    assert made.settings == [other(blanks=1).setting, CELL.setting]
    assert "40%, 1 blank, Self-attn, ours: 9 epochs instead of a budget of 90 TFLOP." in footnotes(made)


def test_perplexities_over_different_vocabularies_are_not_mixed(tmp_path):
    finish(tmp_path, CELL, {})
    folder = finish(tmp_path, other(model="gan"), {}, vocabulary={"hash": "beef", "size": 8})
    with pytest.raises(ValueError, match=f"{folder}.*vocabulary.hash, vocabulary.size|vocabulary.*{folder}"):
        collect.table(collect.read_cells(tmp_path / "yelp", "*"), paper.MAIN_TABLE)


def test_the_same_cell_twice_is_an_error(tmp_path):
    folder = finish(tmp_path, CELL, {})
    folder.with_name("copy").mkdir()
    for name in ("config.json", "metrics.json"):
        (folder.with_name("copy") / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ValueError, match="contain the same cell"):
        collect.read_cells(tmp_path / "yelp", "*")


def test_a_folder_without_finished_cells_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} has no finished cell.*--cells"):
        collect.run(flags.parse([f"--cells={tmp_path}"], flags.define_collect))


def test_a_config_that_does_not_describe_a_cell_is_named(tmp_path):
    folder = finish(tmp_path, CELL, {})
    for config in ({}, {"cell": {"corpus": "yelp"}}, {"where": {}, "cell": CELL.as_dict()}):
        files.write_json(folder / "config.json", config)
        with pytest.raises(ValueError, match=f"{folder}/config.json does not name a cell"):
            collect.read_cells(tmp_path / "yelp", "*")


def test_the_sentences_shown_are_filled_by_the_papers_own_model(tmp_path, capsys):
    """In any order of the cells."""
    models = ("gan", "self_attention", "seq2seq", "template")
    results = {other(model=model): Result({}) for model in models}
    for model in models[:3]:
        folder = other(model=model).folder(tmp_path)
        folder.mkdir(parents=True)
        prediction = {"template": "<m> .", "infill": [model], "answer": ["so"]}
        files.write_jsonl(folder / "predictions.jsonl", [prediction] * 3)
    ran = experiment.Experiment(SimpleNamespace(workdir=tmp_path), [], [])
    experiment.show_samples(ran, Table([CELL.setting], results, (1,), "", ""))
    shown = capsys.readouterr().out
    assert "Filled by self_attention (yelp):" in shown and "[self_attention] ." in shown and "gan" not in shown


def test_reading_cells_and_writing_tables_wait_for_other_commands(tmp_path):
    """Otherwise an older table may be written last and lack a finished row."""
    results = tmp_path / "results"
    results.mkdir()
    finish(tmp_path, CELL, {"bleu": 1.0})
    values = flags.parse([f"--cells={tmp_path}", f"--results_dir={results}"], flags.define_collect)
    with ThreadPoolExecutor(1) as pool:
        with files.held(results):
            future = pool.submit(collect.run, values)
            with pytest.raises(TimeoutError):
                future.result(0.5)
            assert not any(results.iterdir())
            finish(tmp_path, other(seed=2), {"bleu": 3.0})
        future.result(60)
    assert "2.00 ± 1.41" in (results / "yelp/yelp.fixed.paper.laptop.appendix.md").read_text("utf-8")
