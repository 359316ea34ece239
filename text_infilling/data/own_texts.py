"""The sentences of one's own texts: read, cut, tokenised, masked where a rule says how, and held out."""

import contextlib
import hashlib
import heapq
import itertools
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from pathlib import Path

from text_infilling import files, maskers
from text_infilling.data import masked_lines
from text_infilling.data.builders import decoded, text_files
from text_infilling.data.corpora import SPLITS, Corpus, checksum_of, split_hashes
from text_infilling.data.download import sha256
from text_infilling.progress import LinesProgress
from text_infilling.tokenizer import Tokenizer, has_blank

FEWEST_SENTENCES = 20
HELD_OUT = 1000  # sentences for validation and as many for the test, at most; a twentieth of all, at least 2
EPOCH_SENTENCES = 100_000  # a pass over many more is several epochs, so that there is a model long before it ends
LAYOUTS = ("lines", "paragraphs")
PARAGRAPH_LINES = 1000  # at most
MOST_PARTS = 200  # files that are open at once
MID_SENTENCE = 0.5  # share of lines that end in mid-sentence from which on they are probably of paragraphs
_ENDS = frozenset(".!?")


def sentences(
    lines: Iterable[str], tokenizer: Tokenizer, max_words: int, known: Collection[str] = frozenset()
) -> Iterator[list[str]]:
    """The sentences that a model learns from: each line; a longer one in parts of whole sentences.

    A part has as many sentences as fit into `max_words`; a sentence that does not fit is cut there. Lines of less than
    two words are left out: nothing is left of them to keep. `known` are the words of a run that is gone on with, as it
    reads text.
    """
    for line in lines:
        words = tokenizer.words(line, known)
        for part in _parts(words, max_words) if len(words) > max_words else [words]:
            if len(part) > 1:
                yield part


def _parts(words: list[str], max_words: int) -> Iterator[list[str]]:
    part: list[str] = []
    ends = [i + 1 for i, word in enumerate(words) if word in _ENDS]
    for start, end in itertools.pairwise([0, *ends, len(words)]):
        if len(part) + end - start > max_words and part:
            yield part
            part = []
        while end - start > max_words:
            yield words[start : start + max_words]
            start += max_words
        part = part + words[start:end]
    if part:
        yield part


def _lines(paths: Sequence[Path], log) -> Iterator[str]:
    """The lines of UTF-8 files, an empty one between two files.

    Raises:
        ValueError: one is not UTF-8.
    """
    progress = LinesProgress(sum(path.stat().st_size for path in paths), lambda text: log(f"reading: {text}"))
    read = place = 0
    for path in paths:
        if path != paths[0]:
            yield ""
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                read, place = read + 1, place + len(line)
                progress(read, place)
                yield decoded(line, path, number).removeprefix("\ufeff" if number == 1 else "")


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines joined until an empty one."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line.strip())
        if paragraph and (not line.strip() or len(paragraph) == PARAGRAPH_LINES):
            yield " ".join(paragraph)
            paragraph = []
    if paragraph:
        yield " ".join(paragraph)


def _warn_of_paragraphs(path: Path, log) -> None:
    """Says so where the lines of a text seem to be those of paragraphs, by its first ones."""
    lines = [line.strip() for line in itertools.islice(_lines([path], log), PARAGRAPH_LINES)]
    pairs = [(one, other) for one, other in itertools.pairwise(lines) if one and other]
    broken = sum(one[-1].isalnum() and other[0].islower() for one, other in pairs)
    if len(pairs) >= FEWEST_SENTENCES and "" in lines and broken > MID_SENTENCE * len(pairs):
        log(f"warning: most lines of {path} end in mid-sentence; --layout=paragraphs joins them until an empty one")


def _without_blanks(lines: Iterable[str], log) -> Iterator[str]:
    """The lines without those that have a blank, whose words nobody knows; how many these were is said at the end."""
    left_out = 0
    for line in lines:
        if has_blank(line):
            left_out += 1
        else:
            yield line
    if left_out:
        log(f"warning: {left_out:,} lines are left out, they have blanks (____) themselves")


def check_there(source: Path) -> None:
    """Raises FileNotFoundError where there is no text file, and no folder of them."""
    _paths(source)


def _paths(source: Path) -> list[Path]:
    if source.is_dir():
        found = text_files(source)
        if not found:
            raise FileNotFoundError(f"{source} has no *.txt: expected a folder of texts, or a text file")
        return found
    if not source.is_file():
        raise FileNotFoundError(f"{source} does not exist: expected a text file, or a folder of them")
    return [source]


