"""Vocabulary lookups in tensors: eagerly, in a graph, in a dataset, in a SavedModel."""

import pytest
import tensorflow as tf

from text_infilling.text.vocabulary_table import VocabularyTable
from text_infilling.vocabulary import SPECIAL_TOKENS, UNK_ID, Vocabulary

WORDS = ("the", "soup", "café", "'s")


@pytest.fixture(scope="module")
def table() -> VocabularyTable:
    return VocabularyTable(Vocabulary(WORDS))


@pytest.mark.parametrize("typed", SPECIAL_TOKENS)
def test_a_special_token_typed_as_a_word_is_looked_up_as_an_unknown_word(table, typed):
    assert table.lookup(tf.constant([typed])).numpy().tolist() == [UNK_ID]


def test_lookup_of_a_dense_tensor_keeps_its_shape(table):
    ids = table.lookup(tf.constant([["the", "café"], ["'s", "no"]]))
    assert ids.dtype == tf.int32
    assert ids.numpy().tolist() == [[7, 9], [10, UNK_ID]]


def test_lookup_of_a_ragged_tensor_keeps_its_rows(table):
    ids = table.lookup(tf.ragged.constant([["the", "café"], [], ["no"]]))
    assert ids.dtype == tf.int32
    assert ids.to_list() == [[7, 9], [], [UNK_ID]]


def test_tokens_is_the_inverse_of_lookup(table):
    tokens = table.tokens(tf.constant([[7, 9], [UNK_ID, 4]]))
    assert [[token.decode() for token in row] for row in tokens.numpy()] == [["the", "café"], ["<UNK>", "<m>"]]


# Each test needs a new table: TensorFlow's table is created on first use, here while a function is traced.
def test_tables_first_used_in_a_function_work_everywhere():
    fresh = VocabularyTable(Vocabulary(WORDS))
    there_and_back = tf.function(lambda tokens: fresh.tokens(fresh.lookup(tokens)))
    assert there_and_back(tf.constant(["soup", "no"])).numpy().tolist() == [b"soup", b"<UNK>"]
    assert there_and_back(tf.constant(["the"] * 3)).numpy().tolist() == [b"the"] * 3
    assert fresh.lookup(tf.constant(["soup"])).numpy().tolist() == [8]


def test_tables_first_used_in_a_dataset_work_everywhere():
    fresh = VocabularyTable(Vocabulary(WORDS))
    lines = tf.data.Dataset.from_tensor_slices(["the soup", "no soup here"])
    ids = lines.map(lambda line: fresh.lookup(tf.strings.split(line)))
    assert [row.tolist() for row in ids.as_numpy_iterator()] == [[7, 8], [UNK_ID, 8, UNK_ID]]
    texts = ids.map(fresh.tokens)
    assert [row.tolist() for row in texts.as_numpy_iterator()] == [[b"the", b"soup"], [b"<UNK>", b"soup", b"<UNK>"]]
    assert fresh.lookup(tf.constant(["soup"])).numpy().tolist() == [8]


def test_a_saved_model_that_holds_the_table_needs_no_vocabulary(table, tmp_path):
    module = tf.Module()
    module.table = table.table
    module.unknown = tf.function(
        lambda tokens: table.tokens(table.lookup(tokens)), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert loaded.unknown(tf.constant(["soup", "no"])).numpy().tolist() == [b"soup", b"<UNK>"]
