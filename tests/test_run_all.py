"""All cells of the tables: which are run, what a failure stops, what is said on the way, tables of finished cells."""

import contextlib
import csv
import dataclasses
import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from absl import flags as absl_flags

from experiments import cell as cells
from experiments import collect, experiment, flags, paper, progress, run_all, tables
from experiments.cell import Cell
from experiments.progress import Progress
from text_infilling import files
from text_infilling.training.protocols import run_hparams

ROOT = Path(__file__).resolve().parents[1]
CELL = Cell("yelp", "fixed", 0.4, 2, "self_attention", "paper", "laptop", 1)
SMOKE_TEMPLATE = Cell("synthetic", "fixed", 0.3, 1, "template", "paper", "smoke", 1)


def parse(*arguments):
    return flags.parse(arguments, run_all.define_flags)


def groups(*arguments):
    return flags.groups(parse(*arguments), tuple(run_all.GROUPS), run_all.SMOKE_GROUPS)


def finish(workdir, cell, metrics, hparams=None, checksum="c0ffee", **config):
    """Makes the folder of a finished cell; returns it."""
    folder = cell.folder(workdir)
    folder.mkdir(parents=True)
    if not hparams:
        model = "gan" if cell.model == "template" else cell.model
        hparams = run_hparams(cell.protocol, cell.preset, (), cell.blanks, model, task="yelp")
    common = {
        "cell": dataclasses.asdict(cell),
        "hparams": hparams,
        "corpus": {"checksum": checksum},
        "vocabulary": {"hash": "f00d", "size": 9},
        "mixed_precision": False,
        "jit_compile": False,
        "where": {"data_dir": None, "source": "data_dir", "note": "a stand-in"},
    }
    files.write_json(folder / "config.json", common | config)
    files.write_json(folder / "metrics.json", metrics)
    return folder


def other(**changes):
    return dataclasses.replace(CELL, **changes)


def csv_of(path):
    """The rows of a CSV table by setting, model and metric."""
    with open(path, encoding="utf-8") as lines:
        return {(float(r["mask_rate"]), int(r["blanks"]), r["model"], r["metric"]): r for r in csv.DictReader(lines)}


# What is run


def test_smoke_runs_all_tables_but_with_fixed_masks_only():
    assert groups("--preset=smoke") == ["yelp", "grimm", "nba", "prepositions"]
    assert run_all.GROUPS["yelp"].masking == "fixed"
    assert run_all.GROUPS["yelp"].settings == paper.APPENDIX_TABLE
    assert len(paper.APPENDIX_TABLE) == 6


def test_other_presets_run_the_random_tables_too_and_only_chooses():
    assert groups() == ["yelp", "yelp_random", "grimm", "nba", "prepositions"]
    assert run_all.GROUPS["yelp_random"].masking == "random"
    assert groups("--only=yelp_random") == ["yelp_random"]
    assert groups("--preset=smoke", "--only=yelp_random, yelp,yelp") == ["yelp_random", "yelp"]


def test_seeds_are_a_list():
    assert flags.seeds(parse()) == [1]
    assert flags.seeds(parse("--seeds=3,1, 2")) == [3, 1, 2]


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("--seeds=", "--seeds="),
        ("--seeds=1,two", "--seeds=1,two"),
        ("--seeds=-1", "--seeds=-1"),
        ("--seeds=1,1", "each seed once"),
        ("--seeds=2147483648", "--seeds=2147483648"),
        ("--only=grim", "no group 'grim', expected of: yelp, yelp_random, grimm, nba, prepositions"),
        ("--only=", "--only="),
        ("--jobs=0", "--jobs=0"),
        ("--masking=random", "masking"),
        ("--seed=2", "seeds"),
        ("--mask_rate=0.4", "mask_rate"),
        ("--blanks=1", "blanks"),
    ],
)
def test_a_bad_flag_is_an_error_that_names_it(argument, named):
    with pytest.raises(absl_flags.Error) as error:
        parse(argument)
    assert named in str(error.value)


# The command, with the column that trains nothing


