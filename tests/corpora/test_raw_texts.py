"""Downloading raw texts from their public sources, and splitting a book into its tales."""

import hashlib
import textwrap

import pytest
from file_server import FileServer, unused_url

from text_infilling.corpora.download import DownloadError, RemoteFile
from text_infilling.corpora.masked_corpora import load_corpus as load
from text_infilling.corpora.raw_texts import RawRelease, cut_tales, fetch

BOOK = """*** START OF THE EBOOK ***

CONTENTS

  1 The Owl (Die Eule)
  2 The Two Mills (Die
    zwei Mühlen)

Legend 1 The Rose (Die Rose)
Legend 2 The Oak (Die Eiche)



1 The Owl

An owl sat in
the  barn, and said,

  "Tu-whit,
     tu-whoo!"

  and slept
again.

      *      *      *

In 12 days she was gone.



1* The Two Mills

Two mills went.

Children's Legends

Legend 1 The Rose

A rosé rose.


*** END OF THE EBOOK ***

2 Small print

is no tale.
"""
TALES = [
    'The Owl\n\nAn owl sat in the barn, and said,\n\n"Tu-whit,\ntu-whoo!"\n\nand slept again.\n\n'
    "In 12 days she was gone.\n",
    "The Two Mills\n\nTwo mills went.\n",
    "The Rose\n\nA rosé rose.\n",
]


def remote(path, body):
    return RemoteFile(path, f"sha256:{hashlib.sha256(body).hexdigest()}")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_book_is_split_into_its_tales(newline):
    assert list(cut_tales(BOOK.replace("\n", newline))) == TALES


def test_a_book_rebuilt_from_the_shared_tales_is_split_into_them_again(shared):
    """The eBook is not among the shared files, so the test rebuilds its line breaks, indents and numbers."""
    tales = [path.read_text("utf-8") for path in sorted((shared / "data/grimm/tales").glob("*.txt"))]
    parts = []
    for number, tale in enumerate(tales, start=1):
        title, *paragraphs = tale.rstrip("\n").split("\n\n")
        shown = [
            textwrap.indent(paragraph, "   ")
            if "\n" in paragraph
            else textwrap.fill(paragraph, 72, break_long_words=False, break_on_hyphens=False)
            for paragraph in paragraphs
        ]
        name = number if number <= 151 else "151*" if number == 152 else number - 1
        name = name if number <= 201 else f"Legend {number - 201}"
        parts.append("\n\n".join([f"{name} {title}", *shown]))
    book = "\n\n\n\n".join(["Contents\n\n 1 A\n 2 B", *parts, "*** END OF THE PROJECT"])
    assert list(cut_tales(book)) == tales


def test_tales_are_downloaded_once_and_appear_only_when_complete(tmp_path):
    body = BOOK.encode("latin-1")
    with FileServer({"book.txt": body}) as server:
        release = RawRelease(server.url, {"book": remote("book.txt", body)}, tales=3)
        for _ in range(2):
            fetch(release, "grimm", tmp_path)
        assert len(server.requests) == 1
        with pytest.raises(ValueError, match="3 tales instead of 4: give data_dir"):
            fetch(RawRelease(server.url, release.files, tales=4), "other", tmp_path)
    found = sorted((tmp_path / "grimm" / "tales").iterdir())
    assert [path.read_text("utf-8") for path in found] == TALES
    assert not list((tmp_path / "other").iterdir())


def test_reports_are_downloaded_once_and_existing_files_are_kept(tmp_path):
    bodies = {f"{split}/y.{split}.txt": f"The Owls of {split} won .\n".encode() for split in ("train", "test")}
    (tmp_path / "nba").mkdir()
    (tmp_path / "nba" / "lm.train.jsonl").write_text("{}\n", "utf-8")
    with FileServer(bodies) as server:
        files = {f"sentences.{path.split('/')[0]}.txt": remote(path, body) for path, body in bodies.items()}
        fetch(RawRelease(server.url, files), "nba", tmp_path)
        fetch(RawRelease(server.url, files), "nba", tmp_path)
        assert len(server.requests) == 2
    names = ["lm.train.jsonl", "sentences.test.txt", "sentences.train.txt"]
    assert sorted(path.name for path in (tmp_path / "nba").iterdir()) == names


def test_sentences_are_built_from_downloaded_tales(tmp_path):
    sentence = "The miller of village {} had {} sons and he went to the mill ."
    tales = [
        "\n\n".join([f"{number} Tale {number}", *(sentence.format(number, sons) for sons in range(2, 12))])
        for number in range(1, 11)
    ]
    body = "\n\n\n\n".join(["Contents", *tales, "*** END OF THE BOOK"]).encode("latin-1")
    with FileServer({"book.txt": body}) as server:
        releases = {"grimm": RawRelease(server.url, {"book": remote("book.txt", body)}, tales=10)}
        corpus = load("grimm", "grimm", "word_classes_closed", cache_dir=tmp_path, releases=releases)
    assert corpus.name == "grimm_built" and corpus.source == "built from 10 files of the cache"


def test_without_a_network_auto_uses_made_up_sentences_and_warns(tmp_path):
    releases = {"grimm": RawRelease(unused_url(), {"book": remote("book.txt", b"")}, tales=1)}
    warnings = []
    corpus = load("grimm", "auto", "word_classes_closed", cache_dir=tmp_path, log=warnings.append, releases=releases)
    assert corpus.name == "grimm_synthetic"
    (warning,) = warnings
    assert "cannot download" in warning and "give data_dir" in warning
    with pytest.raises(DownloadError, match="cannot download"):
        load("grimm", "grimm", "word_classes_closed", cache_dir=tmp_path, releases=releases)
