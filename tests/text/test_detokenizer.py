"""The detokenizer: spaces, capitals, and text that must not change."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_texts import TEXTS, WORDS

from text_infilling.corpora.corpus import SPLITS
from text_infilling.text.blanks import has_blank
from text_infilling.text.detokenizer import fill_in, join
from text_infilling.text.tokenizer import Tokenizer

TOKENIZER, CASED = Tokenizer(lower=True), Tokenizer(lower=False)
FILLS = st.lists(st.lists(st.sampled_from(WORDS), max_size=4), min_size=40, max_size=40)


def filled(text, *fills, typed=()):
    """Returns the text with its blanks filled; the words of a fill are separated by spaces."""
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
        ("the plan -- a bad one — failed .. and … it", "the plan--a bad one—failed.. and… it"),
        ("-- so", "-- so"),
        ("`` ... and so '' he", '"...and so" he'),
        ("so , `` said he , `` i `` we ``", 'so, "said he," i "we"'),  # the vocabulary has no other quotation mark
        ("` no , ' he ‘ said ’ , „ so “ .", "'no,' he ‘said’, „so“."),
        ("it ’s £ 5 « a » ¿ b ? 好 ！ 好 。", "it’s £5 «a» ¿b? 好！好。"),
        ("' ' yes , he said ` ` no", "' ' yes, he said ' 'no"),  # two single quotes are not a double one
        ("the 76ers ,104 - 99 , points,10", "the 76ers ,104 - 99, points,10"),
        ("", ""),
        (",", ","),
        ("n't", "n't"),
    ],
)
def test_words_are_joined_to_readable_text(words, expected):
    assert join(words.split()) == expected


def test_natural_text_survives_tokenizing_and_joining():
    lines = (Path(__file__).parents[1] / "data" / "natural_text.txt").read_text("utf-8").splitlines()
    assert len(lines) > 50
    assert [join(CASED.words(line)) for line in lines] == lines


FILES = ["yelp/train.txt", "yelp/valid.txt", "yelp/test.txt"]
FILES += [f"grimm/{name}.{split}.jsonl" for name in ("lm", "prep") for split in ("train", "test")]
FILES += ["nba/lm.train.jsonl", "nba/lm.test.jsonl", *(f"nba/sentences.{split}.txt" for split in SPLITS)]
FILES += ["nba/summaries.valid.txt", "nba/summaries.test.txt"]


@pytest.mark.parametrize("name", FILES)
def test_readable_corpus_lines_survive_tokenizing_and_joining(shared, name):
    """99.9% of about 2,000 lines of a file; the one line that is missed in 727 is known, see the module's docstring."""
    lines = (shared / "data" / name).read_text("utf-8").splitlines()
    lines = lines[:: max(len(lines) // 2000, 1)]
    if name.endswith(".jsonl"):
        lines = [json.loads(line)["expected"] for line in lines]
    texts = [join(unicodedata.normalize("NFC", line).split()) for line in lines if not has_blank(line)]
    missed = [text for text in texts if join(CASED.words(text)) != text]
    assert len(missed) <= max(0.001 * len(texts), name == "nba/summaries.valid.txt"), missed


WORD = st.sampled_from(
    "a It's don't I'll bird's-nest e.g. Dr. U.S. well-known and/or AT&T C++ C# #tag @name me@x.org http://x.org/a?b=1, "
    "www.x.org .50 1,000 3.14 10:30pm 9:30 3rd 1/2 $5 £5 50% 5$ file.txt ’tis ’90s don’t O’Brien word(s) "
    "(un)able f**k *so* pre- w/ &amp; it&apos;s naïve Привет 漢字 שלום मैं می‌خواهم 👨‍👩‍👧 🙂 1️⃣ a_b x=1 "
    "rock’n’roll points,10 ,104-91 a,1,000 .50-60".split()
)
AFTER = st.sampled_from(["", "", ",", ".", "!", "?", "?!", "...", "…", ";", ":", "!!!"])
QUOTED = st.sampled_from(['""', "''", "“”", "‘’", "()", "[]", "{}", "«»", "„“", '("")', "\"''\"", "“‘’”"])


def quoted(part):
    """A strategy for text in quotation marks or brackets, with punctuation inside and after them."""
    return st.tuples(QUOTED, part, AFTER, AFTER).map(
        lambda x: x[0][: len(x[0]) // 2] + x[1] + x[2] + x[0][len(x[0]) // 2 :] + x[3]
    )


PHRASE = st.lists(st.tuples(WORD, AFTER).map("".join), min_size=1, max_size=4).map(" ".join)
# Known limit: in (".50"), "'.50'" and ("’tis") the inner opening quotation mark is read as a closing one.
QUOTABLE = PHRASE.filter(lambda phrase: phrase[0] not in ".,’*")
NATURAL = st.lists(
    PHRASE | quoted(QUOTABLE) | st.sampled_from(["a--b", "a—b", "a – b", "& +", "--option -5", ":-)", ";)"]), max_size=6
).map(" ".join)


@given(NATURAL)
def test_text_of_all_kinds_comes_back_from_its_words(text):
    assert join(CASED.words(text)) == text


@given(TEXTS.filter(lambda text: all(piece.word is not None for piece in TOKENIZER.split(text))))
def test_a_text_without_blanks_is_unchanged(text):
    assert fill_in(text, TOKENIZER.split(text), []) == (text, [])


@given(TEXTS, FILLS)
def test_outside_the_blanks_only_spaces_beside_them_change(text, fills):
    pieces = TOKENIZER.split(text)
    blanks = [piece for piece in pieces if piece.word is None]
    result, shown = fill_in(text, pieces, fills[: len(blanks)])
    assert len(shown) == len(blanks)
    expected, done = "", 0
    for blank, fill in zip(blanks, shown):
        expected += text[done : blank.start] + fill
        done = blank.end
    expected += text[done:]
    assert result.replace(" ", "") == expected.replace(" ", "")
    assert [fill.lower() for fill in shown] == [join(fill) for fill in fills[: len(blanks)]]


@given(TEXTS, st.data())
def test_plain_words_replace_a_blank_exactly(text, data):
    """Infills of plain words do not change the spaces around them."""
    pieces = TOKENIZER.split(text)
    blanks = [piece for piece in pieces if piece.word is None]
    fills = data.draw(st.lists(st.sampled_from(["the", "old soup"]), min_size=len(blanks), max_size=len(blanks)))
    result, shown = fill_in(text, pieces, [fill.split() for fill in fills])
    expected, done = "", 0
    for i, (blank, fill) in enumerate(zip(blanks, shown)):
        between = text[done : blank.start]
        expected += (between or " " * (i > 0)) + fill  # two blanks without a space between them get one
        done = blank.end
    assert result == expected + text[done:]


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
        ("they ____n't come", "did", "they didn't come"),
        ('he said "____ yes', '"', 'he said "" yes'),
        ('he said "go ____ yes', '"', 'he said "go" yes'),
        ("he said ____ yes", '"', 'he said "yes'),
        ("a ____ b", "--", "a--b"),
        ("____ b", "--", "-- b"),
        ("„go ____ yes", "“", "„go“ yes"),
    ],
)
def test_spaces_beside_a_blank_are_removed_if_the_infill_requires_it(text, fill, expected):
    assert filled(text, fill) == expected


def test_adjacent_blanks_are_filled_with_a_space_between():
    assert filled("[blank][blank] c", "a", "b") == "a b c"
    assert filled("[blank][blank] c", "a", ", b") == "a, b c"
    assert filled("[blank][blank] c", "(", "b") == "(b c"
    assert filled("x ____ ____ ____ y", "", "", "") == "x y"
    assert filled("x ____ ____ y", "", "b") == filled("x ____ ____ y", "b", "") == "x b y"


@pytest.mark.parametrize(
    ("text", "fills", "expected"),
    [
        ("____ London.", ["we love"], "We love London."),
        ("____ london.", ["we love"], "we love london."),  # the text has no capitals
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
def test_infills_are_capitalized_if_the_text_has_capitals(text, fills, expected):
    assert filled(text, *fills) == expected


def test_typed_words_keep_their_case():
    assert filled("____ it. Ok", "eBay has i it", typed=[1]) == "eBay has I it it. Ok"
    assert filled("____ it. Ok", "eBay i i", typed=[2]) == "eBay i I it. Ok"
