"""Masking: the fixed rule of the original, and random spans."""

import collections
import functools
import itertools
import json

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from golden import golden
from hypothesis import strategies as st

from text_infilling.masking.fixed_rule import fixed_template
from text_infilling.masking.spans import (
    any_blanks,
    any_rows,
    check_blanks,
    check_mask_rate,
    fixed_blanks,
    line_uniforms,
    random_blanks,
)

SETTINGS = [(0.3, 1), (0.3, 2), (0.4, 1), (0.4, 2), (0.5, 1), (0.5, 2)]

# "start,end" of each blank, by sentence length; one column per setting; words are counted from 1.
ORIGINAL = {
    10: "5,8 | 3,5 7,8 | 5,8 | 3,5 7,8 | 4,9 | 2,5 7,9",
    11: "5,8 | 3,5 8,9 | 5,9 | 3,5 7,9 | 4,9 | 3,6 8,10",
    12: "6,9 | 4,6 9,10 | 5,9 | 3,5 8,10 | 4,10 | 3,6 8,11",
    13: "6,9 | 4,6 9,10 | 5,10 | 3,6 9,11 | 5,11 | 3,6 8,11",
    14: "6,10 | 4,6 9,11 | 6,11 | 4,7 10,12 | 5,12 | 3,7 9,12",
    15: "7,11 | 4,6 9,11 | 6,11 | 4,7 10,12 | 5,12 | 3,7 10,13",
}

# The words that are missing from the original's vocabulary.
ORIGINAL_UNKNOWN = set(
    "knot popper unleashed raj kiltlifter lloyd hefeweizen indoor/outdoor adovada spite complements boats".split()
)


def spans(blanks, row=0):
    """Returns the (start, end) pairs of a row."""
    return list(zip(np.array(blanks.starts)[row].tolist(), np.array(blanks.ends)[row].tolist()))


def uniforms_of(lines, max_length, seed=7, epoch=0, rows=2):
    """Returns the stacked `line_uniforms` of some lines, `[batch, rows, max_length]`."""
    return graph_of_uniforms(rows)(*(tf.constant(x, tf.int64) for x in (list(lines), seed, epoch)), max_length)


@functools.cache
def graph_of_uniforms(rows):
    """Returns a function of lines, seed, epoch and maximum length that is traced once."""
    number = tf.TensorSpec([], tf.int64)
    signature = [tf.TensorSpec([None], tf.int64), number, number, tf.TensorSpec([], tf.int32)]

    @tf.function(input_signature=signature)
    def graph(lines, seed, epoch, max_length):
        return tf.map_fn(
            lambda line: line_uniforms(seed, epoch, line, max_length, rows), lines, fn_output_signature=tf.float32
        )

    return graph


@pytest.mark.parametrize("column", range(6))
def test_fixed_follows_the_rule_of_the_original(column):
    mask_rate, blanks = SETTINGS[column]
    result = fixed_blanks(tf.constant(list(ORIGINAL)), mask_rate, blanks)
    assert result.valid.numpy().all()
    for row, line in enumerate(ORIGINAL.values()):
        pairs = [tuple(int(number) - 1 for number in pair.split(",")) for pair in line.split("|")[column].split()]
        assert spans(result, row) == pairs


@pytest.mark.parametrize(("mask_rate", "blanks"), SETTINGS)
def test_the_template_of_one_sentence_has_the_blanks_of_the_batch(mask_rate, blanks):
    lengths = range(8, 40)
    result = fixed_blanks(tf.constant(list(lengths)), mask_rate, blanks)
    for row, length in enumerate(lengths):
        expected = words = [str(i) for i in range(length)]
        for start, end in reversed(spans(result, row)):
            expected = [*expected[:start], "<m>", *expected[end:]]
        assert fixed_template(words, mask_rate, blanks, "<m>") == expected


