"""Reads the user's texts: plain text, JSON Lines, CSV and TSV, each also gzip-compressed or from a pipe.

Memory is bounded, whatever the size of the files and the length of their lines.
"""

import contextlib
import csv
import functools
import gzip
import hashlib
import io
import itertools
import json
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from text_infilling.corpora.builders.common import CONVERSION, decoded, some, text_files
from text_infilling.utils.files import sha256

ENDINGS = (".txt", ".txt.gz")  # the files of a folder that are read
STANDARD_INPUT = ("-", "/dev/stdin")
LONGEST_LINE = 1 << 20  # maximum number of characters of a line held at a time
LONGEST_RECORD = 1 << 24  # maximum number of characters in a line of JSON Lines or CSV, which cannot be cut
_HEAD = 1 << 18  # number of characters used to recognise the format
_HEAD_ROWS = 100
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20

# Content that starts with these bytes is refused, also inside a gzip file.
_BINARY = (
    (b"PK\x03\x04", "a ZIP archive (as .docx, .xlsx, .odt and .epub are)", "extract it, or save it as plain text"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.doc, .xls)", "save it as plain text"),
    (b"{\\rtf", "an RTF document", "save it as plain text"),
    (b"%PDF-", "a PDF document", "extract its text with pdftotext"),
    (b"\xfd7zXZ\x00", "compressed by xz", "decompress it with xz -d"),
    *((b"BZh%d1AY&SY" % level, "compressed by bzip2", "decompress it with bzip2 -d") for level in range(1, 10)),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "decompress it with zstd -d"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "extract it with 7z x"),
    (b"Rar!\x1a\x07", "a RAR archive", "extract it with unrar x"),
    (_GZIP, "a gzip file inside a gzip file", "decompress it with gzip -d"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", "provide its text instead"),
    (b"\xff\xd8\xff", "a JPEG image", "provide its text instead"),
    (b"GIF89a", "a GIF image", "provide its text instead"),
    (b"PAR1\x15", "a Parquet file", "convert it to JSON Lines or CSV"),
)

_NAME = re.compile(r"[^\W\d][\w./()-]*(?: [\w./()-]+){0,2}")  # a column name of up to three words
_JSON_OBJECTS = re.compile(r'\s*(?:\[\s*)?\{\s*"[^"\n]*"\s*:')
_JSON_STRINGS = re.compile(r'\s*\[\s*"(?:[^"\\\n]|\\.)*"\s*[,\]]')
_DIALECTS = (
    *({"delimiter": delimiter, "strict": True} for delimiter in ",\t;|"),
    {"delimiter": "\t", "quoting": csv.QUOTE_NONE},
)


class Table(NamedTuple):
    """The format of a file with columns or keys.

    Attributes:
        kind: name of the format, for messages.
        columns: names of the columns, or keys of the first objects.
        dialect: keyword arguments for `csv.reader`; None for JSON Lines.
    """

    kind: str
    columns: list[str]
    dialect: dict | None = None


