"""The pipeline yields every line once per epoch, is deterministic, and resumes with the same batches."""

import collections
import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from text_infilling.data import pipeline as pipeline_module
from text_infilling.data.blank_rule import BlankRule, tokenize
from text_infilling.data.pipeline import Pipeline, read, split_stats
from text_infilling.templates import TemplateFormat
from text_infilling.vocabulary import BLANK_ID, SPECIAL_TOKENS, UNK_ID, Vocabulary

LINES = 41  # number of lines that are long enough for their blanks
BATCH = 4
STEPS = math.ceil(LINES / BATCH)
LENGTHS = [4 + (7 * i) % 6 for i in range(LINES)]
VOCABULARY = Vocabulary([f"w{i}" for i in range(LINES)])
FIXED, RANDOM = BlankRule("fixed", 0.5, 1), BlankRule("random", 0.5, 1)


@pytest.fixture(scope="module", autouse=True)
def small_windows():
    """Buffers so small that an epoch of 11 batches is shuffled in part and sorted in windows of 3 batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline_module, "SHUFFLE_LINES", 15)
        patch.setattr(pipeline_module, "SORT_BATCHES", 3)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Writes lines that each repeat a word of their own, `w{i}`, and three empty lines, too short for any blank."""
    lines = [" ".join([f"w{i}"] * length) for i, length in enumerate(LENGTHS)]
    for at in (30, 8, 0):
        lines.insert(at, "")
    path = tmp_path_factory.mktemp("corpus") / "train.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(path):
    """Returns a function `run(masking, epochs, ...)` that returns the batches as dicts of arrays, and caches them."""
    return functools.cache(lambda *args, **options: list(training(path, *args, **options).as_numpy_iterator()))


def training(path, masking, epochs, seed=1, skip=0, bucket_by_length=True, epochs_per_pass=1, unknown_chances=None):
    pipeline = Pipeline(path, VOCABULARY, masking, TemplateFormat(), BATCH)
    dataset = pipeline.training(LINES, seed, epochs, skip, bucket_by_length, epochs_per_pass, unknown_chances)
    assert dataset.cardinality() == STEPS // epochs_per_pass * len(epochs) - skip
    assert pipeline.steps(LINES) == STEPS
    return dataset


def assert_same(some, others):
    assert len(some) == len(others) > 0
    for one, other in zip(some, others):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])


def lines_of(batch):
    """Returns the line number of each row, read from its word."""
    return (np.max(batch["template_ids"], axis=(1, 2)) - len(SPECIAL_TOKENS)).tolist()


def rows_by_line(batches):
    """Returns the first template of each line as a list of ids, without padding."""
    return {
        line: batch["template_ids"][row, 0, : batch["template_lengths"][row, 0]].tolist()
        for batch in batches
        for row, line in enumerate(lines_of(batch))
    }


@pytest.mark.parametrize("bucket_by_length", [True, False])
def test_every_line_occurs_once_per_epoch(run, bucket_by_length):
    batches = run(FIXED, range(2), bucket_by_length=bucket_by_length)
    assert len(batches) == 2 * STEPS
    orders = []
    for epoch in range(2):
        lines = [line for batch in batches[epoch * STEPS : (epoch + 1) * STEPS] for line in lines_of(batch)]
        assert sorted(lines) == list(range(LINES))
        orders.append(lines)
    assert orders[0] != orders[1]
    # Not only the order of the batches changes, but also which lines share a batch.
    mates = [{frozenset(order[i : i + BATCH]) for i in range(0, LINES, BATCH)} for order in orders]
    assert len(mates[0] & mates[1]) < STEPS / 2
    sizes = [len(batch["template_ids"]) for batch in batches]
    assert sizes == ([BATCH] * (STEPS - 1) + [LINES % BATCH]) * 2


def test_the_same_seed_gives_the_same_batches(path, run):
    again = training(path, RANDOM, range(2))
    expected = run(RANDOM, range(2))
    assert_same(list(again.as_numpy_iterator()), expected)
    assert_same(list(again.as_numpy_iterator()), expected)  # the dataset can be iterated again


def test_the_number_of_blanks_is_static_and_widths_are_not(path):
    """A graph is therefore traced only once, for batches of all widths."""
    assert training(path, FIXED, range(1)).element_spec["template_ids"].shape.as_list() == [None, 1, None]


