"""The check of the paper's claims."""

import pytest
from finished_cells import finish, other
from hypothesis import given
from hypothesis import strategies as st

from experiments import claims, collect
from experiments.claims import Effect, verdict, verdict_comparable
from experiments.released import SOURCES
from experiments.tables import paper
from text_infilling.utils import files

numbers = st.floats(0.01, 50)


@pytest.mark.parametrize(
    ("papers", "effect", "expected"),
    [
        (2.0, Effect(1.5, 0.5, 2.5), "holds"),
        (2.0, Effect(1.5, -0.1, 3.0), "shrinks"),
        (2.0, Effect(0.9, 0.5, 1.3), "shrinks"),
        (None, Effect(0.9, 0.5, 1.3), "holds"),
        (2.0, Effect(-0.1, -0.3, 0.1), "fails"),
        (2.0, Effect(1.0), "holds"),
        (2.0, None, "not run"),
    ],
)
def test_the_verdict_depends_on_direction_size_and_interval(papers, effect, expected):
    assert verdict(papers, effect) == expected


def test_comparable_models_differ_little_or_not_clearly():
    effects = [Effect(0.9, 0.5, 1.3), Effect(1.5, -0.1, 3.0), Effect(-1.5, -2.0, -1.0), Effect(1.2), None]
    assert list(map(verdict_comparable, effects)) == ["holds", "holds", "fails", "fails", "not run"]


@given(numbers, numbers, numbers)
def test_the_lead_is_positive_only_if_self_attention_is_first(ours, seq2seq, gan):
    found = {"self_attention": ours, "seq2seq": seq2seq, "gan": gan}
    assert (claims.lead(found) > 0) == (ours > max(seq2seq, gan))
    assert (claims.factor(found) > 0) == (ours < min(seq2seq, gan))
    assert claims.lead({"gan": gan}) is claims.factor({"gan": gan}) is None


def rows_of(page, letter):
    part = page[page.index(f"## ({letter})") :].partition("\n## ")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| ")][2:]


def finished(tmp_path, **metrics):
    """Returns finished cells of the three models at 40% and two blanks, with a value of each metric per model."""
    for i, model in enumerate(("self_attention", "seq2seq", "gan")):
        finish(tmp_path, other(model=model), {name: values[i] for name, values in metrics.items()})
    return collect.read_cells(tmp_path, "*/*")


def test_cells_of_ours_get_verdicts_and_missing_ones_do_not(tmp_path):
    ours = finished(
        tmp_path, bleu_paper=[59.0, 55.0, 54.0], bleu=[40.0, 41.0, 39.0], ppl_paper=[20, 30, 40], ppl=[9, 8, 7]
    )
    page = claims.page(ours, None)
    bleu = {(row[1], row[2]): row for row in rows_of(page, "a") if row[0] == "fixed paper laptop"}
    assert len(bleu) == 12
    assert bleu["Yelp 40%, 2 blanks", "`bleu_paper`"][4:8] == ["+4.00", "-", "1", "holds"]
    assert bleu["Yelp 40%, 2 blanks", "`bleu`"][4:8] == ["-1.00", "-", "1", "fails"]
    assert {row[7] for key, row in bleu.items() if key[0] != "Yelp 40%, 2 blanks"} == {"not run"}
    ppl = [row for row in rows_of(page, "b") if row[0] == "fixed paper laptop" and row[1] == "Yelp 40%, 2 blanks"]
    assert [(row[4], row[7]) for row in ppl] == [("+0.50", "shrinks"), ("-0.22", "fails")]
    assert {row[7] for row in rows_of(page, "a") if row[0] == "released"} == {"not run"}


def test_released_outputs_are_judged_with_their_intervals(tmp_path):
    ours = finished(tmp_path, bleu_paper=[1, 1, 1], bleu=[1, 1, 1], ppl_paper=[1, 1, 1], ppl=[1, 1, 1])
    names = {one.model: one.name for one in SOURCES if one.setting == paper.yelp(0.4, 2)}

    def pair(first, second, low):
        found = {"value": low + 1, "low": low, "high": low + 2, "p": 0.5}
        return {"first": names[first], "second": names[second], "bleu_paper": found, "bleu": found}

    replay = {"differences": [pair("self_attention", "seq2seq", 3), pair("self_attention", "gan", 1.5)]}
    page = claims.page(ours, replay)
    released = [row for row in rows_of(page, "a") if row[:2] == ["released", "Yelp 40%, 2 blanks"]]
    assert [row[4:6] + row[7:8] for row in released] == [["+2.50", "[+1.50, +3.50]", "holds"]] * 2


def test_the_papers_perplexity_falls_with_the_number_of_blanks(tmp_path):
    ours = finished(tmp_path, bleu_paper=[1, 1, 1], bleu=[1, 1, 1], ppl_paper=[1, 1, 1], ppl=[1, 1, 1])
    rows = rows_of(claims.page(ours, None), "d")
    papers = [row for row in rows if row[0] == "paper"]
    assert [row[6] for row in papers if row[1:3] == ["blanks", "`ppl_paper`"]] == ["fails"] * 3
    assert [row[6] for row in papers if row[2] == "`bleu_paper`"] == ["holds"] * 6
    assert {row[6] for row in rows if row[0] == "fixed paper laptop"} == {"not run"}  # one setting has no step


def test_a_step_of_our_cells_is_judged(tmp_path):
    for rate, bleu in ((0.3, 60.0), (0.4, 50.0)):
        finish(tmp_path, other(model="gan", mask_rate=rate), {"bleu": bleu, "ppl": bleu})
    rows = rows_of(claims.page(collect.read_cells(tmp_path, "*/*"), None), "d")
    ours = [row[1:] for row in rows if row[0] == "fixed paper laptop" and row[6] != "not run"]
    assert ours == [
        ["mask rate", "`bleu`", "GAN", "1 of 1", "-10.00", "holds"],
        ["mask rate", "`ppl`", "GAN", "0 of 1", "-10.00", "fails"],
    ]


def test_the_interval_of_our_cells_is_over_seeds_or_over_sentences(tmp_path):
    for seed, leads in ((1, 3.0), (2, 5.0)):
        for model, bleu in (("self_attention", 50 + leads), ("seq2seq", 50.0), ("gan", 49.0)):
            finish(tmp_path, other(model=model, seed=seed), {"bleu": bleu, "ppl": 1 / bleu})
    cells = collect.read_cells(tmp_path, "*/*")
    found, seeds = claims.of_cells(cells, "bleu", "self_attention", ("seq2seq", "gan"))
    assert seeds == 2 and found == pytest.approx((4.0, 4 - 12.706, 4 + 12.706), abs=1e-3)
    assert claims.of_cells(cells, "ppl", "self_attention", ("seq2seq",))[0].value == pytest.approx(0.08)
    assert claims.of_cells(cells[:1], "bleu", "self_attention", ("seq2seq",)) == (None, 0)
    for one in cells:
        right = one.cell.model == "self_attention"
        line = {"template": "a <m> c d e", "answer": ["b"], "infill": ["b" if right else "x"]}
        files.write_jsonl(one.folder / "predictions.jsonl", [line] * 5)
    one_seed = [one for one in cells if one.cell.seed == 1]
    found, seeds = claims.of_cells(one_seed, "bleu", "self_attention", ("seq2seq", "gan"))
    assert seeds == 1 and found == (100.0, 100.0, 100.0)
    assert claims.basis(found, 1) == "interval over the test sentences"
