"""The tokenizer in a graph gives the same results as the one in Python."""

import json

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from token_texts import CASED, LOWER, TEXTS, YELP_LIKE

from text_infilling.text.graph_tokenizer import GraphTokenizer
from text_infilling.vocabulary import Vocabulary

MOST = 250
ASSIGNED = st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs", "Cn"])  # assigned in every version of Unicode
CONTRACTIONS = st.lists(
    st.sampled_from(
        ["n't", "'s", "’ll", "'", "N’T", "'dx", "don", "a", "ca", "-", ".", "1", "gonna", "Mr", "x.y.", '"']
    )
).map("".join)
WORDS = YELP_LIKE | {"a", "'", "``", "''", "A", "mr.", "x.y.", "don", "...", "<", "m", "x", "“", "bar/x"}


@pytest.fixture(scope="module", params=[LOWER, CASED], ids=["lower", "cased"])
def pair(request):
    """A tokenizer, its vocabulary, and the equivalent graph tokenizer."""
    vocabulary = Vocabulary(sorted(WORDS - {"<m>"}))
    return request.param, frozenset(vocabulary.words), graph_of(GraphTokenizer(request.param, vocabulary))


def graph_of(tokenizer):
    """Returns `tokenizer` as a single graph for any number of texts."""
    signature = [tf.TensorSpec([None], tf.string)]
    return tf.function(lambda x: tokenizer(x, MOST), input_signature=signature, autograph=False)  # traced faster so


def assert_same(texts, tokenizer, known, graph):
    """Asserts that words, known words and blanks of all texts are equal."""
    found = graph(tf.constant(texts, tf.string))
    words = [[word.decode() for word in row] for row in found.words.numpy().tolist()] if texts else []
    for text, row, ids, between in zip(texts, words, found.ids.to_list(), found.between.to_list()):
        pieces = tokenizer.split(text, known)
        assert row == [piece.word or "" for piece in pieces], repr(text)
        assert [i > 3 for i in ids] == [piece.known for piece in pieces]
        assert [i == -1 for i in ids] == [piece.word is None for piece in pieces]
        bounds = [0] + [bound for piece in pieces if piece.word is None for bound in piece[:2]] + [len(text)]
        assert [x.decode() for x in between] == [text[a:b] for a, b in zip(bounds[::2], bounds[1::2])]


@given(st.lists(TEXTS | CONTRACTIONS | st.text(ASSIGNED, max_size=40), max_size=8))
def test_pieces_equal_those_of_the_python_tokenizer(pair, texts):
    assert_same(texts, *pair)


@pytest.mark.parametrize("name", ["yelp", "grimm", "nba"])
def test_corpora_are_tokenized_the_same(shared, name):
    """As lines and as readable text, with a vocabulary that lacks some words."""
    from text_infilling.text.detokenizer import join

    if name == "yelp":
        lines = (shared / "data" / "yelp" / "valid.txt").read_text("utf-8").splitlines()[:1000]
    else:
        content = (shared / "data" / name / "lm.test.jsonl").read_text("utf-8").splitlines()[:1000]
        lines = [json.loads(line)["expected"] for line in content]
    vocabulary = Vocabulary.build(lines[:800], 2)
    tokenizer = LOWER if name != "nba" else CASED
    texts = [join(line.split()).capitalize() for line in lines] + lines
    assert_same(texts, tokenizer, frozenset(vocabulary.words), graph_of(GraphTokenizer(tokenizer, vocabulary)))


def test_a_long_text_gives_at_least_most_plus_one_pieces(pair):
    *_, graph = pair
    found = graph(tf.constant(["(" * 2_000, "a " * 2_000, "b"]))
    assert found.ids.row_lengths().numpy().tolist()[::2] == [MOST + 1, 1]
    assert found.ids.row_lengths().numpy()[1] > MOST


def test_invalid_utf_8_raises_an_error(pair):
    *_, graph = pair
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid formatting"):
        graph(tf.constant([b"good", b"\xff"]))