@pytest.mark.parametrize("seed_of_process", [0, 7])
def test_the_batches_do_not_depend_on_the_seed_of_the_process(run, path, seed_of_process):
    keras.utils.set_random_seed(seed_of_process)
    assert_same(list(training(path, RANDOM, range(2)).as_numpy_iterator()), run(RANDOM, range(2)))


def test_another_seed_gives_other_batches_and_masks(run):
    one, other = run(RANDOM, range(2))[:STEPS], run(RANDOM, range(1), seed=2)
    assert [lines_of(batch) for batch in one] != [lines_of(batch) for batch in other]
    ours, theirs = rows_by_line(one), rows_by_line(other)
    assert sum(ours[line] != theirs[line] for line in range(LINES)) > LINES / 2


@pytest.mark.parametrize(
    ("masking", "skip", "bucket_by_length"),
    [
        (FIXED, 3, True),
        (RANDOM, 4, True),
        (FIXED, STEPS, True),
        (FIXED, 4, False),
    ],
    ids=["border of windows", "second window", "whole epoch", "unsorted"],
)
def test_a_resumed_run_has_the_remaining_batches_of_an_uninterrupted_run(run, masking, skip, bucket_by_length):
    whole = run(masking, range(2), bucket_by_length=bucket_by_length)
    assert_same(run(masking, range(2), skip=skip, bucket_by_length=bucket_by_length), whole[skip:])


def test_a_run_can_start_at_a_later_epoch(run):
    assert_same(run(FIXED, range(1, 2), skip=1), run(FIXED, range(2))[STEPS + 1 :])


@pytest.mark.parametrize("epochs_per_pass", [2, 3, STEPS])
def test_one_pass_can_be_split_into_several_epochs(run, epochs_per_pass):
    steps, passes = STEPS // epochs_per_pass, run(FIXED, range(2))
    expected = [*passes[: steps * epochs_per_pass], *passes[STEPS : STEPS + steps * epochs_per_pass]]
    assert_same(run(FIXED, range(2 * epochs_per_pass), epochs_per_pass=epochs_per_pass), expected)
    middle = range(epochs_per_pass - 1, epochs_per_pass + 1)  # the last epoch of a pass and the first one of the next
    assert_same(
        run(FIXED, middle, skip=steps - 1, epochs_per_pass=epochs_per_pass),
        expected[steps * epochs_per_pass - 1 : steps * (epochs_per_pass + 1)],
    )


def test_random_masks_differ_between_epochs_and_between_lines(run):
    batches = run(RANDOM, range(2))
    first, second = rows_by_line(batches[:STEPS]), rows_by_line(batches[STEPS:])
    assert sum(first[line] != second[line] for line in range(LINES)) > LINES / 2
    longest = [line for line in range(LINES) if LENGTHS[line] == max(LENGTHS)]
    shapes = {tuple(token == BLANK_ID for token in first[line]) for line in longest}
    assert len(longest) >= 5 and len(shapes) > 2


def test_fixed_masks_depend_only_on_the_length(run):
    batches = run(FIXED, range(2))
    first, second = rows_by_line(batches[:STEPS]), rows_by_line(batches[STEPS:])
    assert first == second
    shapes = {(LENGTHS[line], tuple(token == BLANK_ID for token in first[line])) for line in range(LINES)}
    assert len(shapes) == len(set(LENGTHS))


def test_bucketing_puts_sentences_of_similar_length_into_one_batch(run):
    def padding(batches):
        return sum(np.sum(np.max(b["template_lengths"]) - b["template_lengths"]) for b in batches[:STEPS])

    def spread(batch):
        lengths = [LENGTHS[line] for line in lines_of(batch)]
        return max(lengths) - min(lengths)

    bucketed, plain = run(FIXED, range(2)), run(FIXED, range(2), bucket_by_length=False)
    assert padding(bucketed) < 0.7 * padding(plain)
    assert np.mean([spread(b) for b in bucketed]) < 0.7 * np.mean([spread(b) for b in plain])
    # The batches of a window are not sorted by length.
    means = [np.mean([LENGTHS[line] for line in lines_of(batch)]) for batch in bucketed]
    windows = [means[i : i + 3] for epoch in (0, STEPS) for i in range(epoch, epoch + 9, 3)]
    assert any(window != sorted(window) for window in windows)


