"""Makes a corpus from the user's own texts: reads, cuts, tokenises, optionally masks by a rule, and holds out."""

import contextlib
import hashlib
import heapq
import html
import html.entities
import itertools
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import NamedTuple

from text_infilling.corpora.corpus import SPLITS, Corpus, checksum_of, split_hashes
from text_infilling.corpora.source_texts import LONGEST_LINE, SourceFile
from text_infilling.masking import masked_lines, rules
from text_infilling.text.blanks import has_blank
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils import files
from text_infilling.utils.progress import LinesProgress

FEWEST_SENTENCES = 20
HELD_OUT = 1000  # upper limit of validation and of test sentences each, which are a twentieth of all but at least 2
EPOCH_SENTENCES = 100_000  # a pass over a much larger text is several epochs, so that a model is saved before it ends
LAYOUTS = ("lines", "paragraphs")
PARAGRAPH_LINES = 1000  # maximum number of lines in a paragraph
MOST_PARTS = 200  # maximum number of files open at once
MID_SENTENCE = 0.5  # if more than this share of lines ends in mid-sentence, they are probably lines of paragraphs
_ENDS = frozenset(".!?")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")


class Reading(NamedTuple):
    """How texts are read.

    Attributes:
        tokenizer: tokenizer of the run.
        known: vocabulary of a run to resume, which affects how text is tokenised.
        layout: one of `LAYOUTS`.
        max_words: maximum number of words in a sentence.
        column: column of CSV or TSV, or key of JSON Lines, that holds the texts; None for plain text.
    """

    tokenizer: Tokenizer
    known: Set[str]
    layout: str
    max_words: int
    column: str | None = None


def sentences(
    lines: Iterable[str], tokenizer: Tokenizer, max_words: int, known: Collection[str] = frozenset()
) -> Iterator[list[str]]:
    """Yields the word lists that a model learns from: one per line, or several parts if the line is too long.

    A part has as many whole sentences as fit into `max_words`; a sentence that is longer by itself is cut. Parts of
    fewer than two words are left out, since no word would remain around a blank. `known` is the vocabulary of a run to
    resume, which affects how text is tokenised.
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


def _lines(sources: Sequence[SourceFile], column: str | None, log) -> Iterator[str]:
    """Yields the lines of the texts in the files, with an empty line between two files.

    Raises:
        ValueError: see `SourceFile.texts`.
    """
    progress = LinesProgress(sum(source.size for source in sources), lambda text: log(f"reading: {text}"))
    read = before = 0
    for source in sources:
        if read:
            yield ""
        for line in source.texts(column):
            read += 1
            progress(read, before + source.bytes_read)
            yield line
        before += source.size


def decode_entities(text: str) -> tuple[str, list[str]]:
    """Returns a text with its HTML entities decoded, and the list of these; only known entities with `;` are decoded.

    >>> decode_entities("Ben &amp; Jerry&#39;s &unknown; AT&T")
    ("Ben & Jerry's &unknown; AT&T", ['&amp;', '&#39;'])
    """
    found = []

    def character(match: re.Match) -> str:
        entity = match[0]
        if entity[1] != "#" and entity[1:] not in html.entities.html5:
            return entity
        found.append(entity)
        return html.unescape(entity)

    return _ENTITY.sub(character, text), found


def _without_entities(lines: Iterable[str], log) -> Iterator[str]:
    """Yields the lines with their HTML entities decoded; logs the number of entities after the last line."""
    count, example = 0, ""
    for line in lines:
        if "&" in line:
            line, found = decode_entities(line)
            count, example = count + len(found), example or next(iter(found), "")
        yield line
    if count:
        log(f"decoded {count:,} HTML entities, e.g. {example}")


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yields paragraphs: lines joined up to an empty line, or up to the limits on lines and characters."""
    paragraph: list[str] = []
    characters = 0
    for line in lines:
        if line.strip():
            paragraph.append(line.strip())
            characters += len(line)
        if paragraph and (not line.strip() or len(paragraph) == PARAGRAPH_LINES or characters >= LONGEST_LINE):
            yield " ".join(paragraph)
            paragraph, characters = [], 0
    if paragraph:
        yield " ".join(paragraph)


