"""All cells of the tables: which ones run, what a failure stops, what is printed meanwhile."""

import contextlib
import dataclasses
import io
from pathlib import Path

import pytest
from absl import flags as absl_flags
from finished_cells import changed, csv_of, finish, other

from experiments import run_all
from experiments.cells import cell as cells
from experiments.cells import flags, progress
from experiments.cells.progress import Progress
from experiments.cells.setting import Cell, Setting
from experiments.tables import paper
from text_infilling.corpora.corpus import SPLITS
from text_infilling.corpora.synthetic import reviews
from text_infilling.utils import files

SMOKE_TEMPLATE = Cell(Setting("synthetic", "fixed", 0.3, 1, "paper", "smoke"), "template", 1)


def parse(*arguments):
    return flags.parse(arguments, run_all.define_flags)


def groups(*arguments):
    return flags.groups(parse(*arguments), run_all.DEFAULT_GROUPS, run_all.SMOKE_GROUPS)


# Selection of cells


def test_smoke_runs_all_tables_with_fixed_masks_only():
    assert groups("--preset=smoke") == ["yelp", "grimm", "nba", "prepositions"]
    assert run_all.GROUPS["yelp"] == paper.APPENDIX_TABLE
    assert {row.masking for row in paper.APPENDIX_TABLE} == {"fixed"}
    assert len(paper.APPENDIX_TABLE) == 6


def test_other_presets_also_run_random_masks_and_only_selects_groups():
    assert groups() == ["yelp", "yelp_random", "grimm", "nba", "prepositions"]
    assert {row.masking for row in run_all.GROUPS["yelp_random"]} == {"random"}
    assert [(row.mask_rate, row.blanks) for row in run_all.GROUPS["race"]] == [(0.5, 1), (0.4, 2)]
    assert groups("--only=yelp_random") == ["yelp_random"]
    assert groups("--preset=smoke", "--only=yelp_random, yelp,yelp") == ["yelp_random", "yelp"]


def test_seeds_are_parsed_as_a_list():
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
        ("--only=grim", "unknown group 'grim', expected one of: yelp, race, yelp_random, grimm, nba, prepositions"),
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


# The command, with only the template, which needs no training


def test_an_error_on_missing_corpora_names_the_groups_that_can_run(tmp_path):
    (tmp_path / "data" / "yelp").mkdir(parents=True)
    for split in SPLITS:
        text = "".join(f"{line}\n" for line in reviews.sentences(seed=1, count=30))
        (tmp_path / "data" / "yelp" / f"{split}.txt").write_text(text, "utf-8")
    folders = [f"--{name}={tmp_path / name.partition('_')[0]}" for name in ("data_dir", "workdir", "results_dir")]
    with pytest.raises(
        FileNotFoundError, match="grimm.*nba.*; --only=yelp,yelp_random runs the groups whose corpora were found"
    ):
        run_all.run(parse("--preset=laptop", "--models=template", *folders))


def test_settings_run_in_parallel(tmp_path, capfd):
    folders = [f"--workdir={tmp_path}/runs", f"--results_dir={tmp_path}/results"]
    assert run_all.run(parse("--preset=smoke", "--models=template", "--only=nba,prepositions", *folders)) == 0
    out = capfd.readouterr().out
    assert "2 of 2 cells are done\n" in out
    assert "nba | test: template_bleu_paper" in out  # each line has the title of its setting
    assert "prepositions | test: template_bleu_paper" in out


def run_here(folder, *arguments):
    """Runs the Yelp settings one after another in this process and returns the exit code."""
    return run_all.run(
        parse("--preset=smoke", "--models=template", "--jobs=1", "--only=yelp", f"--workdir={folder}/runs",
              f"--results_dir={folder}/results", *arguments)
    )  # fmt: skip


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """Folder and stdout of one run of the command."""
    folder, out = tmp_path_factory.mktemp("smoke"), io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run_here(folder) == 0
    return folder, out.getvalue()


def test_every_setting_is_in_the_tables(smoke):
    folder, out = smoke
    stem = folder / "results" / "synthetic" / "synthetic.fixed.paper.smoke"
    for name, settings in paper.TABLES["yelp"].items():
        numbers = csv_of(f"{stem}.{name}.csv")
        assert sorted({key[:2] for key in numbers}) == [(row.mask_rate, row.blanks) for row in settings]
        ours = [numbers[row.mask_rate, row.blanks, "template", "bleu_paper"]["ours"] for row in settings]
        assert all(0 < float(number) < 100 for number in ours)
        assert numbers[settings[0].mask_rate, settings[0].blanks, "self_attention", "ppl_paper"]["ours"] == "not run"
        for suffix in (".md", ".tex"):
            assert Path(f"{stem}.{name}{suffix}").read_text("utf-8").count("not run") > 20
            assert f"{stem}.{name}{suffix}" in out
    assert "cell 6 of 6" in out
    assert "Corpus: synthetic corpus, not Yelp" in out


def test_finished_cells_are_not_run_again_and_a_failed_one_does_not_stop_the_rest(smoke, capsys):
    folder, _ = smoke
    finished = changed(SMOKE_TEMPLATE, blanks=2).folder(folder / "runs")
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


