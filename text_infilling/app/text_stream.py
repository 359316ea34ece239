"""Reads texts from arguments, a file or standard input, and formats the answer to each."""

import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from text_infilling.text.blanks import BlankWarning
from text_infilling.utils.command import note, one_line
from text_infilling.utils.progress import LinesProgress

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.inference.results import Filled

CHUNK = 256  # texts of a file that are filled in one batch
MOST_BYTES = 64 * 1024  # of a line of a file; longer than any model can read


class TextStream(contextlib.AbstractContextManager):
    """The texts of the command line, or else the lines of a file, in batches of up to `CHUNK`.

    A batch holds what can be read without blocking, so that a program that writes a line and waits gets its answer. A
    line that is too long or not UTF-8 is a ValueError in the batch.

    Args:
        texts: the texts; if there are none, the lines of the file are read.
        name: path of the file; - is standard input.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, texts: Sequence[str], name: str):
        self._texts, self._file, self._place = texts, None, 0
        if not texts:
            try:
                self._file = sys.stdin.buffer if name == "-" else open(name, "rb")
            except OSError as error:
                raise OSError(f"cannot read {name}: {error.strerror}. Give another --file") from error
            self._progress = LinesProgress(None if name == "-" else os.path.getsize(name), note)

    def __exit__(self, *_: object) -> None:
        if self._file and self._file is not sys.stdin.buffer:
            self._file.close()

    def __iter__(self) -> Iterator[list[str | ValueError]]:
        for texts in self._read() if self._file else [self._texts]:
            for start in range(0, len(texts), CHUNK):
                yield texts[start : start + CHUNK]

    def _read(self) -> Iterator[list[str | ValueError]]:
        """Yields the lines of each read."""
        bom, line = "\ufeff", b""
        while part := self._file.read1(MOST_BYTES):
            self._place += len(part)
            texts = []
            *ends, rest = part.split(b"\n")
            for end in ends:
                texts.append(_text(line + end, bom))
                bom, line = "", b""
            line = (line + rest)[: MOST_BYTES + 1]  # enough to know that it is too long
            yield texts
        if line:
            yield [_text(line, bom)]

    def report_progress(self, lines: int) -> None:
        """Prints the progress after `lines` lines."""
        if self._file:
            self._progress(lines, self._place)


def answer(
    number: int, result: "list[Filled] | ValueError", as_json: bool, several: bool, warning: BlankWarning | None
) -> str:
    """Returns the output lines for a text: its results, or its error.

    Args:
        number: number of the text, counted from 1.
        result: the result for the text, or the error that explains why it could not be filled.
        as_json: whether to return a JSON object.
        several: whether more than one result per text was requested; then an empty line ends the results of a text.
        warning: warning about the blanks of the text, or None.
    """
    if isinstance(result, ValueError):
        message = one_line(result)
        if as_json:
            return json.dumps({"line": number, "error": message})
        return f"line {number}: error: {message}" + "\n" * several
    if as_json:
        record = {"line": number, **dataclasses.asdict(result[0])}
        return json.dumps(record | ({"warning": warning.message} if warning else {}), ensure_ascii=False)
    alternatives = [one.text for one in result[0].alternatives]
    return "\n".join([*alternatives, ""] if several else alternatives)


def _text(line: bytes, bom: str) -> str | ValueError:
    if len(line) > MOST_BYTES:
        return ValueError(f"longer than {MOST_BYTES:,} bytes: cut the line into parts")
    try:
        return line.decode("utf-8").removeprefix(bom).rstrip("\r")
    except UnicodeDecodeError:
        return ValueError("not UTF-8 text; convert it, e.g. with iconv -f ISO-8859-1 -t UTF-8")
