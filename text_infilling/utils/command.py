"""Shared by all commands: exit codes, one-line errors, Ctrl-C, SIGTERM and closed pipes, a quiet TensorFlow."""

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from text_infilling.utils.quiet import quiet_tensorflow

EXIT_FAILED, EXIT_BAD_FLAG, EXIT_INTERRUPTED, EXIT_TERMINATED = 1, 2, 130, 143


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM; stops a command just as Ctrl-C does."""


def run_command(function: Callable[[], int | None], hint: str = "") -> NoReturn:
    """Runs a command and exits with a code and at most one line on stderr.

    Codes: what `function` returns (0 for None); 1 for an error that a user can fix and for a closed pipe; 130 for
    Ctrl-C and 143 for SIGTERM. Any other exception is a bug and keeps its traceback.

    Args:
        function: the command.
        hint: printed after Ctrl-C and SIGTERM: how to resume.
    """
    try:
        prepare()
        sys.exit(function())
    except KeyboardInterrupt as error:
        message, code = "stopped", EXIT_INTERRUPTED
        if isinstance(error, Terminated):
            message, code = "stopped by SIGTERM", EXIT_TERMINATED
        note(f"{message}: {hint}" if hint else message)
        sys.exit(code)
    except BrokenPipeError:  # the reader, e.g. `head`, has exited; Python would print an error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (ValueError, OSError, ArithmeticError) as error:
        note(f"error: {one_line(error)}")
        sys.exit(EXIT_FAILED)
    except ImportError as error:
        note(f"error: {one_line(error)}; run `text-infill doctor` to see how to fix it")
        sys.exit(EXIT_FAILED)


def prepare() -> None:
    """Sets up the process of a command: SIGTERM raises `Terminated`, and TensorFlow prints errors only."""
    signal.signal(signal.SIGTERM, _terminate)
    quiet_tensorflow()


def one_line(error: object) -> str:
    r"""Returns the text of an error in one line, or the name of its type if it has no text.

    >>> one_line(ValueError("two\n  lines")), one_line(TimeoutError())
    ('two lines', 'TimeoutError')
    """
    return " ".join(str(error).split()) or type(error).__name__


def printable(text: object) -> str:
    r"""Returns a text in which control characters, which could change what a terminal shows, are escaped.

    >>> print(printable("café\x1b[2J\n"))
    café\x1b[2J\n
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def note(text: str) -> None:
    """Prints a line on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def _terminate(*_) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal does not interrupt the saving
    raise Terminated
