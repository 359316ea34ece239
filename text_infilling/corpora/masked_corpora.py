"""The corpora of Grimm's tales, NBA reports and prepositions, whose lines include their blanks (see `masked_lines`).

With the masking `pairs`, the authors' pairs are looked up in `data_dir`, then in the cache (`TEXT_INFILLING_DATA`, else
`~/.cache/text_infilling`). With any other masking, sentences are built from raw text, which is looked up in the same
places and downloaded otherwise, and masked by that rule. Sentences from the grammars of this project are used on
request, or if no others are available.
Prepared corpora are kept in the cache; a folder's name contains a hash of its sources.
"""

import functools
import hashlib
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from absl import logging

from text_infilling.corpora.builders.common import text_files
from text_infilling.corpora.builders.grimm import build_tales
from text_infilling.corpora.builders.nba import build_reports
from text_infilling.corpora.cache import cache_folder, prepared
from text_infilling.corpora.corpus import SPLITS, Corpus, checksum_of, split_hashes
from text_infilling.corpora.download import DownloadError
from text_infilling.corpora.pairs import Pair, read_pairs, split_validation
from text_infilling.corpora.raw_texts import RAW_RELEASES, TALES, RawRelease, fetch
from text_infilling.corpora.synthetic import reports, tales
from text_infilling.masking import masked_lines, rules, tagging
from text_infilling.utils.files import read_json, read_object, sha256, write_json

PAIRS = "pairs"  # the value of `--masking` for the authors' blanks
_VERSION = 3  # of the prepared files: with another version they are prepared again
_MADE = "made.json"  # description of a prepared corpus: `summary`, `blanks`, `notes`, `tales`


@dataclass(frozen=True)
class Source:
    """The sources of a task's sentences.

    Attributes:
        folder: name of its folder in `data_dir`.
        pairs: file name prefix: `FOLDER/PAIRS.train.jsonl` and `FOLDER/PAIRS.test.jsonl` are the authors' pairs.
        rule: name of the rule that the authors' templates follow.
        grammar: module that generates sentences, with blanks for the task `made_for`.
        made_for: see `grammar`.
    """

    folder: str
    pairs: str
    rule: str
    grammar: object
    made_for: str


SOURCES = {
    "grimm": Source("grimm", "lm", "anchors_noun_verb", tales, "lm"),
    "prepositions": Source("grimm", "prep", "word_classes", tales, "prepositions"),
    "nba": Source("nba", "lm", "anchors_name_number", reports, "lm"),
}
# The part of the authors' training pairs that each known file holds, by the file's sha256.
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
    """Returns the requested corpus: three files of masked lines in the cache.

    Args:
        task: a key of `SOURCES`.
        name: the task's folder (`grimm` or `nba`), `synthetic`, or `auto` (the former if available, else synthetic
            after one warning).
        masking: `pairs` (the authors' blanks), one of `masking.rules.MASKINGS`, or `module:function`.
        data_dir: folder that holds `grimm/` or `nba/`; for sentences built from tales, also a folder of text files. If
            it is given but lacks them, `auto` fails too. `synthetic` does not read it.
        cache_dir: folder for prepared files; default `cache_folder()`.
        log: called with the one-line warning of `auto`.
        say: called with the report of a builder, and at every load with the statistics of the blanks.
        releases: the raw texts to download, by folder name.

    Raises:
        ValueError: the name or the masking is unknown, or a file has invalid content.
        FileNotFoundError: `data_dir` does not exist or lacks the files, or the tagger's data is missing.
        DownloadError: raw text is neither in `data_dir` nor in the cache, and cannot be downloaded (not for `auto`).
        OSError: the cache cannot be written.
    """
    source = SOURCES[task]
    if name not in ("auto", source.folder, "synthetic"):
        raise ValueError(f"unknown corpus {name!r}: corpus is one of auto, {source.folder}, synthetic")
    cache = Path(cache_dir) if cache_dir is not None else cache_folder()
    if name == "synthetic":
        return _synthetic(task, masking, cache, say)
    where = Path(data_dir) if data_dir is not None else cache
    try:
        if masking == PAIRS:
            return _pairs(task, where, data_dir is not None, cache, say)
        if data_dir is None:
            fetch(releases[source.folder], source.folder, cache)
        return _built(task, masking, where, data_dir is not None, cache, say)
    except (_NotThere, DownloadError) as error:
        if name != "auto" or data_dir is not None:
            raise
        log(f"using the embedded synthetic corpus instead of {source.folder}: {error}")
        return _synthetic(task, masking, cache, say)


class _NotThere(FileNotFoundError):
    """The error for a corpus that is not in the searched folder."""


def _pairs(task: str, where: Path, is_given: bool, cache: Path, say) -> Corpus:
    """Returns the corpus of the authors' pairs; valid is the last tenth of their training pairs."""
    source = SOURCES[task]
    files = {split: where / source.folder / f"{source.pairs}.{split}.jsonl" for split in ("train", "test")}
    _check_there(files.values(), where, is_given)
    rule = rules.load_rule(source.rule, names=_names(where / source.folder))
    hashes = {split: sha256(path) for split, path in files.items()}

    def make(folder: Path) -> dict:
        read = {split: read_pairs(path, rule) for split, path in files.items()}
        _write(folder, read["train"].pairs, read["test"].pairs)
        notes = [f"{split}: {pairs.note}" for split, pairs in read.items() if pairs.note]
        ambiguous = ", ".join(f"{pairs.ambiguous} of {split}" for split, pairs in read.items())
        summary = f"{task} templates that fit in several ways: {ambiguous}; {rule.name} decides"
        return {"notes": notes, "summary": summary}

    # Part of the key, since ambiguous pairs are read differently without the tagger's data.
    sources = [*hashes.values(), str(tagging.is_there())]
    folder, made = _prepared(cache, f"{task}.{PAIRS}", sources, make, say)
    known = KNOWN_TRAIN.get(hashes["train"])
    note = "; ".join([*([f"train and valid have {known}"] if known else []), *made["notes"]])
    return _corpus(task, task, folder, f"the authors' pairs, {'data_dir' if is_given else 'cache'}", note)


