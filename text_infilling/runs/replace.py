"""Replaces an old run by a new one in the same folder, so that a failure or a kill never loses both.

The old run is moved aside inside its folder. To write the new run in a sibling folder and swap the two at the end would
be neither simpler nor as safe: the lock, the log and the resume point are in the folder, so a killed run would have to
be searched for in two places; `fill` and TensorBoard would see the new run only at its end; and two folders cannot be
swapped in one step on every file system, so the states between would need the same care.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from text_infilling.runs import layout
from text_infilling.utils import files

# Folders for the old run while a new one replaces it: move in progress, move complete, no longer needed.
_MOVING, _ASIDE, _OLD = "aside.moving", "aside.run", "aside.old"
_REPLACED = (  # everything a run may contain except its lock and its log
    layout.METRICS, layout.CONFIG, layout.VOCABULARY, layout.TOKENIZER, layout.WEIGHTS, layout.RESUME_POINT,
    layout.TENSORBOARD, layout.EPOCHS, layout.PREDICTIONS, layout.REPORT, layout.SENTENCES, layout.SAVEDMODEL,
    layout.KERAS_FILE,
)  # fmt: skip


@contextlib.contextmanager
def replacing(folder: Path, overwrite: bool) -> Iterator[None]:
    """Moves the old run aside while a new one begins in its place; restores the old one if that fails.

    A folder is renamed between all steps, so that the next process can restore the old run if this one is killed at any
    step.

    Args:
        folder: of both runs; locked by the caller.
        overwrite: whether a run is replaced; if not, only restores what a killed process has moved aside.
    """
    _restore(folder)
    files.remove(folder / _OLD)
    if not overwrite:
        yield
        return
    (folder / _MOVING).mkdir()
    for name in _REPLACED:
        if (folder / name).exists():
            (folder / name).rename(folder / _MOVING / name)
    (folder / _MOVING).rename(folder / _ASIDE)
    try:
        yield
    except BaseException:
        _restore(folder)
        raise
    (folder / _ASIDE).rename(folder / _OLD)
    files.remove(folder / _OLD)


def _restore(folder: Path) -> None:
    """Moves a run that was moved aside back in place."""
    if (folder / _ASIDE).exists():
        for name in _REPLACED:
            files.remove(folder / name)
        (folder / _ASIDE).rename(folder / _MOVING)
    if (folder / _MOVING).exists():
        for path in (folder / _MOVING).iterdir():
            path.rename(folder / path.name)
        (folder / _MOVING).rmdir()