class SourceFile:
    """A file of texts, or the copy of a stream, that can be read several times.

    Args:
        name: path of the file, or a name of the stream for messages.
        copy: file with the content of a stream; None to read the file `name`.
        checksum: sha256 of the content; None to compute it.

    Attributes:
        name: the given name.
        size: size in bytes.
        bytes_read: number of bytes read so far in the latest pass.
        sha256: sha256 of the content.
    """

    def __init__(self, name: str, copy: BinaryIO | None = None, checksum: str | None = None):
        self.name, self._copy, self.bytes_read = name, copy, 0
        self.size = os.fstat(copy.fileno()).st_size if copy else os.path.getsize(name)
        self.sha256 = checksum or sha256(name)

    def texts(self, column: str | None) -> Iterator[str]:
        """Yields the lines of a plain text, or the lines of each text in `column` with an empty line after each text.

        A line of more than `LONGEST_LINE` characters is cut at a space.

        Raises:
            ValueError: an error of `table`, a missing column, or content that is not UTF-8 text or not in the file's
                format. The message names the line.
        """
        table = self.table(column)
        if table is None:
            yield from _cut(line for _, line in self._lines(LONGEST_LINE))
            return
        for text in self._json_texts(column) if table.dialect is None else self._csv_texts(table, column):
            lines = io.StringIO(text, newline=None)
            yield from _cut(iter(functools.partial(lines.readline, LONGEST_LINE), ""))
            yield ""

    def table(self, column: str | None) -> Table | None:
        """Returns the format of the file, recognised by its name and first lines; None for plain text.

        Raises:
            ValueError: the file is a table and `column` is None, or plain text and `column` is given; or it is JSON or
                a binary format.
        """
        table = self._recognised()
        if table is None and column is not None:
            raise ValueError(
                f"column={column} is for JSON Lines, CSV and TSV, but {self.name} looks like plain text: omit it, "
                "or rename the file to .jsonl, .csv or .tsv"
            )
        if table is not None and column is None:
            raise ValueError(
                f"{self.name} is {table.kind}: choose the texts to learn with column=NAME. NAME is one of "
                f"{_listed(table.columns)}"
            )
        return table

    def _recognised(self) -> Table | None:
        with self._opened() as text:
            head = text.read(_HEAD)
        lines = head.split("\n")
        if len(head) == _HEAD:
            lines.pop()  # the last line may be incomplete
        suffix = Path(self.name.lower().removesuffix(".gz")).suffix
        if table := _json_lines(lines[:_HEAD_ROWS], suffix):
            return table
        is_list_of_strings = _JSON_STRINGS.match(head)
        if is_list_of_strings or _JSON_OBJECTS.match(head) or suffix == ".json":
            command = "jq -r '.[]' FILE.json > FILE.txt" if is_list_of_strings else "jq -c '.[]' FILE.json > FILE.jsonl"
            raise ValueError(
                f"{self.name} is JSON: expected plain text, or JSON Lines with one object per line. Convert a JSON "
                f"list with {command}"
            )
        return _separated(lines, suffix)

    def _json_texts(self, key: str) -> Iterator[str]:
        for line_number, line in self._records():
            if line.isspace():
                continue
            where = f"{self.name}, line {line_number}"
            record = _parsed(line)
            if not isinstance(record, dict):
                raise ValueError(f"{where}: expected a JSON object. Received: {line.strip()[:60]!r}")
            if key not in record:
                raise ValueError(f"{where}: there is no key {key!r}; column takes one of {_listed(record)}")
            if not isinstance(record[key], str):
                raise ValueError(f"{where}: {key} must be a string. Received: {json.dumps(record[key])[:60]}")
            try:
                record[key].encode("utf-8")
            except UnicodeEncodeError as error:
                raise ValueError(f"{where}: {key} is not valid Unicode, it has a lone surrogate: {error}") from error
            yield record[key]

    def _csv_texts(self, table: Table, column: str) -> Iterator[str]:
        rows = csv.reader((line for _, line in self._records(newline="")), skipinitialspace=True, **table.dialect)
        try:
            columns = [name.strip() for name in next(rows, [])]
            if columns.count(column) != 1:
                found = "more than one column" if column in columns else "no column"
                raise ValueError(
                    f"{self.name}, line 1: there is {found} {column!r}; column takes one of {_listed(columns)}"
                )
            index = columns.index(column)
            for row in filter(None, rows):
                if len(row) != len(columns):
                    raise ValueError(
                        f"{self.name}, line {rows.line_num}: expected {len(columns)} columns as in its first line. "
                        f'Received: {len(row)}. A text that contains {table.dialect["delimiter"]!r} needs quotes (")'
                    )
                yield row[index]
        except csv.Error as error:
            raise ValueError(f"{self.name}, line {rows.line_num}: not {table.kind}: {error}") from error

    def _records(self, newline: str | None = None) -> Iterator[tuple[int, str]]:
        """Yields the number of each line, from 1, and the line.

        Raises:
            ValueError: a line has `LONGEST_RECORD` characters or more.
        """
        for line_number, line in self._lines(LONGEST_RECORD, newline):
            if len(line) == LONGEST_RECORD:
                raise ValueError(
                    f"{self.name}, line {line_number}: more than {LONGEST_RECORD:,} characters: cut the line"
                )
            yield line_number, line

    def _lines(self, longest: int, newline: str | None = None) -> Iterator[tuple[int, str]]:
        """Yields the number of each line, from 1, and the line; cuts lines of more than `longest` characters.

        Args:
            longest: maximum number of characters in a piece.
            newline: as for `open`; None turns all line ends into line feeds.

        Raises:
            ValueError: a line is not UTF-8, or has a NUL byte.
        """
        line_number = 1
        with self._opened(newline) as text:
            while line := text.readline(longest):
                try:
                    line.encode("utf-8")  # fails for surrogates, which replace bytes that are not UTF-8
                except UnicodeEncodeError:
                    more = line + text.read(LONGEST_LINE)  # more text, to guess the encoding for the error message
                    decoded(more.encode("utf-8", "surrogateescape"), Path(self.name), line_number, self._conversion())
                if "\0" in line:
                    raise ValueError(
                        f"{self.name}, line {line_number}: has a NUL byte, so it is not text, or is UTF-16 without a "
                        "byte order mark: convert UTF-16 with iconv -f UTF-16LE -t UTF-8"
                    )
                self.bytes_read = self._file.tell()
                yield line_number, line
                line_number += line.endswith(("\n", "\r"))

    def _conversion(self) -> str:
        """Returns the template of the command that converts the file to UTF-8."""
        if self._copy:
            return "iconv -f {encoding} -t UTF-8"
        with open(self.name, "rb") as file:
            if file.read(len(_GZIP)) == _GZIP:
                return "gzip -dc {old} | iconv -f {encoding} -t UTF-8 | gzip > {new} && mv {new} {old}"
        return CONVERSION

    @contextlib.contextmanager
    def _opened(self, newline: str | None = None) -> Iterator[TextIO]:
        """Opens the text; decodes bytes that are not UTF-8 to surrogates, and drops a byte order mark.

        Raises:
            ValueError: the file has a binary format, or is a damaged gzip file.
        """
        with os.fdopen(os.dup(self._copy.fileno()), "rb") if self._copy else open(self.name, "rb") as file:
            self._file = file
            file.seek(0)
            is_compressed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            stream = gzip.GzipFile(fileobj=file) if is_compressed else file
            try:
                head = stream.read(max(len(start) for start, *_ in _BINARY))
                stream.seek(0)
                for start, what, remedy in _BINARY:
                    if head.startswith(start):
                        raise ValueError(f"{self.name} is {what}, not text: {remedy}")
                yield io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=newline)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{self.name} is a damaged gzip file ({error}): copy or compress it again") from error