def _warn_of_paragraphs(source: SourceFile, column: str | None, log) -> None:
    """Logs a warning if the first lines of a text seem to be lines of paragraphs."""
    lines = (line.strip() for line in itertools.islice(source.texts(column), PARAGRAPH_LINES))
    ends = [(line[:1], line[-1:]) for line in lines]  # the first and the last character of each
    pairs = [(one, other) for (_, one), (other, _) in itertools.pairwise(ends) if one and other]
    broken = sum(one.isalnum() and other.islower() for one, other in pairs)
    if len(pairs) >= FEWEST_SENTENCES and ("", "") in ends and broken > MID_SENTENCE * len(pairs):
        remedy = "layout=paragraphs joins lines up to the next empty line"
        log(f"warning: most lines of {source.name} end in mid-sentence; {remedy}")


def _without_blanks(lines: Iterable[str], log) -> Iterator[str]:
    """Yields the lines that contain no blank (whose words are unknown); logs the number of the others at the end."""
    left_out = 0
    for line in lines:
        if has_blank(line):
            left_out += 1
        else:
            yield line
    if left_out:
        log(f"warning: left out {left_out:,} lines that already contain blanks (____)")


def first_lengths(sources: Sequence[SourceFile], reading: Reading, most: int) -> list[int]:
    """Returns the numbers of words of the first sentences of the texts, at most `most`; see `corpus`."""
    return [len(words) for words in itertools.islice(_found(sources, reading, lambda _: None), most)]


def corpus(
    sources: Sequence[SourceFile],
    folder: Path,
    reading: Reading,
    masking: str,
    log: Callable[[str], None],
    started_with: str | None = None,
) -> tuple[Corpus, dict[str, int]]:
    """Writes the sentences of the texts to three files; returns the corpus and the number of sentences per split.

    The split of a sentence depends only on its words, so all repeats of a sentence are in the same split.

    Args:
        sources: one file, or the files of one folder; see `source_files`.
        folder: destination; files made earlier from the same texts with the same options are reused.
        reading: how the texts are read.
        masking: `any`, or the name of a rule; with a rule, the lines include their blanks.
        log: called with one line of text at a time.
        started_with: checksum of the sentences that a run started with; sentences with another checksum are an error.

    Raises:
        ValueError: there are too few sentences, or not those of `started_with`; a file is not UTF-8 or not in its
            format; a table is given without a column.
        OSError: a file cannot be read or written.
    """
    rule = None if masking == "any" else rules.load_rule(masking)
    made, key = folder / "made.json", _key(sources, reading, masking)
    # A custom function may have changed since the files were made.
    if not made.exists() or _read_made(made)["key"] != key or ":" in masking:
        with files.written_aside(folder) as aside:
            aside.mkdir()
            counts = _make(sources, aside, reading, rule, log)
            if started_with not in (None, checksum_of(split_hashes(aside))):
                raise ValueError(
                    f"{folder.parent} was started with other sentences than masking={masking} makes of "
                    f"{_name(sources)} now: give the same texts again, or set overwrite"
                )
            files.write_json(aside / made.name, {"key": key, "counts": counts})
    counts = _read_made(made)["counts"]
    log(", ".join(f"{count:,} sentences for {split}" for split, count in counts.items()))
    splits = (folder / f"{split}.txt" for split in SPLITS)
    what, checksum = _description(sources), checksum_of(split_hashes(folder))
    return Corpus("own", *splits, what, "", checksum, blanks=rule.blanks if rule else None), counts


def _key(sources: Sequence[SourceFile], reading: Reading, masking: str) -> str:
    """Returns the checksum of everything that the sentences depend on."""
    of_what = [*(file.sha256 for file in sources), str(reading.tokenizer), sorted(reading.known)]
    of_what += [reading.layout, reading.max_words, masking, *([] if reading.column is None else [reading.column])]
    return hashlib.sha256(json.dumps(of_what).encode()).hexdigest()


def _name(sources: Sequence[SourceFile]) -> str:
    """Returns the path of a single file, or that of the folder of several."""
    return sources[0].name if len(sources) == 1 else str(Path(sources[0].name).parent)


def _description(sources: Sequence[SourceFile]) -> str:
    """Returns the source of a corpus as a report shows it."""
    path = Path(_name(sources))
    if len(sources) > 1:
        return f"{len(sources)} files of {path.name}/"
    return path.name if path.is_file() else sources[0].name


def _read_made(path: Path) -> dict:
    """Returns the content of the made.json that `corpus` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: its content is invalid.
    """
    made = files.read_object(path, "key", "counts")
    counts = made["counts"]
    if not isinstance(counts, dict) or set(counts) != set(SPLITS) or any(type(n) is not int for n in counts.values()):
        raise ValueError(f"{path} should have the number of sentences of each split. Received: {files.shown(counts)}")
    return made


