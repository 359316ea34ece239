"""Progress messages of long work."""

import time
from collections.abc import Callable

SAY_SECONDS = 10.0


def duration(seconds: float) -> str:
    """Returns a duration in words.

    >>> duration(40), duration(1500), duration(12600)
    ('40 s', '25 min', '3.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class LinesProgress:
    """Reporter of how much of a file is processed and of the remaining time, at most one line per `SAY_SECONDS`.

    Args:
        size: of the file in bytes; None if unknown.
        say: receives the progress, one line per call.
    """

    def __init__(self, size: int | None, say: Callable[[str], None]):
        self._size, self._say = size, say
        self._start = self._last = time.monotonic()

    def __call__(self, lines: int, place: int) -> None:
        """Reports progress after `lines` lines, the last of which ends at byte `place`."""
        now = time.monotonic()
        if now - self._last < SAY_SECONDS:
            return
        self._last, elapsed = now, now - self._start
        text = f"{lines:,} lines done, {lines / elapsed:.0f} per second"
        if self._size and place:
            text += f", {place / self._size:.0%}, {duration(elapsed * (self._size - place) / place)} left"
        self._say(text)
