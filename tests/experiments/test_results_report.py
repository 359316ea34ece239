"""Learning curves, plots and the HTML report."""

import html
import re

import numpy as np
import pytest
from finished_cells import finish, other

from experiments import curves, effects
from experiments.cells import flags
from experiments.cells.setting import Setting
from experiments.effects import Effect, of_seeds
from experiments.statistics import corpus_bleu
from experiments.tables import paper
from experiments.tables.outputs import filled_text
from text_infilling.metrics.bleu import bleu
from text_infilling.utils import files

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install -e '.[report]'")
pytest.importorskip("markdown", reason="needs markdown: pip install -e '.[report]'")

from experiments import report  # noqa: E402
from experiments.tables import plots  # noqa: E402

METRICS = {
    "bleu_paper": 50.0, "bleu": 30.0, "ppl_paper": 20.0, "ppl": 9.0, "ppl_words": 12.0, "template_bleu": 10.0,
    "template_bleu_paper": 20.0,
}  # fmt: skip
LOG = """09:00 seq2seq: 9 parameters, 1,000 sentences, 2 epochs of 10 steps, 30% of the words masked
09:01 epoch 1: loss 4.9; validation bleu_paper 40.00, bleu 27.23, ppl_paper 53.70, ppl 34.12 (58 s)
09:02 epoch 2: loss 4.1; validation bleu_paper 41.00, bleu 27.23, ppl_paper inf, ppl 34.12 (58 s)
09:03 epoch 2: loss 4.0; validation bleu_paper 42.00, bleu 27.23, ppl_paper 33.70, ppl 34.12 (58 s)
"""
PREDICTIONS = [
    {"template": "the soup <m> very <m> .", "answer": ["was", "hot today"], "infill": ["was", "good <b>"]},
    {"template": "i <m> it <m> .", "answer": ["like", "a lot"], "infill": ["like", "a lot"]},
] * 10


def cells(folder, **changes):
    """Creates finished cells of the three models with logs and predictions."""
    for model in plots.MODELS:
        cell = finish(folder, other(model=model, **changes), METRICS)
        (cell / "log.txt").write_text(LOG, "utf-8")
        files.write_jsonl(cell / "predictions.jsonl", PREDICTIONS)
    return folder


def test_a_log_gives_a_point_per_epoch_and_of_a_restarted_epoch_the_last():
    assert curves.of_log(LOG) == [curves.Point(1000, 40.0, 53.7), curves.Point(2000, 42.0, 33.7)]
    assert curves.of_log("no training here") == []


CURVES = """dataset,mask_rate,blanks,model,run,log_dir,epoch,last_step,test_ppl,test_bleu
yelp,0.4,2,gan,a.gan.new@1,x.bsize250.y,149,400,70.2,55.3263
yelp,0.4,2,gan,a.gan@2,x.bsize250.y,0,,90.1,11.0
yelp,0.4,2,gan,a.gan@2,x.bsize250.y,5,100,80.1,50.0
yelp,0.4,2,gan,b.gan@3,x.bsize250.y,5,100,,50.0
yelp,0.4,1,gan,c.gan@4,x.bsize250.y,149,400,70.2,55.3263
"""


def test_the_authors_curve_is_the_run_with_the_printed_bleu_and_its_beginning(tmp_path):
    (tmp_path / "curves.csv").write_text(CURVES, "utf-8")
    found = curves.of_authors(tmp_path, paper.yelp(0.4, 2), "gan")
    assert found == [
        [curves.Point(100_000, 55.3263, 70.2)],
        [curves.Point(0, 11.0, 90.1), curves.Point(25_000, 50.0, 80.1)],
    ]
    assert curves.of_authors(tmp_path, paper.yelp(0.4, 2), "seq2seq") == []


def test_every_printed_yelp_model_has_a_curve_of_the_authors(shared):
    for setting in paper.APPENDIX_TABLE:
        for model in plots.MODELS:
            parts = curves.of_authors(shared / "original", setting, model)
            printed = float(paper.printed(setting, model, "bleu"))
            assert min(abs(p.bleu - printed) for part in parts for p in part if p.bleu) < 0.006
            assert len(parts) == (2 if model == "gan" else 1)


