"""Damaged inputs for `benchmarks.faults`: how they are made, and how the reader of an input is judged.

A reader must return a result, or raise an error that a command prints as one line and that names the input. Everything
else is a failure: another exception, a hang, an import of code that an input names, a changed file beside the input.
"""

import dataclasses
import json
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from text_infilling.utils.command import one_line

LONGEST = 30.0  # seconds that a reader may take
TRAP = "campaign_trap"  # module that damaged inputs name; it exists, and nothing may import it
ABSURD = (
    None, True, 0, -1, 2**63, 10**30, -1e308, float("inf"), float("nan"), "", "\ud800", "\x00\x1b[2J", "x" * 20_000,
    "../../etc/passwd", "/dev/zero", f"{TRAP}:function", f"{TRAP}.Class", [], {}, [[]], {"": {}}, [None] * 5_000,
    {"class_name": TRAP, "module": TRAP}, {"module": TRAP, "function": "function"},
)  # fmt: skip
BYTE_KINDS = ("cut", "flip", "zero", "repeat", "insert", "swap", "nest")


@dataclasses.dataclass
class Tally:
    """Outcomes of reading damaged inputs.

    Attributes:
        of: what is damaged.
        accepted, refused, failed: numbers of inputs.
        slowest: seconds of the slowest reading.
        reasons: descriptions of failures.
    """

    of: str
    accepted: int = 0
    refused: int = 0
    failed: int = 0
    slowest: float = 0.0
    reasons: list[str] = dataclasses.field(default_factory=list)

    def judge(self, what: str, read: Callable[[], object], names: Iterable[str]) -> None:
        """Reads an input once and counts the outcome.

        Args:
            what: description of the input.
            read: reads it.
            names: an error must contain one of these.
        """
        begin = time.monotonic()
        reason = _failure(read, tuple(names))
        self.slowest = max(self.slowest, time.monotonic() - begin)
        if TRAP in sys.modules:
            del sys.modules[TRAP]
            reason = "it imports code that the input names"
        if reason is None:
            self.accepted += 1
        elif reason == "refused":
            self.refused += 1
        else:
            self.fail(f"{what}: {reason}")

    def fail(self, reason: str) -> None:
        """Counts a failure."""
        self.failed += 1
        self.reasons.append(f"{self.of}: {reason}")

    def row(self, fault: str) -> dict:
        """Returns the row of the table."""
        inputs = self.accepted + self.refused + self.failed
        return {
            "fault": fault, "of": self.of, "inputs": inputs, "accepted": self.accepted, "refused": self.refused,
            "failed": self.failed, "slowest_s": self.slowest, "reasons": self.reasons,
        }  # fmt: skip


class _Hang(BaseException):
    """Raised when a reader takes longer than `LONGEST`."""


def _failure(read: Callable[[], object], names: tuple[str, ...]) -> str | None:
    """Returns None for a result, "refused" for an error that a command prints as one line, otherwise what is wrong."""

    def stop(*_):
        raise _Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST)
    try:
        read()
        return None
    except (ValueError, OSError, ArithmeticError) as error:  # the errors that `run_command` prints as one line
        message = one_line(error)
        if any(name in message for name in names):
            return "refused"
        return f"the error does not name {' or '.join(names)}: {type(error).__name__}: {message[:300]}"
    except _Hang:
        return f"no answer within {LONGEST:g} s"
    except Exception as error:
        return f"{type(error).__name__}: {one_line(error)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def damaged_bytes(rng: random.Random, content: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Returns the kind of a random damage, and the damaged content.

    Args:
        rng: source of randomness.
        content: the intact content.
        others: contents of other files, to swap it with.
    """
    kind = rng.choice(BYTE_KINDS)
    size = len(content)
    start = rng.randrange(size + 1)
    part = slice(start, min(size, start + rng.choice((1, 8, 64, 4096))))
    if kind == "cut":
        return kind, content[:start]
    if kind == "zero":
        return kind, content[: part.start] + bytes(part.stop - part.start) + content[part.stop :]
    if kind == "repeat":
        return kind, content[: part.stop] + content[part]
    if kind == "insert":
        return kind, content[:start] + rng.randbytes(rng.choice((1, 4, 100))) + content[start:]
    if kind == "swap":
        return kind, rng.choice(others) if others else b""
    if kind == "nest":
        depth = rng.choice((100, 10_000, 100_000))
        return kind, rng.choice((b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth))
    found = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 3, 30))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return kind, bytes(found)


def damaged_json(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """Returns JSON in which a random value is absurd, missing or has another key; and a description of that."""
    value = json.loads(content)
    places = list(_places(value))
    container, key = rng.choice(places)
    kind = rng.choice(("absurd", "absurd", "absurd", "missing", "renamed", "swapped"))
    if kind == "absurd":
        container[key] = rng.choice(ABSURD)
    elif kind == "swapped":
        other, other_key = rng.choice(places)
        container[key] = json.loads(json.dumps(other[other_key]))
    elif kind == "missing" or isinstance(container, list):
        del container[key]
    else:
        container[rng.choice((f"{key}x", "", TRAP, "__class__"))] = container.pop(key)
    return f"{kind} {key}", json.dumps(value).encode("utf-8", "surrogatepass")


def _places(value: object) -> Iterator[tuple[dict | list, object]]:
    """Yields each container inside a JSON value with each of its keys or indices."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from _places(part)


class Neighbours:
    """A file beside an input, which no reader may change; and no other file may appear there.

    Args:
        folder: the folder that contains the input and, from now on, the neighbour.
    """

    def __init__(self, folder: Path):
        self._folder, self._file = folder, folder / "neighbour.txt"
        self._file.write_text("not part of any run\n", "utf-8")
        self._before = self._state()

    def check(self, tally: Tally) -> None:
        """Counts a failure if a file changed since the beginning."""
        if self._state() != self._before:
            tally.fail(f"files beside it changed: {self._state()} instead of {self._before}")

    def _state(self) -> tuple:
        names = sorted(path.name for path in self._folder.iterdir())
        return names, self._file.read_bytes(), self._file.stat().st_mtime_ns
