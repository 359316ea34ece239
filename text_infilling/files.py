"""Files and folders that are written aside and renamed, so that what is there is whole; a lock; a log."""

import fcntl
import functools
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LOCK = "lock"
ASIDE = "aside."  # begins the name of what is not whole yet


say = functools.partial(print, flush=True)  # to people, on stdout


def make_folder(folder: Path, flag: str) -> None:
    """Makes `folder` and its parents and checks that it can be written.

    Raises:
        OSError: it cannot; the message names the flag that mends it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}. Give another {flag}") from error


@contextmanager
def locked(folder: Path, flag: str = "--workdir") -> Iterator[None]:
    """Holds `folder` against other processes; the kernel lets go of it however this process ends.

    Raises:
        OSError: another process holds it; the message names the flag that mends it.
    """
    with open(folder / LOCK, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(f"{folder} is in use by another process: wait for it, or give another {flag}") from error
        yield


class Log:
    """Says each line and writes it, with the time, to the end of a file.

    Args:
        path: is opened for appending; use the log as a context.
        say: takes each line; default: to stdout.
    """

    def __init__(self, path: Path, say: Callable[[str], None] = say):
        self.path, self._say = path, say
        self._file = open(path, "a", encoding="utf-8", buffering=1)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def __call__(self, text: str) -> None:
        """Says `text`."""
        self._say(text)
        self._write(text)

    @contextmanager
    def traceback(self) -> Iterator[None]:
        """Writes into the file alone why the code within did not come to its end, and lets the exception pass."""
        try:
            yield
        except KeyboardInterrupt:
            self._write("stopped from outside")
            raise
        except Exception:
            self._write(traceback.format_exc().rstrip())
            raise

    def _write(self, text: str) -> None:
        self._file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Where the code within writes a file, or makes a folder, that is renamed to `path` once it is whole.

    A reader sees what was at `path` before, or all that is new; where a folder is replaced, for a moment neither. Where
    the code fails, nothing is left of it; what a process left that was killed is removed by the next one that writes to
    `path`.
    """
    aside = path.with_name(f"{ASIDE}{path.name}")
    remove(aside)
    try:
        yield aside
    except BaseException:
        remove(aside)
        raise
    if aside.is_file():
        with open(aside, "rb") as file:
            os.fsync(file.fileno())
    if aside.is_dir() or path.is_dir():
        remove(path)  # nothing takes a folder's place, and a folder takes no other's
    os.replace(aside, path)


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path`, whole or not at all."""
    with written_aside(path) as aside:
        aside.write_text(text, "utf-8")


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as JSON, keys in their order, NumPy numbers as plain ones."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Writes one JSON value a line."""
    write_text(path, "".join(json.dumps(value, ensure_ascii=False, default=_plain) + "\n" for value in values))


def read_json(path: Path) -> Any:
    """The JSON value in `path`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error


def read_jsonl(path: Path, count: int | None = None) -> list[Any]:
    """The first `count` JSON values of `path`, all for None."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in itertools.islice(lines, count)]


def remove(path: Path) -> None:
    """Removes a file, or a folder and all in it; nothing if it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The version of Python and of each installed package, without importing any."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed under this name"
    return found


def cores() -> int:
    """The cores that TensorFlow computes on in this process."""
    if threads := int(os.environ.get("TF_NUM_INTRAOP_THREADS") or 0):
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS has none


def _plain(value: Any) -> Any:
    """What JSON takes in place of a NumPy number or array.

    Raises:
        TypeError: anything else.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"no JSON for a {type(value).__name__}")