def _built(task: str, masking: str, where: Path, is_given: bool, cache: Path, say) -> Corpus:
    """Returns the corpus of sentences built from raw text and masked by a rule."""
    source = SOURCES[task]
    if source.folder == "nba":
        files = [where / "nba" / f"sentences.{split}.txt" for split in ("train", "test")]
        _check_there(files, where, is_given)
    else:
        raw = where / "grimm" / TALES
        if not raw.is_dir() and is_given and not (where / "grimm").is_dir():
            raw = where  # the user's own folder of texts
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
    sources = None if ":" in masking else hashes  # a custom function may have changed since the last call
    folder, made = _prepared(cache, f"{task}_built.{masking.replace(':', '-')}", sources, make, say)
    source_note = f"built from {len(files)} files of {'data_dir' if is_given else 'the cache'}"
    note = "not the authors' sentences"
    return _corpus(task, f"{task}_built", folder, source_note, note, made["blanks"], made["tales"])


def _synthetic(task: str, masking: str, cache: Path, say) -> Corpus:
    """Returns the corpus of a grammar's sentences, with its blanks or with those of another rule."""
    source = SOURCES[task]

    def make(folder: Path) -> dict:
        source.grammar.write_corpus(folder, source.made_for)
        if split_hashes(folder) != source.grammar.SHA256[source.made_for]:
            raise ValueError(f"the grammar's sentences differ from the checksums in {source.grammar.__name__}")
        if masking == PAIRS:
            return {"blanks": rules.BLANKS_PER_SENTENCE}
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
    """Returns the sentences of each split that the rule can mask, with their blanks, and entries for made.json.

    Raises:
        ValueError: the rule masks no sentence of a split.
    """
    rule = rules.load_rule(masking, names=rules.names_of(itertools.chain(*sentences.values())))
    masked = {split: [Pair(*row) for row in rules.masked_sentences(found, rule)] for split, found in sentences.items()}
    if empty := [split for split, pairs in masked.items() if not pairs]:
        raise ValueError(f"masking={masking} masks no sentence of {' and '.join(empty)}: use another masking")
    unfit = ", ".join(f"{len(found) - len(masked[split])} of {split}" for split, found in sentences.items())
    summary = f"sentences left out because {rule.name} finds nothing to keep or mask: {unfit}"
    return masked, {"blanks": rule.blanks, "summary": summary}


def _write(folder: Path, train: Sequence[Pair], test: Sequence[Pair]) -> None:
    """Writes the three files; valid is the last tenth of `train`."""
    for split, pairs in zip(SPLITS, (*split_validation(train), test), strict=True):
        masked_lines.write(folder / f"{split}.txt", pairs)


def _prepared(
    cache: Path, name: str, sources: Iterable[str] | None, make: Callable[[Path], dict], say: Callable[[str], None]
) -> tuple[Path, dict]:
    """Returns the folder that `make(folder)` fills, and the description that it returns.

    Args:
        cache: parent of the parent of the folder.
        name: prefix of the folder's name.
        sources: sha256s of everything that determines the content, which is then made only once. None if that is
            unknown: the content is made again, and the folder is named by a hash of it.
        make: writes the three files and returns their description.
        say: called with the description's `summary`, also if the files exist already.
    """

    def fill(folder: Path) -> None:
        folder.mkdir()
        write_json(folder / _MADE, make(folder))

    if sources is not None:
        folder = prepared(cache, cache / "prepared" / _named(name, sources), fill)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / name
            fill(made)
            target = cache / "prepared" / _named(name, split_hashes(made).values())
            folder = prepared(cache, target, functools.partial(shutil.copytree, made))
    made = read_object(folder / _MADE)
    if "summary" in made:
        say(made["summary"])
    return folder, made


def _named(name: str, hashes: Iterable[str]) -> str:
    key = hashlib.sha256(json.dumps([_VERSION, *hashes]).encode()).hexdigest()[:12]
    return f"{name}.{key}"


def _corpus(
    task: str,
    name: str,
    folder: Path,
    source: str,
    note: str,
    blanks: int = rules.BLANKS_PER_SENTENCE,
    tales: int | None = None,
) -> Corpus:
    paths = (folder / f"{split}.txt" for split in SPLITS)
    return Corpus(name, *paths, source, note, checksum_of(split_hashes(folder)), task=task, blanks=blanks, tales=tales)


def _check_there(files: Iterable[Path], where: Path, is_given: bool) -> None:
    missing = [str(path.relative_to(where)) for path in files if not path.is_file()]
    if missing:
        raise _NotThere(_looked_for(" and ".join(missing), where, is_given))


def _looked_for(what: str, where: Path, is_given: bool) -> str:
    return f"no {what} in {f'data_dir={where}' if is_given else f'the cache {where}, and no data_dir'}"


def _names(folder: Path) -> frozenset[str]:
    """Returns the names of players and teams in names.json, none if the file is missing."""
    path = folder / "names.json"
    if not path.is_file():
        return frozenset()
    return frozenset(name for names in read_json(path).values() for name in names)
