"""Tables: the paper's numbers beside ours, and a caption that says what ours are."""

from experiments.tables import Setting, caption, markdown, text

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
SETTING = Setting(0.4, 2, {"self_attention": METRICS})
YELP = dict(corpus="yelp", source="data_dir", note="", masking="fixed", protocol="paper", preset="laptop", seed=1)


def line(table, metric, whose):
    """The four numbers of one line of the text table."""
    found = [row for row in table.splitlines() if f"  {metric}  " in row and f"  {whose}  " in row]
    assert len(found) == 1, found
    return found[0].replace("not run", "not_run").split()[-4:]


def test_the_row_shows_our_numbers_under_the_papers():
    table = text([SETTING], "title")
    assert line(table, "BLEU", "paper") == ["38.279", "55.460", "55.326", "59.192"]
    assert line(table, "BLEU", "ours, bleu_paper") == ["38.200", "not_run", "not_run", "58.700"]
    assert line(table, "Perplexity", "paper") == ["-", "59.877", "70.195", "25.914"]
    assert line(table, "Perplexity", "ours, ppl_paper") == ["-", "not_run", "not_run", "20.500"]
    assert line(table, "Human Eval", "ours") == ["-", "not_run", "not_run", "not_run"]
    assert line(table, "clean BLEU", "ours, bleu") == ["17.500", "not_run", "not_run", "45.100"]
    assert line(table, "perplexity with <EOB>", "ours, ppl")[-1] == "9.250"
    assert line(table, "perplexity of words", "ours, ppl_words")[-1] == "12.750"


def test_columns_are_aligned():
    lines = text([SETTING, Setting(0.5, 1, {})], "title").splitlines()[2:]
    ends = {len(row) for row in lines[:20] if row.strip() and not row.startswith("40%, ")}
    assert len(ends) == 1


def test_a_setting_that_was_not_run_says_so_in_each_column():
    assert line(text([Setting(0.3, 1, {})], "title"), "BLEU", "ours, bleu_paper") == ["not_run"] * 4


def test_the_printed_number_with_two_decimals_stays_so():
    assert line(text([Setting(0.5, 1, {})], "title"), "BLEU", "paper")[-1] == "51.55"


def test_a_setting_that_the_paper_does_not_have_is_named():
    table = text([Setting(0.25, 3, {"self_attention": METRICS})], "title")
    assert line(table, "BLEU", "paper") == ["-"] * 4
    assert "25%, 3 blanks: the paper has no such setting." in table


def test_left_out_sentences_are_counted_below():
    assert "998 test sentences, 2 too short for their blanks left out" in text([SETTING], "title")


def test_markdown_has_the_same_cells():
    rows = [row for row in markdown([SETTING], "title").splitlines() if row.startswith("|")]
    assert {row.count("|") for row in rows} == {9}
    assert "| 40% | 2 | BLEU | paper | 38.279 | 55.460 | 55.326 | 59.192 |" in rows
    assert "|  |  | BLEU | ours, bleu_paper | 38.200 | not run | not run | 58.700 |" in rows
    assert not any("<" in row for row in rows)


def test_the_caption_names_what_the_cells_are():
    assert caption(**YELP | {"note": "train is a stand-in"}) == (
        "Corpus: Yelp (data_dir; train is a stand-in); masking fixed; protocol paper; preset laptop; seed 1."
    )


def test_the_caption_warns_where_numbers_cannot_be_compared():
    synthetic = caption(**YELP | {"corpus": "synthetic", "source": "embedded"})
    assert "Corpus: synthetic corpus, not Yelp" in synthetic and "of another corpus" in synthetic
    assert "of other masks" in caption(**YELP | {"masking": "random"})
    assert "cannot be compared" not in caption(**YELP)