def unknown_lines(batches):
    """Returns the number of rows per batch whose word is `<UNK>`; asserts that template and answer agree."""
    found = []
    for batch in batches:
        templates, answers = ((batch[name] == UNK_ID).any(axis=(1, 2)) for name in ("template_ids", "answer_ids"))
        np.testing.assert_array_equal(templates, answers)
        found.append(templates.sum())
    return found


def test_words_are_unknown_in_the_given_fraction_of_their_lines(path):
    epochs, known = 12, 20  # words that are never unknown
    chances = np.where(np.arange(len(VOCABULARY)) < len(SPECIAL_TOKENS) + known, 0.0, 0.5).astype(np.float32)
    batches = list(training(path, FIXED, range(epochs), unknown_chances=chances).as_numpy_iterator())
    unknown = np.reshape(unknown_lines(batches), [epochs, STEPS]).sum(axis=1)
    assert len(set(unknown)) > 1 and unknown.mean() == pytest.approx((LINES - known) / 2, rel=0.2)
    seen = collections.Counter(line for batch in batches for line in lines_of(batch))
    assert all(seen[line] == epochs for line in range(known))
    assert all(0 < seen[line] < epochs for line in range(known, LINES))


def test_seed_epoch_and_line_determine_which_words_are_unknown(path):
    chances = np.full(len(VOCABULARY), 0.5, np.float32)
    whole, resumed, other = (
        list(training(path, FIXED, epochs, seed, skip, unknown_chances=chances).as_numpy_iterator())
        for epochs, seed, skip in ((range(3), 1, 0), (range(1, 3), 1, 4), (range(3), 2, 0))
    )
    assert_same(resumed, whole[STEPS + 4 :])
    assert unknown_lines(other) != unknown_lines(whole)