def test_bleu_of_counts_equals_bleu_and_lengths_are_those_of_the_blanks(tmp_path):
    folder = cells(tmp_path) and next(tmp_path.glob("*/*"))
    texts = [[filled_text(p["template"], p[key]) for p in PREDICTIONS] for key in ("infill", "answer")]
    sums = effects.counts(folder, "bleu").sum(axis=0)
    assert float(corpus_bleu(sums, smoothed=False)) == pytest.approx(bleu(*texts), abs=1e-9)
    assert effects.counts(folder, "bleu_paper") is None  # needs vocabulary.txt
    assert effects.lengths(folder)[:4] == [(1, 1), (2, 2), (1, 1), (2, 2)]
    assert effects.lengths(tmp_path) == []


def test_intervals_are_students_over_seeds():
    # R: t.test(c(1, 2, 4))$conf.int
    assert of_seeds([1.0, 2.0, 4.0]) == pytest.approx((2.3333, -1.4612, 6.1279), abs=1e-3)
    assert of_seeds([3.0]) == Effect(3.0)


def test_plots_have_labelled_axes_and_nothing_to_show_is_none():
    yelp = [Setting("yelp", "fixed", rate, blanks, "paper", "laptop") for rate in (0.3, 0.4) for blanks in (1, 2)]
    found = plots.difficulty(yelp, lambda setting, model, key: Effect(40.0, 39.0, None if key == "ppl" else 42.0))
    for panel in found.axes:
        assert panel.get_xlabel() and panel.get_ylabel()
    assert plots.png(found).startswith(b"\x89PNG")
    nothing = {model: [] for model in plots.MODELS}
    assert plots.difficulty(yelp, lambda *_: None) is plots.learning(yelp[0], nothing, nothing) is None
    assert plots.infill_lengths({yelp[0]: nothing}) is plots.against_template(yelp, lambda *_: None, None) is None


def test_the_report_is_one_file_with_every_section(tmp_path, capsys):
    cells(tmp_path / "runs")
    results = tmp_path / "results"
    results.mkdir()
    (results / "samples.paper.laptop.md").write_text("# Samples\n\n| a | b |\n|---|---|\n| x | [y](z.md) |\n", "utf-8")
    line = [f"--cells={tmp_path / 'runs'}", f"--results_dir={results}"]
    report.run(flags.parse(line, report.define_flags))
    assert str(results / "report.html") in capsys.readouterr().out
    page = (results / "report.html").read_text("utf-8")
    assert not re.search(r'src="(?!data:)|<link|<script|href="(?!#|https?:)', page)
    titles = [html.unescape(title) for title in re.findall(r"<h2>(.*?)</h2>", page)]
    assert titles[:2] == ["The paper's claims, checked", "Plots"] and titles[3] == "Samples"
    assert titles[-3:] == ["Divergences from the paper", "Environment", "Commands"]
    images = sorted(path.stem for path in (results / "plots").glob("*.png"))
    assert [name.removeprefix("yelp.fixed.paper.laptop.") for name in images] == [
        "against_template", "difficulty", "infill_lengths", "learning.yelp.fixed.rate0.4.blanks2"
    ]  # fmt: skip
    assert page.count("data:image/png;base64,") == 4 and 'class="banner"' not in page
    assert len(list((results / "plots").glob("events.out.tfevents.*"))) == 1
    assert "No plot of the attention" in page and "<b>" not in page


def test_the_report_of_made_up_sentences_says_so(tmp_path):
    cells(tmp_path / "runs", corpus="synthetic")
    results = tmp_path / "results"
    report.run(flags.parse([f"--cells={tmp_path / 'runs'}", f"--results_dir={results}"], report.define_flags))
    page = (results / "report.html").read_text("utf-8")
    assert 'class="banner">Synthetic' in page and "claims, checked" not in page


def test_without_matplotlib_the_command_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "NEEDED", ("no_such_module",))
    with pytest.raises(ValueError, match=re.escape("pip install -e '.[report]'")):
        report.run(flags.parse([f"--results_dir={tmp_path}"], report.define_flags))


def test_attention_is_drawn_with_one_row_per_token():
    figure = plots.attention("Blank 1", ["<BOS>", "<m>"], ["<BOB>", "a", "b"], np.full((3, 2), 0.5).tolist())
    assert figure.axes[0].images[0].get_array().shape == (3, 2)
