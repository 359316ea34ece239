"""How far long work has got, for people."""

import time
from collections.abc import Callable

SAY_SECONDS = 10.0


def duration(seconds: float) -> str:
    """E.g. `40 s`, `25 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class LinesProgress:
    """Says now and then how much of a file of lines is done, and how long the rest will take.

    Args:
        size: of the file in bytes; None where it is not known.
        say: takes a line for people.
    """

    def __init__(self, size: int | None, say: Callable[[str], None]):
        self._size, self._say = size, say
        self._start = self._said = time.monotonic()

    def __call__(self, lines: int, place: int) -> None:
        """So many lines are done, which end at this byte."""
        now = time.monotonic()
        if now - self._said < SAY_SECONDS:
            return
        self._said, gone = now, now - self._start
        text = f"{lines:,} lines are done, {lines / gone:.0f} a second"
        if self._size and place:
            text += f", {place / self._size:.0%}, {duration(gone * (self._size - place) / place)} left"
        self._say(text)
