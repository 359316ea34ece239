"""Verified, resumable download of single files, with the standard library's urllib only.

A file is downloaded to `NAME.part`, verified, and only then renamed, so a file named `NAME` is always complete and
correct. After a broken connection the next attempt resumes from `NAME.part`.
"""

import contextlib
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from text_infilling.utils.files import hash_file, sha256

CHUNK = 1 << 16
WAYS_OUT = "give data_dir, the folder that holds the data, or use corpus=synthetic"


class DownloadError(OSError):
    """A failed download; the message is one line that names the URL and the alternatives."""


@dataclass(frozen=True)
class RemoteFile:
    """A remote file and its expected digest.

    Attributes:
        path: path relative to the base URL, e.g. `data/yelp/sentiment.dev.1`.
        digest: `sha256:<64 hex digits>` or `git:<40 hex digits>` (git's blob SHA-1).
        size: size in bytes, or None if unknown.
    """

    path: str
    digest: str
    size: int | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


def git_blob_sha1(path: str | Path) -> str:
    """Returns the SHA-1 that `git hash-object FILE` prints, in hex: git hashes a size header, then the bytes."""
    digest = hashlib.sha1(b"blob %d\0" % Path(path).stat().st_size, usedforsecurity=False)
    return hash_file(path, digest)


def download(
    file: RemoteFile,
    folder: str | Path,
    base_url: str,
    *,
    timeout: float = 30.0,
    attempts: int = 3,
    hint: str = WAYS_OUT,
) -> Path:
    """Returns the path of the verified file in `folder`; downloads the file unless it exists already.

    Args:
        file: the file to download.
        folder: destination; created if missing.
        base_url: URL that `file.path` is relative to.
        timeout: seconds without data after which the connection counts as broken.
        attempts: maximum number of attempts; each resumes where the previous one broke off.
        hint: the alternatives that an error names.

    Raises:
        DownloadError: no network, an HTTP error, a truncated body (its `.part` is kept, and the next call resumes from
            it), or a wrong checksum (its `.part` is removed).
    """
    url = f"{base_url.rstrip('/')}/{file.path}"
    target = Path(folder) / file.name
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        if _matches(file, target):
            return target
        target.unlink()
    resumed = part.exists() and part.stat().st_size > 0
    _fetch(url, part, file.size, timeout, attempts, hint)
    if resumed and not _matches(file, part):
        # The part left by an earlier transfer may be the cause: download once more from the start.
        part.unlink()
        _fetch(url, part, file.size, timeout, attempts, hint)
    if not _matches(file, part):
        size = part.stat().st_size
        part.unlink()
        raise DownloadError(f"wrong checksum of {url} ({size:,} bytes received, expected {file.digest}): {hint}")
    os.replace(part, target)
    return target


def _fetch(url: str, part: Path, size: int | None, timeout: float, attempts: int, hint: str) -> None:
    """Downloads `part` to its full length; resumes a broken transfer as long as each attempt receives some bytes."""
    for attempt in range(1, attempts + 1):
        before = part.stat().st_size if part.exists() else 0
        try:
            expected = _transfer(url, part, size, timeout)
            problem = None
        except urllib.error.HTTPError as error:
            raise DownloadError(f"cannot download {url}: HTTP {error.code} {error.reason}; {hint}") from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            problem = f"cannot download {url}: {_one_line(getattr(error, 'reason', error))}; {hint}"
            expected = None
        after = part.stat().st_size if part.exists() else 0
        if problem is None and (expected is None or after >= expected):
            return
        if problem is None:
            problem = f"{url} was cut short at {after:,} of {expected:,} bytes: run again to resume, or {hint}"
        if after <= before or attempt == attempts:
            raise DownloadError(problem)


def _transfer(url: str, part: Path, size: int | None, timeout: float) -> int | None:
    """Appends the missing bytes of `url` to `part`; returns the file's full length, or None if the server omits it."""
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have > size:
        part.unlink()
        have = 0
    if size is not None and have == size:
        return size
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return None  # No bytes follow the ones in `part`: the checksum decides.
        raise
    with response:
        # A server without range support answers 200 with the whole file: start over.
        is_resumed = response.status == http.client.PARTIAL_CONTENT and _range_start(response) == have
        if response.status == http.client.PARTIAL_CONTENT and not is_resumed:
            raise http.client.HTTPException(f"asked for bytes from {have}, got {response.headers.get('Content-Range')}")
        start = have if is_resumed else 0
        length = response.headers.get("Content-Length")
        total = size if size is not None else start + int(length) if length else None
        with open(part, "ab" if is_resumed else "wb") as out, _progress(url.rsplit("/", 1)[-1], total) as show:
            done = start
            while chunk := response.read(CHUNK):
                out.write(chunk)
                done += len(chunk)
                show(done)
    return total


@contextlib.contextmanager
def _progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields a function that prints progress to stderr, given the number of bytes received so far.

    On a terminal it rewrites one line in place, elsewhere it prints a new line every ten seconds.
    """
    tty = sys.stderr.isatty()
    interval = 0.2 if tty else 10.0
    last = time.monotonic()
    shown = False

    def show(done: int) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - last < interval:
            return
        last, shown = now, True
        share = f" of {total / 1e6:.1f} MB ({100 * done / total:.0f}%)" if total else " MB"
        text = f"downloading {name}: {done / 1e6:.1f}{share}"
        print(f"\r{text}\033[K" if tty else text, end="" if tty else "\n", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if tty and shown:
            print(file=sys.stderr, flush=True)


def _range_start(response: http.client.HTTPResponse) -> int | None:
    """Returns the first byte of a 206 response (`Content-Range: bytes 100-199/200`), None if it cannot be parsed."""
    with contextlib.suppress(ValueError):
        return int(response.headers.get("Content-Range", "").removeprefix("bytes ").split("-")[0])
    return None


def _matches(file: RemoteFile, path: Path) -> bool:
    kind, _, digest = file.digest.partition(":")
    return {"sha256": sha256, "git": git_blob_sha1}[kind](path) == digest


def _one_line(error: object) -> str:
    return " ".join(str(error).split()) or type(error).__name__
