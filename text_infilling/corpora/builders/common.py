"""Shared code of the sentence builders: finds and reads text, drops repeats, and counts what is kept and left out.

Nothing is dropped silently: every token read is either in a sentence or counted under a reason.
"""

import codecs
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from text_infilling.utils.columns import aligned

CONVERSION = "iconv -f {encoding} -t UTF-8 {old} > {new} && mv {new} {old}"


@dataclass
class SplitCounts:
    """The counts of one split: what was read, kept and left out.

    Attributes:
        files: names of the files, in the order of their sentences.
        lines_in: non-empty lines of text read.
        tokens_in: tokens read.
        lines_out: sentences kept.
        tokens_out: tokens kept.
        left_out: tokens left out, by reason; their sum plus `tokens_out` equals `tokens_in`.
        times: number of token sequences left out, by reason.
    """

    files: list[str] = field(default_factory=list)
    lines_in: int = 0
    tokens_in: int = 0
    lines_out: int = 0
    tokens_out: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)

    def leave(self, reason: str, tokens: int) -> None:
        """Counts a sequence of `tokens` tokens as left out for `reason`; ignores an empty sequence."""
        if tokens:
            self.left_out[reason] += tokens
            self.times[reason] += 1


@dataclass
class BuildReport:
    """The counts of both splits.

    Attributes:
        source: the folder or the files read.
        train, test: counts of each split.
        vocabulary: number of word types over both splits.
        notes: one sentence per reason for skipping files.
    """

    source: str
    train: SplitCounts = field(default_factory=SplitCounts)
    test: SplitCounts = field(default_factory=SplitCounts)
    vocabulary: int = 0
    notes: list[str] = field(default_factory=list)

    def format(self) -> str:
        """Returns the report as an aligned plain-text table, without a newline at the end."""
        splits = (self.train, self.test)
        rows = [("", "train", "test"), ("files", *(f"{len(counts.files):,}" for counts in splits))]
        for key in ("lines_in", "tokens_in", "lines_out", "tokens_out"):
            rows.append((key.replace("_", " "), *(f"{getattr(counts, key):,}" for counts in splits)))
        for reason in dict.fromkeys([*self.train.left_out, *self.test.left_out]):
            cells = (f"{counts.left_out[reason]:,} ({counts.times[reason]:,})" for counts in splits)
            rows.append((f"left out: {reason}", *cells))
        lines = [f"Built from {self.source}. Left out: tokens (occurrences)", *aligned(rows)]
        lines.append(f"vocabulary: {self.vocabulary:,} word types over train and test")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


@dataclass
class Splits:
    """Distinct sentences for training and test, and the counts of how they were built."""

    train: list[list[str]]
    test: list[list[str]]
    report: BuildReport


def text_files(folder: Path, endings: tuple[str, ...] = (".txt",)) -> list[Path]:
    """Returns the text files of a folder sorted by name, hidden ones excluded; none if the folder does not exist.

    Letter case of `endings` is ignored: `.TXT` matches `.txt`.
    """
    found = (path for path in folder.glob("*") if path.name.lower().endswith(endings) and path.name[0] != ".")
    return sorted((path for path in found if path.is_file()), key=lambda path: path.name)


def read_text(path: Path) -> str:
    """Returns the text of a UTF-8 file, without a byte order mark.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8; the message names the line and the command that converts the file.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise not_utf8(path, content.count(b"\n", 0, error.start) + 1, error) from error


def decoded(line: bytes, path: Path, line_number: int, conversion: str = CONVERSION) -> str:
    """Returns a line of a UTF-8 file as text; `line_number`, from 1, and `path` are for the error message.

    Raises:
        ValueError: the line is not UTF-8; see `not_utf8`.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, line_number, error, conversion) from error


def not_utf8(path: Path, line: int, error: UnicodeDecodeError, conversion: str = CONVERSION) -> ValueError:
    """Returns the error for a file whose line number `line` cannot be decoded, with the command to convert the file."""
    encoding, old, new = _encoding(error.object), shlex.quote(str(path)), shlex.quote(f"{path}.new")
    return ValueError(
        f"{path}, line {line}: not UTF-8 text ({error.reason}); if it is {encoding}, convert it: "
        + conversion.format(encoding=encoding, old=old, new=new)
    )


def _encoding(content: bytes) -> str:
    """Returns the most probable encoding of content that is not UTF-8."""
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # These bytes are control characters in ISO-8859-1, but quotation marks and dashes in Windows-1252.
    has_controls = re.search("[\udc80-\udc9f]", content.decode("utf-8", "surrogateescape"))
    return "WINDOWS-1252" if has_controls else "ISO-8859-1"


def distinct(train: Iterator[list[str]], test: Iterator[list[str]], report: BuildReport) -> Splits:
    """Drops repeated sentences and completes the report; keeps the first occurrence, and reads train before test.

    Raises:
        ValueError: a split has no sentence.
    """
    seen, splits = set(), {"train": [], "test": []}
    for split, sentences in (("train", train), ("test", test)):
        counts, before = getattr(report, split), frozenset(seen)
        for sentence in sentences:
            key = " ".join(sentence)
            if key in before:
                counts.leave("sentences that are also in train", len(sentence))
            elif key in seen:
                counts.leave("repeats of a sentence", len(sentence))
            else:
                seen.add(key)
                splits[split].append(sentence)
        counts.lines_out, counts.tokens_out = len(splits[split]), sum(map(len, splits[split]))
        if not splits[split]:
            reasons = ", ".join(f"{tokens:,} {reason}" for reason, tokens in counts.left_out.items()) or "none"
            raise ValueError(
                f"{report.source}: no sentence for {split} in {some(counts.files)}: more text is needed; "
                f"tokens left out: {reasons}"
            )
    report.vocabulary = len({token for sentences in splits.values() for sentence in sentences for token in sentence})
    return Splits(**splits, report=report)


def some(names: list[str], limit: int = 5) -> str:
    """Returns the first `limit` names, followed by the number of the remaining ones."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
