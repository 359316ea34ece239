"""Tables: the paper's numbers and ours, the best of each in bold, with a caption that describes ours."""

import csv
import dataclasses
import io
import re

import numpy as np
import pytest

from experiments.cells.record import Machine, Trained
from experiments.cells.setting import CONTROL, Cell, Setting
from experiments.statistics import Scores
from experiments.tables import formats, paper
from experiments.tables import table as tables
from experiments.tables.formats import text
from experiments.tables.notes import ABOUT_INTERVALS, caption, footnotes
from experiments.tables.table import NO_VALUE, NOT_RUN, Result, Table, rows
from experiments.tables.trained import trained_notes, training_of

METRICS = {
    "bleu_paper": 58.7004,
    "bleu": 45.1,
    "ppl_paper": 20.5,
    "ppl": 9.25,
    "ppl_words": 12.75,
    "template_bleu_paper": 38.2,
    "template_bleu": 17.5,
    "sentences": 998,
    "left_out": 2,
}
TRAINED = Trained("Adam", 100, 5, 6785498, 172.66, 42.25, Machine("AMD EPYC", 2), (57.4, 61.0), "c6a095d", 90.0)


class FakeOutputs:
    """Outputs whose resampled scores are the metrics of the cell plus `noise`."""

    sentences = "the same for all"

    def __init__(self, metrics, noise):
        self._metrics, self._noise = metrics, noise

    def scores(self, metric):
        return Scores(self._metrics[metric], self._metrics[metric] + np.array(self._noise))


def part(mask_rate, blanks, results, corpus="yelp", masking="fixed", trained=(), noise=None):
    """Returns a setting and the results of its cells, from metrics and training records by model and seed.

    The cells of the models in `noise` have predictions, see `FakeOutputs`.
    """
    setting, trained = Setting(corpus, masking, mask_rate, blanks, "paper", "laptop"), dict(trained)
    return setting, {
        Cell(setting, model, seed): Result(
            results.get(model, {}).get(seed, {}),
            trained=trained.get(model, {}).get(seed),
            outputs=FakeOutputs(results[model][seed], noise[model]) if model in (noise or {}) else None,
        )
        for model in results | trained
        for seed in results.get(model, {}) | trained.get(model, {})
    }


def table(*parts, **changes):
    """Returns a table of some `part`s with seed 1."""
    results = {cell: result for _, found in parts for cell, result in found.items()}
    made = Table([setting for setting, _ in parts], results, (1,), "data_dir", "")
    return dataclasses.replace(made, **changes)


PART = part(0.4, 2, {"self_attention": {1: METRICS}})
TABLE = table(PART)


def of_model(model, **values_of_seeds):
    """Returns the results of one model: `of_model("gan", ppl=[3.0, 4.0])` has seeds 1 and 2."""
    count = len(next(iter(values_of_seeds.values())))
    by_seed = {i + 1: METRICS | {key: values[i] for key, values in values_of_seeds.items()} for i in range(count)}
    return {model: by_seed}


def line(shown, metric, whose):
    """Returns the four entries of one line in the text table of one setting."""
    found = [row for row in shown.splitlines() if f"  {metric}  " in row and f"  {whose}  " in row]
    assert len(found) == 1, found
    return re.split(r"\s{2,}", found[0].strip())[-4:]


def bold(results, key, noise=None):
    """Returns the models whose number is bold in our row of `key`; by default each cell has clear outputs."""
    noise = dict.fromkeys(results, [-0.1, 0.1]) if noise is None else noise
    row = next(
        row for row in rows(table(part(0.4, 2, results, noise=noise))) if row.line.key == key and row.line.is_ours
    )
    return [model for model, entry in zip(paper.MODELS, row.entries, strict=True) if entry.is_best]


def test_our_numbers_are_shown_below_the_papers():
    shown = text(TABLE)
    assert line(shown, "BLEU", "paper") == ["38.279", "55.460", "55.326", "59.192"]
    assert line(shown, "BLEU", "ours, bleu_paper") == ["38.200", NOT_RUN, NOT_RUN, "58.700"]
    assert line(shown, "Perplexity", "paper") == [NO_VALUE, "59.877", "70.195", "25.914"]
    assert line(shown, "Perplexity", "ours, ppl_paper") == [NO_VALUE, NOT_RUN, NOT_RUN, "20.500"]
    assert line(shown, "Human Eval", "paper") == [NO_VALUE, "2.005", "1.900", "2.045"]
    assert shown.count("Human Eval") == 1  # ours only where annotations were imported
    assert line(shown, "clean BLEU", "ours, bleu") == ["17.500", NOT_RUN, NOT_RUN, "45.100"]
    assert line(shown, "perplexity with <EOB>", "ours, ppl")[-1] == "9.250"
    assert line(shown, "perplexity of words", "ours, ppl_words")[-1] == "12.750"