def corpus(
    source: Path,
    folder: Path,
    tokenizer: Tokenizer,
    known: Set[str],
    layout: str,
    max_words: int,
    masking: str,
    log,
    begun_with: str | None = None,
) -> tuple[Corpus, dict[str, int]]:
    """The sentences of the texts in three files, and how many there are in each.

    Which are held out depends on the sentences alone, so repeats of one are all in the same file.

    Args:
        source: a UTF-8 text file, or a folder of them (`*.txt`).
        folder: gets the files; what was made of the same texts in the same way is not made again.
        tokenizer: of the run.
        known: words of a run that is gone on with.
        layout: of `LAYOUTS`.
        max_words: of a sentence.
        masking: `any`, or a rule, by which each line then has its blanks.
        log: takes a line.
        begun_with: checksum of the sentences that a training was begun with; no others take their place in `folder`.

    Raises:
        ValueError: too few sentences; other ones than `begun_with`; a file that is not UTF-8.
        OSError: a file cannot be read or written.
    """
    paths = _paths(source)
    masker = None if masking == "any" else maskers.masker(masking)
    of_what = [*(sha256(path) for path in paths), str(tokenizer), sorted(known)]
    of_what += [layout, max_words, masking]
    made = folder / "made.json"
    key = hashlib.sha256(json.dumps(of_what).encode()).hexdigest()
    # What a function of one's own does may have changed since.
    if not made.exists() or _read_made(made)["key"] != key or ":" in masking:
        with files.written_aside(folder) as aside:
            aside.mkdir()
            counts = _make(source, paths, aside, tokenizer, known, layout, max_words, masking, masker, log)
            if begun_with not in (None, checksum_of(split_hashes(aside))):
                raise ValueError(
                    f"{folder.parent} was begun with other sentences than --masking={masking} makes of {source} now: "
                    "give the same texts again, or --overwrite"
                )
            files.write_json(aside / made.name, {"key": key, "counts": counts})
    counts = _read_made(made)["counts"]
    log(", ".join(f"{count:,} sentences for {split}" for split, count in counts.items()))
    splits = (folder / f"{split}.txt" for split in SPLITS)
    what = source.name if len(paths) == 1 else f"{len(paths)} files of {source.name}/"
    checksum = checksum_of(split_hashes(folder))
    return Corpus("own", *splits, what, "", checksum, blanks=masker.blanks if masker else None), counts


def _read_made(path: Path) -> dict:
    """Returns what `corpus` wrote to made.json.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not that.
    """
    made = files.read_object(path, "key", "counts")
    counts = made["counts"]
    if not isinstance(counts, dict) or set(counts) != set(SPLITS) or any(type(n) is not int for n in counts.values()):
        raise ValueError(f"{path} should have the number of sentences of each split. Received: {files.shown(counts)}")
    return made


def _make(source, paths, folder, tokenizer, known, layout, max_words, masking, masker, log) -> dict[str, int]:
    """Writes the three files; how many sentences each has. Arguments as of `corpus`."""
    everything = folder / "all.txt"
    lines = _lines(paths, log)
    if layout == "paragraphs":
        lines = _paragraphs(lines)
    else:
        _warn_of_paragraphs(paths[0], log)
    found = sentences(_without_blanks(lines, log), tokenizer, max_words, known)
    if masker is None:
        lines = map(" ".join, found)
    else:
        lines = (masked_lines.format_line(*row) for row in maskers.masked(found, masker))
    with open(everything, "w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
    with open(everything, encoding="utf-8") as lines:
        count = sum(1 for _ in lines)
    if count < FEWEST_SENTENCES:
        names = "; names are words joined by _" if masking == "anchors_name_number" else ""
        raise ValueError(
            f"{source} has {count} sentences that --masking={masking} can mask, at least {FEWEST_SENTENCES} "
            f"are needed{names}"
        )
    counts = _split(everything, folder, count)
    if not all(counts.values()):
        raise ValueError(f"{source} has too few different sentences: {counts} after the same ones stand together")
    everything.unlink()
    return counts


def _split(everything: Path, folder: Path, count: int) -> dict[str, int]:
    """Writes the three files of so many lines; how many each has.

    A held-out sentence is there once, however often it stands in the text. The lines of a large text are dealt out, so
    that sentences of all of it meet where it is shuffled in parts.
    """
    wanted = 2 * min(HELD_OUT, max(2, count // 20))
    with open(everything, encoding="utf-8") as lines:
        lowest = _lowest(map(_number, lines), wanted)
    if len(lowest) < wanted:  # there are no other sentences
        lowest = lowest[: 2 * max(1, len(lowest) // 20)]
    parts = [folder / f"train.{i}.part" for i in range(min(MOST_PARTS, max(1, count // EPOCH_SENTENCES)))]
    counts = dict.fromkeys(SPLITS, 0)
    split_of = {number: "test" if place < len(lowest) // 2 else "valid" for place, number in enumerate(lowest)}
    written = set()
    with contextlib.ExitStack() as stack:
        train = [stack.enter_context(open(path, "w", encoding="utf-8")) for path in parts]
        held_out = {
            split: stack.enter_context(open(folder / f"{split}.txt", "w", encoding="utf-8"))
            for split in ("valid", "test")
        }
        for line in stack.enter_context(open(everything, encoding="utf-8")):
            number = _number(line)
            split = split_of.get(number, "train")
            if split == "train":
                train[number % len(train)].write(line)
            elif number in written:
                continue
            else:
                held_out[split].write(line)
                written.add(number)
            counts[split] += 1
    with open(folder / "train.txt", "wb") as out:
        for path in parts:
            with open(path, "rb") as part:
                shutil.copyfileobj(part, out)
            path.unlink()
    return counts


def _lowest(numbers: Iterable[int], count: int) -> list[int]:
    """The lowest `count` different numbers in order, or all if they are fewer; in memory of these alone."""
    heap: list[int] = []  # of their negatives: the highest of them first
    among: set[int] = set()
    for number in numbers:
        if number in among or (len(heap) == count and number > -heap[0]):
            continue
        among.add(number)
        if len(heap) < count:
            heapq.heappush(heap, -number)
        else:
            among.remove(-heapq.heapreplace(heap, -number))
    return sorted(among)


def _number(line: str) -> int:
    """A number of a sentence, as if drawn at random, the same for the same words."""
    words = line.partition("\t")[0].strip().encode("utf-8")
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little")
