"""Progress of a command over its cells, or trials: the current one, and an estimate of the time left."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from text_infilling.utils.progress import duration


class Job(Hashable, Protocol):
    """A cell, or a trial of the tuning."""

    model: str


class Progress:
    """A progress report that corrects its estimates by how long finished cells really took.

    Cells that were resumed or failed are not used for corrections: they took only part of their time.

    Args:
        seconds: estimate for each cell, in the order they run; 0 if it is finished or not trained.
        is_resumed: returns whether a cell was started before, so that it will be resumed.
        word: what the cells are called in messages.
    """

    def __init__(self, seconds: Mapping[Job, float], is_resumed: Callable[[Job], bool], word: str = "cell"):
        self._word = word
        self._order, self._resumed = list(seconds), {cell for cell in seconds if is_resumed(cell)}
        self._left, self._gone, self._start = dict(seconds), 0.0, time.monotonic()
        self._taken: dict[str, float] = {}
        self._estimated: dict[str, float] = {}

    def seconds_left(self) -> float:
        """Returns the sum of the estimates of all cells left, corrected by the real times of this process.

        A cell is corrected by the finished cells of its model, or by all finished cells if there are none.
        """
        return sum(seconds * self._correction(cell.model) for cell, seconds in self._left.items())

    @contextmanager
    def around(self, cell: Job) -> Iterator[None]:
        """Prints the position of `cell` and times what runs in this context."""
        place, left = f"{self._word} {self._order.index(cell) + 1} of {len(self._order)}", self.seconds_left()
        print(f"{place}, about {duration(left)} left for all {self._word}s" if left else place, flush=True)
        estimated, start = self._left.pop(cell), time.monotonic()
        yield
        if estimated and cell not in self._resumed:
            self._taken[cell.model] = self._taken.get(cell.model, 0) + time.monotonic() - start
            self._estimated[cell.model] = self._estimated.get(cell.model, 0) + estimated

    def before(self) -> str:
        """Returns a line on the work to do, for cells that run in parallel."""
        left = self.seconds_left()
        return f"{len(self._order)} cells" + (f", about {duration(left)} for all of them" if left else "")

    def after(self, cells: Sequence[Job], learn: bool) -> str:
        """Returns a line on the progress after some cells that ran in parallel with others are done.

        Args:
            cells: the cells that are done.
            learn: whether to use their time for the estimate: False if one of them failed.
        """
        learn &= self._resumed.isdisjoint(cells)
        gone = sum(self._left.pop(cell) for cell in cells)
        if learn:
            self._gone += gone
        left, place = sum(self._left.values()), f"{len(self._order) - len(self._left)} of {len(self._order)} cells"
        if not self._gone or not left:
            return f"{place} are done"
        return f"{place} are done, about {duration((time.monotonic() - self._start) * left / self._gone)} left"

    def _correction(self, model: str) -> float:
        if model in self._estimated:
            return self._taken[model] / self._estimated[model]
        return sum(self._taken.values()) / sum(self._estimated.values()) if self._estimated else 1.0