def test_columns_are_aligned():
    many = part(0.5, 1, of_model("gan", bleu=[1.0, 2.0]))
    lines = text(table(PART, many, seeds=(1, 2))).splitlines()
    start = next(i for i, row in enumerate(lines) if row.startswith("---")) + 1
    assert len({len(row) for row in lines[start : start + 18]}) == 1


def test_a_setting_that_was_not_run_says_so_in_each_column():
    assert line(text(table(part(0.3, 1, {}))), "BLEU", "ours, bleu_paper") == [NOT_RUN] * 4


def test_the_number_printed_with_two_decimals_keeps_two():
    assert line(text(table(part(0.5, 1, {}))), "BLEU", "paper")[-1] == "51.55"


def test_several_seeds_are_shown_as_mean_and_sample_standard_deviation():
    results = {**of_model("gan", ppl_paper=[20.0, 21.0, 24.0]), **of_model("seq2seq", ppl_paper=[19.5])}
    shown = text(table(part(0.4, 2, results), seeds=(1, 2, 3)))
    assert line(shown, "Perplexity", "ours, ppl_paper") == [NO_VALUE, "19.50", "21.67 ± 2.08", NOT_RUN]


def test_the_template_is_the_same_for_all_seeds():
    shown = text(table(part(0.4, 2, of_model("gan", bleu=[40.0, 41.0])), seeds=(1, 2)))
    assert line(shown, "clean BLEU", "ours, bleu")[0] == "17.50"
    template_alone = part(0.4, 2, {"template": {1: {"template_bleu": 3.5, "template_bleu_paper": 4.5}}})
    assert line(text(table(template_alone)), "BLEU", "ours, bleu_paper") == ["4.500", NOT_RUN, NOT_RUN, NOT_RUN]


def test_a_cell_with_fewer_seeds_has_a_footnote():
    results = {**of_model("gan", bleu=[1.0, 2.0]), **of_model("seq2seq", bleu=[1.0])}
    notes = footnotes(table(part(0.4, 2, results), seeds=(1, 2)))
    assert [note for note in notes if "seed" in note] == ["40%, 2 blanks, Seq2Seq, ours: seed 1 only."]


def test_the_best_of_a_row_is_the_highest_bleu_and_the_lowest_perplexity():
    results = {
        **of_model("seq2seq", bleu=[40.0], ppl=[9.0]),
        **of_model("gan", bleu=[43.0, 44.0], ppl=[8.0, 11.0]),
        **of_model("self_attention", bleu=[43.2], ppl=[9.1]),
    }
    assert bold(results, "bleu") == ["gan"]  # by the mean, although one of its seeds is lower
    assert bold(results, "ppl") == ["seq2seq"]


def test_a_best_number_without_a_clear_difference_from_every_other_model_is_not_bold():
    results = {
        **of_model("seq2seq", bleu=[40.0], ppl_paper=[9.0]),
        **of_model("gan", bleu=[43.0], ppl_paper=[8.0]),
        **of_model("self_attention", bleu=[44.0], ppl_paper=[7.0]),
    }
    same = dict.fromkeys(results, [-2.0, 2.0])  # sentences that are hard for one are hard for all
    assert bold(results, "bleu", same) == ["self_attention"]
    assert bold(results, "bleu", same | {"gan": [2.0, -2.0]}) == []  # in the GAN other sentences are hard
    assert bold(results, "bleu", {"self_attention": [0.0], "seq2seq": [0.0]}) == []  # no predictions of the GAN
    assert bold(results, "ppl_paper", same) == []  # it has no interval


def test_the_template_is_never_bold_and_takes_no_part():
    assert bold(of_model("gan", bleu=[11.0]), "bleu") == []
    assert bold({**of_model("gan", bleu=[21.0]), **of_model("seq2seq", bleu=[20.0])}, "bleu") == ["gan"]


