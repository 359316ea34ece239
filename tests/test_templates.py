"""Template operations, compared with the slow version in `reference.py` and with the original template packs."""

import functools
import itertools

import numpy as np
import pytest
import reference
import tensorflow as tf
from golden import golden
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Sentence

from text_infilling import templates
from text_infilling.configs.protocols import run_hparams
from text_infilling.templates import Template, TemplateFormat
from text_infilling.vocabulary import BLANK_ID, BOB_ID, BOS_ID, EOB_ID, EOS_ID, PAD_ID

PAPER = TemplateFormat.from_hparams(run_hparams("paper", "full"))
RELEASED = TemplateFormat.from_hparams(run_hparams("released", "full"))
# All combinations that change a template, alternating between the two numberings of answers.
PROTOCOLS = [
    TemplateFormat(ids, origin, mask, "own" if (origin == "one") == mask else "released")
    for ids, origin, mask in itertools.product(("constant", "renumbered"), ("one", "zero"), (True, False))
]
MATRIX = tf.TensorSpec([None, None], tf.int32)
VECTOR = tf.TensorSpec([None], tf.int32)
TEMPLATE = Template(MATRIX, MATRIX, MATRIX, tf.TensorSpec([None, None], tf.bool), VECTOR, VECTOR, VECTOR)


@functools.cache
def build_examples(template_format, blanks):
    spans = tf.TensorSpec([None, blanks], tf.int32)
    return tf.function(
        lambda *batch: templates.build_examples(*batch, template_format),
        input_signature=[MATRIX, VECTOR, spans, spans, VECTOR],
        autograph=False,
    )


@functools.cache
def initial_template(template_format):
    return tf.function(
        lambda *batch: templates.initial_template(*batch, template_format),
        input_signature=[MATRIX, VECTOR, MATRIX, MATRIX, VECTOR],
        autograph=False,
    )


@functools.cache
def fill_blank(template_format):
    return tf.function(
        lambda *arguments: templates.fill_blank(*arguments, template_format),
        input_signature=[TEMPLATE, MATRIX, VECTOR],
        autograph=False,
    )


@st.composite
def batches(draw, most_blanks):
    """Draws eight sentences; blanks may be first, last, adjacent, empty or missing; words may have special ids."""
    sentences, first_id = [], draw(st.integers(0, 30))
    for _ in range(8):
        length = draw(st.integers(0, 12))
        count = draw(st.integers(0, most_blanks))
        cuts = sorted(draw(st.lists(st.integers(0, length), min_size=2 * count, max_size=2 * count)))
        words = [first_id + len(sentences) + i for i in range(length)]
        sentences.append(Sentence(words, list(zip(cuts[::2], cuts[1::2]))))
    return sentences


def ragged(rows, width=0, fill=99):
    """Returns the rows as one int32 array, with `fill`, a conspicuous number, after the shorter ones."""
    array = np.full((len(rows), max([width, *map(len, rows)])), fill, np.int32)
    for line, row in zip(array, rows):
        line[: len(row)] = row
    return array


def tensors(sentences, blanks):
    """Returns the arguments of `initial_template`; entries that it should ignore are conspicuous numbers."""
    return (
        ragged([s.words for s in sentences]),
        np.array([len(s.words) for s in sentences], np.int32),
        ragged([[start for start, _ in s.blanks] for s in sentences], blanks, fill=1),
        ragged([[end for _, end in s.blanks] for s in sentences], blanks, fill=3),
        np.array([len(s.blanks) for s in sentences], np.int32),
    )


def assert_rows(template_format, expected, width, ids, segment_ids, offset_ids, blanks=None):
    """Checks that every row begins as expected and is followed by padding, whose numbering is ignored if masked."""
    for row, line in enumerate(expected):
        size = len(line.ids)
        assert size == width or template_format.mask_padding
        assert ids[row].tolist() == line.ids + [PAD_ID] * (ids.shape[1] - size)
        assert segment_ids[row, :size].tolist() == line.segment_ids
        assert offset_ids[row, :size].tolist() == line.offset_ids
        if blanks is not None:
            assert blanks[row].tolist() == line.blanks + [False] * (ids.shape[1] - size)