def test_ctrl_c_stops_everything_and_keeps_the_tables_so_far(tmp_path, monkeypatch):
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
    finished = [key[:2] for key, row in numbers.items() if key[2:] == ("template", "bleu") and row["ours"] != "not run"]
    assert finished == [(0.3, 1), (0.3, 2)]


def test_all_settings_of_a_seed_run_before_the_next_seed(tmp_path):
    values = parse("--preset=smoke", "--seeds=1,5", f"--workdir={tmp_path}")
    plan = run_all.prepared(values, ["yelp", "yelp_random"])
    assert list(plan.rows()) == [
        (Setting("synthetic", masking, row.mask_rate, row.blanks, "paper", "smoke"), seed)
        for masking in ("fixed", "random")
        for seed in (1, 5)
        for row in paper.APPENDIX_TABLE
    ]


def test_the_control_runs_beside_the_gan_where_there_are_results(tmp_path):
    def models_of(*arguments):
        values = parse("--preset=smoke", f"--workdir={tmp_path}", *arguments)
        plan = run_all.prepared(values, ["yelp", "yelp_random", "grimm"])
        return {setting.blanks_name: [cell.model for cell in plan.cells(setting, 1)] for setting, _ in plan.rows()}

    found = models_of("--control")
    assert found["fixed.rate0.5.blanks1"] == found["pairs.blanks3"] == [*paper.MODELS, "gan_weight0"]
    for name in ("fixed.rate0.5.blanks2", "random.rate0.5.blanks1"):
        assert found[name] == list(paper.MODELS)
    for arguments in ((), ("--control", "--models=template,seq2seq")):
        assert not any("gan_weight0" in models for models in models_of(*arguments).values())


def test_finished_cells_that_cannot_share_a_table_are_an_error_before_anything_runs(tmp_path):
    finish(tmp_path / "runs", SMOKE_TEMPLATE, {})
    finish(tmp_path / "runs", changed(SMOKE_TEMPLATE, blanks=2), {}, checksum="decaf")
    with pytest.raises(ValueError, match="cannot be in one table, they differ in corpus.checksum"):
        run_here(tmp_path)


def test_models_run_earlier_with_the_requested_seeds_are_in_the_tables(smoke):
    folder, _ = smoke
    config = files.read_json(SMOKE_TEMPLATE.folder(folder / "runs") / "config.json")
    for seed, value in ((1, 60.0), (2, 61.0), (3, 99.0)):
        cell = dataclasses.replace(SMOKE_TEMPLATE, model="gan", seed=seed)
        finish(folder / "runs", cell, {"bleu_paper": value}, corpus=config["corpus"], vocabulary=config["vocabulary"])
    folders = [f"--workdir={folder}/runs", f"--results_dir={folder}/of_two_seeds"]
    plan = run_all.prepared(parse("--preset=smoke", "--seeds=1,2", *folders), ["yelp"])
    path = next(path for path in plan.write(plan.groups[0]) if path.suffix == ".csv")
    row = csv_of(path)[0.3, 1, "gan", "bleu_paper"]
    assert (row["ours"], row["seeds"]) == ("60.5", "1 2")


# Time left


def test_the_time_left_is_corrected_by_the_real_time_of_finished_cells(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    seconds = {
        other(model="template"): 0.0,
        other(model="seq2seq"): 3600.0,
        other(model="gan"): 7200.0,
        other(model="seq2seq", seed=2): 3600.0,
        other(model="gan", seed=2): 7200.0,
    }
    done = Progress(seconds, is_resumed=lambda cell: False)
    for cell, taken in zip(seconds, (9.0, 1800.0, 7200.0, 1800.0)):
        with done.around(cell):
            clock[0] += taken
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "cell 1 of 5, about 6.0 h left for all cells",
        "cell 2 of 5, about 6.0 h left for all cells",
        "cell 3 of 5, about 2.5 h left for all cells",  # seq2seq took half its estimate, so may the GAN
        "cell 4 of 5, about 2.5 h left for all cells",  # but it took all of it
    ]
    assert done.seconds_left() == 7200.0


def test_failed_and_resumed_cells_do_not_correct_the_estimate(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    first, second, third = (other(seed=seed) for seed in (1, 2, 3))
    done = Progress(dict.fromkeys((first, second, third), 100.0), is_resumed=lambda cell: cell == second)
    with pytest.raises(ValueError), done.around(first):
        raise ValueError
    with done.around(second):
        clock[0] += 1.0
    assert done.seconds_left() == 100.0


def test_resumed_cells_do_not_correct_the_estimate_of_parallel_runs(monkeypatch):
    clock, begun = [0.0], set()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    first, second, third = (other(seed=seed) for seed in (1, 2, 3))
    begun.add(first)
    done = Progress(dict.fromkeys((first, second, third), 100.0), is_resumed=begun.__contains__)
    clock[0] = 10.0
    begun.clear()  # as the resume point is removed when the cell is done
    assert done.after([first], learn=True) == "1 of 3 cells are done"
    clock[0] = 60.0
    assert done.after([second], learn=True) == "2 of 3 cells are done, about 60 s left"


def test_finished_cells_and_the_template_take_no_time(tmp_path, capsys):
    done = Progress({other(model="template"): 0.0}, is_resumed=lambda cell: False)
    with done.around(other(model="template")):
        pass
    assert capsys.readouterr().out == "cell 1 of 1\n"