@pytest.mark.parametrize(("mask_rate", "blanks"), SETTINGS)
def test_fixed_gives_the_released_templates(shared, mask_rate, blanks):
    sentences = [line.split() for line in (shared / "data/yelp/test.txt").read_text(encoding="utf-8").splitlines()]
    name = f"yelp.mask{mask_rate}.blanks{blanks}.seq2seq.epoch149.jsonl"
    rows = (shared / "original" / "outputs" / name).read_text(encoding="utf-8").splitlines()
    result = fixed_blanks(tf.constant([len(sentence) for sentence in sentences]), mask_rate, blanks)

    made = []
    for row, sentence in enumerate(sentences):
        words = ["<UNK>" if word in ORIGINAL_UNKNOWN else word for word in sentence]
        for start, end in reversed(spans(result, row)):
            words[start:end] = ["<m>"]
        made.append(" ".join(["<BOS>", *words]))

    assert len(made) == 1_000
    assert made == [json.loads(row)["template"] for row in rows]


@pytest.mark.parametrize(("mask_rate", "blanks"), SETTINGS)
def test_fixed_gives_the_golden_positions(mask_rate, blanks):
    data = golden(f"masks_rate{mask_rate * 100:.0f}_blanks{blanks}")
    # The lengths of the golden data count <BOS> and <EOS>; its positions count <BOS>.
    result = fixed_blanks(tf.constant(data["length"] - 2), mask_rate, blanks)
    compared = tf.reduce_sum(result.ends - result.starts, axis=1).numpy() >= 2
    assert compared.sum() >= 10
    np.testing.assert_array_equal(result.starts.numpy()[compared], data["pack0/start_positions"][compared] - 1)
    np.testing.assert_array_equal(result.ends.numpy()[compared], data["pack0/end_positions"][compared] - 1)


def test_fixed_takes_the_floor_in_32_bit_floats():
    lengths = tf.constant([5, 10, 15, 20])
    counts = {rate: fixed_blanks(lengths, rate, 1) for rate in (0.3, 0.4, 0.5)}
    counts = {rate: (result.ends - result.starts)[:, 0].numpy().tolist() for rate, result in counts.items()}
    assert counts == {0.3: [1, 3, 4, 6], 0.4: [1, 3, 5, 7], 0.5: [2, 5, 7, 10]}


def test_a_sentence_too_short_for_its_blanks_is_marked_invalid():
    result = fixed_blanks(tf.constant([0, 1, 3, 4, 12]), 0.5, 2)
    assert result.valid.numpy().tolist() == [False, False, False, True, True]
    assert spans(result, 0) == spans(result, 1) == spans(result, 2) == [(0, 0), (0, 0)]
    assert spans(result, 4) == spans(fixed_blanks(tf.constant([12]), 0.5, 2))


def check_placement(lengths, blanks, result):
    """Asserts that the blanks of valid rows are in range, not empty and apart, and those of other rows zero."""
    starts, ends, valid, counts = (part.numpy() for part in result)
    assert counts.tolist() == [blanks if fits else 0 for fits in valid]
    assert starts.dtype == ends.dtype == np.int32 and starts.shape == ends.shape == (len(lengths), blanks)
    assert (starts[~valid] == 0).all() and (ends[~valid] == 0).all()
    starts, ends, lengths = starts[valid], ends[valid], np.array(lengths)[valid]
    assert (starts >= 0).all() and (ends <= lengths[:, None]).all() and (starts < ends).all()
    assert (ends[:, :-1] < starts[:, 1:]).all()


lengths_strategy = st.lists(st.integers(0, 40), min_size=1, max_size=20)
rates = st.integers(1, 99).map(lambda percent: percent / 100)


@hypothesis.settings(max_examples=50)
@hypothesis.given(lengths_strategy, rates, st.integers(1, 6))
def test_fixed_blanks_always_fit(lengths, mask_rate, blanks):
    result = fixed_blanks(tf.constant(lengths), mask_rate, blanks)
    check_placement(lengths, blanks, result)
    masked = np.floor(np.float32(lengths) * (np.float32(1) - np.float32(1 - mask_rate))).astype(int)
    expected = (masked >= blanks) & (np.array(lengths) - masked >= blanks - 1)
    assert (result.valid.numpy() == expected).all()


