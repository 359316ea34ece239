"""Atomic writing of files and folders, locks, a log, JSON files, and checksums."""

import errno
import fcntl
import functools
import hashlib
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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOCK = "lock"
ASIDE = ".text_infilling-aside-"  # prefix of folders for incomplete files
DEEPEST_JSON = 64  # nesting of lists and objects
_IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EISDIR)  # an obstacle at the target


say = functools.partial(print, flush=True)  # for people, on stdout


def make_folder(folder: Path, flag: str) -> None:
    """Creates `folder` and its parents and checks that the folder can be written.

    Raises:
        OSError: the folder cannot be created or written; the message names the flag that fixes it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"cannot write to {folder}: {error.strerror}. Give another {flag}") from error


@contextmanager
def locked(folder: Path, flag: str = "--workdir") -> Iterator[None]:
    """Locks `folder` against other processes; the kernel releases the lock however this process ends.

    Raises:
        OSError: another process holds the lock; the message names the flag that fixes it.
    """
    with open(folder / LOCK, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OSError(f"{folder} is in use by another process: wait for it, or give another {flag}") from error
        yield


@contextmanager
def held(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Locks a folder, or a file that is created if missing, against other processes and threads; waits for the lock.

    Args:
        path: where the lock is; the kernel releases it however this process ends.
        waiting: called once if another process holds the lock.
    """
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class Log:
    """Log that prints each line and appends it, with the time, to a file.

    Args:
        path: the file, opened for appending; use the log as a context manager.
        say: receives each line; default: prints to stdout.
    """

    def __init__(self, path: Path, say: Callable[[str], None] = say):
        self.path, self._say = path, say
        self._file = open(path, "a", encoding="utf-8", buffering=1)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    def __call__(self, text: str) -> None:
        """Prints `text` and appends it to the file."""
        self._say(text)
        self._write(text)

    @contextmanager
    def traceback(self) -> Iterator[None]:
        """Writes the traceback of an exception in the block to the file only, and re-raises it."""
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
    """Yields where to write a file, or make a folder, that is renamed to `path` once it is complete.

    A reader sees either the old content or the complete new one; while a folder is replaced, for a moment neither.
    If the code in the block fails, the new content is removed. Any number of processes and threads may write to one
    `path` at the same time; the last one to finish wins. `path.parent` must exist.
    """
    with _aside_folder(path.parent) as folder:
        aside = folder / f"new{''.join(path.suffixes)}"  # writers may depend on suffixes, not on the name
        yield aside
        if aside.is_file():
            with open(aside, "rb") as file:
                os.fsync(file.fileno())
        while True:
            try:
                os.replace(aside, path)
                return
            except OSError as error:
                if error.errno not in _IN_THE_WAY or not aside.exists():
                    raise
            remove(folder / "old")
            with suppress(FileNotFoundError):  # another writer has moved it
                os.rename(path, folder / "old")


@contextmanager
def _aside_folder(parent: Path) -> Iterator[Path]:
    """Yields a new folder in `parent` for this caller alone, and removes it at the end.

    The folder is locked while in use. An unlocked one was left by a killed process: the next call for the same
    `parent` removes it.

    Raises:
        OSError: `parent` is missing or cannot be written.
    """
    for left in parent.glob(f"{ASIDE}*"):
        _remove_unlocked(left)
    try:
        folder, handle = _locked_folder(parent)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(parent)) from error
    try:
        yield folder
    finally:
        remove(folder)
        os.close(handle)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """Creates a folder and locks it; returns it with the open file descriptor that holds the lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=ASIDE, dir=parent))
        with suppress(FileNotFoundError):  # another process removed it before it was locked
            handle = os.open(folder, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                if os.path.samestat(os.fstat(handle), os.stat(folder)):
                    return folder, handle
            except FileNotFoundError:
                os.close(handle)


def _remove_unlocked(folder: Path) -> None:
    """Removes a folder unless a process holds its lock."""
    with suppress(OSError):  # locked, already removed, or owned by another user
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Writes `text` to `path` atomically."""
    with written_aside(path) as aside:
        aside.write_text(text, "utf-8")


def write_json(path: Path, value: Any) -> None:
    """Writes `value` as JSON; keeps the order of keys and converts NumPy values."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def write_jsonl(path: Path, values: Iterable[Any]) -> None:
    """Writes one JSON value per line."""
    write_text(path, "".join(json.dumps(value, ensure_ascii=False, default=_plain) + "\n" for value in values))


def read_json(path: Path) -> Any:
    """Returns the JSON value in `path`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not JSON in UTF-8, or too deeply nested.
    """
    try:
        return parse_json(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error


def read_object(path: Path, *keys: str) -> dict[str, Any]:
    """Returns the JSON object in `path`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not JSON, not an object, or lacks one of `keys`.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"{path} should hold a JSON object. Received: {shown(value)}")
    if missing := [key for key in keys if key not in value]:
        raise ValueError(f"{path} has no {', '.join(missing)}: it is damaged or was not written by this program")
    return value


def read_jsonl(path: Path, count: int | None = None) -> list[Any]:
    """Returns the first `count` JSON values of `path`, one per line; all if None.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is not JSON in UTF-8, or too deeply nested.
    """
    values = []
    with open(path, "rb") as lines:
        for number, line in enumerate(itertools.islice(lines, count), start=1):
            try:
                values.append(parse_json(line.decode("utf-8")))
            except ValueError as error:
                raise ValueError(f"line {number} of {path} is not JSON: {error}") from error
    return values


def parse_json(text: str) -> Any:
    """Returns the value of a JSON text whose lists and objects are nested at most `DEEPEST_JSON` deep.

    Raises:
        ValueError: `text` is not JSON, or more deeply nested.
    """
    deep = ValueError(f"lists and objects are nested more than {DEEPEST_JSON} deep")
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise deep from error
    level = [value]
    for _ in range(DEEPEST_JSON + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise deep


def shown(value: Any, most: int = 200) -> str:
    """Returns `repr(value)` for a message, cut after `most` characters."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def remove(path: Path) -> None:
    """Removes a file, or a folder with its contents; does nothing if it is missing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sha256(path: str | Path) -> str:
    """Returns the sha256 of a file, in hex."""
    return hash_file(path, hashlib.sha256())


def hash_file(path: str | Path, digest: "hashlib._Hash") -> str:
    """Adds the bytes of a file to a hash object of `hashlib`, part by part; returns the result in hex."""
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Returns the version of Python and of each installed package, without importing any."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed under this name"
    return found


def cores() -> int:
    """Returns the number of cores that TensorFlow uses in this process."""
    if threads := int(os.environ.get("TF_NUM_INTRAOP_THREADS") or 0):
        return threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS has none


def _plain(value: Any) -> Any:
    """Returns a NumPy number or array as a value that JSON can hold.

    Raises:
        TypeError: the value is of another type.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
