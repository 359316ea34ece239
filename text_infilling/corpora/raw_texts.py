"""Downloads the raw texts that the builders read: Grimm's tales and the sentences of NBA reports."""

import functools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from text_infilling.corpora.cache import prepared
from text_infilling.corpora.download import RemoteFile, download

TALES = "tales"  # name of the folder of tales


@dataclass(frozen=True)
class RawRelease:
    """Public files at a fixed commit.

    Attributes:
        base_url: URL of the repository.
        files: the files to download, by local name; for tales a single file, the book.
        tales: number of tales in the book; None if the files are used unchanged.
    """

    base_url: str
    files: dict[str, RemoteFile]
    tales: int | None = None


RAW_RELEASES = {
    "grimm": RawRelease(  # Project Gutenberg's eBook 5314, Margaret Hunt's translation; public domain in the USA
        "https://raw.githubusercontent.com/GITenberg/Household-Tales-by-Brothers-Grimm_5314/"
        "6e06b290ccb016cecd35a21c70ff2a36f45e1276",
        {"book": RemoteFile("5314-8.txt", "sha256:9d33b74d15860c25109606013b8af6089152c4cc0c5d4ac077a64d833878dba5")},
        tales=211,
    ),
    "nba": RawRelease(  # RotoWire's sentences; the repository states no licence
        "https://raw.githubusercontent.com/ZhitingHu/text_content_manipulation/523f9ea40e106346887ef81cdead6a8cc18a645f",
        {
            "sentences.train.txt": RemoteFile(
                "train/y_aux.train.txt", "sha256:42ad35c09ccf8be2c454ea1be5a195593bf95f25a2879974bfe902880323e36d"
            ),
            "sentences.test.txt": RemoteFile(
                "test/y_aux.test.txt", "sha256:bac5e4f192e2674985d73d3ac3504706760f6474ed840ccdda066f93833baf73"
            ),
        },
    ),
}
# Titles in the text of the book; in its table of contents no empty lines separate them.
_TITLE = re.compile(r"(?:\d+\*?|Legend \d+) +(\S.*)")
_END = re.compile(r"\*\*\* ?END OF TH")
_DROPPED = re.compile(r"Children's Legends|[*\s]+")  # the heading of a part, or a row of asterisks


def fetch(release: RawRelease, folder: str, cache: Path) -> None:
    """Downloads missing files into a folder of the cache, or the book's tales into its `tales/`.

    Raises:
        DownloadError: a file cannot be downloaded.
        ValueError: the book does not have the expected number of tales.
        OSError: the cache cannot be written.
    """
    downloads = cache / "downloads"
    if release.tales is not None:
        prepared(cache, cache / folder / TALES, functools.partial(_download_tales, release, downloads))
    else:
        for name, file in release.files.items():
            prepared(cache, cache / folder / name, functools.partial(_download, file, downloads, release.base_url))


def _download(file: RemoteFile, downloads: Path, base_url: str, target: Path) -> None:
    os.replace(download(file, downloads, base_url), target)


def _download_tales(release: RawRelease, downloads: Path, folder: Path) -> None:
    """Downloads the book and writes its tales to a new folder, one per file."""
    (file,) = release.files.values()
    book = download(file, downloads, release.base_url)
    tales = list(cut_tales(book.read_text("latin-1")))
    if len(tales) != release.tales:
        raise ValueError(f"{book}: found {len(tales)} tales instead of {release.tales}: give data_dir")
    folder.mkdir()
    for number, tale in enumerate(tales, start=1):
        (folder / f"{number:03}.txt").write_text(tale, "utf-8")
    book.unlink()


def cut_tales(book: str) -> Iterator[str]:
    """Yields the tales of an eBook of Grimm's: title, an empty line, and paragraphs separated by empty lines.

    A tale begins at a line such as `12 Rapunzel`, `151* The Twelve Idle Servants` or `Legend 3 The Rose` with empty
    lines around it. The lines of a paragraph are joined, except in verse, whose lines are all indented. Text before the
    first tale and after the line that ends the book is left out.
    """
    tale: list[str] = []
    for block in re.split(r"\n(?:[ \t]*\n)+", book.replace("\r\n", "\n")):
        lines = [line for line in block.split("\n") if line.strip()]
        if lines and _END.match(lines[0]):
            break
        if len(lines) == 1 and (title := _TITLE.fullmatch(lines[0].rstrip())):
            if tale:
                yield "\n\n".join(tale) + "\n"
            tale = [title[1]]
        elif tale and lines and not _DROPPED.fullmatch(block):
            verse = all(line[0].isspace() for line in lines)
            tale.append(("\n" if verse else " ").join(" ".join(line.split()) for line in lines))
    if tale:
        yield "\n\n".join(tale) + "\n"