def test_notes_show_differences_with_intervals_or_that_there_is_none():
    results = {**of_model("seq2seq", bleu=[40.0, 41.0]), **of_model("self_attention", bleu=[44.0, 46.0])}
    noise = {"seq2seq": [0.0] * 9, "self_attention": np.linspace(-1, 1, 9)}
    notes = footnotes(table(part(0.4, 2, results, noise=noise), seeds=(1, 2)))
    (note,) = [note for note in notes if "minus" in note]
    assert note.startswith(
        "40%, 2 blanks, ours: Self-attn minus Seq2Seq: bleu_paper +0.00 [-0.95, +0.95], bleu +4.50 ["
    )
    assert ABOUT_INTERVALS in notes
    (note,) = [note for note in footnotes(table(part(0.4, 2, results))) if "minus" in note]
    assert note.count("no interval") == 3
    assert not any("minus" in note for note in footnotes(TABLE))


def test_the_control_has_a_note_and_a_training_row_but_no_column():
    results = {**of_model("gan", bleu=[41.0, 43.0]), **of_model(CONTROL, bleu=[40.0, 42.0])}
    made = table(part(0.4, 2, results, trained={CONTROL: {1: TRAINED, 2: TRAINED}}), seeds=(1, 2))
    notes = [note for note in footnotes(made) if "GAN, weight 0" in note]
    assert "a control that is trained like the GAN" in notes[0] and "bleu 41.00 ± 1.41" in notes[0]
    assert notes[1].startswith("40%, 2 blanks, ours: GAN minus GAN, weight 0: bleu_paper no interval")
    shown = text(made)
    assert sum("GAN, weight 0" in row and "6,785,498" in row for row in shown.splitlines()) == 1
    assert line(shown, "clean BLEU", "ours, bleu") == ["17.50", NOT_RUN, "42.00 ± 1.41", NOT_RUN]
    found = list(csv.DictReader(io.StringIO(formats.csv_text(made))))
    assert [row["ours"] for row in found if (row["model"], row["metric"]) == (CONTROL, "bleu")] == ["41.0"]


def test_a_single_number_is_not_best():
    assert bold(of_model("gan", ppl=[11.0]), "ppl") == []
    assert bold({}, "bleu") == []


def test_the_papers_best_numbers_are_marked_too():
    best = {
        (row.setting.mask_rate, row.setting.blanks, row.line.key): [
            model for model, entry in zip(paper.MODELS, row.entries, strict=True) if entry.is_best
        ]
        for row in rows(table(*(part(row.mask_rate, row.blanks, {}) for row in paper.APPENDIX_TABLE)))
        if row.line.whose == "paper"
    }
    assert len(best) == 18
    assert best.pop((0.4, 1, "human")) == ["seq2seq"]
    assert set(map(tuple, best.values())) == {("self_attention",)}


def test_a_setting_that_the_paper_does_not_have_is_named():
    shown = text(table(part(0.25, 3, {"self_attention": {1: METRICS}})))
    assert line(shown, "BLEU", "paper") == [NO_VALUE] * 4
    assert "25%, 3 blanks: the paper has no numbers for it." in shown


def test_a_footnote_counts_the_sentences_left_out():
    assert "Ours: 998 test sentences; 2 left out as too short for their blanks." in footnotes(TABLE)
    other = part(0.5, 1, {"gan": {1: METRICS | {"left_out": 0}}})
    notes = footnotes(table(PART, part(0.3, 2, {"self_attention": {1: METRICS}}), other))
    assert "40%, 2 blanks; 30%, 2 blanks, ours: 998 test sentences; 2 left out as too short for their blanks." in notes


def test_markdown_shows_the_same_numbers_with_the_best_in_bold():
    page = formats.markdown(TABLE, "main")
    found = [row for row in page.splitlines() if row.startswith("|")]
    assert {row.count("|") for row in found} == {9}
    assert "| 40% | 2 | BLEU | paper | 38.279 | 55.460 | 55.326 | **59.192** |" in found
    assert "|  |  | BLEU | ours, bleu_paper | 38.200 | not run | not run | 58.700 |" in found
    assert not any("<" in row for row in found)
    assert page.startswith("# Main table: mask rates 40%\n\nCorpus: Yelp") and caption(TABLE) in page


