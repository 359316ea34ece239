"""The cache of downloaded and prepared corpora, which any number of processes may use at the same time."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from text_infilling.utils import files


def cache_folder() -> Path:
    """Returns the folder named by `TEXT_INFILLING_DATA` if that is set, else `~/.cache/text_infilling`."""
    given = os.environ.get("TEXT_INFILLING_DATA")
    return Path(given).expanduser() if given else Path.home() / ".cache" / "text_infilling"


def prepared(
    cache: Path,
    target: Path,
    make: Callable[[Path], None],
    is_complete: Callable[[Path], bool] = Path.exists,
) -> Path:
    """Returns `target` after making it, unless it is complete already.

    `target` appears, or is replaced, only once `make` has returned. If several processes prepare it, one makes it and
    the others wait. A complete target is not locked, so a complete cache may be read-only.

    Args:
        cache: folder that is locked meanwhile; created if missing.
        target: a file or folder in `cache`; its parent is created if missing.
        make: writes the file, or creates the folder, at the path that it is given.
        is_complete: whether `target` can be used as it is.

    Raises:
        OSError: the cache cannot be written.
    """
    if not is_complete(target):
        with _locked(cache):
            if not is_complete(target):  # another process may have made it since
                target.parent.mkdir(parents=True, exist_ok=True)
                with files.written_aside(target) as aside:
                    make(aside)
    return target


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Locks the cache against other processes; waits for the lock.

    Raises:
        OSError: the cache cannot be written.
    """
    with ExitStack() as stack:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            stack.enter_context(files.held(cache / ".lock"))
        except OSError as error:
            raise OSError(f"cannot write the cache {cache} ({error.strerror}): set TEXT_INFILLING_DATA") from error
        yield
