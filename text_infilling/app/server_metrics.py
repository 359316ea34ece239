"""The measurements that `text-infill serve` shows at `/metrics`, in the text format of Prometheus."""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """Counts of one server.

    Args:
        waiting_texts: returns the number of texts in the queue.
        connections: returns the number of open connections.
    """

    def __init__(self, waiting_texts: Callable[[], float], connections: Callable[[], float]):
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "text_infill_requests", "Answered requests; an error has a status of at least 400.", ["path", "status"],
            registry=registry,
        )  # fmt: skip
        self._errors = Counter("text_infill_errors", "Answers with a status of at least 400.", registry=registry)
        self._seconds = Histogram(
            "text_infill_fill_seconds", "Time from a request of /fill to its answer.", buckets=SECONDS,
            registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "text_infill_batch_texts", "Texts per batch of the model.", buckets=TEXTS, registry=registry
        )
        self._left = Counter("text_infill_clients_left", "Clients that left before their answer.", registry=registry)
        Gauge("text_infill_queue_texts", "Texts in the queue.", registry=registry).set_function(waiting_texts)
        Gauge("text_infill_connections", "Open connections.", registry=registry).set_function(connections)

    def count_answer(self, path: str, status: int, seconds: float | None = None) -> None:
        """Counts an answer; `seconds` is the time that `/fill` took."""
        self._requests.labels(path, str(status)).inc()
        if status >= 400:
            self._errors.inc()
        if seconds is not None:
            self._seconds.observe(seconds)

    def count_client_left(self) -> None:
        """Counts a client that left before its answer."""
        self._left.inc()

    def count_batch(self, texts: int) -> None:
        """Counts a batch of `texts` texts."""
        self._batches.observe(texts)

    def as_text(self) -> bytes:
        """Returns all measurements in the text format of Prometheus."""
        return generate_latest(self._registry)