def test_a_frequent_word_is_unknown_in_the_given_fraction_of_every_epoch(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("so so so so\n" * 200, "utf-8")
    pipeline = Pipeline(path, Vocabulary(["so"]), FIXED, TemplateFormat(), 50)
    dataset = pipeline.training(200, 1, range(3), unknown_chances=[0.0] * 7 + [0.1])
    unknown = np.reshape(unknown_lines(dataset.as_numpy_iterator()), [3, 4]).sum(axis=1)
    assert all(18 <= count <= 22 for count in unknown)


@pytest.mark.parametrize(("kind", "shortest"), [("fixed", 6), ("random", 5)])
def test_evaluation_keeps_the_order_of_the_file_and_leaves_out_short_sentences(path, kind, shortest):
    """Three blanks need 3 masked words: 6 words if half, rounded down, are masked; random: 5, with 2 kept between."""
    masking = BlankRule(kind, 0.5, 3)
    pipeline = Pipeline(path, VOCABULARY, masking, TemplateFormat(), BATCH)
    numbers, texts = read(path, masking)
    file = path.read_text(encoding="utf-8").splitlines()
    found = {int(number): text.decode() for number, text in zip(numbers, texts.numpy())}
    assert list(found) == [number for number, line in enumerate(file) if len(line.split()) >= shortest]
    assert all(file[number] == text for number, text in found.items())
    counted = split_stats(path, masking)
    assert (counted.lines, counted.left_out) == (len(found), len(file) - len(found))
    _, lengths, starts, ends, _ = pipeline.sentences(numbers, texts)
    assert np.all(ends - starts >= 1) and np.all(ends <= lengths[:, None])


def test_statistics_of_a_range_of_mask_rates_count_its_middle_and_its_longest_answer(path):
    found, middle, highest = (split_stats(path, BlankRule("any", rate, 3)) for rate in ((0.2, 0.6), 0.4, 0.6))
    assert (found.lines, found.masked_words) == (middle.lines, middle.masked_words)
    assert found.longest_answer == highest.longest_answer > middle.longest_answer
    pipeline = Pipeline(path, VOCABULARY, BlankRule("any", (0.2, 0.6), 3), TemplateFormat(), BATCH)
    _, _, starts, ends, _ = pipeline.sentences(*read(path, pipeline.blank_rule))
    assert np.max(ends - starts) <= found.longest_answer


def test_evaluation_masks_do_not_depend_on_the_batch(path):
    pipeline = Pipeline(path, VOCABULARY, RANDOM, TemplateFormat(), BATCH)
    numbers, texts = read(path, RANDOM)
    _, _, starts, ends, _ = pipeline.sentences(numbers, texts)
    for row in range(BATCH):
        alone = pipeline.sentences(numbers[row : row + 1], texts[row : row + 1])
        np.testing.assert_array_equal(alone[2][0], starts[row])
        np.testing.assert_array_equal(alone[3][0], ends[row])


def test_special_tokens_in_a_text_are_unknown_words(path):
    pipeline = Pipeline(path, VOCABULARY, FIXED, TemplateFormat(), BATCH)
    texts = tf.constant(["w0 <PAD> <m> w1 <EOB> never", "w3 w2 w1 w0 w3"])
    ids, lengths, starts, ends, counts = pipeline.sentences(tf.constant([0, 1], tf.int64), texts)
    first = len(SPECIAL_TOKENS)
    assert ids[0].numpy().tolist() == [first, UNK_ID, UNK_ID, first + 1, UNK_ID, UNK_ID]
    assert lengths.numpy().tolist() == [6, 5] and counts.numpy().tolist() == [1, 1]
    assert np.all(ends - starts >= 1)


def test_tokenize_splits_as_python_does():
    texts = ["a  b\tc ", " d", "", "é\u3000f\u00a0g\u2028h\x85i\x1cj", "k\u200bl"]
    assert [[word.decode() for word in row] for row in tokenize(texts).to_list()] == [text.split() for text in texts]


def test_survey_counts_equal_those_of_plain_python(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline_module, "_READ_LINES", 4)  # the file takes several reads
    lengths = [5, 1, 8, 3, 2, 12, 6, 0, 7]
    path = tmp_path / "lines.txt"
    path.write_text("".join(" ".join(["word"] * length) + "\n" for length in lengths), encoding="utf-8")

    found = split_stats(path, BlankRule("fixed", 0.5, 2))
    kept = [length for length in lengths if length // 2 >= 2]
    assert (found.lines, found.left_out) == (len(kept), len(lengths) - len(kept))
    assert (found.longest, found.words) == (12, sum(kept))
    assert found.masked_words == sum(length // 2 for length in kept)
    assert found.longest_answer == 3  # of 6 masked words
    assert found.mask_rate == found.masked_words / found.words

    found = split_stats(path, BlankRule("random", 0.5, 2))
    masked = {length: max(math.floor(length * 0.5 + 0.5), 2) for length in lengths}
    kept = [length for length in lengths if length >= masked[length] + 1]
    assert (found.lines, found.left_out) == (len(kept), len(lengths) - len(kept))
    assert (found.words, found.masked_words) == (sum(kept), sum(masked[length] for length in kept))
    assert found.longest_answer == 5  # of 6 masked words, since one is in the other blank


def test_survey_of_an_empty_file_counts_zero(tmp_path):
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    found = split_stats(tmp_path / "empty.txt", FIXED)
    assert (found.lines, found.left_out, found.mask_rate) == (0, 0, 0.0)


def test_the_largest_vocabulary_is_encoded_and_a_larger_one_is_an_error(path, monkeypatch):
    ids = tf.constant([[0, pipeline_module.MOST_IDS - 1]]) + pipeline_module._FIRST_CHARACTER
    encoded = tf.strings.unicode_encode(ids, "UTF-8", errors="strict")
    assert tf.strings.unicode_decode(encoded, "UTF-8").to_list() == ids.numpy().tolist()
    monkeypatch.setattr(pipeline_module, "MOST_IDS", len(VOCABULARY) - 1)
    with pytest.raises(ValueError, match=f"the vocabulary has {len(VOCABULARY)} words .* raise train.min_count"):
        Pipeline(path, VOCABULARY, FIXED, TemplateFormat(), BATCH)


def test_bad_arguments_are_errors(path):
    with pytest.raises(ValueError, match="train.batch_size must be at least 1. Received: batch_size=0"):
        Pipeline(path, VOCABULARY, FIXED, TemplateFormat(), 0)
    with pytest.raises(ValueError, match="masking must be one of fixed, random, any, given. Received: 'none'"):
        BlankRule("none", 0.5, 1)
    with pytest.raises(ValueError, match="mask_rate"):
        BlankRule("fixed", 1.5, 1)
    with pytest.raises(ValueError, match="blanks"):
        BlankRule("fixed", 0.5, 0)