def test_latex_escapes_special_characters():
    special = table(part(0.4, 2, of_model("gan", ppl=[8.0, 9.0])), note=r"50% & #1_{x} ~^\ <a|b>", seeds=(1, 2))
    tex = formats.latex(special, "main")
    assert r"50\% \& \#1\_\{x\} \textasciitilde{}\textasciicircum{}\textbackslash{} " in tex
    assert r"\textless{}a\textbar{}b\textgreater{}" in tex
    assert r"8.50 $\pm$ 0.71" in tex
    assert r"perplexity with \textless{}EOB\textgreater{} & ours, ppl & -" in tex
    assert tex.isascii()


def test_latex_is_a_complete_environment_whose_rows_have_equal_columns():
    tex = formats.latex(table(PART, part(0.4, 1, {"self_attention": {1: METRICS}})), "appendix")
    environments = re.findall(r"\\(begin|end)\{(\w+)\}", tex)
    assert environments == [("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table")]
    body = [row for row in tex.splitlines() if row.endswith(r"\\")]
    assert len(body) == 1 + 2 * 10
    assert {len(re.findall(r"(?<!\\)&", row)) for row in body} == {7}
    assert len(re.findall(r"(?<!\\)\{", tex)) == len(re.findall(r"(?<!\\)\}", tex))
    assert r"BLEU & paper & 38.279 & 55.460 & 55.326 & \textbf{59.192} \\" in tex
    assert "booktabs" in tex.splitlines()[0]


def test_csv_has_a_row_for_each_setting_metric_and_model():
    trained = {"gan": {1: TRAINED, 2: TRAINED._replace(epochs=6, minutes=None)}}
    setting = part(0.4, 2, of_model("gan", bleu_paper=[55.0, 57.0], ppl=[1 / 3, 1 / 3]), trained=trained)
    found = list(csv.DictReader(io.StringIO(formats.csv_text(table(setting, seeds=(1, 2))))))
    assert len(found) == 6 * 3 + 2  # six metrics of three models, two BLEUs of the template
    by_name = {(row["model"], row["metric"]): row for row in found}
    assert by_name["gan", "bleu_paper"] == {
        "task": "yelp", "mask_rate": "0.4", "blanks": "2", "model": "gan", "metric": "bleu_paper",
        "paper": "55.326", "ours": "56.0",
        "spread": repr(2**0.5), "seeds": "1 2", "corpus": "yelp", "masking": "fixed", "protocol": "paper",
        "preset": "laptop", "optimizer": "Adam", "epochs": "5; 6", "batch_size": "100", "parameters": "6785498",
        "train_tflop": "172.66", "train_minutes": "42.25; -", "processor": "AMD EPYC", "commit": "c6a095d",
        "budget": "90.0",
    }  # fmt: skip
    assert by_name["seq2seq", "ppl_paper"]["optimizer"] == ""
    assert float(by_name["gan", "ppl"]["ours"]) == 1 / 3 and by_name["gan", "ppl"]["paper"] == ""
    assert by_name["seq2seq", "ppl_paper"]["ours"] == NOT_RUN
    assert by_name["self_attention", "human"]["paper"] == "2.045"
    assert by_name["template", "bleu_paper"]["seeds"] == "1"


def test_the_three_files_of_a_table_are_in_the_folder_of_its_corpus(tmp_path):
    paths = formats.write(TABLE, "main", tmp_path / "results")
    stem = tmp_path / "results" / "yelp" / "yelp.fixed.paper.laptop.main"
    assert paths == [stem.with_name(stem.name + suffix) for suffix in (".md", ".tex", ".csv")]
    assert sorted((tmp_path / "results" / "yelp").iterdir()) == sorted(paths)
    assert paths[1].read_text("utf-8") == formats.latex(TABLE, "main")


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "results").touch()
    with pytest.raises(OSError, match="Give another --results_dir"):
        formats.write(TABLE, "main", tmp_path / "results")


@pytest.mark.parametrize(
    ("corpus", "family", "names"),
    [
        ("yelp", "yelp", ["main", "appendix"]),
        ("synthetic", "synthetic", ["main", "appendix"]),
        ("grimm", "long_content", ["long_content"]),
        ("nba_synthetic", "long_content_synthetic", ["long_content"]),
        ("prepositions_built", "prepositions_built", ["prepositions"]),
        ("own", "own", []),  # of `text-infill fit`
    ],
)
def test_grimm_and_nba_share_their_tables(corpus, family, names):
    assert tables.family(corpus) == family and list(tables.tables_of(corpus)) == names