def check_there(source: Path) -> None:
    """Checks that `source` is a file, a pipe, or a folder with text files.

    Raises:
        FileNotFoundError: it is none of these.
    """
    if str(source) in STANDARD_INPUT or source.is_file() or source.is_fifo():
        return
    if source.is_dir():
        if not text_files(source, ENDINGS):
            raise FileNotFoundError(
                f"{source} has no *.txt or *.txt.gz: expected a folder of texts, or a text file. "
                f"The folder holds: {some(_others(source)) or 'nothing'}"
            )
        return
    if source.exists():
        raise FileNotFoundError(f"{source} is not a file, folder or pipe: expected a text file, or a folder of them")
    raise FileNotFoundError(f"{source} does not exist: expected a text file, or a folder of them")


@contextlib.contextmanager
def source_files(source: Path, scratch: Path, log: Callable[[str], None]) -> Iterator[list[SourceFile]]:
    """Yields the files of `source`; the content of a pipe is copied to a temporary file while the context is open.

    Args:
        source: a file, a folder of `*.txt` and `*.txt.gz`, a named pipe, or `-` for standard input.
        scratch: folder for the unnamed temporary copy of a pipe.
        log: called with a warning that names the files of a folder that are not read.

    Raises:
        FileNotFoundError: `source` is none of these.
    """
    check_there(source)
    if source.is_dir():
        if others := _others(source):
            log(f"warning: only *.txt and *.txt.gz files of {source} are read, not {some(others)}")
        yield [SourceFile(str(path)) for path in text_files(source, ENDINGS)]
    elif str(source) not in STANDARD_INPUT and source.is_file():
        yield [SourceFile(str(source))]
    else:
        is_input, digest = str(source) in STANDARD_INPUT, hashlib.sha256()
        with tempfile.TemporaryFile(dir=scratch) as copy:
            with contextlib.nullcontext(sys.stdin.buffer) if is_input else open(source, "rb") as pipe:
                while chunk := pipe.read(_CHUNK):
                    digest.update(chunk)
                    copy.write(chunk)
            copy.flush()
            yield [SourceFile("standard input" if is_input else str(source), copy, digest.hexdigest())]


