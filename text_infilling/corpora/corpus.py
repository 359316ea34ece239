"""Finds or makes a corpus: the Yelp sentences of the paper, or the embedded synthetic sentences.

A corpus is three UTF-8 text files with one tokenised sentence per line, words separated by spaces. Yelp is looked up in
`data_dir`, then in the cache (`TEXT_INFILLING_DATA`, else `~/.cache/text_infilling`), and is downloaded otherwise.
"""

import functools
import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from absl import logging

from text_infilling.corpora.builders.common import decoded
from text_infilling.corpora.cache import cache_folder, prepared
from text_infilling.corpora.download import DownloadError, RemoteFile, download
from text_infilling.corpora.synthetic import reviews
from text_infilling.masking import masked_lines
from text_infilling.utils import files

SPLITS = ("train", "valid", "test")
NAMES = ("auto", "yelp", "synthetic")
ORIGIN_FILE = "origin.json"

# sha256 of the paper's 1,000 test sentences in order, one per line.
PAPER_TEST = "389ba092b04c9b8f49164a211129540e2cbae3a3e046d1064a1bfb2b4e8c6bc0"
# Known train files, by sha256, and what they contain.
KNOWN_TRAIN = {
    "76901bec2ac17350119d827d3af440df514e602f0847c981eb0425aa3ddda8ab": (
        "train is a stand-in for the paper's 104K sentences "
        "(98,298 lines of both sentiments, neighbours of test lines among them)"
    ),
}
VALID_NOTE = "the paper's validation set is not known"


@dataclass(frozen=True)
class YelpRelease:
    """The public files that the Yelp corpus is extracted from, and the counts that the extraction must give.

    Attributes:
        base_url: URL of the repository at a fixed commit.
        train, valid, test: the repository's files.
        shortest, longest: limits of a kept sentence in tokens (10 to 15 in the paper).
        valid_lines, test_lines: number of sentences kept from the start of `valid` and `test`.
        last_test_line: number, from 1, of the line of `test` that is kept last.
    """

    base_url: str
    train: RemoteFile
    valid: RemoteFile
    test: RemoteFile
    shortest: int = 10
    longest: int = 15
    valid_lines: int = 1000
    test_lines: int = 1000
    last_test_line: int = 2559


YELP = YelpRelease(
    base_url=(
        "https://raw.githubusercontent.com/shentianxiao/language-style-transfer/f078a9d342705ea62b04dd3ac5926d3467c2ac63"
    ),
    train=RemoteFile("data/yelp/sentiment.train.1", "git:bacfff7637e2e98b9c37590c29e81f0ec99bf7ab"),
    valid=RemoteFile(
        "data/yelp/sentiment.dev.1",
        "sha256:3509f6573411bbda2d5c071ed72ad276c12356c15c06205b8fdf74b217970c61",
        1_603_395,
    ),
    test=RemoteFile(
        "data/yelp/sentiment.test.1",
        "sha256:a66e0ec3f0e1230ad4d2c822750a381cf6d99a99fa9b5ae79546f21ff79ed5c3",
        3_172_601,
    ),
)


@dataclass(frozen=True)
class Corpus:
    """Three files of sentences and their description.

    Attributes:
        name: e.g. `yelp`, `synthetic`, `grimm_built`, or `own`.
        train, valid, test: UTF-8 files, one tokenised sentence per line.
        source: a short phrase for captions, e.g. `sentiment.train.1 (downloaded)`.
        note: how the corpus differs from the paper's; empty if it does not.
        checksum: sha256 over the sha256s of the three files.
        task: the paper's task that it is for: `yelp`, `grimm`, `nba` or `prepositions`.
        blanks: number of blanks per line if the lines include their blanks (see `masked_lines`), else None.
        tales: number of tales it was built from; None if unknown or not built from tales.
    """

    name: str
    train: Path
    valid: Path
    test: Path
    source: str
    note: str
    checksum: str
    task: str = "yelp"
    blanks: int | None = None
    tales: int | None = None

    def texts(self, split: str) -> Iterator[str]:
        """Yields the sentences of a split, without the blanks that the lines may include."""
        with open(getattr(self, split), encoding="utf-8") as lines:
            for line in lines:
                yield line.partition("\t")[0] if self.blanks else line

    @property
    def has_empty_answers(self) -> bool:
        """Whether any line of train has an empty blank; False if the lines do not include their blanks."""
        lines = masked_lines.read(self.train) if self.blanks else ()
        return any(start == end for _, blanks in lines for start, end in blanks)

    def vocabulary_texts(self) -> Iterator[str]:
        """Yields the sentences that the vocabulary is built from: train for Yelp, all splits for the other tasks."""
        for split in ("train",) if self.task == "yelp" else SPLITS:
            yield from self.texts(split)


