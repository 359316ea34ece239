"""The corpora of Grimm's tales, NBA reports and prepositions, where each line has its blanks with it (`masked_lines`).

The authors' own pairs are looked for in `data_dir`, then in the cache (`TEXT_INFILLING_DATA`, else
`~/.cache/text_infilling`). With any other masking than `pairs`, sentences are built from raw text, which is looked for
there too and else downloaded, and masked by that rule. Sentences made up by the grammars of this project take their
place where asked for, or where there is no other.
What is prepared is kept in the cache, under a name that says what it was made of.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from absl import logging

from text_infilling import maskers, tagging
from text_infilling.data import masked_lines, synthetic_reports, synthetic_tales
from text_infilling.data.builders import text_files
from text_infilling.data.corpora import SPLITS, Corpus, cache_folder, checksum_of, locked, split_hashes
from text_infilling.data.download import DownloadError, sha256
from text_infilling.data.grimm_builder import build_tales
from text_infilling.data.nba_builder import build_reports
from text_infilling.data.pairs import Pair, read_pairs, split_validation
from text_infilling.data.raw_texts import RAW_RELEASES, TALES, RawRelease, fetch
from text_infilling.files import aside_folder, read_json, read_object, write_json

PAIRS = "pairs"  # the value of `--masking` that means the authors' own
_VERSION = 2  # of what is made of the sources: another one is made anew
_MADE = "made.json"  # what a loader says of it: `said`, `blanks`, `notes`, `tales`


@dataclass(frozen=True)
class Source:
    """Where the sentences of a task come from.

    Attributes:
        folder: of its files in `data_dir`.
        pairs: `FOLDER/PAIRS.train.jsonl` and `FOLDER/PAIRS.test.jsonl` are the authors' own pairs.
        masker: the rule that their templates follow.
        grammar: makes up sentences, with blanks for the task `made_for`.
        made_for: see `grammar`.
    """

    folder: str
    pairs: str
    masker: str
    grammar: object
    made_for: str


SOURCES = {
    "grimm": Source("grimm", "lm", "anchors_noun_verb", synthetic_tales, "lm"),
    "prepositions": Source("grimm", "prep", "word_classes", synthetic_tales, "prepositions"),
    "nba": Source("nba", "lm", "anchors_name_number", synthetic_reports, "lm"),
}
# How much of the authors' training pairs the known files hold, by their sha256.
KNOWN_TRAIN = {
    "415e865b6eb1cfb0d699979dd7d67a940fae046cc5acb38d0c26104a888ab31f": "14,593 of their about 16,000 training pairs",
    "79182e1c5aff1154639a0f686d4bcd2872a35e17c39b1aafd25754882b7a9cd1": "15,950 of their 16,000 training pairs",
    "9f2b3524b8ce7018534997a32797d5a3db0894e3bf6a04a8a791ae68124b01e9": "11,941 of their about 20,700 training pairs",
}


def load_corpus(
    task: str,
    name: str = "auto",
    masking: str = PAIRS,
    data_dir: str | Path | None = None,
    cache_dir: str | Path | None = None,
    log: Callable[[str], None] = logging.warning,
    say: Callable[[str], None] = logging.info,
    releases: Mapping[str, RawRelease] = RAW_RELEASES,
) -> Corpus:
    """The corpus asked for, three files of masked lines in the cache.

    Args:
        task: of `SOURCES`.
        name: `grimm` or `nba` as the task has it; `synthetic`; or `auto`: the former where it can be had, else
            synthetic after one warning.
        masking: `pairs` (the authors' own), one of `maskers.MASKINGS`, or `module:function`.
        data_dir: folder that holds `grimm/` or `nba/`; for sentences built from tales, also a folder of text files.
            Given and without them, `auto` fails too. `synthetic` does not read it.
        cache_dir: where prepared files are kept; default `cache_folder()`.
        log: takes the one-line warning of `auto`.
        say: takes what a builder reports, and at every load how the blanks were found.
        releases: where raw text is downloaded from, by its folder.

    Raises:
        ValueError: an unknown name or masking; files that are not what they should be.
        FileNotFoundError: no `data_dir`, nothing in it, or the tagger's data is missing.
        DownloadError: raw text is neither in `data_dir` nor in the cache, and cannot be downloaded (not for `auto`).
        OSError: the cache cannot be written.
    """
    source = SOURCES[task]
    if name not in ("auto", source.folder, "synthetic"):
        raise ValueError(f"unknown corpus {name!r}: --corpus is one of auto, {source.folder}, synthetic")
    cache = Path(cache_dir) if cache_dir is not None else cache_folder()
    if name == "synthetic":
        return _synthetic(task, masking, cache, say)
    where = Path(data_dir) if data_dir is not None else cache
    try:
        if masking == PAIRS:
            return _pairs(task, where, data_dir is not None, cache, say)
        if data_dir is None:
            with locked(cache):
                fetch(releases[source.folder], cache / source.folder, cache / "downloads")
        return _built(task, masking, where, data_dir is not None, cache, say)
    except (_NotThere, DownloadError) as error:
        if name != "auto" or data_dir is not None:
            raise
        log(f"the embedded synthetic corpus takes the place of {source.folder}: {error}")
        return _synthetic(task, masking, cache, say)


class _NotThere(FileNotFoundError):
    """A corpus is not where it was looked for."""


def _pairs(task: str, where: Path, is_given: bool, cache: Path, say) -> Corpus:
    """The authors' own pairs; valid is the last tenth of their training pairs."""
    source = SOURCES[task]
    files = {split: where / source.folder / f"{source.pairs}.{split}.jsonl" for split in ("train", "test")}
    _check_there(files.values(), where, is_given)
    masker = maskers.masker(source.masker, names=_names(where / source.folder))
    hashes = {split: sha256(path) for split, path in files.items()}

    def make(folder: Path) -> dict:
        read = {split: read_pairs(path, masker) for split, path in files.items()}
        _write(folder, read["train"].pairs, read["test"].pairs)
        notes = [f"{split}: {pairs.note}" for split, pairs in read.items() if pairs.note]
        ambiguous = ", ".join(f"{pairs.ambiguous} of {split}" for split, pairs in read.items())
        said = f"pairs of {task} that fit in several ways: {ambiguous}; {masker.name} decides"
        return {"notes": notes, "said": said}

    # Without the tagger's data, pairs that fit in several ways are read otherwise.
    sources = [*hashes.values(), str(tagging.is_there())]
    folder, made = _prepared(cache, f"{task}.{PAIRS}", sources, make, say)
    known = KNOWN_TRAIN.get(hashes["train"])
    note = "; ".join([*([f"train and valid have {known}"] if known else []), *made["notes"]])
    return _corpus(task, task, folder, f"the authors' pairs, {'data_dir' if is_given else 'cache'}", note)


def _built(task: str, masking: str, where: Path, is_given: bool, cache: Path, say) -> Corpus:
    """Sentences from raw text, masked by a rule."""
    source = SOURCES[task]
    if source.folder == "nba":
        files = [where / "nba" / f"sentences.{split}.txt" for split in ("train", "test")]
        _check_there(files, where, is_given)
    else:
        raw = where / "grimm" / TALES
        if not raw.is_dir() and is_given and not (where / "grimm").is_dir():
            raw = where  # a folder of texts of one's own
        files = text_files(raw)
        if not files:
            raise _NotThere(
                _looked_for(f"grimm/{TALES}/*.txt" + (" and no *.txt" if is_given else ""), where, is_given)
            )

    def make(folder: Path) -> dict:
        splits = build_reports(*files) if source.folder == "nba" else build_tales(raw)
        say(splits.report.format())
        masked, made = _masked({"train": splits.train, "test": splits.test}, masking)
        _write(folder, **masked)
        tales = len(splits.report.train.files) + len(splits.report.test.files)
        return {**made, "tales": None if source.folder == "nba" else tales}

    hashes = [sha256(path) for path in files]
    sources = None if ":" in masking else hashes  # what a function does may have changed since
    folder, made = _prepared(cache, f"{task}_built.{masking.replace(':', '-')}", sources, make, say)
    source_note = f"built from {len(files)} files of {'data_dir' if is_given else 'the cache'}"
    note = "not the authors' sentences"
    return _corpus(task, f"{task}_built", folder, source_note, note, made["blanks"], made["tales"])


def _synthetic(task: str, masking: str, cache: Path, say) -> Corpus:
    """The sentences of a grammar with its own blanks, or with those of another rule."""
    source = SOURCES[task]

    def make(folder: Path) -> dict:
        source.grammar.write_corpus(folder, source.made_for)
        if split_hashes(folder) != source.grammar.SHA256[source.made_for]:
            raise ValueError(f"the grammar's sentences differ from the checksums in {source.grammar.__name__}")
        if masking == PAIRS:
            return {"blanks": maskers.BLANKS}
        paths = {split: folder / f"{split}.txt" for split in SPLITS}
        sentences = {split: [words for words, _ in masked_lines.read(path)] for split, path in paths.items()}
        masked, made = _masked(sentences, masking)
        for split, pairs in masked.items():
            masked_lines.write(paths[split], pairs)
        return made

    sources = None if ":" in masking else source.grammar.SHA256[source.made_for].values()
    folder, made = _prepared(cache, f"{task}_synthetic.{masking.replace(':', '-')}", sources, make, say)
    note = "made-up sentences stand in for the authors'"
    return _corpus(task, f"{task}_synthetic", folder, f"embedded, seed {source.grammar.SEED}", note, made["blanks"])


def _masked(sentences: Mapping[str, list[list[str]]], masking: str) -> tuple[dict[str, list[Pair]], dict]:
    """The sentences of each split that fit a rule, with its blanks, and what made.json keeps of it.

    Raises:
        ValueError: no sentence of a split fits.
    """
    masker = maskers.masker(masking, names=maskers.names_of(itertools.chain(*sentences.values())))
    masked = {split: [Pair(*row) for row in maskers.masked(found, masker)] for split, found in sentences.items()}
    if empty := [split for split, pairs in masked.items() if not pairs]:
        raise ValueError(f"--masking={masking} masks no sentence of {' and '.join(empty)}: give another")
    unfit = ", ".join(f"{len(found) - len(masked[split])} of {split}" for split, found in sentences.items())
    said = f"left out, since {masker.name} finds nothing to keep or mask: {unfit}"
    return masked, {"blanks": masker.blanks, "said": said}


def _write(folder: Path, train: Sequence[Pair], test: Sequence[Pair]) -> None:
    """Writes the three files; valid is the last tenth of `train`."""
    for split, pairs in zip(SPLITS, (*split_validation(train), test), strict=True):
        masked_lines.write(folder / f"{split}.txt", pairs)


def _prepared(
    cache: Path, name: str, sources: Iterable[str] | None, make: Callable[[Path], dict], say: Callable[[str], None]
) -> tuple[Path, dict]:
    """The folder of what `make(folder)` writes, and what it returns.

    Args:
        cache: has the folder.
        name: what the folder's name begins with.
        sources: sha256 of all that the content follows from, for which it is made once; None: it is made again, since
            that is not known, and the folder is named by its content.
        make: writes the three files.
        say: takes what `make` left to be said of them, also where they were there already.
    """
    with locked(cache):
        prepared = cache / "prepared"
        folder = None if sources is None else prepared / _named(name, sources)
        if folder is None or not folder.exists():
            prepared.mkdir(exist_ok=True)
            with aside_folder(prepared) as temporary:
                aside = temporary / name
                aside.mkdir()
                write_json(aside / _MADE, make(aside))
                folder = folder or prepared / _named(name, split_hashes(aside).values())
                if not folder.exists():
                    os.rename(aside, folder)
        made = read_object(folder / _MADE)
    if "said" in made:
        say(made["said"])
    return folder, made


def _named(name: str, hashes: Iterable[str]) -> str:
    key = hashlib.sha256(json.dumps([_VERSION, *hashes]).encode()).hexdigest()[:12]
    return f"{name}.{key}"


def _corpus(
    task: str, name: str, folder: Path, source: str, note: str, blanks: int = maskers.BLANKS, tales: int | None = None
) -> Corpus:
    paths = (folder / f"{split}.txt" for split in SPLITS)
    return Corpus(name, *paths, source, note, checksum_of(split_hashes(folder)), task=task, blanks=blanks, tales=tales)


def _check_there(files: Iterable[Path], where: Path, is_given: bool) -> None:
    missing = [str(path.relative_to(where)) for path in files if not path.is_file()]
    if missing:
        raise _NotThere(_looked_for(" and ".join(missing), where, is_given))


def _looked_for(what: str, where: Path, is_given: bool) -> str:
    return f"no {what} in {f'--data_dir={where}' if is_given else f'the cache {where}, and no --data_dir'}"


def _names(folder: Path) -> frozenset[str]:
    """The names of players and teams in names.json, where the file is there."""
    path = folder / "names.json"
    if not path.is_file():
        return frozenset()
    return frozenset(name for names in read_json(path).values() for name in names)
