"""Tables for the terminal and for files that people read."""

from collections.abc import Collection, Sequence


def aligned(grid: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Returns the rows of `grid` as lines with aligned columns; aligns columns in `left` left, the rest right."""
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in grid
    ]
