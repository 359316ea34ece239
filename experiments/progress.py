"""Which cell of how many is next, and about how long all that are left will take."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from experiments.cell import Cell
from text_infilling.progress import duration


class Progress:
    """Says before each cell where a command stands; learns from each cell that comes to its end.

    A cell that was gone on with, or failed, teaches nothing: it took a part of its time only.

    Args:
        seconds: estimate for each cell in their order; 0: finished, or nothing to train.
        goes_on: whether a cell was begun before.
    """

    def __init__(self, seconds: Mapping[Cell, float], goes_on: Callable[[Cell], bool]):
        self._order, self._gone_on = list(seconds), {cell for cell in seconds if goes_on(cell)}
        self._left, self._gone, self._start = dict(seconds), 0.0, time.monotonic()
        self._taken: dict[str, float] = {}
        self._estimated: dict[str, float] = {}

    def seconds_left(self) -> float:
        """The estimates of all cells that are left, corrected by what the cells of this process really took.

        A model's cells are corrected by that model's, or by all if none of it has run yet.
        """
        return sum(seconds * self._correction(cell.model) for cell, seconds in self._left.items())

    @contextmanager
    def around(self, cell: Cell) -> Iterator[None]:
        """Says the place of `cell` and times what is done in this context."""
        place, left = f"cell {self._order.index(cell) + 1} of {len(self._order)}", self.seconds_left()
        print(f"{place}, about {duration(left)} left for all cells" if left else place, flush=True)
        estimated, start = self._left.pop(cell), time.monotonic()
        yield
        if estimated and cell not in self._gone_on:
            self._taken[cell.model] = self._taken.get(cell.model, 0) + time.monotonic() - start
            self._estimated[cell.model] = self._estimated.get(cell.model, 0) + estimated

    def before(self) -> str:
        """How much there is to do, where cells run beside others."""
        left = self.seconds_left()
        return f"{len(self._order)} cells" + (f", about {duration(left)} for all of them" if left else "")

    def after(self, cells: Sequence[Cell], learn: bool) -> str:
        """Where a command stands when some cells that ran beside others are done.

        Args:
            cells: which.
            learn: whether the time they took teaches something: none of them failed.
        """
        learn &= self._gone_on.isdisjoint(cells)
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