@hypothesis.settings(max_examples=50)
@hypothesis.given(lengths_strategy, st.integers(1, 99), st.integers(1, 6), st.integers(-(2**63), 2**63 - 1))
def test_random_blanks_mask_exactly_the_rate_and_always_fit(lengths, percent, blanks, seed):
    uniforms = uniforms_of(range(len(lengths)), 40, seed, epoch=3)
    result = random_blanks(tf.constant(lengths), percent / 100, blanks, uniforms)
    check_placement(lengths, blanks, result)
    # Rounds to nearest, halves up, in whole numbers.
    expected = np.maximum((2 * percent * np.array(lengths) + 100) // 200, blanks)
    valid = result.valid.numpy()
    assert (valid == (np.array(lengths) - expected + 1 >= blanks)).all()
    assert ((result.ends - result.starts).numpy().sum(axis=1)[valid] == expected[valid]).all()


def test_more_blanks_than_words_gives_an_invalid_row():
    assert not random_blanks(tf.constant([3]), 0.5, 9, uniforms_of([0], 3)).valid.numpy().any()
    assert not fixed_blanks(tf.constant([3]), 0.5, 9).valid.numpy().any()


def test_every_random_choice_is_equally_likely():
    # 7 words at 50%: 4 masked, 3 compositions into two blanks times 6 placements; first and last word may be masked.
    lines = 9_000
    result = random_blanks(tf.fill([lines], 7), 0.5, 2, uniforms_of(range(lines), 7))
    counts = collections.Counter(
        map(tuple, np.stack([result.starts.numpy(), result.ends.numpy()], axis=-1).reshape(lines, 4).tolist())
    )
    possible = {ends for ends in itertools.combinations(range(8), 4) if ends[1] - ends[0] + ends[3] - ends[2] == 4}
    assert len(possible) == 18
    assert set(counts) == possible
    # The expected count is 500, its standard deviation 22.
    assert min(counts.values()) > 400 and max(counts.values()) < 600


def test_one_random_blank_is_equally_likely_anywhere():
    starts = random_blanks(tf.fill([4_000], 8), 0.4, 1, uniforms_of(range(4_000), 10)).starts.numpy()[:, 0]
    counts = np.bincount(starts)
    assert len(counts) == 6 and counts.min() > 540 and counts.max() < 800


def test_uniform_numbers_differ_by_line_epoch_and_seed():
    keys = list(itertools.product([0, 1, -1], [0, 1, 2], [0, 1, 2]))
    drawn = np.stack([line_uniforms(*key, 15).numpy() for key in keys])
    assert drawn.min() >= 0 and drawn.max() < 1
    assert len({row.tobytes() for row in drawn.reshape(len(keys) * 2, 15)}) == len(keys) * 2
    np.testing.assert_array_equal(drawn, [line_uniforms(*key, 15).numpy() for key in keys])


def test_blanks_differ_between_epochs_and_repeat_within_one():
    lengths = tf.fill([50], 15)
    first, again, second = (
        random_blanks(lengths, 0.3, 2, uniforms_of(range(50), 15, epoch=epoch)).starts.numpy() for epoch in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != second).any(axis=1).mean() > 0.8


def test_blanks_of_a_line_do_not_depend_on_the_width_of_its_batch():
    lengths = tf.constant([9, 5, 7])
    narrow = random_blanks(lengths, 0.4, 2, uniforms_of([4, 5, 6], 9))
    wide = random_blanks(lengths, 0.4, 2, uniforms_of([4, 5, 6], 30))
    for a, b in zip(narrow, wide):
        np.testing.assert_array_equal(a, b)


def test_too_few_uniform_numbers_are_an_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="more words than there are uniform numbers"):
        random_blanks(tf.constant([9, 5]), 0.4, 1, uniforms_of([0, 1], 8))