def test_settings_are_run_beside_each_other(tmp_path):
    command = [sys.executable, "-m", "experiments.run_all", "--preset=smoke", "--models=template"]
    done = subprocess.run(
        [*command, "--only=nba,prepositions", f"--workdir={tmp_path}/runs", f"--results_dir={tmp_path}/results"],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 of 2 cells are done\n" in done.stdout
    assert "nba | test: template_bleu_paper" in done.stdout  # each line says whose it is
    assert "prepositions | test: template_bleu_paper" in done.stdout


def run_here(folder, *arguments):
    """Exit code of the command in this process, one setting of Yelp after the other."""
    return run_all.run(
        parse("--preset=smoke", "--models=template", "--jobs=1", "--only=yelp", f"--workdir={folder}/runs",
              f"--results_dir={folder}/results", *arguments)
    )  # fmt: skip


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Folder and stdout of one run."""
    folder, out = tmp_path_factory.mktemp("smoke"), io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run_here(folder) == 0
    return folder, out.getvalue()


def test_every_setting_stands_in_the_tables(smoke):
    folder, out = smoke
    stem = folder / "results" / "synthetic" / "synthetic.fixed.paper.smoke"
    for name, settings in paper.TABLES["yelp"].items():
        numbers = csv_of(f"{stem}.{name}.csv")
        assert sorted({key[:2] for key in numbers}) == [setting[:2] for setting in settings]
        assert all(0 < float(numbers[(*setting[:2], "template", "bleu_paper")]["ours"]) < 100 for setting in settings)
        assert numbers[(*settings[0][:2], "self_attention", "ppl_paper")]["ours"] == "not run"
        for suffix in (".md", ".tex"):
            assert Path(f"{stem}.{name}{suffix}").read_text("utf-8").count("not run") > 20
            assert f"{stem}.{name}{suffix}" in out
    assert "cell 6 of 6" in out
    assert "Corpus: synthetic corpus, not Yelp" in out


def test_finished_cells_are_not_run_again_and_a_failed_one_does_not_stop_the_rest(smoke, capsys):
    folder, _ = smoke
    finished = dataclasses.replace(SMOKE_TEMPLATE, blanks=2).folder(folder / "runs")
    before = (finished / "metrics.json").stat().st_mtime_ns
    broken = SMOKE_TEMPLATE.folder(folder / "runs")
    whole = (broken / "config.json").read_bytes()
    (broken / "config.json").write_text("{", encoding="utf-8")
    (broken / "metrics.json").unlink()

    assert run_here(folder) == 1

    (broken / "config.json").write_bytes(whole)
    out = capsys.readouterr().out
    assert (finished / "metrics.json").stat().st_mtime_ns == before and f"{finished} is finished" in out
    assert "cell 6 of 6" in out
    last = out.rstrip().splitlines()[-1]
    assert last.startswith(f"{broken.relative_to(folder / 'runs')} failed: ") and str(broken / "log.txt") in last


def test_ctrl_c_stops_everything_and_leaves_the_tables_so_far(tmp_path, monkeypatch):
    started = []

    def stopped_in_the_third(cell, inputs):
        started.append(cell)
        if len(started) == 3:
            raise KeyboardInterrupt
        metrics = {"template_bleu": 20.0}
        finish(inputs.workdir, cell, metrics)
        return metrics

    monkeypatch.setattr(cells, "run_cell", stopped_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_here(tmp_path)
    assert len(started) == 3
    numbers = csv_of(tmp_path / "results" / "synthetic" / "synthetic.fixed.paper.smoke.appendix.csv")
    runs = [key for key in paper.APPENDIX_TABLE if numbers[(*key[:2], "template", "bleu")]["ours"] != "not run"]
    assert runs == [paper.Key(0.3, 1), paper.Key(0.3, 2)]


def test_one_seed_of_a_group_comes_before_the_next(tmp_path):
    groups = [run_all.GROUPS["yelp"], run_all.GROUPS["yelp_random"]]
    prepared = experiment.prepare(parse("--preset=smoke", f"--workdir={tmp_path}"), "yelp", "fixed", 1)
    plan = run_all.Plan({"yelp": prepared}, groups, [1, 5], tmp_path)
    assert [(one.masking, one.seed, key) for _, one, key in plan.rows()] == [
        (masking, seed, key) for masking in ("fixed", "random") for seed in (1, 5) for key in paper.APPENDIX_TABLE
    ]


def test_finished_cells_that_cannot_stand_in_one_table_are_an_error_before_anything_is_run(tmp_path):
    finish(tmp_path / "runs", SMOKE_TEMPLATE, {})
    finish(tmp_path / "runs", dataclasses.replace(SMOKE_TEMPLATE, blanks=2), {}, checksum="decaf")
    with pytest.raises(ValueError, match="cannot stand in one table, they differ in corpus.checksum"):
        run_here(tmp_path)


def test_models_that_were_run_earlier_stand_in_the_tables_of_the_seeds_asked_for(smoke):
    folder, _ = smoke
    config = files.read_json(SMOKE_TEMPLATE.folder(folder / "runs") / "config.json")
    for seed, value in ((1, 60.0), (2, 61.0), (3, 99.0)):
        cell = dataclasses.replace(SMOKE_TEMPLATE, model="gan", seed=seed)
        finish(folder / "runs", cell, {"bleu_paper": value}, corpus=config["corpus"], vocabulary=config["vocabulary"])
    plan = run_all.Plan(
        {"yelp": experiment.prepare(parse("--preset=smoke", f"--workdir={folder}/runs"), "yelp", "fixed", 1)},
        [run_all.GROUPS["yelp"]],
        [1, 2],
        folder / "of_two_seeds",
    )
    path = next(path for path in plan.write(run_all.GROUPS["yelp"]) if path.suffix == ".csv")
    row = csv_of(path)[0.3, 1, "gan", "bleu_paper"]
    assert (row["ours"], row["seeds"]) == ("60.5", "1 2")


# Time left


def test_the_time_left_is_corrected_by_what_cells_really_took(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    seconds = {
        other(model="template"): 0.0,
        other(model="seq2seq"): 3600.0,
        other(model="gan"): 7200.0,
        other(model="seq2seq", seed=2): 3600.0,
        other(model="gan", seed=2): 7200.0,
    }
    done = Progress(seconds, goes_on=lambda cell: False)
    for cell, taken in zip(seconds, (9.0, 1800.0, 7200.0, 1800.0)):
        with done.around(cell):
            clock[0] += taken
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "cell 1 of 5, about 6.0 h left for all cells",
        "cell 2 of 5, about 6.0 h left for all cells",
        "cell 3 of 5, about 2.5 h left for all cells",  # seq2seq took half the time: so may the GAN
        "cell 4 of 5, about 2.5 h left for all cells",  # but it did not
    ]
    assert done.seconds_left() == 7200.0


def test_cells_that_failed_or_went_on_teach_nothing(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    first, second, third = (other(seed=seed) for seed in (1, 2, 3))
    done = Progress(dict.fromkeys((first, second, third), 100.0), goes_on=lambda cell: cell == second)
    with pytest.raises(ValueError), done.around(first):
        raise ValueError
    with done.around(second):
        clock[0] += 1.0
    assert done.seconds_left() == 100.0


def test_cells_beside_others_that_went_on_teach_nothing(monkeypatch):
    clock, begun = [0.0], set()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    first, second, third = (other(seed=seed) for seed in (1, 2, 3))
    begun.add(first)
    done = Progress(dict.fromkeys((first, second, third), 100.0), goes_on=begun.__contains__)
    clock[0] = 10.0
    begun.clear()  # as a cell's resume point, when it is done
    assert done.after([first], learn=True) == "1 of 3 cells are done"
    clock[0] = 60.0
    assert done.after([second], learn=True) == "2 of 3 cells are done, about 60 s left"


def test_finished_cells_and_the_template_take_no_time(tmp_path, capsys):
    done = Progress({other(model="template"): 0.0}, goes_on=lambda cell: False)
    with done.around(other(model="template")):
        pass
    assert capsys.readouterr().out == "cell 1 of 1\n"


# Tables of finished cells


def test_tables_of_each_protocol_and_preset_are_made_without_running(tmp_path, capsys):
    finish(tmp_path, CELL, {"bleu_paper": 58.0, "template_bleu_paper": 38.0})
    finish(tmp_path, other(seed=2), {"bleu_paper": 59.0, "template_bleu_paper": 38.0})
    finish(tmp_path, other(masking="random"), {"bleu_paper": 50.0}, checksum="decaf")
    odd = finish(tmp_path, other(mask_rate=0.25), {"bleu_paper": 70.0})
    (other(blanks=1).folder(tmp_path)).mkdir()  # begun, not finished

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
    assert f"in no table of the paper, left out: {odd}" in out


def test_cells_of_a_workdir_share_tables_across_corpora(tmp_path):
    for corpus, ppl in (("grimm", 9.5), ("nba", 7.25)):
        finish(tmp_path, other(corpus=corpus, masking="pairs", mask_rate=None, blanks=3), {"ppl_paper": ppl})
    collect.run(flags.parse([f"--cells={tmp_path}", f"--results_dir={tmp_path}/results"], flags.define_collect))
    page = (tmp_path / "results/long_content/long_content.pairs.paper.laptop.long_content.md").read_text("utf-8")
    assert "9.500" in page and "7.250" in page


def test_tables_of_made_up_sentences_have_an_index_of_their_own(tmp_path):
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


def test_seeds_of_different_hyperparameters_are_not_mixed(tmp_path):
    finish(tmp_path, CELL, {})
    changed = run_hparams("paper", "laptop", ["train.epochs=9", "train.resume_seconds=5"], 2, task="yelp")
    folder = finish(tmp_path, other(seed=2), {}, changed)
    with pytest.raises(ValueError) as error:
        collect.table(collect.read_cells(tmp_path / "yelp", "*"), paper.MAIN_TABLE)
    assert str(folder) in str(error.value) and "differ in hparams.train.epochs:" in str(error.value)


def test_settings_and_models_may_have_their_own_hyperparameters_and_the_table_says_so(tmp_path):
    finish(tmp_path, CELL, {"bleu": 1.0})
    changed = ["train.epochs=9", "train.resume_seconds=5"]
    finish(tmp_path, other(blanks=1), {"bleu": 2.0}, run_hparams("paper", "laptop", changed, 1, task="yelp"))
    hparams = run_hparams("paper", "laptop", changed, 2, "gan", task="yelp")
    finish(tmp_path, other(model="gan"), {"bleu": 3.0}, hparams, jit_compile=True)
    made = collect.table(collect.read_cells(tmp_path / "yelp", "*"), [paper.Key(0.4, 1), paper.Key(0.4, 2)])
    assert [setting.results for setting in made.settings] == [
        {"self_attention": {1: {"bleu": 2.0}}},
        {"gan": {1: {"bleu": 3.0}}, "self_attention": {1: {"bleu": 1.0}}},
    ]
    assert [setting.changed for setting in made.settings] == [
        {"self_attention": "train.epochs=9 in place of 4"},
        {"gan": "train.epochs=9 in place of 4, jit_compile"},
    ]
    assert "40%, 1 blank, Self-attn, ours: train.epochs=9 in place of 4." in tables.footnotes(made)


def test_perplexities_of_different_vocabularies_do_not_stand_in_one_table(tmp_path):
    finish(tmp_path, CELL, {})
    folder = finish(tmp_path, other(model="gan"), {}, vocabulary={"hash": "beef", "size": 8})
    with pytest.raises(ValueError, match=f"{folder}.*vocabulary.hash, vocabulary.size|vocabulary.*{folder}"):
        collect.table(collect.read_cells(tmp_path / "yelp", "*"), paper.MAIN_TABLE)


def test_the_same_cell_twice_is_an_error(tmp_path):
    folder = finish(tmp_path, CELL, {})
    folder.with_name("copy").mkdir()
    for name in ("config.json", "metrics.json"):
        (folder.with_name("copy") / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ValueError, match="hold the same cell"):
        collect.read_cells(tmp_path / "yelp", "*")


def test_a_folder_without_finished_cells_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} has no finished cell.*--cells"):
        collect.run(flags.parse([f"--cells={tmp_path}"], flags.define_collect))


def test_a_config_that_is_not_of_a_cell_is_named(tmp_path):
    folder = finish(tmp_path, CELL, {})
    for config in ({}, {"cell": {"corpus": "yelp"}}, {"where": {}, "cell": dataclasses.asdict(CELL)}):
        files.write_json(folder / "config.json", config)
        with pytest.raises(ValueError, match=f"{folder}/config.json does not name a cell"):
            collect.read_cells(tmp_path / "yelp", "*")


def test_the_sentences_shown_are_filled_by_the_papers_own_model(tmp_path, capsys):
    """Whatever order the cells were found in."""

    @dataclasses.dataclass
    class Ran:
        inputs: SimpleNamespace
        seed: int

        def cell(self, mask_rate, blanks, model):
            return other(mask_rate=mask_rate, blanks=blanks, model=model, seed=self.seed)

    found = {"gan": {1: {}}, "self_attention": {1: {}}, "seq2seq": {1: {}}, "template": {1: {}}}
    for model in ("gan", "self_attention", "seq2seq"):
        folder = other(model=model).folder(tmp_path)
        folder.mkdir(parents=True)
        files.write_jsonl(
            folder / "predictions.jsonl", [{"template": "<m> .", "infill": [model], "answer": ["so"]}] * 3
        )
    setting = SimpleNamespace(mask_rate=0.4, blanks=2, results=found)
    ran = Ran(SimpleNamespace(workdir=tmp_path, corpus=SimpleNamespace(name="yelp")), 1)
    experiment.show_samples(ran, [setting])
    shown = capsys.readouterr().out
    assert "Filled by self_attention (yelp):" in shown and "[self_attention] ." in shown and "gan" not in shown
