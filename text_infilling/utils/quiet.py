"""Imports TensorFlow without its start-up lines on stderr.

TensorFlow's C++ libraries log while they are loaded, before they read TF_CPP_MIN_LOG_LEVEL, so no variable silences
them. `quiet_tensorflow` therefore passes stderr through a filter during the first `import tensorflow`. The filter is
this file, run as a separate process, so that the last lines of a TensorFlow that aborts are not lost.

After the import TF_CPP_MIN_LOG_LEVEL takes effect. Its default here is 3: what TensorFlow logs as an error is then
either also raised as an exception, or nothing to act on (such as data types that oneDNN lacks on this CPU). The
commands and the names of `import text_infilling` call `quiet_tensorflow`; a process that has imported TensorFlow before
keeps its own log level.
"""

import contextlib
import importlib.abc
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # 1: no INFO lines, 2: no WARNING lines either, 3: no ERROR lines either
_IMPORT_LEVEL = "2"  # during the import, unless the user has set a level
_NOTICE = b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
_LOG_LINE = re.compile(rb"([IWE])\d{4} [\d:.]+ +\d+ [\w./]+:\d+\] ")


def quiet_tensorflow() -> None:
    """Makes the first `import tensorflow` of this process print errors only, or as TF_CPP_MIN_LOG_LEVEL says if set.

    Changes nothing if TensorFlow is already imported. A second call has no further effect.
    """
    if "tensorflow" in sys.modules or any(isinstance(finder, _QuietImport) for finder in sys.meta_path):
        return
    level = os.environ.get(_LEVEL, _IMPORT_LEVEL)
    os.environ.setdefault(_LEVEL, "3")
    if level in ("1", "2", "3") and _can_filter():
        sys.meta_path.insert(0, _QuietImport(level))


def _can_filter() -> bool:
    """Returns whether the filter can run: stderr is open, and `sys.executable` is Python, not a program that has it."""
    return sys.stderr is not None and os.path.basename(sys.executable or "").startswith("python")


class _QuietImport(importlib.abc.MetaPathFinder):
    """An import finder that filters what the import of TensorFlow prints, and removes itself afterwards."""

    def __init__(self, level: str):
        self._level = level

    def find_spec(self, name, path, target=None):
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader.exec_module = _filtered(spec.loader.exec_module, self._level)
        return spec


def _filtered(execute, level):
    def execute_filtered(module):
        with _filtered_stderr(level):
            execute(module)

    return execute_filtered


@contextlib.contextmanager
def _filtered_stderr(level: str) -> Iterator[None]:
    """Passes everything written to file descriptor 2 through the filter."""
    command = [sys.executable, "-IS", __file__, level]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        stderr = os.dup(2)
        os.dup2(process.stdin.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _is_shown(line: bytes, level: int) -> bool:
    """Returns whether a line of stderr is shown: all except TensorFlow's log lines below `level`."""
    kind = _LOG_LINE.match(line)
    return b"IWE".index(kind[1]) >= level if kind else line.rstrip() != _NOTICE


if __name__ == "__main__":
    for _line in sys.stdin.buffer:
        if _is_shown(_line, int(sys.argv[1])):
            os.write(2, _line)
