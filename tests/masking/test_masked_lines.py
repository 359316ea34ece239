"""Lines that include their blanks: writing, reading, and the pipeline's templates and answers for them."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from text_infilling import templates
from text_infilling.corpora.corpus import Corpus
from text_infilling.data.blank_rule import BlankRule
from text_infilling.data.pipeline import Pipeline, split_stats
from text_infilling.data.report import data_report, format_report
from text_infilling.masking import masked_lines
from text_infilling.vocabulary import Vocabulary

GIVEN = BlankRule("given", None, 2)
ROWS = [
    ("can i have a beef burger , please .".split(), [(0, 2), (4, 6)]),
    ("tea , please".split(), [(0, 0), (1, 3)]),
    ("one <m> two".split(), [(1, 2), (2, 2)]),
]


@st.composite
def rows(draw, blanks=3):
    words = draw(st.lists(st.sampled_from(["a", "0:1", "_", "ünïcode", "<m>"]), min_size=1, max_size=12))
    bounds = sorted(draw(st.lists(st.integers(0, len(words)), min_size=2 * blanks, max_size=2 * blanks)))
    return words, list(zip(bounds[::2], bounds[1::2], strict=True))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    paths = [folder / f"{split}.txt" for split in ("train", "valid", "test")]
    for path in paths:
        masked_lines.write(path, ROWS)
    return Corpus("grimm", *paths, source="made", note="", checksum="c0ffee", task="grimm", blanks=2)


def test_a_line_has_the_words_a_tab_and_the_blanks():
    assert masked_lines.format_line(*ROWS[0]) == "can i have a beef burger , please .\t0:2 4:6"


@given(rows())
def test_parsing_inverts_formatting(row):
    assert masked_lines.parse_line(masked_lines.format_line(*row) + "\n") == row


def test_has_empty_answers_tells_whether_train_has_an_empty_blank(corpus, tmp_path):
    assert corpus.has_empty_answers
    masked_lines.write(tmp_path / "train.txt", ROWS[:1])
    assert not dataclasses.replace(corpus, train=tmp_path / "train.txt").has_empty_answers
    assert not dataclasses.replace(corpus, blanks=None, train=tmp_path / "not read").has_empty_answers


@pytest.mark.parametrize("blanks", [[(1, 0)], [(0, 4)], [(1, 2), (0, 1)], [(0, 2), (1, 3)], [(-1, 2)]])
def test_blanks_out_of_order_or_outside_are_an_error(blanks):
    with pytest.raises(ValueError, match="in order and within 3 words"):
        masked_lines.format_line(["a", "b", "c"], blanks)


def test_filled_puts_each_infill_in_brackets_where_its_blank_was():
    filled = masked_lines.filled("i live <m> and was <m> .", ["down the street", ""])
    assert filled == "i live [down the street] and was [] ."


@given(st.lists(rows(), min_size=1, max_size=5))
def test_the_pipeline_masks_the_blanks_of_the_lines(some):
    vocabulary = Vocabulary(["a", "0:1", "_"])
    pipeline = Pipeline("none", vocabulary, BlankRule("given", None, 3), templates.TemplateFormat(), 5)
    texts = tf.constant([masked_lines.format_line(*row) for row in some])
    ids, lengths, starts, ends, counts = pipeline.sentences(tf.range(len(some), dtype=tf.int64), texts)
    for i, (words, blanks) in enumerate(some):
        assert lengths[i] == len(words) and counts[i] == 3
        assert list(zip(starts[i].numpy(), ends[i].numpy(), strict=True)) == blanks
        np.testing.assert_array_equal(ids[i, : len(words)], vocabulary.encode(words))


def test_training_batches_have_the_answers_of_the_lines(corpus):
    pipeline = Pipeline(
        corpus.train, Vocabulary.build(corpus.vocabulary_texts(), 1), GIVEN, templates.TemplateFormat(), 3
    )
    (batch,) = pipeline.training(3, seed=1, epochs=range(1)).as_numpy_iterator()
    assert sorted(batch["answer_lengths"].tolist()) == [[1, 3], [2, 1], [3, 3]]  # words and `<EOB>`


def test_a_line_with_another_number_of_blanks_is_an_error():
    pipeline = Pipeline("none", Vocabulary(["a"]), GIVEN, templates.TemplateFormat(), 5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        pipeline.sentences(tf.constant([0], tf.int64), tf.constant(["a a\t0:1"]))


def test_survey_and_report_count_the_given_blanks(corpus):
    found = split_stats(corpus.train, GIVEN)
    assert (found.lines, found.left_out, found.longest, found.longest_answer) == (3, 0, 9, 2)
    assert (found.words, found.masked_words) == (15, 7)

    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), 1)
    report = data_report(corpus, vocabulary, None, 2, "pairs")
    assert report["splits"]["train"]["mask_rate"] == 7 / 15
    assert "masking: pairs, blanks: 2" in format_report(report) and "81.3%" in format_report(report)


def test_the_vocabulary_does_not_contain_the_blanks_of_the_lines(corpus):
    vocabulary = Vocabulary.build(corpus.vocabulary_texts(), 1)
    assert "burger" in vocabulary.words and not any(":" in word for word in vocabulary.words)


@pytest.mark.parametrize(("kind", "mask_rate"), [("given", 0.5), ("fixed", None), ("other", 0.5)])
def test_given_blanks_refuse_a_mask_rate_and_other_kinds_require_one(kind, mask_rate):
    with pytest.raises(ValueError):
        BlankRule(kind, mask_rate, 2)
