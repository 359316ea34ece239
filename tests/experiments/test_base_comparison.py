"""The comparison of fits from the base model with fits from scratch, with substitutes for training and models."""

import csv
import json
import shutil

import numpy as np
import pytest
from infilling_runs import WORDS, write_run

from experiments import base_model
from experiments.base import ngram, page, scores, texts, tuning, units
from experiments.cells import flags
from text_infilling.app import fitting
from text_infilling.inference.load_model import load_model
from text_infilling.metrics.bleu import bleu
from text_infilling.runs.run_folder import open_run
from text_infilling.training.evaluation import Fill
from text_infilling.vocabulary import Vocabulary

SENTENCES = [f"the {what} was {how} and i love the bread ." for what in ("soup", "bread") for how in ("good", "bad")]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The run folder of a tiny base model."""
    folder = write_run(tmp_path_factory.mktemp("base") / "run")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["cell"] |= {"masking": "any", "mask_rate": [0.15, 0.6], "blanks": 2, "preset": "laptop"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


@pytest.fixture
def data(tmp_path):
    """Folders of tiny corpora; the base model's text is in base_text/."""
    for name, lines in (("train", 30), ("valid", 4), ("test", 5)):
        path = tmp_path / "yelp" / f"{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{name} {i} {SENTENCES[i % 4]}\n" for i in range(lines)), "utf-8")
    tales = tmp_path / "grimm" / "tales"
    tales.mkdir(parents=True)
    for i in range(12):
        (tales / f"{i:03}.txt").write_text(f"A Title\n\nThe tale {i} was so cold. We love\nthe bread.\n", "utf-8")
    (tmp_path / "base_text" / "held_out").mkdir(parents=True)
    (tmp_path / "base_text" / "train.txt").write_text("".join(f"{line}\n" for line in SENTENCES * 3), "utf-8")
    for name in ("examples", "novels"):
        (tmp_path / "base_text" / "held_out" / f"{name}.txt").write_text("".join(f"{s}\n" for s in SENTENCES * 76))
    return tmp_path


def filled(right):
    """Returns the scores of four sentences, of which `right` are filled with the true words."""
    fills = []
    for i, sentence in enumerate(SENTENCES):
        words = sentence.split()
        infill = words[3:8] if i < right else ["we", "love", "so"]
        fills.append(Fill(words, [infill], [3], [8], [0.0]))
    return scores.of_fills(fills, ppl=10.0 - right)


def test_the_scores_of_fills_are_those_of_the_metrics():
    fills = [
        Fill("the soup was so good .".split(), [["soup"], ["very", "good"]], [1, 3], [2, 5], [0.0, 0.0]),
        Fill("i love the bread .".split(), [["i", "love", "the", "bread"]], [0], [4], [0.0]),
    ]
    found = scores.of_fills(fills, 7.0)
    assert (found["sentences"], found["ppl"], found["exact"], found["right_length"]) == (2, 7.0, 2 / 3, 1.0)
    counts = np.array(found["blank_counts"])
    assert counts[:, :2].tolist() == [[3, 3], [4, 4]]  # words of the infills and of the answers
    assert counts[:, 2:4].tolist() == [[2, 0], [4, 3]]  # matches; none across two blanks
    of_blanks, of_sentences = scores.bleus(found)
    sentences = [" ".join(fill.sentence(fill.infills)) for fill in fills]
    assert of_sentences == pytest.approx(bleu(sentences, [" ".join(fill.words) for fill in fills]))
    assert 0 < of_blanks < 100


def test_a_model_is_scored_with_one_and_two_blanks(base, tmp_path):
    run = open_run(base)
    found = scores.of_model(load_model(run), run, SENTENCES, tmp_path)
    assert set(found) == {"1", "2"} and all(one["sentences"] == 4 and one["ppl"] > 1 for one in found.values())


# The n-gram filler


