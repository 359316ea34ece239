"""The numbers of `paper.py`, checked against the paper's LaTeX source and the authors' logs and outputs."""

import csv
import json
import re

import pytest

from experiments import grimm, nba, yelp
from experiments.cells.setting import Setting
from experiments.tables import paper
from experiments.tables.table import LINES, NO_VALUE
from text_infilling.utils.columns import aligned

METRICS = {"BLEU": "bleu", "BLEU Score": "bleu", "Perplexity": "ppl", "Human Eval": "human"}


def numbers_of_table(tex, label):
    """Returns `(metric, {model: printed})` for each row of the LaTeX table with `label`, in order."""
    body = tex[: tex.index(rf"\label{{{label}}}")].rsplit(r"\begin{tabular}", 1)[1]
    rows = []
    for line in body.splitlines():
        cells = [re.sub(r"\\.*|[{}]|\\bf|\s+$", "", cell.replace(r"\bf", "")).strip() for cell in line.split("&")]
        name = next((cell for cell in cells if cell in METRICS), None)
        if name and len(cells) >= 6:
            rows.append((METRICS[name], dict(zip(paper.MODELS, cells[-4:], strict=True))))
    return rows


def setting_of(task, mask_rate, blanks):
    return paper.row_of(Setting(task, "", mask_rate, blanks, "", ""))


def ours(settings):
    return [
        (key, {model: paper.printed(setting, model, key) or "-" for model in paper.MODELS})
        for setting in settings
        for key in ("bleu", "ppl", "human")
    ]


def test_every_number_of_both_yelp_tables_is_as_printed(shared):
    tex = (shared / "paper" / "text_infilling.tex").read_text("utf-8")
    assert ours(paper.MAIN_TABLE) == numbers_of_table(tex, "yelp_score_table")
    assert ours(paper.APPENDIX_TABLE) == numbers_of_table(tex, "app_yelp_score_table")


def test_numbers_agree_with_the_authors_record(shared):
    manifest = json.loads((shared / "original" / "MANIFEST.json").read_text("utf-8"))
    entries = manifest["files"] + manifest["cells_without_dump"]
    yelp_cells = [entry for entry in entries if entry["dataset"] == "yelp" and entry.get("paper_bleu") is not None]
    assert len(yelp_cells) == 18
    for entry in yelp_cells:
        model = {"self_attn": "self_attention"}.get(entry["model"], entry["model"])
        numbers = paper.numbers(paper.yelp(entry["mask_rate"], entry["blanks"]))[model]
        assert (numbers["bleu"], numbers["ppl"]) == (entry["paper_bleu"], entry["paper_ppl"])


def test_the_authors_other_numbers_are_those_of_their_outputs_and_logs(shared):
    """BLEU of all released outputs of printed cells, and the best epoch of each log."""
    names = {"yelp": "yelp", "grimm_lm": "grimm", "nba": "nba", "nba_lm": "nba", "grimm_prep": "prepositions"}
    models = {"seq2seq": "seq2seq", "gan": "gan", "self_attn": "self_attention"}
    expected = {}
    manifest = json.loads((shared / "original" / "MANIFEST.json").read_text("utf-8"))
    for entry in manifest["files"]:
        of_yelp = entry["dataset"] == "yelp"
        if not of_yelp or entry["paper_bleu"]:
            key = setting_of(names[entry["dataset"]], entry["mask_rate"], entry["blanks"])
            for model, prefix in ((models[entry["model"]], ""), ("template", "template_")):
                record = expected.setdefault(key, {}).setdefault(model, {})
                # The templates of the preposition files differ slightly: we show the first file's.
                record.setdefault("outputs_bleu_clean", entry[f"{prefix}bleu_clean_nltk"])
                if not of_yelp:
                    record.setdefault("outputs_bleu", entry[f"{prefix}bleu_original"])
    with open(shared / "original" / "curves.csv", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["dataset"] in ("yelp", "nba_lm") and row["test_ppl"]]
    for row in sorted(rows, key=lambda row: -float(row["test_ppl"])):
        if row["dataset"] == "nba_lm" or "dynamiclr" in row["run"]:
            rate = float(row["mask_rate"]) if row["mask_rate"] else None
            by_model = expected[setting_of(names[row["dataset"]], rate, int(row["blanks"]))]
            best = {"best_ppl": round(float(row["test_ppl"]), 3), "best_epoch": int(row["epoch"])}
            by_model.setdefault(models[row["model"]], {}).update(best)
    assert paper.AUTHORS == expected


def test_a_setting_that_is_not_in_the_paper_has_no_numbers():
    assert paper.numbers(paper.yelp(0.25, 3)) == {}
    assert paper.printed(paper.yelp(0.25, 3), "gan", "bleu") is None


@pytest.mark.parametrize(
    ("module", "keys"),
    [(yelp, paper.APPENDIX_TABLE), *zip((grimm, nba), ([key] for key in paper.LONG_CONTENT_TABLE), strict=True)],
)
def test_the_docstring_of_an_experiment_shows_the_papers_table(module, keys):
    assert paper_table(keys) in module.__doc__


def paper_table(keys):
    """Returns the paper's table of these settings as aligned text."""
    titles = [paper.TITLES[model] for model in paper.MODELS]
    grid = [("Task" if keys[0].mask_rate is None else "Mask rate", "Blanks", "Metric", *titles)]
    for key in keys:
        for line in LINES:
            if line.whose == "paper":
                numbers = [paper.printed(key, model, line.key) or NO_VALUE for model in paper.MODELS]
                if set(numbers) != {NO_VALUE}:
                    grid.append((key.name, str(key.blanks), line.metric, *numbers))
    return "\n".join(aligned(grid, left=(2,)))
