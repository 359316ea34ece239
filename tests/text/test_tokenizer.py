"""The tokenizer: text as people type it becomes words and blanks."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_texts import CASED, LOWER, TEXTS, YELP_LIKE

from text_infilling.text.detokenizer import join
from text_infilling.text.rules import INVISIBLE, JOINERS
from text_infilling.text.tokenizer import Tokenizer


def words(text, tokenizer=LOWER, known=frozenset()):
    """Returns the words of a text, with None for a blank."""
    return [piece.word for piece in tokenizer.split(text, known)]


def visible(text):
    return re.sub(f"[{INVISIBLE}{JOINERS}]", "", text)


@given(TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_character_is_in_one_piece_except_white_space_and_invisible_ones(text):
    pieces = CASED.split(text, {"a", "-", "can", "not"})
    assert visible("".join(text[piece.start : piece.end] for piece in pieces)) == visible("".join(text.split()))
    bounds = [bound for piece in pieces for bound in (piece.start, piece.end)]
    assert bounds == sorted(bounds)
    assert all(piece.start < piece.end and piece.word != "" for piece in pieces)
    assert all(piece.known == (piece.word in {"a", "-", "can", "not"}) for piece in pieces)


@pytest.mark.parametrize("tokenizer", [LOWER, CASED])
@given(text=TEXTS | st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_words_without_a_vocabulary_equal_those_of_split(tokenizer, text):
    assert tokenizer.words(text) == [piece.word for piece in tokenizer.split(text) if piece.word is not None]


@given(st.lists(st.sampled_from("good it 's ca n't eat , . ! ? `` '' - _num_ dr. jones a+ wi-fi".split())))
def test_tokenized_text_is_unchanged(tokens):
    assert words(" ".join(tokens), known=YELP_LIKE) == tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I can't eat.", "i ca n't eat ."),
        ("The king's, we'll; I've won't!", "the king 's , we 'll ; i 've wo n't !"),
        ("the players' o'clock c'mon", "the players ' o'clock c'mon"),
        ("Dr. Jones, Mr. X, at 9 a.m., U.S.", "dr. jones , mr. x , at 9 a.m. , u.s."),
        ("it’s “good”…", "it ’s “ good ” …"),
        ("(well-known) $3.50, 3.50$, 1,000 9:30 1/2 50%", "( well-known ) $ 3.50 , 3.50$ , 1,000 9:30 1/2 50 %"),
        ("no.yes ok...fine wait--what", "no.yes ok ... fine wait -- what"),
        ("Toronto_Raptors _num_ snake__case", "toronto_raptors _num_ snake__case"),
        ("so good👍🏽👍 ❤️", "so good 👍🏽👍 ❤️"),
        ("שלום, עולם", "שלום , עולם"),
        ("هل هذا جيد؟ نعم، هو", "هل هذا جيد ؟ نعم ، هو"),
        ("यह अच्छा है। 好！（吃）", "यह अच्छा है । 好 ！ （ 吃 ）"),
        ("<m> <EOB>", "< m > < eob >"),
        ("(https://x.org/a?b=1).", "( https://x.org/a?b=1 ) ."),
        ("me@x.org, www.x.org: 10:30pm!", "me@x.org , www.x.org : 10:30pm !"),
        ("points,10 ,104-91, a,1,000: 1,000,000, b,c", "points,10 ,104-91 , a,1,000 : 1,000,000 , b , c"),
        ("C++, C#; #tag @name file.txt 3rd", "c++ , c# ; #tag @name file.txt 3rd"),
        ("AT&T and/or --option 1,000-2,000ft .50", "at&t and/or --option 1,000-2,000ft .50"),
        (":-) <3 a -> b w/ pre- f***", ":-) <3 a -> b w/ pre- f***"),
        ("it&apos;s &quot; &#39; R&B;", "it&apos;s &quot; &#39; r&b ;"),
        ("'Well,' he said, \"it's 'so'.\"", "` well , ' he said , `` it 's ` so ' . ''"),
        ("‘No,’ rock ’n’ roll don’t", "‘ no , ’ rock ’n’ roll do n’t"),
        ("'tis the '90s, rock 'n' roll", "'tis the '90s , rock 'n' roll"),
        ("a bird's-nest", "a bird's-nest"),
        ('he--"My', "he -- `` my"),
        ('" so " he', "`` so '' he"),
        ("\ufeffun\u00adfold\u2060ed \u200b can\u200b, \u200ea\u200f", "unfolded can , a"),
        ("می‌خواهم قلم‌ \u200c", "می‌خواهم قلم"),
        ("क्‍या 1️⃣ ©️", "क्‍या 1️⃣ ©️"),
    ],
)
def test_words_follow_the_penn_treebank(text, expected):
    assert words(text) == expected.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot, gonna", "can not , gon na"),
        ("Good.", "good ."),  # although the vocabulary has "good.", a mistake in the corpus
        ("Dr.", "dr."),
        ('"Good" he ate', "`` good '' he ate"),
        ("“Good” … — ....", "`` good '' ... -- ..."),
        ("Wi-Fi bar/grill good.it bar-x", "wi-fi bar / grill good . it bar-x"),
        ("$30 1,000 12.50", "$ _num_ _num_ _num_"),
        ("an A+!", "an a+ !"),
        ("it’s", "it 's"),
        ("good,10 bar ,104 1,000 it,1,000", "good , _num_ bar , _num_ _num_ it , _num_"),
        ("#good 3.50$ good/bar good.50", "# good _num_ $ good / bar good . _num_"),
        ("“good” ``good''", "`` good '' `` good ''"),
    ],
)
def test_the_vocabulary_decides_between_spellings(text, expected):
    assert words(text, known=YELP_LIKE) == expected.split()


def test_case_is_kept_if_the_corpus_kept_it():
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
        ('"{}"', ["``", None, "''"]),
        ("{}'s {}’ll {}'d", [None, "'s", None, "’ll", None, "'d"]),
        ("{}n't {}n’t, {}N'T", [None, "n't", None, "n’t", ",", None, "n't"]),
        ("{} {}\n{}", [None, None, None]),
        ("👍{}", ["👍", None]),
        ("a-{} a/{}", ["a", "-", None, "a", "/", None]),
    ],
)
def test_a_blank_is_alone_between_spaces_or_punctuation(blank, text, expected):
    assert words(text.format(*[blank] * 3)) == expected


@pytest.mark.parametrize(
    "word",
    [
        "a____",
        "____a",
        "Toronto__Raptors",
        "_",
        "__init__",
        "__m__a",
        "__M__",
        "é____",
        "3__",
        "un____able",
        "____n'ts",
        "a____n't",
    ],
)
def test_underscores_inside_a_word_are_not_a_blank(word):
    assert None not in words(word, CASED)


def test_adjacent_blanks_are_separate():
    assert words("[blank][blank]") == [None, None]
    assert words("____[blank]____") == [None] * 3
    assert words("__m__,__m__") == [None, ",", None]


def test_a_lone_surrogate_raises_an_error():
    with pytest.raises(ValueError, match=r"lone surrogate, '\\ud83d', at character 3"):
        LOWER.split("so \ud83d good")


@pytest.mark.parametrize(
    "text",
    ["x" * 100_000, "a-" * 50_000, "_" * 100_000 + "a", "'" * 100_000, "1." * 50_000 + "x"]
    + [
        part * 10_000
        for part in ("&a", "www.", "a(b", '" ', "a-n'", "&#3;", "1-1.", ",1", "a,1", "\u200c", "a*", "'s-", "://", "=")
    ],
)
def test_long_texts_without_white_space_are_read_in_linear_time(text):
    """Quadratic time would be minutes per text."""
    pieces = LOWER.split(text, {"a", "-", "b"})
    assert visible("".join(text[piece.start : piece.end] for piece in pieces)) == visible(text.replace(" ", ""))
    LOWER.words(text)


def test_curly_and_straight_apostrophes_find_the_same_vocabulary_word():
    for known, other in (("n't", "n’t"), ("n’t", "n't")):
        (_, piece) = CASED.split(f"do{other}", {known, "do"})
        assert (piece.word, piece.known) == (known, True)


def test_quotation_marks_take_the_form_that_the_vocabulary_has():
    assert words('"a" ‘a’', known={'"', "'", "a"}) == ['"', "a", '"', "'", "a", "'"]


def test_lower_case_is_inferred():
    assert Tokenizer.infer(["the", "_num_", "n't", "."]) == LOWER
    assert Tokenizer.infer(["the", "Raptors"]) == CASED


def test_settings_are_saved_and_loaded_and_checked(tmp_path):
    path = tmp_path / "tokenizer.json"
    for tokenizer in (LOWER, CASED):
        tokenizer.save(path)
        assert Tokenizer.load(path) == tokenizer
    for content in ("{}", '{"lower": 1}', "[]", '{"lower": true, "stem": true}', "lower"):
        path.write_text(content)
        with pytest.raises(ValueError, match="tokenizer.json"):
            Tokenizer.load(path)


@pytest.mark.parametrize(("name", "least"), [("yelp", 0.99), ("grimm", 0.98), ("nba", 0.99)])
def test_corpus_lines_survive_joining_and_tokenizing(shared, name, least):
    """A corpus line that is joined to readable text and tokenized again is unchanged."""
    if name == "yelp":
        lines = (shared / "data" / "yelp" / "train.txt").read_text("utf-8").splitlines()[:3000]
    else:
        content = (shared / "data" / name / "lm.train.jsonl").read_text("utf-8").splitlines()[:3000]
        lines = [json.loads(line)["expected"] for line in content]
    lines = [unicodedata.normalize("NFC", line).split() for line in lines]
    known = frozenset(word for line in lines for word in line)
    tokenizer = Tokenizer.infer(known)
    assert tokenizer.lower == (name != "nba")
    texts = [join(line) for line in lines]
    same = [tokenizer.words(text, known) == line for text, line in zip(texts, lines)]
    assert sum(same) / len(same) >= least
    same = [join(CASED.words(text)) == text for text in texts]
    assert sum(same) / len(same) >= 0.999
