"""Tables of results in a README: the cells' numbers, rounded as Python rounds, between markers."""

import pytest
from finished_cells import finish, other

from experiments import collect, readme
from experiments.cells import flags
from text_infilling.utils import files

METRICS = {
    "bleu_paper": 54.83498, "bleu": 39.5, "ppl_paper": 29.24, "ppl": 8.8549, "mean_infill_length": 2.5,
    "mean_answer_length": 3.8, "repeating_infills": 0.0391,
}  # fmt: skip
MARKED = "\n".join(
    ["Before.", "<!-- results:yelp -->", "old", "<!-- /results:yelp -->", "Between.", "<!-- results:pairs -->",
     "<!-- /results:pairs -->", "After.", ""]
)  # fmt: skip


@pytest.fixture
def cells(tmp_path):
    """A workdir with a seq2seq cell of Yelp and one of each task with three blanks."""
    finish(tmp_path / "cells", other(model="seq2seq"), METRICS)
    for corpus in ("grimm", "prepositions"):
        cell = other(corpus=corpus, masking="pairs", mask_rate=None, blanks=3, model="seq2seq")
        folder = finish(tmp_path / "cells", cell, METRICS)
        timing = {"epochs": 6, "parameters": 4977639, "train_tflop": 33.77, "training_seconds": 90.0}
        files.write_json(folder / "timing.json", timing)
    return tmp_path / "cells"


def row(text, *starts):
    """Returns the columns of the only Markdown table row that starts with these columns."""
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {' | '.join(starts)} |"))
    return found.strip("| ").split(" | ")


def test_rows_contain_the_papers_numbers_ours_and_the_training(cells):
    made = readme.blocks(collect.read_all(cells))
    assert row(made["yelp"], "40%", "2", "Seq2Seq")[3:] == [
        "55.460", "54.83", "39.50", "59.877", "29.24", "8.85", "145", "Adam", "-", "100", "-", "-", "-",
    ]  # fmt: skip
    assert row(made["pairs"], "Grimm's tales", "Seq2Seq")[2:] == [
        "8.85", "54.83", "2.50 (3.80)", "3.9%", "28", "Adam", "6", "100", "4,977,639", "33.8", "1.5", "10.411", "29.24",
    ]  # fmt: skip
    assert row(made["pairs"], "Prepositions", "Seq2Seq")[-2] == "-"  # the paper has no numbers


def test_in_the_pairs_table_ppl_paper_is_last_and_a_note_explains_its_padding(cells):
    block = readme.blocks(collect.read_all(cells))["pairs"]
    assert block.splitlines()[0].endswith("| `ppl_paper` |") and "`ppl_paper` counts padding" in block
    assert "Grimm's tales 64%, Prepositions 52%" in block and "NBA" not in block  # only the tasks that were run


def test_the_summary_is_short(cells):
    summary = readme.blocks(collect.read_all(cells))["summary"]
    assert len(summary.splitlines()) == 3  # header, rule, the only row
    assert row(summary, "40%", "2", "Seq2Seq")[3:] == ["55.460", "54.83", "59.877", "29.24", "Adam", "-"]


def write_tables(root):
    readme.run(flags.parse([f"--cells={root}/cells", f"--root={root}"], readme.define_flags))


def test_only_the_text_between_the_markers_changes(cells, tmp_path):
    path = tmp_path / "README.md"
    path.write_text(MARKED, "utf-8")
    write_tables(tmp_path)
    first = path.read_text("utf-8")
    assert first.startswith("Before.\n<!-- results:yelp -->\n\n| mask rate |") and "old" not in first
    assert "<!-- /results:yelp -->\nBetween.\n" in first and first.endswith("<!-- /results:pairs -->\nAfter.\n")
    write_tables(tmp_path)
    assert path.read_text("utf-8") == first


def test_tables_are_written_to_docs_too(cells, tmp_path):
    (tmp_path / "docs").mkdir()
    for name, text in (("results.md", MARKED), ("other.md", "No table.")):
        (tmp_path / "docs" / name).write_text(text, "utf-8")
    write_tables(tmp_path)
    assert "54.83" in (tmp_path / "docs" / "results.md").read_text("utf-8")
    assert (tmp_path / "docs" / "other.md").read_text("utf-8") == "No table."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MARKED.replace("<!-- /results:yelp -->", ""), "has an unpaired <!-- results:yelp -->"),
        (
            MARKED.replace("results:yelp", "results:yelq"),
            "has <!-- results:yelq -->, expected one of: summary, yelp",
        ),
        ("", "no README.md or docs/.*.md in .* has a line <!-- results:yelp -->: pass another --root"),
    ],
)
def test_wrong_markers_are_named_and_nothing_is_written(cells, tmp_path, text, message):
    (tmp_path / "README.md").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        write_tables(tmp_path)
    assert (tmp_path / "README.md").read_text("utf-8") == text


def test_missing_cells_are_named(tmp_path):
    finish(tmp_path, other(model="seq2seq"), METRICS)
    with pytest.raises(ValueError, match="no finished cell of long_content, masking pairs, protocol paper"):
        readme.blocks(collect.read_all(tmp_path))
