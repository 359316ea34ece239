"""Vocabulary in Python and on disk."""

import hashlib

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from text_infilling import vocabulary
from text_infilling.vocabulary import SPECIAL_TOKENS, UNK_ID, Vocabulary

WORDS = ("the", "soup", "café", "'s")


@pytest.fixture(scope="module")
def words() -> Vocabulary:
    return Vocabulary(WORDS)


def test_the_special_tokens_have_the_first_ids():
    names = ["PAD_ID", "BOS_ID", "EOS_ID", "UNK_ID", "BLANK_ID", "BOB_ID", "EOB_ID"]
    assert [SPECIAL_TOKENS[getattr(vocabulary, name)] for name in names] == list(SPECIAL_TOKENS)
    assert Vocabulary(["a"]).decode(range(8)) == ["<PAD>", "<BOS>", "<EOS>", "<UNK>", "<m>", "<BOB>", "<EOB>", "a"]


def test_length_counts_special_tokens_and_words(words):
    assert len(words) == 7 + 4
    assert words.words == WORDS


def test_build_sorts_by_count_then_alphabetically_and_drops_rare_words():
    lines = ["b a  c", "c\ta d", "c e"]
    assert Vocabulary.build(lines, 2).words == ("c", "a")
    assert Vocabulary.build(lines, 1).words == ("c", "a", "b", "d", "e")


def test_build_skips_special_tokens_in_the_text():
    assert Vocabulary.build(["<BOS> a <m> <UNK> b <PAD>"] * 3, 1).words == ("a", "b")


def test_build_refuses_a_min_count_below_one():
    with pytest.raises(ValueError, match="min_count=0"):
        Vocabulary.build(["a"], 0)


@pytest.mark.parametrize(
    ("given_words", "message"),
    [
        ([], "at least one word"),
        (["a", "b", "a"], "must differ. Received: 'a' 2 times"),
        (["a", ""], "Received: ''"),
        (["two words"], "Received: 'two words'"),
        (["line\n"], "white space"),
        (["a", "<m>"], "special token <m>"),
    ],
)
def test_invalid_words_are_refused(given_words, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(given_words)


def test_encode_and_decode(words):
    assert words.encode(["soup", "unheard", "the"]) == [8, UNK_ID, 7]
    assert words.decode([8, UNK_ID, 7]) == ["soup", "<UNK>", "the"]


@pytest.mark.parametrize("outside", [-1, 11])
def test_decode_refuses_an_id_out_of_range(words, outside):
    with pytest.raises(ValueError, match=f"less than 11. Received: {outside}"):
        words.decode([7, outside])


def test_replace_unknown_keeps_known_words(words):
    assert words.replace_unknown(["the", "kiltlifter", "<m>"]) == ["the", "<UNK>", "<UNK>"]


@pytest.mark.parametrize("typed", SPECIAL_TOKENS)
def test_a_special_token_typed_as_a_word_is_an_unknown_word(words, typed):
    assert words.encode([typed]) == [UNK_ID]


def test_save_and_load(words, tmp_path):
    path = tmp_path / "vocabulary.txt"
    words.save(path)
    assert path.read_bytes() == "the\nsoup\ncafé\n's\n".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["vocabulary.txt"]
    loaded = Vocabulary.load(path)
    assert loaded.words == WORDS and loaded.hash == words.hash
    loaded.save(path)
    assert Vocabulary.load(path).words == WORDS


any_word = st.text(min_size=1).filter(lambda word: word.split() == [word] and word not in SPECIAL_TOKENS)


@hypothesis.settings(max_examples=30)
@hypothesis.given(st.lists(any_word, min_size=1, unique=True))
def test_any_words_survive_save_and_load(tmp_path_factory, some):
    path = tmp_path_factory.mktemp("vocabulary") / "words"
    kept = Vocabulary(some)
    kept.save(path)
    assert Vocabulary.load(path).words == kept.words


def test_the_hash_is_that_of_the_file_and_depends_on_the_order(words, tmp_path):
    words.save(tmp_path / "words")
    assert words.hash == hashlib.sha256((tmp_path / "words").read_bytes()).hexdigest()
    assert words.hash != Vocabulary(sorted(WORDS)).hash


def test_check_hash_names_the_file_whose_vocabulary_differs(words):
    words.check_hash(words.hash, "config.json")
    with pytest.raises(ValueError, match=r"^This vocabulary \(4 words, .* is not the one that config.json") as error:
        words.check_hash("0" * 64, "config.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at least one word"),
        (b"a\nb", "the last line has no line end"),
        (b"a\n\nb\n", "Received: ''"),
        (b"a\r\nb\r\n", r"Received: 'a\\r'"),
        (b"\xff\xfe\n", "is not a vocabulary with one word per line in UTF-8"),
    ],
)
def test_load_names_an_invalid_file(tmp_path, content, message):
    path = tmp_path / "broken.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)


def test_load_of_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="absent.txt"):
        Vocabulary.load(tmp_path / "absent.txt")


def test_counts_on_yelp_equal_its_documented_counts(shared):
    with open(shared / "data" / "yelp" / "train.txt", encoding="utf-8") as lines:
        built = Vocabulary.build(lines, 2)
    assert len(built) == 8_857
    tokens = (shared / "data" / "yelp" / "test.txt").read_text(encoding="utf-8").split()
    assert np.sum(np.array(built.encode(tokens)) == UNK_ID) == 43
