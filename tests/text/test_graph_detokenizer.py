"""The detokenizer in a graph gives the same results as the one in Python."""

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from token_texts import TEXTS, WORDS

from text_infilling.text.detokenizer import fill_in
from text_infilling.text.graph_detokenizer import GraphDetokenizer
from text_infilling.text.graph_tokenizer import GraphTokenizer
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary

TOKENIZER = Tokenizer(lower=True)
SIGNS = """" na. ta got Wan -lrb- “ ” „ ‘ ’ ` — … £ « » ！ -- .. n’t é ß"""
VOCABULARY = Vocabulary([*WORDS, *SIGNS.split()])
FILLS = st.lists(st.lists(st.sampled_from(VOCABULARY.words), max_size=4), max_size=8)
CASES = st.lists(
    st.tuples(
        TEXTS | st.lists(st.sampled_from(["____", " ", "A", "b.", "(", '"', ",", "„", "“", "____n't"])).map("".join),
        FILLS,
    )
)


@pytest.fixture(scope="module")
def graph():
    tokenizer, detokenizer = GraphTokenizer(TOKENIZER, VOCABULARY), GraphDetokenizer(VOCABULARY)
    cube, matrix, vector = (tf.TensorSpec([None] * rank, tf.int32) for rank in (3, 2, 1))
    signature = [tf.TensorSpec([None], tf.string), cube, matrix, vector]
    # Without AutoGraph the graph is built in half the time: no control flow depends on tensors.
    return tf.function(
        lambda texts, *rest: detokenizer(tokenizer(texts, 250), *rest), input_signature=signature, autograph=False
    )


@given(CASES)
def test_filled_texts_equal_those_of_the_python_detokenizer(graph, cases):
    texts = [text for text, _ in cases]
    pieces = [TOKENIZER.split(text, frozenset(VOCABULARY.words)) for text in texts]
    counts = [sum(piece.word is None for piece in row) for row in pieces]
    fills = [(list(fills) + [[]] * count)[:count] for (_, fills), count in zip(cases, counts)]
    blanks = max(counts, default=0)
    rows = [row + [[]] * (blanks - len(row)) for row in fills]
    ids = [[VOCABULARY.encode(fill) + [0] * (4 - len(fill)) for fill in row] for row in rows]
    lengths = [[*map(len, row)] for row in rows]
    n = len(texts)
    found, shown = graph(
        tf.constant(texts, tf.string, [n]),
        tf.constant(ids, tf.int32, [n, blanks, 4]),
        tf.constant(lengths, tf.int32, [n, blanks]),
        tf.constant(counts, tf.int32, [n]),
    )
    for i, text in enumerate(texts):
        expected, expected_shown = fill_in(text, pieces[i], fills[i])
        assert found[i].numpy().decode() == expected
        assert [fill.decode() for fill in shown[i].numpy()] == expected_shown + [""] * (blanks - counts[i])
