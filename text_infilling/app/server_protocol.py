"""The HTTP protocol of `text-infill serve`: uvicorn's, with deadlines and a limit on connections.

uvicorn alone waits without limit for the headers and the body of a request, and for a client to read its answer.
"""

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 512  # at the same time; below the usual limit of 1024 open files per process
REQUEST_DEADLINE = 10.0  # seconds in which headers and body must arrive
ANSWER_DEADLINE = 150.0  # seconds from the complete request until the answer is sent
READING_DEADLINE = 30.0  # seconds in which a client must read more of a large answer
LINGER = 1.0  # seconds in which a refused client can read its answer

HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Connection": "close",  # one request per connection
    "Server": "text-infill",
}
RETRY = {"Retry-After": "1"}  # seconds


class Protocol(H11Protocol):
    """A connection, which serves one request within its deadlines.

    Beyond `MOST_CONNECTIONS`, the connection that has waited longest for its request gives way to a new one: clients
    that send slowly cannot lock out others. If all are being answered, the new one is refused.

    Args:
        receiving: the connections of the server whose request is incomplete, in order of arrival.
        on_refused: called with the HTTP status of each answer that is sent without the application.
        arguments: those of uvicorn's protocol.
    """

    def __init__(self, *, receiving: "dict[Protocol, None]", on_refused: Callable[[int], None], **arguments):
        super().__init__(**arguments)
        self._receiving, self._on_refused, self._timer = receiving, on_refused, None
        self._received = self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Starts the deadline of the request; refuses a connection if there are too many."""
        super().connection_made(transport)
        self._receiving[self] = None
        self._within(REQUEST_DEADLINE, self._request_is_late)
        if len(self.connections) > MOST_CONNECTIONS:
            next(iter(self._receiving))._refuse(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many connections: wait a second and try again"
            )

    def data_received(self, data: bytes) -> None:
        """Reads a part of the request; once it is complete, starts the deadline of the answer."""
        if self._refused:
            return
        super().data_received(data)
        if not self._received and not self._refused and self.cycle is not None and not self.cycle.more_body:
            self._received = True
            self._receiving.pop(self, None)
            self._within(ANSWER_DEADLINE, self.transport.abort)

    def pause_writing(self) -> None:
        """Starts the deadline of a client that does not read its answer."""
        super().pause_writing()
        self._within(READING_DEADLINE, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._receiving.pop(self, None)
        self._timer.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Closes the connection, unless its request is complete and not yet answered."""
        if not self._received:
            self.transport.close()
        elif not self.transport.is_closing():
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answers a request that is not HTTP with JSON."""
        self._refuse(HTTPStatus.BAD_REQUEST, "not an HTTP request")

    def _request_is_late(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, f"the request did not arrive within {REQUEST_DEADLINE:g} seconds")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answers without the application, and closes the connection."""
        self._refused = True
        self.connections.discard(self)
        self._receiving.pop(self, None)
        if self.transport.is_closing():
            return
        if self.cycle is not None and self.cycle.response_started:  # the answer to the request is already sent
            self.transport.abort()
            return
        self._on_refused(status)
        if self.cycle is not None:  # the application, if it waits for the body, ends as if the client had left
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        body = json.dumps({"error": message}).encode()
        headers = {**HEADERS, "Content-Type": "application/json", "Content-Length": str(len(body))}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers |= RETRY
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + body)
        # Closing now would reset the connection if the client still sends, and lose the answer.
        self.transport.write_eof()
        self._within(LINGER, self.transport.abort)

    def _within(self, seconds: float, function: Callable[[], None]) -> None:
        """Calls `function` after a number of seconds, unless another deadline replaces this one or the client left."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, function)
