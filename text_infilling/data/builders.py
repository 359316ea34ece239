"""What the builders of sentences share: finding and reading text, dropping repeats, and the account of both.

Nothing is left out in silence: every token that was read is in a sentence or counted under a reason.
"""

import codecs
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from text_infilling.columns import aligned

CONVERSION = "iconv -f {encoding} -t UTF-8 {old} > {new} && mv {new} {old}"


@dataclass
class SplitCounts:
    """What went into a split, what came out, and what did not.

    Attributes:
        files: names of the files, in the order of their sentences.
        lines_in: lines of text, empty ones not counted.
        tokens_in: tokens in them.
        lines_out: sentences kept.
        tokens_out: tokens in them.
        left_out: tokens left out, by reason; together with `tokens_out` they are `tokens_in`.
        times: how many runs of tokens these were, by reason.
    """

    files: list[str] = field(default_factory=list)
    lines_in: int = 0
    tokens_in: int = 0
    lines_out: int = 0
    tokens_out: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    times: Counter[str] = field(default_factory=Counter)

    def leave(self, reason: str, tokens: int) -> None:
        """Counts a run of `tokens` tokens under a reason; a run of none is no run."""
        if tokens:
            self.left_out[reason] += tokens
            self.times[reason] += 1


@dataclass
class BuildReport:
    """The counts of both splits.

    Attributes:
        source: the folder or the files read.
        train, test: counts.
        vocabulary: word types over the sentences of both.
        notes: one sentence each on files that were skipped.
    """

    source: str
    train: SplitCounts = field(default_factory=SplitCounts)
    test: SplitCounts = field(default_factory=SplitCounts)
    vocabulary: int = 0
    notes: list[str] = field(default_factory=list)

    def format(self) -> str:
        """The report as an aligned plain-text table, without a newline at the end."""
        splits = (self.train, self.test)
        rows = [("", "train", "test"), ("files", *(f"{len(counts.files):,}" for counts in splits))]
        for key in ("lines_in", "tokens_in", "lines_out", "tokens_out"):
            rows.append((key.replace("_", " "), *(f"{getattr(counts, key):,}" for counts in splits)))
        for reason in dict.fromkeys([*self.train.left_out, *self.test.left_out]):
            cells = (f"{counts.left_out[reason]:,} ({counts.times[reason]:,})" for counts in splits)
            rows.append((f"left out: {reason}", *cells))
        lines = [f"Built from {self.source}. Left out: tokens (how often)", *aligned(rows)]
        lines.append(f"vocabulary: {self.vocabulary:,} word types over train and test")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


@dataclass
class Splits:
    """Sentences for training and test, none of them twice, and the account of how they were made."""

    train: list[list[str]]
    test: list[list[str]]
    report: BuildReport


def text_files(folder: Path, endings: tuple[str, ...] = (".txt",)) -> list[Path]:
    """Returns the text files of a folder by name, `.txt` and `.TXT`, without hidden ones; none if it does not exist."""
    found = (path for path in folder.glob("*") if path.name.lower().endswith(endings) and path.name[0] != ".")
    return sorted((path for path in found if path.is_file()), key=lambda path: path.name)


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not UTF-8; says where, and how to convert it.
    """
    content = path.read_bytes()
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise not_utf8(path, content.count(b"\n", 0, error.start) + 1, error) from error


def decoded(line: bytes, path: Path, number: int, conversion: str = CONVERSION) -> str:
    """Returns line `number` of a UTF-8 file, from 1, as text.

    Raises:
        ValueError: it is not UTF-8; see `not_utf8`.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(path, number, error, conversion) from error


def not_utf8(path: Path, line: int, error: UnicodeDecodeError, conversion: str = CONVERSION) -> ValueError:
    """Returns the error of a file whose line number `line` was not decoded, with the command that converts the file."""
    encoding, old, new = _encoding(error.object), shlex.quote(str(path)), shlex.quote(f"{path}.new")
    return ValueError(
        f"{path}, line {line}: not UTF-8 text ({error.reason}); if it is {encoding}, convert it: "
        + conversion.format(encoding=encoding, old=old, new=new)
    )


def _encoding(content: bytes) -> str:
    """Returns the most probable encoding of what is not UTF-8."""
    if content.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # ISO-8859-1 has control characters at these bytes, Windows-1252 quotation marks and dashes.
    has_controls = re.search("[\udc80-\udc9f]", content.decode("utf-8", "surrogateescape"))
    return "WINDOWS-1252" if has_controls else "ISO-8859-1"


def distinct(train: Iterator[list[str]], test: Iterator[list[str]], report: BuildReport) -> Splits:
    """The splits without repeats, each sentence where it comes first, train before test; completes the report.

    Raises:
        ValueError: a split without a sentence.
    """
    seen, splits = set(), {"train": [], "test": []}
    for split, sentences in (("train", train), ("test", test)):
        counts, before = getattr(report, split), frozenset(seen)
        for sentence in sentences:
            key = " ".join(sentence)
            if key in before:
                counts.leave("sentences that stand in train", len(sentence))
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
    """The first names and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
