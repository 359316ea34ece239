"""From text as people type it to words and blanks."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_infilling.detokenize import join
from text_infilling.tokenizer import Tokenizer

LOWER, CASED = Tokenizer(lower=True), Tokenizer(lower=False)
YELP_LIKE = frozenset(
    "i ca n't 's eat dr. dr jones good good. it bar grill wi-fi a+ can not gon na _num_".split()
    + ". , ! ? ... -- - / `` '' $".split()
)
# Of scripts and kinds of all sorts, and the parts of blanks and special tokens.
PARTS = [
    "a",
    "Ab",
    "don't",
    "king's",
    "é",
    "שלום",
    "مرحبا",
    "漢字",
    "؟",
    "！",
    "🙂",
    "👨‍👩‍👧",
    "3.50",
    "\x00",
    "\u200b",
    "<m>",
    "<EOB>",
    "<PAD>",
]
PARTS += list(" \t\n\u00a0\u3000.,!?'\"’“”()[]{}<>-–—…/&$%#*_@") + ["____", "__m__", "[blank]", "..", "--", "''", "n't"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


def words(text, tokenizer=LOWER, known=frozenset()):
    """The words of a text, None for a blank."""
    return [piece.word for piece in tokenizer.split(text, known)]


@given(TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_character_but_white_space_is_in_one_piece(text):
    pieces = CASED.split(text, {"a", "-", "can", "not"})
    assert "".join(text[piece.start : piece.end] for piece in pieces) == "".join(text.split())
    places = [place for piece in pieces for place in (piece.start, piece.end)]
    assert places == sorted(places)
    assert all(piece.start < piece.end and piece.word != "" for piece in pieces)
    assert all(piece.known == (piece.word in {"a", "-", "can", "not"}) for piece in pieces)


@pytest.mark.parametrize("tokenizer", [LOWER, CASED])
@given(text=TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_the_fast_way_to_the_words_of_a_corpus_gives_the_same(tokenizer, text):
    assert tokenizer.words(text) == [piece.word for piece in tokenizer.split(text) if piece.word is not None]


@given(st.lists(st.sampled_from("good it 's ca n't eat , . ! ? `` '' - _num_ dr. jones a+ wi-fi".split())))
def test_text_that_is_tokenised_stays_as_it_is(tokens):
    assert words(" ".join(tokens), known=YELP_LIKE) == tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I can't eat.", "i ca n't eat ."),
        ("The king's, we'll; I've won't!", "the king 's , we 'll ; i 've wo n't !"),
        ("the players' o'clock c'mon", "the players ' o'clock c'mon"),
        ("Dr. Jones, Mr. X, at 9 a.m., U.S.", "dr. jones , mr. x , at 9 a.m. , u.s."),
        ("it’s “good”…", "it 's “ good ” …"),
        ("(well-known) 3.50$, 1,000 9:30 1/2 50%", "( well-known ) 3.50 $ , 1,000 9:30 1/2 50 %"),
        ("no.yes ok...fine wait--what", "no.yes ok ... fine wait -- what"),
        ("Toronto_Raptors _num_ snake__case", "toronto_raptors _num_ snake__case"),
        ("so good👍🏽👍 ❤️", "so good 👍🏽👍 ❤️"),
        ("שלום, עולם", "שלום , עולם"),
        ("هل هذا جيد؟ نعم، هو", "هل هذا جيد ؟ نعم ، هو"),
        ("यह अच्छा है। 好！（吃）", "यह अच्छा है । 好 ！ （ 吃 ）"),
        ("<m> <EOB>", "< m > < eob >"),
    ],
)
def test_words_are_those_of_the_treebank(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot, gonna", "can not , gon na"),
        ("Good.", "good ."),  # though a slip of the corpus made "good." a word
        ("Dr.", "dr."),
        ('"Good" he ate', "`` good '' he ate"),
        ("“Good” … — ....", "`` good '' ... -- ..."),
        ("Wi-Fi bar/grill good.it bar-x", "wi-fi bar / grill good . it bar-x"),
        ("$30 1,000 12.50", "$ _num_ _num_ _num_"),
        ("an A+!", "an a+ !"),
    ],
)
def test_the_vocabulary_decides_between_spellings(text, expected):
    assert words(text, known=YELP_LIKE) == expected.split()


def test_case_is_kept_where_the_corpus_kept_it():
    known = {"Green", "the", "Toronto_Raptors"}
    assert words("The Green Toronto_Raptors", CASED, known) == ["the", "Green", "Toronto_Raptors"]
    assert words("Unknown", CASED, known) == ["Unknown"]


@pytest.mark.parametrize("blank", ["__", "____", "_" * 40, "__m__", "[blank]"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", [None]),
        ("a {} b", ["a", None, "b"]),
        ("({}), {}!", ["(", None, ")", ",", None, "!"]),
        ('"{}"', ['"', None, '"']),
        ("{}'s", [None, "'s"]),
        ("{} {}\n{}", [None, None, None]),
        ("👍{}", ["👍", None]),
        ("a-{}", ["a", "-", None]),
    ],
)
def test_a_blank_stands_alone_between_spaces_or_punctuation(blank, text, expected):
    assert words(text.format(*[blank] * 3)) == expected


@pytest.mark.parametrize(
    "word", ["a____", "____a", "Toronto__Raptors", "_", "__init__", "__m__a", "__M__", "é____", "3__"]
)
def test_within_a_word_there_is_no_blank(word):
    assert words(word, CASED) == [word]


def test_blanks_side_by_side():
    assert words("[blank][blank]") == [None, None]
    assert words("____[blank]____") == [None] * 3
    assert words("__m__,__m__") == [None, ",", None]


def test_a_lone_surrogate_is_no_text():
    with pytest.raises(ValueError, match=r"lone surrogate, '\\ud83d', at character 3"):
        LOWER.split("so \ud83d good")


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "a-" * 50_000, "_" * 100_000 + "a", "'" * 100_000, "1." * 50_000 + "x"]
)
def test_long_stretches_without_white_space_are_read_in_linear_time(text):
    """In quadratic time each would take minutes."""
    assert "".join(text[p.start : p.end] for p in LOWER.split(text, {"a", "-", "b"})) == text


def test_lower_case_is_inferred():
    assert Tokenizer.infer(["the", "_num_", "n't", "."]) == LOWER
    assert Tokenizer.infer(["the", "Raptors"]) == CASED


def test_settings_are_saved_with_a_run(tmp_path):
    path = tmp_path / "tokenizer.json"
    for tokenizer in (LOWER, CASED):
        tokenizer.save(path)
        assert Tokenizer.load(path) == tokenizer
    for content in ("{}", '{"lower": 1}', "[]", '{"lower": true, "stem": true}', "lower"):
        path.write_text(content)
        with pytest.raises(ValueError, match="tokenizer.json"):
            Tokenizer.load(path)


@pytest.mark.parametrize(("name", "least"), [("yelp", 0.99), ("grimm", 0.98), ("nba", 0.98)])
def test_the_words_of_the_corpora_survive_reading_and_writing(shared, name, least):
    """Readable text made of a corpus line gives the line again."""
    if name == "yelp":
        lines = (shared / "data" / "yelp" / "train.txt").read_text("utf-8").splitlines()[:3000]
    else:
        content = (shared / "data" / name / "lm.train.jsonl").read_text("utf-8").splitlines()[:3000]
        lines = [json.loads(line)["expected"] for line in content]
    lines = [unicodedata.normalize("NFC", line).split() for line in lines]
    known = frozenset(word for line in lines for word in line)
    tokenizer = Tokenizer.infer(known)
    assert tokenizer.lower == (name != "nba")
    same = [tokenizer.words(join(line), known) == line for line in lines]
    assert sum(same) / len(same) >= least