def check_examples(sentences, blanks, template_format):
    result = arrays_of(build_examples(template_format, blanks)(*tensors(sentences, blanks)))
    widths = []
    for k in range(blanks):
        truths = [s.answers[:k] for s in sentences]
        expected, lengths, width = reference.batch_of_templates(sentences, truths, template_format)
        widths.append(width)
        assert_rows(
            template_format,
            expected,
            width,
            result.template_ids[:, k],
            result.template_segment_ids[:, k],
            result.template_offset_ids[:, k],
        )
        attended = lengths if template_format.mask_padding else [width] * len(lengths)
        assert result.template_lengths[:, k].tolist() == attended
        for row, sentence in enumerate(sentences):
            if k >= len(sentence.blanks):
                assert result.answer_lengths[row, k] == 0
                continue
            answer = reference.answer(sentence, k)
            padding = [PAD_ID] * (result.answer_ids.shape[2] - len(answer))
            assert result.answer_ids[row, k].tolist() == answer + padding
            assert result.answer_lengths[row, k] == len(answer) - 1
            assert result.answer_segment_ids[row, k] == reference.answer_segment(sentence, k, template_format)
    assert result.template_ids.shape[2] == max(widths)
    longest = max([len(a) for s in sentences for a in s.answers], default=0)
    assert result.answer_ids.shape[2] == longest + 2


def arrays_of(named):
    return type(named)(*(x.numpy() for x in named))


@pytest.mark.parametrize("template_format", PROTOCOLS, ids=lambda p: "-".join(map(str, p[:4])))
@settings(max_examples=15)
@given(sentences=batches(3))
def test_examples_equal_the_slow_version(template_format, sentences):
    check_examples(sentences, 3, template_format)


@pytest.mark.parametrize(("blanks", "template_format"), [(1, PAPER), (2, RELEASED)], ids=["paper", "released"])
@settings(max_examples=15)
@given(data=st.data())
def test_examples_of_one_and_two_blanks_equal_the_slow_version(template_format, blanks, data):
    check_examples(data.draw(batches(blanks)), blanks, template_format)


@pytest.mark.parametrize("template_format", PROTOCOLS, ids=lambda p: "-".join(map(str, p[:4])))
@settings(max_examples=15)
@given(sentences=batches(4), sizes=st.lists(st.integers(0, 6), min_size=32, max_size=32))
def test_filling_with_any_infill_equals_the_slow_version(template_format, sentences, sizes):
    """A model's infills may be shorter or longer than the truth, or empty."""
    infills = [
        [[60 + 10 * k + i for i in range(sizes[(4 * row + k) % 32])] for k in range(len(s.blanks))]
        for row, s in enumerate(sentences)
    ]
    template = initial_template(template_format)(*tensors(sentences, 4))
    for k in range(5):
        filled = [each[:k] for each in infills]
        expected, lengths, width = reference.batch_of_templates(sentences, filled, template_format)
        arrays = arrays_of(template)
        assert arrays.ids.shape[1] == width
        assert arrays.lengths.tolist() == lengths
        assert_rows(template_format, expected, width, *arrays[:4])
        own = [row.open_segment for row in expected]
        assert templates.blank_segment_ids(template).numpy().tolist() == own
        attended = lengths if template_format.mask_padding else [width] * len(lengths)
        assert templates.read_lengths(template, template_format).numpy().tolist() == attended
        if k < 4:
            rows = [each[k] if k < len(each) else [] for each in infills]
            # A row without an open blank ignores its infill.
            counts = [len(row) if k < len(each) else 2 for row, each in zip(rows, infills)]
            template = fill_blank(template_format)(template, ragged(rows, 2), np.array(counts, np.int32))

    for row, sentence in enumerate(sentences):
        text = [BOS_ID, *reference.filled(sentence, infills[row]), EOS_ID]
        assert arrays.lengths[row] == len(text)
        assert arrays.ids[row].tolist() == text + [PAD_ID] * (width - len(text))


