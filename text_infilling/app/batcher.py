"""Batches the requests that reach `text-infill serve` at the same time."""

import concurrent.futures
import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from text_infilling.app.server_request import MOST_WORK, FillRequest
from text_infilling.inference.batch import fill_each

if TYPE_CHECKING:  # import TensorFlow
    from text_infilling.inference.infiller import Infiller

MOST_WAITING = 256  # texts in the queue, of all requests


class QueueFull(Exception):
    """Raised if the queue has no room for a request, or does not fill it in time."""


class Batcher:
    """Batches requests: each call of the model fills waiting requests with the same options.

    Args:
        infiller: fills the texts; called from one thread only.
        on_batch: called with the number of texts of each batch.
    """

    def __init__(self, infiller: "Infiller", on_batch: Callable[[int], None] = lambda texts: None):
        self._infiller, self._on_batch = infiller, on_batch
        self._queue = []  # (request, future)
        self._changed, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, request: FillRequest) -> concurrent.futures.Future:
        """Queues a request; returns the future of its results, one `Filled` per text, or of the infiller's error.

        A request leaves the queue if its future is cancelled. Cancelling fails once the request is being filled.

        Raises:
            QueueFull: too many texts are waiting, or the batcher is closed.
        """
        future = concurrent.futures.Future()
        with self._changed:
            self._drop_cancelled()
            if self._closed or self._texts() + len(request.texts) > MOST_WAITING:
                raise QueueFull
            self._queue.append((request, future))
            self._changed.notify()
        return future

    def waiting_texts(self) -> int:
        """Returns the number of texts in the queue."""
        with self._changed:
            self._drop_cancelled()
            return self._texts()

    def close(self) -> None:
        """Rejects all waiting and all new requests; a batch that is being filled continues."""
        with self._changed:
            self._closed = True
            for _, future in self._queue:
                if future.set_running_or_notify_cancel():
                    future.set_exception(QueueFull())
            self._queue = []
            self._changed.notify()

    def join(self) -> None:
        """Waits for the current batch after `close`."""
        self._thread.join()

    def _texts(self) -> int:
        return sum(len(request.texts) for request, _ in self._queue)

    def _drop_cancelled(self) -> None:
        self._queue = [each for each in self._queue if not each[1].cancelled()]

    def _work(self) -> None:
        while batch := self._next_batch():
            groups = [(request.texts, request.limits) for request, _ in batch]
            self._on_batch(sum(len(texts) for texts, _ in groups))
            results = fill_each(self._infiller, groups, batch[0][0].options, errors=Exception)
            for (_, future), result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _next_batch(self) -> list:
        """Waits for requests; returns those with the options of the oldest, up to `MOST_WORK`, or none once closed."""
        with self._changed:
            batch = []
            while not batch and not self._closed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                self._drop_cancelled()
                rest, work = [], 0
                for request, future in self._queue:
                    fits = _key(request) == _key(self._queue[0][0]) and work + request.work <= MOST_WORK
                    if not fits:
                        rest.append((request, future))
                    elif future.set_running_or_notify_cancel():
                        batch.append((request, future))
                        work += request.work
                self._queue = rest
            return batch


def _key(request: FillRequest) -> str:
    return json.dumps(request.options, sort_keys=True)  # as JSON, since 1 == 1.0 == True in Python