def test_the_chances_of_ngrams_are_those_of_witten_and_bell():
    filler = ngram.NgramFiller([["i", "love"], ["i", "the"], ["i", "love"]], Vocabulary(WORDS), [])
    ids = {word: filler._ids[word] for word in ("i", "love", "the")}
    after = filler._next(0, ids["i"])  # no triple begins with the padding
    single = {"love": 3 / (9 + filler._size), "the": 2 / (9 + filler._size)}
    assert after[ids["love"]] == pytest.approx((2 + 2 * single["love"]) / (3 + 2))
    assert after[ids["the"]] == pytest.approx((1 + 2 * single["the"]) / (3 + 2))
    for first, second in ((0, ids["i"]), (1, ids["i"]), (ids["i"], ids["love"]), (1, 1), (5, 5)):
        chances = filler._next(first, second)
        assert chances.sum() == pytest.approx(1)
        for word in (ids["i"], ids["the"]):
            joint = filler._joint(np.array([first]), np.array([second]), [word, ids["love"]])[0]
            assert joint == pytest.approx(chances[word] * filler._next(second, word)[ids["love"]])


def test_ngrams_fill_blanks_with_the_words_of_the_training_text_and_end_by_the_words_after_it():
    sentences = [s.split() for s in SENTENCES * 20]
    masked = [Fill(words, [], [3], [4 + i % 2], []) for i, words in enumerate(sentences)]
    filler = ngram.NgramFiller(sentences, Vocabulary(WORDS), masked)
    words = "the soup was good and i love the bread .".split()
    assert filler.fill(Fill(words, [], [4, 6], [5, 7], [])) == [["and"], ["love"]]
    assert filler.fill(Fill(words, [], [4], [7], [])) == [["and", "i", "love"]]
    assert filler.fill(Fill(words, [], [8], [10], [])) == [["bread", "."]]


def test_the_chance_that_a_blank_ends_depends_on_its_sentence_and_its_words():
    words = "a b c d e".split()
    masked = [Fill(words, [], [0], [1], []), Fill(words, [], [1], [2], []), Fill([*words, "f"], [], [0], [2], [])]
    masked.append(Fill([*words, "f"], [], [0, 2], [1, 4], []))
    chances = ngram.end_chances(masked)
    assert chances == {(1, 4): [1 / 5, 3 / 5, 2 / 3], (2, 3): [1 / 4, 2 / 4, 2 / 3]}


# The command


@pytest.fixture
def fits(monkeypatch, base):
    """Replaces fits and scores; returns the list of fits."""
    made = []

    def fit(source, out, config, say, recipe):
        made.append((source.read_text("utf-8").splitlines(), config, recipe))
        shutil.copytree(config.init_from, out)
        (out / "metrics.json").write_text('{"training_seconds": 90, "epochs": 3}', "utf-8")

    def of_model(model, run, lines, folder):
        right = 2 if run.path == base or made[-1][1].init_from == str(base) else 1
        return {"1": filled(right), "2": filled(right)}

    monkeypatch.setattr(fitting, "fit", fit)
    monkeypatch.setattr(scores, "of_model", of_model)
    monkeypatch.setattr(page, "RESAMPLES", 20)
    monkeypatch.setattr("text_infilling.inference.load_model.load_model", lambda run: None)
    return made


def commanded(data, base, *more):
    arguments = [f"--base={base}", f"--base_text={data / 'base_text'}", f"--data_dir={data}", f"--workdir={data}/work"]
    values = flags.parse([*arguments, f"--results_dir={data}/results", *more], base_model.define_flags)
    return base_model.run(values)