def load_corpus(
    name: str = "auto",
    data_dir: str | Path | None = None,
    cache_dir: str | Path | None = None,
    log: Callable[[str], None] = logging.warning,
    release: YelpRelease = YELP,
) -> Corpus:
    """Returns the requested corpus, with its three files on disk and checked.

    Args:
        name: `yelp`, `synthetic`, or `auto` (Yelp if available, else synthetic after one warning).
        data_dir: folder that holds `yelp/` with train.txt, valid.txt and test.txt. It is never ignored silently: if it
            is given but has no `yelp/`, both `auto` and `yelp` fail. `synthetic` does not read it.
        cache_dir: folder for downloads and the synthetic corpus; default `cache_folder()`.
        log: called with the one-line warning of `auto`.
        release: the files to download.

    Raises:
        ValueError: the name is unknown, a file is empty or not UTF-8, or the cache is damaged.
        FileNotFoundError: `data_dir` does not exist or lacks a file.
        DownloadError: Yelp is neither in `data_dir` nor in the cache, and cannot be downloaded (only for `yelp`).
        OSError: the cache cannot be written.
    """
    if name not in NAMES:
        raise ValueError(f"unknown corpus {name!r}: expected one of {', '.join(NAMES)}")
    cache = Path(cache_dir) if cache_dir is not None else cache_folder()
    if name == "synthetic":
        return _synthetic(cache)
    if data_dir is not None:
        return _yelp_of_data_dir(Path(data_dir))
    try:
        return _yelp_of_cache(cache, release)
    except DownloadError as error:
        if name == "yelp":
            raise
        log(f"the Yelp corpus is not available, using the embedded synthetic corpus instead: {error}")
        return _synthetic(cache)


def _yelp_of_data_dir(data_dir: Path) -> Corpus:
    folder = data_dir / "yelp"
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder yelp/ (train.txt, valid.txt, test.txt) in data_dir={data_dir}")
    hashes = _check_files(folder, "data_dir")
    notes = [KNOWN_TRAIN.get(hashes["train"], "train is not a file known to this project"), VALID_NOTE]
    if hashes["test"] != PAPER_TEST:
        notes.append("test is not the paper's 1,000 sentences")
    return _corpus("yelp", folder, "data_dir", "; ".join(notes), hashes)


def _yelp_of_cache(cache: Path, release: YelpRelease) -> Corpus:
    folder = prepared(cache, cache / "yelp", functools.partial(_download_yelp, release, cache / "downloads"))
    hashes = _check_files(folder, "the cache")
    origin = folder / ORIGIN_FILE
    if not origin.exists():
        return _corpus("yelp", folder, "cache", f"files put into the cache by hand; {VALID_NOTE}", hashes)
    made = files.read_object(origin, "sha256", "train")
    if made["sha256"] != hashes:
        raise ValueError(f"the files in {folder} changed since their download: remove the folder, or give data_dir")
    return _corpus("yelp", folder, f"{made['train']} (downloaded)", VALID_NOTE, hashes)


