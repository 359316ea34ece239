"""Settings run at the same time, each in a process of its own with its share of the cores.

A small model keeps one core busy and not much more, and graphs are traced on one core alone: where there is much of
both, as in the preset `smoke`, two processes get done in about half the time.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from experiments.flags import Terminated


def run(function: Callable, arguments: Sequence[tuple], titles: Sequence[str], jobs: int) -> Iterator:
    """Yields each argument tuple and the future of what `function` made of it, as soon as it has; all in order begun.

    What a process prints has its title in front of every line. When the command is stopped, so are its processes. The
    future of a process that was killed raises OSError.

    Args:
        function: of a module; its arguments and results can be pickled.
        arguments: of each call.
        titles: of each call.
        jobs: processes at the same time.
    """
    cores = max(1, (os.cpu_count() or 1) // jobs)
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {
            pool.submit(_in_process, function, each, title, cores): each
            for each, title in zip(arguments, titles, strict=True)
        }
        for future in as_completed(futures):
            yield futures[future], future
    except BaseException:
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _in_process(function, arguments, title, cores):
    """Calls in a new process: the graphs of the last one take no memory from the next."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(_call, function, arguments, title, cores).result()
        except BrokenProcessPool as error:
            raise OSError("its process was killed, most likely for want of memory: lower --jobs") from error


class Titled:
    """A stream that puts a title in front of every line."""

    def __init__(self, stream, title: str):
        self._stream, self._title, self._at_start = stream, title, True

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            self._stream.write(f"{self._title} | {line}" if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def _call(function, arguments, title, cores):
    signal.signal(signal.SIGTERM, _terminate)
    sys.stdout = Titled(sys.stdout, title)
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)  # read by TensorFlow
    return function(*arguments)


def _terminate(number, frame):
    raise Terminated
