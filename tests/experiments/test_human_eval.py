"""The human evaluation kit: pages, their use in a browser, import of the answers, agreement."""

import json
import re
import subprocess

import numpy as np
import pytest
from finished_cells import CELL, finish, other
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask

from experiments import collect, human_eval
from experiments.annotation import study as studies
from experiments.annotation.agreement import kendalls_w, krippendorffs_alpha, mean_scores, sums_to_six
from experiments.annotation.study import MODELS, OPEN, TRUTH
from experiments.cells import flags
from experiments.cells.experiment import HUMAN
from experiments.tables import formats, paper
from text_infilling.utils import files

rankings = st.integers(2, 4).flatmap(
    lambda annotators: st.lists(
        st.lists(st.permutations([1, 2, 3]), min_size=5, max_size=5), min_size=annotators, max_size=annotators
    )
)


def predictions(model, count=12):
    return [
        {"template": f"the <m> number {i} is <m> .", "answer": [f"true{i}", "so"], "infill": [f"{model}<b>é{i}", ""]}
        for i in range(count)
    ]


def new_study(items=3, annotators=2, checks=1):
    made = studies.make({model: predictions(model) for model in MODELS}, items, annotators, checks, seed=1)
    return {"cell": CELL.as_dict(), **made}


def answer(study, annotator, best=None):
    """Returns the result that a page downloads if the annotator prefers the text of `best`."""
    page = study["pages"][annotator - 1]
    scores = []
    for shown in page["items"]:
        order = sorted(range(3), key=lambda i: (shown["whose"][i] not in (best, TRUTH), shown["whose"][i]))
        scores.append([3 - order.index(i) for i in range(3)])
    found = {"study": study["study"], "annotator": annotator, "scores": scores}
    text = f"{page['key']} {json.dumps(found, separators=(',', ':'))}"
    return {**found, "checksum": studies.checksum(text)}


def test_pages_are_blind_and_in_other_orders():
    study = new_study(items=8, checks=0)
    pages = [studies.page(study, one) for one in study["pages"]]
    shown = [[(x["item"], *x["whose"]) for x in one["items"]] for one in study["pages"]]
    assert shown[0] != shown[1] and sorted(x[0] for x in shown[0]) == list(range(8))
    assert all("self_attention" in page for page in pages)  # as a part of the made-up text only
    assert not any(re.search(r'"whose"|https?:|src=', page) for page in pages)


def test_a_study_depends_on_its_seed_only():
    assert new_study() == new_study()


def test_a_hidden_check_has_the_truth_and_the_open_template():
    item = new_study(items=3, checks=1)["items"][3]
    assert TRUTH in item["texts"] and "____" in item["texts"][OPEN] and item["template"] == item["texts"][OPEN]


def test_models_of_other_templates_cannot_be_ranked():
    with pytest.raises(ValueError, match="same templates"):
        studies.make({m: predictions(m, 12 if m == "gan" else 11) for m in MODELS}, 3, 2, 0, seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a["scores"].pop(), "incomplete: 3 of 4 items"),
        (lambda a: a["scores"].__setitem__(1, [3, 3, 1]), "incomplete: item 2"),
        (lambda a: a["scores"].__setitem__(0, a["scores"][0][::-1]), "it was changed"),
        (lambda a: a.update(study="other"), "belongs to the study 'other'"),
        (lambda a: a.update(annotator=9), "no annotator 9"),
        (lambda a: a.pop("checksum"), "checksum"),
    ],
)
def test_a_damaged_answer_is_refused_by_name(change, message, tmp_path):
    study = new_study()
    changed = answer(study, 1)
    change(changed)
    files.write_json(tmp_path / "annotator01.json", changed)
    with pytest.raises(ValueError, match=f"annotator01.json: .*{message}"):
        studies.read_answers(study, [tmp_path / "annotator01.json"])


def test_two_answers_of_one_annotator_are_refused(tmp_path):
    study = new_study()
    for name in ("a.json", "b.json"):
        files.write_json(tmp_path / name, answer(study, 1))
    with pytest.raises(ValueError, match=r"b\.json: duplicate of .*a\.json"):
        studies.read_answers(study, sorted(tmp_path.glob("*.json")))


@given(rankings)
def test_alpha_equals_nltks_for_ordinal_data(scores):
    array = np.array(scores)
    counts = [np.sum(array == rank) for rank in (1, 2, 3)]

    def ordinal(a, b):
        low, high = sorted((a, b))
        return float((sum(counts[low - 1 : high]) - (counts[low - 1] + counts[high - 1]) / 2) ** 2)

    texts = array.reshape(len(array), -1)
    rows = [(coder, text, int(score)) for coder, row in enumerate(texts) for text, score in enumerate(row)]
    assert krippendorffs_alpha(scores) == pytest.approx(AnnotationTask(rows, distance=ordinal).alpha(), abs=1e-9)


