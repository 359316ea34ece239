"""Shared by all commands: exit codes, SIGTERM handling, a quiet TensorFlow."""

import signal
import threading
from collections.abc import Callable

from text_infilling.utils.quiet import quiet_tensorflow

EXIT_FAILED, EXIT_BAD_FLAG, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; stops a command just as Ctrl-C does."""


def prepare() -> None:
    """Sets up the process of a command: SIGTERM raises `Terminated`, and TensorFlow prints errors only."""
    signal.signal(signal.SIGTERM, _terminate)
    quiet_tensorflow()


def on_terminate(function: Callable[[], None]) -> None:
    """Makes SIGTERM call `function` in a new thread instead of raising `Terminated`."""
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=function).start())


def stopped(error: KeyboardInterrupt) -> tuple[str, int]:
    """Returns the message for a command that was stopped, and its exit code."""
    if isinstance(error, Terminated):
        return "stopped by SIGTERM", EXIT_TERMINATED
    return "stopped", EXIT_INTERRUPTED


def _terminate(*_) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal does not interrupt the saving
    raise Terminated
