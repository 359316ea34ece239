"""Runs settings in parallel, each in its own process with its share of the cores.

A small model uses little more than one core, and graphs are traced on a single core: if both dominate, as in the preset
`smoke`, two processes take about half the time.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TextIO

from text_infilling.utils import command, files


def run(
    function: Callable, arguments: Sequence[tuple], titles: Sequence[str], jobs: int
) -> Iterator[tuple[tuple, Future]]:
    """Yields each argument tuple with the future of its call, as calls complete; calls start in the given order.

    Each line that a process prints is prefixed with its title. Closing the iterator ends the running processes with
    SIGTERM, so wrap it in `contextlib.closing`. The future of a killed process raises OSError.

    Args:
        function: defined at the top level of a module; its arguments and results can be pickled.
        arguments: one tuple per call.
        titles: one per call.
        jobs: number of parallel processes.
    """
    cores = max(1, files.cores() // jobs)
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = {
            pool.submit(_in_process, function, each, title, cores): each
            for each, title in zip(arguments, titles, strict=True)
        }
        for future in as_completed(futures):
            yield futures[future], future
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # first, so that no further call starts
        signalled = set()  # a second signal would interrupt the handling of the first
        while not all(future.done() for future in futures):
            for process in {*multiprocessing.active_children()} - signalled:
                process.terminate()
                signalled.add(process)
            time.sleep(0.2)


def _in_process(function: Callable, arguments: tuple, title: str, cores: int) -> Any:
    """Calls `function` in a new process, so that graphs of earlier calls take no memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(_call, function, arguments, title, cores).result()
        except BrokenProcessPool as error:
            raise OSError("its process was killed, most likely because memory ran out: lower --jobs") from error


class Titled:
    """A stream that prefixes every line with a title."""

    def __init__(self, stream: TextIO, title: str):
        self._stream, self._title, self._at_start = stream, title, True

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            self._stream.write(f"{self._title} | {line}" if self._at_start else line)
            self._at_start = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def _call(function: Callable, arguments: tuple, title: str, cores: int) -> Any:
    """Prepares this process as the command line does, then calls `function` with its lines prefixed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the command ends them
    command.prepare()
    threading.Thread(target=_end_with, args=[multiprocessing.parent_process()], daemon=True).start()
    sys.stdout = Titled(sys.stdout, title)
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)  # read by TensorFlow
    return function(*arguments)


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """Ends this process when the parent command is killed: the cells' locks must not outlive it."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)  # to write a resume point
    os._exit(1)
