"""Shared by tests of fits: a fit that stops before the costly part."""

import contextlib
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def stopped_at_training() -> Iterator[None]:
    """Stops the fit in the block when training begins: after its config, vocabulary and sentences were written."""

    def stop(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("text_infilling.training.trainer.train", stop)
        yield