def _others(folder: Path) -> list[str]:
    """Returns the sorted names of the files and folders in a folder that are not read, except hidden ones."""
    read = {path.name for path in text_files(folder, ENDINGS)}
    names = (f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir() if path.name not in read)
    return sorted(name for name in names if name[0] != ".")


def _cut(pieces: Iterable[str]) -> Iterator[str]:
    """Yields lines from pieces of up to `LONGEST_LINE` characters; moves the cuts within long lines to spaces."""
    rest = ""
    for piece in pieces:
        line, rest = rest + piece, ""
        if len(piece) == LONGEST_LINE and piece[-1] != "\n":
            end = line.rfind(" ") + 1 or len(line)
            line, rest = line[:end], line[end:]
        yield line
    if rest:
        yield rest


def _listed(columns: Iterable[str]) -> str:
    """Returns the names of columns for messages."""
    return some(list(columns), 20) or "(none was found)"


def _parsed(line: str) -> object:
    """Returns the JSON value of a line, None if the line is not valid JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):  # deeply nested brackets exceed the recursion limit
        return None


def _json_lines(lines: list[str], suffix: str) -> Table | None:
    """Returns the format and the keys if the suffix is that of JSON Lines or most of `lines` are objects, else None."""
    filled = [line for line in lines if line.strip()]
    objects = [value for value in map(_parsed, filled) if isinstance(value, dict)]
    if suffix in (".jsonl", ".ndjson") or 2 * len(objects) > len(filled):
        return Table("JSON Lines", list(dict.fromkeys(key for value in objects for key in value)))
    return None


def _separated(lines: list[str], suffix: str) -> Table | None:
    """Returns the format and the columns if the suffix or the content of `lines` is that of CSV or TSV, else None.

    The content is recognised if it has at least three rows, all with the same number of columns (two or more), and
    either the first row consists of column names without spaces around them, or most rows have a quoted column.
    """
    is_named = suffix in (".csv", ".tsv")
    for dialect in _DIALECTS:
        rows = _rows(lines, dialect)
        if len(rows) < 3 or len(rows[0]) < 2 or len(set(map(len, rows))) > 1:
            continue
        delimiter = re.escape(dialect["delimiter"])
        quoted = re.compile(rf'(?:^|{delimiter})"(?:[^"]|"")*"(?={delimiter}|$)', re.MULTILINE)
        if (
            is_named
            or (all(map(_NAME.fullmatch, rows[0])) and len(set(rows[0])) == len(rows[0]))
            or 2 * len(quoted.findall("\n".join(lines))) > len(rows)
        ):
            break
    else:
        if not is_named:
            return None
        dialect = {"delimiter": "\t" if suffix == ".tsv" else ",", "strict": True}
        rows = _rows(lines[:1], dialect) or [[]]
    kind = "TSV" if dialect["delimiter"] == "\t" else "CSV"
    return Table(kind, [name.strip() for name in rows[0]], dialect)


def _rows(lines: list[str], dialect: dict) -> list[list[str]]:
    """Returns the first rows of a table, none if `lines` do not follow the dialect; a quote may be cut in the last."""
    rows, reader = [], csv.reader((f"{line}\n" for line in lines), **dialect)
    try:
        rows.extend(itertools.islice(filter(None, reader), _HEAD_ROWS))
    except csv.Error:
        return rows if reader.line_num == len(lines) else []
    return rows
