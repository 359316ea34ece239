"""The tables of results in a README: numbers of the cells, rounded as Python does, between markers."""

import pytest
from finished_cells import finish, other

from experiments import collect, flags, readme
from text_infilling import files

METRICS = {
    "bleu_paper": 54.83498, "bleu": 39.5, "ppl_paper": 29.24, "ppl": 8.8549, "mean_infill_length": 2.5,
    "mean_answer_length": 3.8, "repeating_infills": 0.0391,
}  # fmt: skip
MARKED = "\n".join(
    ["Before.", "<!-- results:yelp -->", "old", "<!-- /results:yelp -->", "Between.", "<!-- results:three_blanks -->",
     "<!-- /results:three_blanks -->", "After.", ""]
)  # fmt: skip


@pytest.fixture
def cells(tmp_path):
    """A workdir with a seq2seq cell of Yelp and one of each task with three blanks."""
    finish(tmp_path, other(model="seq2seq"), METRICS)
    for corpus in ("grimm", "prepositions"):
        cell = other(corpus=corpus, masking="pairs", mask_rate=None, blanks=3, model="seq2seq")
        folder = finish(tmp_path, cell, METRICS)
        timing = {"epochs": 6, "parameters": 4977639, "train_tflop": 33.77, "training_seconds": 90.0}
        files.write_json(folder / "timing.json", timing)
    return tmp_path


def row(text, *starts):
    """The columns of the only row of a Markdown table that starts with these columns."""
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {' | '.join(starts)} |"))
    return found.strip("| ").split(" | ")


def test_the_rows_hold_the_papers_numbers_ours_and_the_training(cells):
    made = readme.blocks(collect.read_all(cells))
    assert row(made["yelp"], "40%", "2", "Seq2Seq")[3:] == [
        "55.460", "54.83", "39.50", "59.877", "29.24", "8.85", "Adam", "-", "100", "-", "-", "-",
    ]  # fmt: skip
    assert row(made["three_blanks"], "Grimm's tales", "Seq2Seq")[2:] == [
        "8.85", "54.83", "2.50 (3.80)", "3.9%", "Adam", "6", "100", "4,977,639", "33.8", "1.5", "10.411", "29.24",
    ]  # fmt: skip
    assert row(made["three_blanks"], "Prepositions", "Seq2Seq")[-2] == "-"  # the paper has no numbers


def test_outside_yelp_ppl_paper_is_last_and_its_padding_is_named(cells):
    block = readme.blocks(collect.read_all(cells))["three_blanks"]
    assert block.splitlines()[0].endswith("| `ppl_paper` |") and "`ppl_paper` counts padding" in block
    assert "Grimm's tales 64%, Prepositions 52%" in block and "NBA" not in block  # the tasks that were run


def test_only_what_is_between_the_markers_changes(cells):
    path = cells / "README.md"
    path.write_text(MARKED, "utf-8")
    arguments = [f"--cells={cells}", f"--readme={path}"]
    readme.run(flags.parse(arguments, flags.define_readme))
    first = path.read_text("utf-8")
    assert first.startswith("Before.\n<!-- results:yelp -->\n\n| mask rate |") and "old" not in first
    assert "<!-- /results:yelp -->\nBetween.\n" in first and first.endswith("<!-- /results:three_blanks -->\nAfter.\n")
    readme.run(flags.parse(arguments, flags.define_readme))
    assert path.read_text("utf-8") == first


@pytest.mark.parametrize("text", ["", MARKED.replace("<!-- /results:yelp -->", ""), MARKED + MARKED])
def test_a_readme_without_the_markers_is_named_and_left_as_it_is(cells, text):
    path = cells / "README.md"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=f"{path} needs the lines <!-- results:yelp -->"):
        readme.run(flags.parse([f"--cells={cells}", f"--readme={path}"], flags.define_readme))
    assert path.read_text("utf-8") == text


def test_cells_that_are_missing_are_named(tmp_path):
    finish(tmp_path, other(model="seq2seq"), METRICS)
    with pytest.raises(ValueError, match="no finished cell of long_content, masking pairs, protocol paper"):
        readme.blocks(collect.read_all(tmp_path))
