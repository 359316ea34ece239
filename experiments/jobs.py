"""Settings run at the same time, each in a process of its own with its share of the cores.

A small model keeps one core busy and not much more, and graphs are traced on one core alone: where there is much of
both, as in the preset `smoke`, two processes get done in about half the time.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from text_infilling import command, files


def run(function: Callable, arguments: Sequence[tuple], titles: Sequence[str], jobs: int) -> Iterator:
    """Yields each argument tuple and the future of what `function` made of it, as soon as it has; all in order begun.

    What a process prints has its title in front of every line. When the iterator is closed, so are the processes that
    run, by SIGTERM; put `contextlib.closing` around it. The future of a process that was killed raises OSError.

    Args:
        function: of a module; its arguments and results can be pickled.
        arguments: of each call.
        titles: of each call.
        jobs: processes at the same time.
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
        pool.shutdown(wait=False, cancel_futures=True)  # first, so that no call begins any more
        told = set()  # a second signal would interrupt what the first one has begun
        while not all(future.done() for future in futures):
            for process in {*multiprocessing.active_children()} - told:
                process.terminate()
                told.add(process)
            time.sleep(0.2)


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes: the command passes it on, once
    command.prepare()
    threading.Thread(target=_end_with, args=[multiprocessing.parent_process()], daemon=True).start()
    sys.stdout = Titled(sys.stdout, title)
    os.environ["TF_NUM_INTRAOP_THREADS"] = str(cores)  # read by TensorFlow
    return function(*arguments)


def _end_with(parent):
    """Ends this process when the command is killed: the cells' locks must not outlive it."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)  # to write a resume point
    os._exit(1)
