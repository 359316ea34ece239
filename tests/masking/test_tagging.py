"""Penn tags from NLTK's tagger: order of sentences, lazy loading, and the error for missing data."""

import subprocess
import sys

import nltk.data
import pytest

from text_infilling.masking import tagging


@pytest.fixture
def fresh(monkeypatch):
    """A state without a loaded tagger, in which NLTK was imported before NLTK_DATA was set."""
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.delenv("NLTK_DATA", raising=False)
    tagging._tagger.cache_clear()
    yield monkeypatch
    tagging._tagger.cache_clear()


def test_every_token_has_its_tag(fresh, shared):
    fresh.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))
    sentences = [["the", "old", "dogs", "barked", "at", "3", "cats"], [], ["she", "sang", "."]]

    assert list(tagging.tag(sentences)) == [
        ["DT", "JJ", "NNS", "VBD", "IN", "CD", "NNS"],
        [],
        ["PRP", "VBD", "."],
    ]


def test_the_tagger_is_loaded_once_and_reads_sentences_lazily(fresh, shared):
    fresh.setenv("NLTK_DATA", str(shared / "data" / "nltk_data"))
    sentences = iter([["one"], ["two"], ["three"]])
    tags = tagging.tag(sentences)
    next(tags)

    assert next(sentences) == ["two"]
    tagging.tag([])
    assert tagging._tagger.cache_info().misses == 1


def test_missing_data_is_a_one_line_error_that_explains_how_to_get_it(fresh, tmp_path):
    fresh.setenv("NLTK_DATA", str(tmp_path / "here"))
    nltk.data.path.append(str(tmp_path / "there"))

    with pytest.raises(FileNotFoundError) as caught:
        tagging.tag([])

    message = str(caught.value)
    assert "\n" not in message
    assert "python -m nltk.downloader averaged_perceptron_tagger_eng" in message
    assert "NLTK_DATA" in message
    assert str(tmp_path / "here") in message and str(tmp_path / "there") in message


def test_tensorflow_and_nltk_are_not_imported_before_use():
    modules = "text_infilling.masking.tagging, text_infilling.masking.rules, text_infilling.corpora.pairs"
    code = f"import sys, {modules}; assert not {{'tensorflow', 'keras', 'nltk'}} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True)
