"""From words back to text: spaces, capitals, and what must never change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_tokenizer import TEXTS

from text_infilling.detokenize import fill_in, join
from text_infilling.tokenizer import Tokenizer

TOKENIZER = Tokenizer(lower=True)
WORDS = "the soup i good n't 's , . ! ? ... `` '' ( ) $ _num_ - % ' gon na dr.".split()
FILLS = st.lists(st.lists(st.sampled_from(WORDS), max_size=4), min_size=40, max_size=40)


def filled(text, *fills, typed=()):
    """The text with its blanks filled with words parted by spaces."""
    pieces = TOKENIZER.split(text)
    return fill_in(text, pieces, [fill.split() for fill in fills], typed)[0]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a beef burger , please .", "a beef burger, please."),
        ("i ca n't say it 's good , we 'll see !", "i can't say it's good, we'll see!"),
        ("`` so good '' ( really ) , he said", '"so good" (really), he said'),
        ('" so good " he said', '"so good" he said'),
        ("$ _num_ - 50 % of # 1", "$_num_ - 50% of #1"),
        ("i 'm gon na go ... now", "i'm gonna go... now"),
        ("the players ' room -lrb- big -rrb-", "the players' room (big)"),
        ("dr. jones ; no : yes", "dr. jones; no: yes"),
        ("", ""),
        (",", ","),
        ("n't", "n't"),
    ],
)
def test_words_as_text(words, expected):
    assert join(words.split()) == expected


@given(TEXTS.filter(lambda text: all(piece.word is not None for piece in TOKENIZER.split(text))))
def test_a_text_without_blanks_stays_as_it_is(text):
    assert fill_in(text, TOKENIZER.split(text), []) == (text, [])


@given(TEXTS, FILLS)
def test_outside_of_the_blanks_nothing_changes_but_spaces_beside_them(text, fills):
    pieces = TOKENIZER.split(text)
    blanks = [piece for piece in pieces if piece.word is None]
    result, shown = fill_in(text, pieces, fills[: len(blanks)])
    assert len(shown) == len(blanks)
    expected, place = "", 0
    for blank, fill in zip(blanks, shown):
        expected += text[place : blank.start] + fill
        place = blank.end
    expected += text[place:]
    assert result.replace(" ", "") == expected.replace(" ", "")
    assert [fill.lower() for fill in shown] == [join(fill) for fill in fills[: len(blanks)]]


@given(TEXTS, st.data())
def test_plain_words_take_the_place_of_a_blank_exactly(text, data):
    """With a fill that asks for no other spaces nothing moves at all."""
    pieces = TOKENIZER.split(text)
    blanks = [piece for piece in pieces if piece.word is None]
    fills = data.draw(st.lists(st.sampled_from(["the", "old soup"]), min_size=len(blanks), max_size=len(blanks)))
    result, shown = fill_in(text, pieces, [fill.split() for fill in fills])
    expected, place = "", 0
    for i, (blank, fill) in enumerate(zip(blanks, shown)):
        between = text[place : blank.start]
        expected += (between or " " * (i > 0)) + fill  # two blanks without a space between them get one
        place = blank.end
    assert result == expected + text[place:]


@pytest.mark.parametrize(
    ("text", "fill", "expected"),
    [
        ("i ____ it .", "love", "i love it ."),
        ("i ____ it", "", "i it"),
        ("____ it", "", "it"),
        ("i ____", "", "i"),
        ("i ____.", "", "i."),
        ("i ____ .", "", "i ."),
        ("(____ it)", "", "(it)"),
        ("i do ____ know", "n't", "i don't know"),
        ("so ____ it is", ", well ,", "so, well, it is"),
        ("i  ____  it", "love", "i  love  it"),
        ("he said ____ yes", "``", 'he said "yes'),
        ("a line\n____ b", ", c", "a line\n, c b"),
        ("____", "", ""),
        ("the ____'s", "king", "the king's"),
    ],
)
def test_spaces_beside_a_blank_go_where_the_fill_asks_for_it(text, fill, expected):
    assert filled(text, fill) == expected


def test_blanks_side_by_side():
    assert filled("[blank][blank] c", "a", "b") == "a b c"
    assert filled("[blank][blank] c", "a", ", b") == "a, b c"
    assert filled("[blank][blank] c", "(", "b") == "(b c"
    assert filled("x ____ ____ ____ y", "", "", "") == "x y"
    assert filled("x ____ ____ y", "", "b") == filled("x ____ ____ y", "b", "") == "x b y"


@pytest.mark.parametrize(
    ("text", "fills", "expected"),
    [
        ("____ London.", ["we love"], "We love London."),
        ("____ london.", ["we love"], "we love london."),  # there are no capitals
        ("____ .", ["we love"], "we love ."),
        ("It is good. ____ it. ____", ["we love", "so do they"], "It is good. We love it. So do they"),
        ("It is ____ it.", ["good . we love"], "It is good. We love it."),
        ('He said "yes!" ____', ["then he left"], 'He said "yes!" Then he left'),
        ("Well... ____ dr. ____", ["so", "jones"], "Well... so dr. jones"),
        ("She thinks ____ right.", ["i am"], "She thinks I am right."),
        ("she thinks ____ right.", ["i 'm"], "she thinks i'm right."),
        ("Is it? ____", ["`` yes ''"], 'Is it? "Yes"'),
        ("Is it? ____", ["_num_ times"], "Is it? _num_ times"),
    ],
)
def test_capitals_are_as_in_the_rest_of_the_text(text, fills, expected):
    assert filled(text, *fills) == expected


def test_typed_words_keep_their_case():
    assert filled("____ it. Ok", "eBay has i it", typed=[1]) == "eBay has I it it. Ok"
    assert filled("____ it. Ok", "eBay i i", typed=[2]) == "eBay i I it. Ok"
