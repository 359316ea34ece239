"""Progress messages of long work."""

import time
from collections.abc import Callable

SAY_SECONDS = 10.0


def duration(seconds: float) -> str:
    """Returns a duration for people, e.g. `40 s`, `25 min` or `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class LinesProgress:
    """Reporter of how much of a file is processed and of the remaining time, at most one line per `SAY_SECONDS`.

    Args:
        size: of the file in bytes; None if unknown.
        say: receives one line for people per call.
    """

    def __init__(self, size: int | None, say: Callable[[str], None]):
        self._size, self._say = size, say
        self._start = self._said = time.monotonic()

    def __call__(self, lines: int, place: int) -> None:
        """Reports progress after `lines` lines, the last of which ends at byte `place`."""
        now = time.monotonic()
        if now - self._said < SAY_SECONDS:
            return
        self._said, gone = now, now - self._start
        text = f"{lines:,} lines are done, {lines / gone:.0f} a second"
        if self._size and place:
            text += f", {place / self._size:.0%}, {duration(gone * (self._size - place) / place)} left"
        self._say(text)