@given(rankings)
def test_agreement_is_in_its_range_and_means_sum_to_six(scores):
    assert -1e-9 <= kendalls_w(scores) <= 1 + 1e-9 and krippendorffs_alpha(scores) <= 1
    means = mean_scores(scores, resamples=50)
    assert sums_to_six([mean for mean, *_ in means])
    assert all(low <= mean + 1e-9 and mean <= high + 1e-9 for mean, low, high in means)


def test_two_printed_rows_do_not_sum_to_six():
    wrong = [
        setting
        for setting in (*paper.APPENDIX_TABLE, *paper.LONG_CONTENT_TABLE)
        if not sums_to_six([paper.numbers(setting)[model]["human"] for model in MODELS])
    ]
    assert wrong == [paper.yelp(0.4, 2), paper.yelp(0.5, 2)]


# Ranks all items by keys, reloads the page to see the progress again, and shows what would be downloaded.
ACTIONS = """
<script>
const press = key => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
if (location.hash !== "#again") {
  const wasDisabled = $("download").disabled;
  press("1"); press("1"); press("Backspace");
  data.items.forEach(() => { press("3"); press("1"); press("ArrowRight"); });
  document.querySelector("#texts button").click();  // of a finished item: changes nothing
  sessionStorage.setItem("disabled", wasDisabled);
  location.hash = "#again";
  location.reload();
} else {
  URL.createObjectURL = blob => { blob.text().then(text => document.body.dataset.result = text); return "#"; };
  document.body.dataset.before = sessionStorage.getItem("disabled") + " " + $("progress").textContent;
  $("download").click();
}
</script>
"""


def test_an_annotator_ranks_all_items_and_the_result_is_imported(tmp_path, chromium, capsys):
    for model in MODELS:
        folder = finish(tmp_path / "runs", other(model=model), {"bleu": 1.0})
        files.write_jsonl(folder / "predictions.jsonl", predictions(model))
    command([
        "export", f"--study={tmp_path / 'study'}", "--items=3", "--checks=1", "--annotators=2",
        *(f"--{model}={other(model=model).folder(tmp_path / 'runs')}" for model in MODELS),
    ])  # fmt: skip
    (tmp_path / "answers").mkdir()
    for name in ("annotator01", "annotator02"):
        path = tmp_path / f"{name}.html"
        path.write_text((tmp_path / "study" / f"{name}.html").read_text("utf-8") + ACTIONS, "utf-8")
        seen = ""
        for attempt in range(5):  # on a busy machine Chromium may print the page before it has reloaded it
            line = [
                chromium,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path / name}{attempt}",
            ]
            line += ["--dump-dom", "--virtual-time-budget=5000", path.as_uri()]
            seen = subprocess.run(line, capture_output=True, text=True, timeout=120, check=True).stdout
            if "data-result=" in seen:
                break
        assert 'data-before="true Item 1 of 4; 4 done."' in seen
        result = re.search(r'data-result="([^"]*(?:&quot;[^"]*)*)"', seen)[1].replace("&quot;", '"')
        (tmp_path / "answers" / f"{name}.json").write_text(result, "utf-8")
    command(["import", f"--study={tmp_path / 'study'}", f"--answers={tmp_path / 'answers'}"])
    capsys.readouterr()
    command(["report", f"--study={tmp_path / 'study'}"])
    printed = capsys.readouterr().out
    assert "40%, 2 blanks: 3 items, 2 annotators" in printed and "The means sum to 6." in printed
    assert "The paper's scores sum to 5.950" in printed and "hidden checks passed" in printed
    cells = collect.read_cells(tmp_path / "runs", "*/*")
    made = formats.text(collect.table(cells, [paper.yelp(0.4, 2)]))
    human = {one.cell.model: files.read_json(one.folder / HUMAN)["human"] for one in cells}
    (row,) = [line.split() for line in made.splitlines() if line.split()[:3] == ["Human", "Eval", "ours"]]
    assert row[4:] == [f"{human[model]:.3f}" for model in MODELS] and sum(human.values()) == pytest.approx(6)
    stored = files.read_json(tmp_path / "study" / "scores.json")["scores"]
    key = files.read_json(tmp_path / "study" / "key.json")
    for one in key["pages"]:
        for shown in one["items"]:
            first, second, third = shown["whose"]
            scores = stored[str(one["annotator"])][shown["item"]]
            assert scores == {third: 3, first: 2, second: 1}


def command(arguments):
    human_eval.run(flags.parse(arguments, human_eval.define_flags, positional=["COMMAND"]))


def test_export_refuses_cells_that_do_not_belong_together(tmp_path):
    folders = {model: finish(tmp_path, other(model=model), {"bleu": 1.0}) for model in MODELS}
    for model, folder in folders.items():
        files.write_jsonl(folder / "predictions.jsonl", predictions(model))
    with pytest.raises(ValueError, match="is a cell of seq2seq"):
        command(["export", f"--study={tmp_path}", *(f"--{model}={folders['seq2seq']}" for model in MODELS)])
    with pytest.raises(ValueError, match="expected --seq2seq=CELL"):
        command(["export", f"--study={tmp_path}"])
