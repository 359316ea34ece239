"""Batches the requests that reach `text-infill serve` at the same time."""

import concurrent.futures
import json
import threading
from typing import TYPE_CHECKING

from text_infilling.app.server_request import MOST_WORK, FillRequest
from text_infilling.inference.batch import fill_each

if TYPE_CHECKING:  # import TensorFlow
    from text_infilling.inference.infiller import Infiller
    from text_infilling.inference.results import Filled

MOST_WAITING = 256  # texts in the queue, of all requests
PATIENCE = 30.0  # seconds that a request waits in the queue


class QueueFull(Exception):
    """Raised if the queue has no room for a request, or a request waited too long."""


class Batcher:
    """Batches the requests of many threads: each call of the model fills waiting requests with the same options.

    Args:
        infiller: fills the texts; called from one thread only.
    """

    def __init__(self, infiller: "Infiller"):
        self._infiller = infiller
        self._waiting = []  # (request, future)
        self._changed, self._closed = threading.Condition(), False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def fill(self, request: FillRequest) -> "list[Filled]":
        """Waits for a batch with this request and returns the result of each text.

        Raises:
            QueueFull: too many texts are waiting, the wait exceeds `PATIENCE`, or the batcher is closed.
            Exception: any error of the infiller for these texts.
        """
        future = concurrent.futures.Future()
        with self._changed:
            waiting = sum(len(other.texts) for other, _ in self._waiting)
            if self._closed or waiting + len(request.texts) > MOST_WAITING:
                raise QueueFull
            self._waiting.append((request, future))
            self._changed.notify()
        concurrent.futures.wait([future], PATIENCE)
        with self._changed:
            if any(other is future for _, other in self._waiting):
                self._waiting = [each for each in self._waiting if each[1] is not future]
                raise QueueFull
        return future.result()

    def close(self) -> None:
        """Rejects all waiting requests, and returns once the current batch is done."""
        with self._changed:
            self._closed = True
            for _, future in self._waiting:
                future.set_exception(QueueFull())
            self._waiting = []
            self._changed.notify()
        self._thread.join()

    def _work(self):
        while batch := self._next_batch():
            groups = [(request.texts, request.limits) for request, _ in batch]
            results = fill_each(self._infiller, groups, batch[0][0].options, errors=Exception)
            for (_, future), result in zip(batch, results):
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _next_batch(self):
        """Waits for requests; returns those with the options of the oldest, up to `MOST_WORK`, or none once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            key = _key(self._waiting[0]) if self._waiting else None
            batch, rest, work = [], [], 0
            for each in self._waiting:
                fits = _key(each) == key and work + each[0].work <= MOST_WORK
                (batch if fits else rest).append(each)
                work += each[0].work if fits else 0
            self._waiting = rest
            return batch


def _key(waiting):
    return json.dumps(waiting[0].options, sort_keys=True)  # as JSON, since 1 == 1.0 == True in Python