def _download_yelp(release: YelpRelease, downloads: Path, folder: Path) -> None:
    """Downloads and extracts the three files into a new folder."""
    raw = {split: download(getattr(release, split), downloads, release.base_url) for split in SPLITS}
    folder.mkdir()
    limits = {"train": None, "valid": release.valid_lines, "test": release.test_lines}
    for split, limit in limits.items():
        count, last = _cut(raw[split], folder / f"{split}.txt", release.shortest, release.longest, limit)
        if split == "test" and (count, last) != (release.test_lines, release.last_test_line):
            raise ValueError(
                f"{raw[split]}: {count} sentences up to line {last} instead of the paper's {release.test_lines} "
                f"up to line {release.last_test_line}: give data_dir"
            )
    origin = {"train": release.train.name, "base_url": release.base_url, "sha256": split_hashes(folder)}
    files.write_json(folder / ORIGIN_FILE, origin)
    for path in raw.values():
        path.unlink()
    with suppress(OSError):  # the folder still holds other downloads
        downloads.rmdir()


def _cut(raw: Path, target: Path, shortest: int, longest: int, limit: int | None) -> tuple[int, int]:
    """Writes the first `limit` sentences of `shortest` to `longest` tokens, or all if `limit` is None.

    Returns the number of sentences written and the line number, from 1, of the last one.
    """
    last = 0

    def kept() -> Iterator[bytes]:
        nonlocal last
        with open(raw, "rb") as lines:
            for line_number, line in enumerate(lines, start=1):
                tokens = line.split()
                if shortest <= len(tokens) <= longest:
                    last = line_number
                    yield b" ".join(tokens) + b"\n"

    count = 0
    with open(target, "wb") as out:
        for sentence in itertools.islice(kept(), limit):
            out.write(sentence)
            count += 1
    return count, last


def _synthetic(cache: Path) -> Corpus:
    """Returns the embedded corpus; regenerates it if its files are missing or changed."""
    folder = prepared(cache, cache / "synthetic", _write_synthetic, _is_synthetic)
    source, note = f"embedded, seed {reviews.SEED}", "made-up sentences stand in for the Yelp reviews"
    return _corpus("synthetic", folder, source, note, reviews.SHA256)


def _write_synthetic(folder: Path) -> None:
    folder.mkdir()
    reviews.write_corpus(folder)
    if split_hashes(folder) != reviews.SHA256:
        raise ValueError(f"the generator's sentences differ from the checksums in {reviews.__name__}")


def _is_synthetic(folder: Path) -> bool:
    return all((folder / f"{split}.txt").is_file() for split in SPLITS) and split_hashes(folder) == reviews.SHA256


def _corpus(name: str, folder: Path, source: str, note: str, hashes: dict[str, str]) -> Corpus:
    return Corpus(name, *(folder / f"{split}.txt" for split in SPLITS), source, note, checksum_of(hashes))


def checksum_of(hashes: dict[str, str]) -> str:
    """Returns the checksum of a corpus, given the sha256 of each split."""
    return hashlib.sha256("".join(hashes[split] for split in SPLITS).encode()).hexdigest()


def split_hashes(folder: Path) -> dict[str, str]:
    """Returns the sha256 of each split's file in a folder."""
    return {split: files.sha256(folder / f"{split}.txt") for split in SPLITS}


def _check_files(folder: Path, where: str) -> dict[str, str]:
    """Returns the sha256 of each split after checking that its file exists, is UTF-8 and holds a sentence."""
    for split in SPLITS:
        path = folder / f"{split}.txt"
        if not path.is_file():
            raise FileNotFoundError(f"no file {path}: {where} needs yelp/ with train.txt, valid.txt and test.txt")
        with open(path, "rb") as lines:  # reads the whole file, since any line may be invalid
            filled = sum(
                bool(decoded(line, path, line_number).strip()) for line_number, line in enumerate(lines, start=1)
            )
        if not filled:
            raise ValueError(f"{path} holds no sentence: {where} needs one tokenised sentence per line")
    return split_hashes(folder)