@pytest.mark.parametrize("template_format", PROTOCOLS, ids=lambda p: "-".join(map(str, p[:4])))
@settings(max_examples=15)
@given(sentences=batches(3), order=st.permutations(range(3)))
def test_the_order_of_filling_blanks_does_not_matter(template_format, sentences, order):
    words = np.arange(3 * 8 * 2, dtype=np.int32).reshape(3, 8, 2) + 60
    lengths = np.arange(24, dtype=np.int32).reshape(3, 8) % 3
    lefts = anyhow = templates.initial_template(*tensors(sentences, 3), template_format)
    open_ = [list(range(len(s.blanks))) for s in sentences]
    for k in range(3):
        lefts = templates.fill_blank(lefts, words[k], lengths[k], template_format)
        places = []
        for row, rest in zip(anyhow.blanks.numpy(), open_):
            places.append(np.flatnonzero(row)[rest.index(order[k])] if order[k] in rest else -1)
            rest[:] = [blank for blank in rest if blank != order[k]]
        anyhow = templates.fill_blank(
            anyhow, words[order[k]], lengths[order[k]], template_format, np.array(places, np.int32)
        )
    for one, other in zip(lefts, anyhow):
        np.testing.assert_array_equal(one, other)


EXAMPLE = Sentence([11, 12, 13, 14, 15, 16, 17, 18, 19], [(0, 2), (4, 6)])


def test_the_paper_example():
    """can i have a beef burger , please . with the first and the third pair of words blanked."""
    result = arrays_of(templates.build_examples(*tensors([EXAMPLE], 2), PAPER))
    assert result.template_ids[0].tolist() == [
        [BOS_ID, BLANK_ID, 13, 14, BLANK_ID, 17, 18, 19, EOS_ID, PAD_ID],
        [BOS_ID, 11, 12, 13, 14, BLANK_ID, 17, 18, 19, EOS_ID],
    ]
    assert result.template_segment_ids[0, 0, :9].tolist() == [0, 1, 2, 2, 3, 4, 4, 4, 4]
    assert result.template_offset_ids[0, 0, :9].tolist() == [0, 0, 1, 2, 0, 1, 2, 3, 4]
    assert result.template_segment_ids[0, 1].tolist() == [0, 1, 1, 2, 2, 3, 4, 4, 4, 4]
    assert result.template_offset_ids[0, 1].tolist() == [0, 1, 2, 1, 2, 0, 1, 2, 3, 4]
    assert result.answer_ids[0].tolist() == [[BOB_ID, 11, 12, EOB_ID], [BOB_ID, 15, 16, EOB_ID]]
    assert result.answer_segment_ids[0].tolist() == [1, 3]
    assert result.answer_lengths[0].tolist() == [3, 3]


@settings(max_examples=15)
@given(sentences=batches(3))
def test_a_word_keeps_its_position_in_all_templates(sentences):
    """Also from answer to template: word i of an answer is at (its segment, i + 1), and `<BOB>` at 0."""
    result = arrays_of(build_examples(PAPER, 3)(*tensors(sentences, 3)))
    for row, sentence in enumerate(sentences):
        places = {}
        for k in range(len(sentence.blanks) + 1):
            if k < len(sentence.blanks):
                segment = result.answer_segment_ids[row, k]
                for i in range(result.answer_lengths[row, k] - 1):
                    word = sentence.blanks[k][0] + i
                    places.setdefault(word, set()).add((segment, i + 1))
            if k == 3:
                break
            # The words of a template, in order: all except those of open blanks.
            later = sentence.blanks[k:]
            words = [i for i in range(len(sentence.words)) if not any(start <= i < end for start, end in later)]
            length = result.template_lengths[row, k]
            segments, offsets = result.template_segment_ids[row, k], result.template_offset_ids[row, k]
            is_open = reference.template(sentence, sentence.answers[:k], PAPER).blanks
            at = [i for i in range(1, length - 1) if not is_open[i]]
            for word, i in zip(words, at, strict=True):
                places.setdefault(word, set()).add((segments[i], offsets[i]))
        assert all(len(of_word) == 1 for of_word in places.values())
        assert len(set().union(*places.values())) == len(sentence.words)  # and no two words share a position