def _found(sources: Sequence[SourceFile], reading: Reading, log: Callable[[str], None]) -> Iterator[list[str]]:
    """Yields the word lists of the sentences of the texts."""
    lines = _without_entities(_lines(sources, reading.column, log), log)
    if reading.layout == "paragraphs":
        lines = _paragraphs(lines)
    return sentences(_without_blanks(lines, log), reading.tokenizer, reading.max_words, reading.known)


def _make(
    sources: Sequence[SourceFile],
    folder: Path,
    reading: Reading,
    rule: rules.WordRule | None,
    log: Callable[[str], None],
) -> dict[str, int]:
    """Writes the three files; returns the number of sentences in each. The arguments are those of `corpus`."""
    for file in sources:  # checks the formats of all files first, since reading may take long
        file.table(reading.column)
    if reading.layout == "lines":
        _warn_of_paragraphs(sources[0], reading.column, log)
    everything = folder / "all.txt"
    count = _write_all(everything, _found(sources, reading, log), rule)
    if count < FEWEST_SENTENCES:
        if not any(line.strip() for line in _lines(sources, reading.column, log)):
            raise ValueError(
                f"{_name(sources)} is empty or has blank lines only: expected at least {FEWEST_SENTENCES} sentences, "
                "one per line"
            )
        masking = rule.name if rule else "any"
        names = "; names are words joined by _" if masking == "anchors_name_number" else ""
        raise ValueError(
            f"{_name(sources)} has {count} sentences that masking={masking} can mask, at least "
            f"{FEWEST_SENTENCES} are needed{names}"
        )
    counts = _split(everything, folder, count)
    if empty := [split for split in SPLITS if not counts[split]]:
        raise ValueError(
            f"{_name(sources)} has too few different sentences: most of the {count:,} are repeats, and none is left "
            f"for {' and '.join(empty)}"
        )
    everything.unlink()
    return counts


def _write_all(path: Path, found: Iterator[list[str]], rule: rules.WordRule | None) -> int:
    """Writes the sentences, with their blanks if there is a rule, one per line; returns the number of lines."""
    if rule is None:
        lines = map(" ".join, found)
    else:
        lines = (masked_lines.format_line(*row) for row in rules.masked_sentences(found, rule))
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)
    with open(path, encoding="utf-8") as written:
        return sum(1 for _ in written)


def _split(everything: Path, folder: Path, count: int) -> dict[str, int]:
    """Splits the `count` lines of `everything` into three files; returns the number of lines in each.

    A held-out sentence is written once, however often it occurs in the text. The lines of a large text are distributed
    over parts of train.txt, so that a shuffle within a window mixes sentences from the whole text.
    """
    held_out_count = 2 * min(HELD_OUT, max(2, count // 20))
    with open(everything, encoding="utf-8") as lines:
        lowest = _lowest(map(_hash, lines), held_out_count)
    if len(lowest) < held_out_count:  # these are all the different sentences
        lowest = lowest[: 2 * max(1, len(lowest) // 20)]
    parts = [folder / f"train.{i}.part" for i in range(min(MOST_PARTS, max(1, count // EPOCH_SENTENCES)))]
    counts = dict.fromkeys(SPLITS, 0)
    split_of = {key: "test" if i < len(lowest) // 2 else "valid" for i, key in enumerate(lowest)}
    written = set()
    with contextlib.ExitStack() as stack:
        train = [stack.enter_context(open(path, "w", encoding="utf-8")) for path in parts]
        held_out = {
            split: stack.enter_context(open(folder / f"{split}.txt", "w", encoding="utf-8"))
            for split in ("valid", "test")
        }
        for line in stack.enter_context(open(everything, encoding="utf-8")):
            key = _hash(line)
            split = split_of.get(key, "train")
            if split == "train":
                train[key % len(train)].write(line)
            elif key in written:
                continue
            else:
                held_out[split].write(line)
                written.add(key)
            counts[split] += 1
    with open(folder / "train.txt", "wb") as out:
        for path in parts:
            with open(path, "rb") as part:
                shutil.copyfileobj(part, out)
            path.unlink()
    return counts


def _lowest(numbers: Iterable[int], count: int) -> list[int]:
    """Returns the lowest `count` different numbers in order, or all if there are fewer; holds no others in memory."""
    heap: list[int] = []  # of negated numbers, so that the highest number is first
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


def _hash(line: str) -> int:
    """Returns a 64-bit hash of the words of a line."""
    words = line.partition("\t")[0].strip().encode("utf-8")
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little")