def test_the_command_fits_and_scores_everything_and_a_second_call_nothing(data, base, fits, capsys):
    commanded(data, base)
    out = capsys.readouterr().out
    assert "yelp.300.base.seed1: unit 1 of 36" in out and "yelp.20000.fresh.seed3: unit 36 of 36, about" in out
    assert len(fits) == 32 and len({tuple(lines) for lines, _, _ in fits}) == 5
    for _, config, recipe in fits:
        assert recipe == (fitting.FINE_TUNING if config.init_from == str(base) else fitting.FROM_SCRATCH)
    written = (data / "results" / "base_model.md").read_text("utf-8")
    assert "not run" not in written and "exact blanks doubled: reached, factor 2.00" in written
    assert "clearly higher than n-grams: in " in written and "of 2 sources" in written
    with open(data / "results" / "base_model.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 36
    assert {row["minutes"] for row in rows if row["lines"]} == {"1.5"} and rows[0]["lines"] == "300"
    del fits[:]
    commanded(data, base)
    assert not fits and (data / "results" / "base_model.md").read_text("utf-8") == written


def test_a_stop_loses_one_unit_and_the_page_says_what_was_not_run(data, base, fits, monkeypatch):
    fit = fitting.fit

    def stopped(*arguments, **options):
        if len(fits) == 2:
            raise KeyboardInterrupt
        fit(*arguments, **options)

    monkeypatch.setattr(fitting, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        commanded(data, base)
    written = (data / "results" / "base_model.md").read_text("utf-8")
    assert "300 Yelp lines, exact blanks doubled: reached, factor 2.00" in written
    assert "20,000 Yelp lines, BLEU of the blanks' words not clearly lower: not run" in written
    assert "| Yelp | 1,000 | 1 | from scratch | 0 | not run |" in written
    monkeypatch.setattr(fitting, "fit", fit)
    commanded(data, base)
    assert len(fits) == 32  # the first two are not repeated


def test_the_fit_from_scratch_has_the_sizes_and_words_of_the_base_model_and_other_weights(data, base):
    work = units.Work(open_run(base), {}, data, data / "work")
    fresh = open_run(work._fresh(1))
    assert (fresh.vocabulary.words, fresh.hparams) == (work.base.vocabulary.words, work.base.hparams)
    one, other, again = (load_model(run).get_weights() for run in (fresh, work.base, open_run(work._fresh(2))))
    assert [weight.shape for weight in one] == [weight.shape for weight in other]
    assert not np.array_equal(one[0], other[0]) and not np.array_equal(one[0], again[0])


def test_no_word_joins_the_vocabulary_of_a_fit_that_is_compared_with_the_base_model_alone(data, base, fits):
    work = units.Work(open_run(base), texts.sources(str(data / "base_text")), data, data / "work")
    work.texts["novels"].train[:] = ["the tulip was good", "a tulip and a rose", *SENTENCES]
    work.result(units.Unit("novels", 300, "fresh", 1))
    assert fits[0][1].assignments == ("train.min_count=3",)


def test_a_work_folder_of_another_base_model_is_an_error(data, base, fits, tmp_path):
    (data / "work").mkdir()
    (data / "work" / "base.json").write_text('{"weights": "other"}', "utf-8")
    with pytest.raises(ValueError, match="has results of another base model: give another --workdir"):
        commanded(data, base)


@pytest.mark.parametrize(
    ("missing", "message"), [("grimm", "has too few tales"), ("base_text", "has no held_out/SOURCE")]
)
def test_missing_texts_are_an_error_that_names_the_flag(data, base, missing, message):
    shutil.rmtree(data / missing)
    with pytest.raises((ValueError, FileNotFoundError), match=f"{message}.*: give --"):
        commanded(data, base)


def test_tuning_reads_validation_sentences_only_and_reports_the_best_setting(data, base, fits, monkeypatch, capsys):
    seen = []

    def of_model(model, run, lines, folder):
        seen.append(lines)
        setting = dict(assignment.split("=") for assignment in fits[-1][2].assignments)
        score = {**filled(1), "ppl": 5.0 if setting["schedule.peak"] == "0.001" else 6.0}
        return {"1": score, "2": score}

    monkeypatch.setattr(scores, "of_model", of_model)
    commanded(data, base, "--tune")
    assert all(all(line.startswith("valid") for line in lines) for lines in seen[::2])
    assert len(fits) == 2 * len(tuning.grid()) and {len(lines) for lines, _, _ in fits} == {30, 9}
    assert {recipe.most_epochs for _, _, recipe in fits} == set(tuning.EPOCHS)
    assert "best setting: rate 0.001" in capsys.readouterr().out
    with open(data / "results" / "base_model_tuning.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(fits)
    commanded(data, base, "--tune")
    assert len(seen) == len(fits) == 2 * len(tuning.grid())  # finished trials are not run again


def test_intervals_pool_the_seeds_and_a_missing_seed_is_left_out():
    found = {
        units.Unit("yelp", 300, start, seed): {"scores": {"1": filled(right)}, "minutes": 1.0}
        for start, right in (("base", 3), ("fresh", 1))
        for seed in (1, 2)
    }
    found[units.Unit("yelp", 300, "base", 3)] = {"scores": {"1": filled(4)}, "minutes": 1.0}
    both = page.pair(found, "yelp", 300, 1)
    assert len(both.ours) == len(both.other) == 2 and both.factor("exact") == 3
    difference = both.bleu("full_counts")
    assert difference.low <= difference.value <= difference.high and difference.value > 0