def test_the_caption_describes_the_cells():
    assert caption(table(PART, note="train is a stand-in")) == (
        "Corpus: Yelp (data_dir; train is a stand-in); masking fixed; protocol paper; preset laptop; seed 1."
    )
    assert caption(table(PART, seeds=(1, 5))).endswith(
        "preset laptop; seeds 1, 5. Ours: mean ± sample standard deviation over these 2 seeds."
    )


def test_the_caption_warns_if_numbers_cannot_be_compared():
    synthetic = caption(table(part(0.4, 2, {}, "synthetic"), origin="embedded"))
    assert "Corpus: synthetic corpus, not Yelp" in synthetic and "for another corpus" in synthetic
    assert "for other masks" in caption(table(part(0.4, 2, {}, masking="random")))
    assert "cannot be compared" not in caption(TABLE)


def trained_as(model="gan", *seeds):
    """Returns a setting whose model has these training records, for seeds 1, 2 and so on."""
    return part(0.4, 2, {}, trained={model: dict(enumerate(seeds, 1))})


def test_the_table_shows_how_each_model_was_trained():
    made = table(trained_as("gan", TRAINED))
    assert re.split(r"\s{2,}", next(row for row in text(made).splitlines() if "6,785,498" in row)) == [
        "40%", "2", "GAN", "90", "Adam", "5", "100", "6,785,498", "172.7", "42.2 (a)",
    ]  # fmt: skip
    assert "| 40% | 2 | GAN | 90 | Adam | 5 | 100 | 6,785,498 | 172.7 | 42.2 (a) |" in formats.markdown(made, "main")
    assert r"40\% & 2 & GAN & 90 & Adam & 5 & 100 & 6,785,498 & 172.7 & 42.2 (a) \\" in formats.latex(made, "main")
    assert "Trained as" not in text(TABLE) + formats.markdown(TABLE, "main") + formats.latex(TABLE, "main")


def test_notes_name_the_machines_and_the_commits():
    other = TRAINED._replace(optimizer="Muon", machine=Machine("Xeon", 1), gemm_gflops=(), commit="56e69d8")
    notes = trained_notes(table(trained_as("gan", TRAINED), trained_as("self_attention", other)))
    assert "(a) AMD EPYC, 2 cores; a 2048 x 2048 float32 matrix product ran at 57 to 61 GFLOP/s." in notes
    assert "(b) Xeon, 1 core." in notes and "Code: 56e69d8, c6a095d." in notes
    assert any(note.startswith("Muon updates the matrices") for note in notes)


def test_training_values_are_means_over_seeds_and_a_dash_if_not_recorded():
    setting = trained_as("gan", TRAINED, TRAINED._replace(epochs=6, minutes=43.25))
    assert training_of(table(setting), setting[0], "gan") == (
        "90",
        "Adam",
        "5.5",
        "100",
        "6,785,498",
        "172.7",
        "42.8 (a)",
    )
    bare = trained_as("gan", Trained("Adam", 100))
    assert training_of(table(bare), bare[0], "gan") == ("-", "Adam", "-", "100", "-", "-", "-")


def test_limits_of_a_comparison_are_noted_once_and_only_for_the_authors_own_sentences():
    tasks = ("grimm", "nba")
    pairs = table(*(part(None, 3, {}, task, "pairs") for task in tasks))
    notes = footnotes(pairs)
    assert sum("counts padding" in note for note in notes) == 1
    assert "NBA reports, 3 blanks: 7 of the 1,000 test sentences are among the training pairs." in notes
    prepositions = table(part(None, 3, {}, "prepositions", "pairs"))
    assert sum("cut at 16 words" in note for note in footnotes(prepositions)) == 1
    for kind, masking in (("_synthetic", "pairs"), ("", "anchors_noun_verb")):
        others = table(*(part(None, 3, {}, task + kind, masking) for task in tasks))
        assert not any("padding" in note or "7 of" in note for note in footnotes(others))


def test_a_note_says_what_the_yelp_substitute_shares_with_the_test_file():
    stand_in = table(PART, note="train is a stand-in for the paper's 104K sentences (98,298 lines)")
    assert sum("29% of the training sentences" in note for note in footnotes(stand_in)) == 1
    assert not any("29%" in note for note in footnotes(TABLE))