@pytest.mark.parametrize("mask_rate", [30, 40, 50])
@pytest.mark.parametrize("blanks", [1, 2])
def test_released_templates_equal_the_original_packs(mask_rate, blanks):
    data = golden(f"masks_rate{mask_rate}_blanks{blanks}")
    lengths = data["length"] - 2  # the original's positions count `<BOS>`, and its texts end in `<EOS>`
    ids = data["text_ids"][:, 1:-1]
    starts, ends = data["pack0/start_positions"] - 1, data["pack0/end_positions"] - 1
    counts = np.full(len(ids), blanks)
    # The input is the whole batch, because it determines the width; rows with fewer than two masked words are not
    # compared, because the original puts an empty blank at a different place.
    compared = np.sum(ends - starts, axis=1) >= 2
    assert compared.sum() >= 8

    template = templates.initial_template(ids, lengths, starts, ends, counts, RELEASED)
    examples = templates.build_examples(ids, lengths, starts, ends, counts, RELEASED)
    for k in range(blanks + 1):
        for ours, name in ((template.ids, "templates"), (template[1], "segment_ids"), (template[2], "offsets")):
            np.testing.assert_array_equal(ours.numpy()[compared], data[f"pack{k}/{name}"][compared])
        attended = templates.read_lengths(template, RELEASED)
        np.testing.assert_array_equal(attended, data[f"pack{k}/template_lengths"])
        if k == blanks:
            break
        width = template.ids.shape[1]
        np.testing.assert_array_equal(examples.template_ids[:, k, :width], template.ids)
        answers = data[f"answer{k}/text_ids"]
        ours = examples.answer_ids[:, k].numpy()
        np.testing.assert_array_equal(ours[compared, : answers.shape[1]], answers[compared])
        assert not ours[:, answers.shape[1] :].any()
        segments = np.broadcast_to(examples.answer_segment_ids[:, k, None], answers.shape)
        np.testing.assert_array_equal(segments, data[f"answer{k}/segment_ids"])
        np.testing.assert_array_equal(
            np.broadcast_to(np.arange(answers.shape[1]), answers.shape)[compared],
            data[f"answer{k}/offsets"][compared],
        )
        words = examples.answer_ids[:, k, 1:].numpy()
        template = templates.fill_blank(template, words, examples.answer_lengths[:, k] - 1, RELEASED)
    np.testing.assert_array_equal(template.lengths, lengths + 2)
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(template.ids[row, 1 : 1 + length], ids[row, :length])


def test_eager_results_equal_those_in_tf_data():
    sentences = [EXAMPLE, Sentence([21, 22, 23], [(1, 1)]), Sentence([31, 32, 33, 34], [(0, 4), (4, 4)])]
    batch = tensors(sentences, 2)
    eager = templates.build_examples(*batch, PAPER)
    dataset = tf.data.Dataset.from_tensors(batch).map(lambda *x: templates.build_examples(*x, PAPER))
    for one, other in zip(eager, dataset.get_single_element(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert eager.template_lengths.numpy().tolist() == [[9, 10], [6, 5], [4, 7]]


def test_64_bit_ids_are_accepted():
    batch = tensors([EXAMPLE], 2)
    wide = templates.build_examples(*(x.astype(np.int64) for x in batch), PAPER)
    for one, other in zip(templates.build_examples(*batch, PAPER), wide, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_number_of_blanks_must_be_static():
    unknown = tf.TensorSpec([None, None], tf.int32)
    with pytest.raises(ValueError, match="starts.shape"):
        tf.function(lambda *x: templates.build_examples(*x, PAPER)).get_concrete_function(
            MATRIX, VECTOR, unknown, unknown, VECTOR
        )


def test_a_base_not_larger_than_the_longest_segment_is_an_error():
    # Words of a last segment count from 1 and `<EOS>` follows: n words reach the offset n + 1.
    for words in (0, 1, 14):
        longest = max(reference.template(Sentence(list(range(words)), [(0, 0)]), [], PAPER).offset_ids)
        TemplateFormat(base=longest + 1).check_base(words)
        with pytest.raises(ValueError, match=f"position.base={longest};"):
            TemplateFormat(base=longest).check_base(words)


@pytest.mark.parametrize(
    ("group", "key", "value"),
    [("template", "segment_ids", "fixed"), ("position", "origin", "two"), ("answer", "segment_ids", "")],
)
def test_unknown_values_are_errors(group, key, value):
    hparams = run_hparams("paper", "full")
    hparams[group][key] = value
    with pytest.raises(ValueError, match=rf"^{group}\.{key} takes one of .*Received: '{value}'$"):
        TemplateFormat.from_hparams(hparams)


def test_the_protocols_equal_the_fidelity_table():
    assert PAPER == TemplateFormat("constant", "one", True, "own", 256)
    assert RELEASED == TemplateFormat("renumbered", "zero", False, "released", 256)
