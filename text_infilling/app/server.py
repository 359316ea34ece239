"""The server of `text-infill serve`: a web page that fills blanks, and a JSON API.

curl -H 'Content-Type: application/json' -d '{"text": "The ____ was good.", "num_results": 3}' 127.0.0.1:8000/fill
"""

import contextlib
import dataclasses
import http.server
import ipaddress
import json
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from text_infilling.app.batcher import Batcher, QueueFull
from text_infilling.app.server_request import FillRequest
from text_infilling.text.blanks import blank_warning
from text_infilling.utils.command import one_line

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.inference.infiller import Infiller

MOST_BYTES = 64 * 1024  # per request body
SOCKET_TIMEOUT = 10.0  # seconds without data from a client before its connection is closed
PAGE = Path(__file__).with_name("page.html")

_HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Server(http.server.ThreadingHTTPServer):
    """An HTTP server that listens once it is created, and answers while `serve` runs.

    Args:
        host: address to listen on.
        port: port to listen on; 0 picks a free one, see `url`.

    Raises:
        OSError: the address or port cannot be used.
    """

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", port: int = 8000):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise OSError(f"cannot listen on {host} port {port}: {reason}; give another --port or --host") from error
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.server_port}/"
        self.page = PAGE.read_bytes()
        self._answers, self._answered = 0, threading.Condition()

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the server."""
        return not ipaddress.ip_address(self.server_address[0]).is_loopback

    def serve(self, infiller: "Infiller", about: Mapping) -> None:
        """Answers requests until `shutdown` is called in another thread, or Ctrl-C; finishes the current request.

        Args:
            infiller: fills the texts.
            about: entries that `/health` returns besides `status`.
        """
        self.about, self.batcher = about, Batcher(infiller)
        try:
            self.serve_forever(poll_interval=0.1)
        finally:
            self.batcher.close()
            with self._answered:
                self._answered.wait_for(lambda: not self._answers, SOCKET_TIMEOUT)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Makes `serve` wait until the answer sent inside the `with` block is complete."""
        with self._answered:
            self._answers += 1
        try:
            yield
        finally:
            with self._answered:
                self._answers -= 1
                self._answered.notify()

    def handle_error(self, request, client_address) -> None:
        """Logs an error, unless the client closed the connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Refused(Exception):
    """Raised to answer with an error: a status and a message."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif path == "/health":
            self._send_json(HTTPStatus.OK, {"status": "ok", **self.server.about})
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def do_POST(self):
        try:
            body = self._body()
        except _Refused as refused:
            self.send_error(*refused.args)
            return
        with self.server.answering():
            try:
                status, answer = self._filled(body)
                answer = json.dumps(answer, allow_nan=False)
            except Exception:
                traceback.print_exc()
                status, answer = HTTPStatus.INTERNAL_SERVER_ERROR, json.dumps({"error": "internal error"})
            self._send(status, answer.encode(), "application/json")

    def _filled(self, body):
        """Returns the status and the answer to a request."""
        try:
            request = FillRequest.read(body)
            results = self.server.batcher.fill(request)
        except QueueFull:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy with other texts: wait a second and try again"}
        except ValueError as error:
            return HTTPStatus.BAD_REQUEST, {"error": one_line(error)}
        answers = [dataclasses.asdict(filled) for filled in results]
        for text, answer in zip(request.texts, answers):
            if warning := blank_warning(text, blank_token=request.options.get("blank_token")):
                answer["warning"] = warning.message
        return HTTPStatus.OK, {"results": answers}

    def _body(self) -> bytes:
        if self.path.partition("?")[0] != "/fill":
            raise _Refused(HTTPStatus.NOT_FOUND)
        length = self.headers.get("Content-Length")
        if length is None:
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
        if not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if len(length) > 15 or int(length) > MOST_BYTES:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have at most {MOST_BYTES} bytes")
        if self.headers.get_content_type() != "application/json":
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the client closed the connection")
        return body

    def send_error(self, code, message=None, explain=None):
        """Sends an error as JSON, including the errors raised by the standard library."""
        if code == HTTPStatus.NOT_IMPLEMENTED:  # the standard library's code for an unknown method
            code, message = HTTPStatus.NOT_FOUND, None
        if code == HTTPStatus.NOT_FOUND:
            message = message or "not found; the server has GET /, GET /health and POST /fill"
        self._send_json(code, {"error": message or HTTPStatus(code).phrase})
        self._linger()

    def _send_json(self, status, answer):
        self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status, body, content_type):
        self.send_response(status)
        headers = {**_HEADERS, "Content-Type": content_type, "Content-Length": str(len(body)), "Connection": "close"}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = "1"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _linger(self):
        """Drains what the client still sends: closing now would reset the connection and lose the answer."""
        until = time.monotonic() + 1
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(1)
            while time.monotonic() < until and self.connection.recv(MOST_BYTES):
                pass

    def version_string(self):
        return "text-infill"

    def log_message(self, *_):
        """Does not log successful requests."""