def test_blanks_are_the_same_eagerly_in_a_function_and_in_a_dataset():
    lengths, uniforms = tf.constant([15, 3, 10, 12]), uniforms_of(range(4), 15)

    def both(lengths, uniforms):
        return fixed_blanks(lengths, 0.4, 2), random_blanks(lengths, 0.4, 2, uniforms)

    eager = tf.nest.flatten(both(lengths, uniforms))
    # Without static shapes, as for batches of padded lines.
    signature = [tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, 2, None])]
    traced = tf.nest.flatten(tf.function(both, input_signature=signature)(lengths, uniforms))
    dataset = tf.data.Dataset.from_tensor_slices((lengths, uniforms)).batch(4).map(both)
    mapped = tf.nest.flatten(dataset.get_single_element())
    for a, b, c in zip(eager, traced, mapped):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("mask_rate", [0, 1, 1.5, -0.1, float("nan"), True, "0.5"])
def test_a_mask_rate_out_of_range_names_its_flag(mask_rate):
    with pytest.raises(ValueError, match="mask_rate"):
        check_mask_rate(mask_rate)
    with pytest.raises(ValueError, match="mask_rate"):
        fixed_blanks(tf.constant([10]), mask_rate, 1)


@pytest.mark.parametrize("blanks", [0, -1, 1.0, True, None])
def test_a_number_of_blanks_out_of_range_names_its_flag(blanks):
    with pytest.raises(ValueError, match="blanks"):
        check_blanks(blanks)
    with pytest.raises(ValueError, match="blanks"):
        random_blanks(tf.constant([10]), 0.5, blanks, uniforms_of([0], 10))


# Any number of blanks


def any_of(lengths, most, mask_rate=0.4, seed=7):
    uniforms = uniforms_of(range(len(lengths)), max(lengths), seed, rows=any_rows(mask_rate))
    return any_blanks(tf.constant(lengths), mask_rate, most, uniforms)


@hypothesis.given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 99))
@hypothesis.settings(max_examples=30)
def test_a_sentence_has_the_drawn_number_of_blanks_or_the_most_that_fit(lengths, most, seed):
    result = any_of(lengths, most, seed=seed)
    for row, length in enumerate(lengths):
        count = int(result.counts[row])
        assert bool(result.valid[row]) == (count > 0) == (length >= 1)
        assert count <= most
        here = spans(result, row)[:count]
        assert all(end > start for start, end in here)
        assert all(b[0] > a[1] for a, b in zip(here, here[1:]))  # a kept word is between
        assert all(0 <= start and end <= length for start, end in here)


def test_every_number_of_blanks_is_equally_likely():
    counts = any_of([20] * 900, 3).counts.numpy()
    found = collections.Counter(counts.tolist())
    assert found.keys() == {1, 2, 3} and all(250 < count < 350 for count in found.values())


def test_any_blanks_with_one_blank_equals_random_blanks():
    uniforms = uniforms_of(range(3), 9, rows=3)
    one, other = any_blanks([9, 5, 2], 0.4, 1, uniforms), random_blanks([9, 5, 2], 0.4, 1, uniforms[:, :2])
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_range_of_mask_rates_is_drawn_uniformly_for_each_sentence():
    result = any_of([100] * 900, 1, mask_rate=(0.15, 0.6))
    masked = (result.ends - result.starts).numpy().sum(axis=1)
    assert masked.min() >= 15 and masked.max() <= 60
    quarters = np.histogram(masked, bins=[15, 26.25, 37.5, 48.75, 60])[0]
    assert all(180 < count < 270 for count in quarters)


@pytest.mark.parametrize(
    "rates", [(0.6, 0.15), (0.2, 0.2), (0.1, 0.2, 0.3), (0.2,), (0.0, 0.5), (0.5, 1.0), ("0.1", 0.2)]
)
def test_a_range_of_mask_rates_is_two_rates_in_order(rates):
    with pytest.raises(ValueError, match="mask"):
        any_blanks(tf.constant([10]), rates, 2, tf.zeros([1, 4, 10]))
