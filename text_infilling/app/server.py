"""The server of `text-infill serve`: a web page that fills blanks, and a JSON API.

curl -H 'Content-Type: application/json' -d '{"text": "The ____ was good.", "num_results": 3}' 127.0.0.1:8000/fill
"""

import concurrent.futures
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

from text_infilling.inference.batch import fill_each
from text_infilling.inference.fill_options import OPTIONS
from text_infilling.text.blanks import blank_warning, check_blank_token, with_blanks
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.utils.command import one_line

if TYPE_CHECKING:  # import TensorFlow
    from text_infilling.inference.infiller import Infiller
    from text_infilling.inference.results import Filled

MOST_BYTES = 64 * 1024  # per request body
MOST_CHARACTERS = 10_000  # per text
MOST_TEXTS, MOST_BLANKS, MOST_RESULTS = 64, 64, 20  # per request, per text, per text
MOST_WORK = 4096  # per request: searches for an infill of a blank
MOST_WORDS = 64  # per blank, in each of its limits
MOST_LIMITS = 1000  # characters of JSON per blank
MOST_WAITING = 256  # texts in the queue, of all requests
PATIENCE = 30.0  # seconds that a request waits in the queue
SOCKET_TIMEOUT = 10.0  # seconds without data from a client before its connection is closed
PAGE = Path(__file__).with_name("page.html")

_HEADERS = {
    "Content-Security-Policy": "default-src 'self' 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclasses.dataclass(frozen=True)
class FillRequest:
    """A parsed request.

    Attributes:
        texts: the texts to fill.
        limits: one entry per text, as `limits` of `Infiller.fill`.
        options: other options of `Infiller.fill`.
        work: estimated cost in searches, at most `MOST_WORK`.
    """

    texts: list[str]
    limits: list
    options: dict
    work: int = 0

    @classmethod
    def read(cls, body: bytes) -> "FillRequest":
        """Parses a JSON body, `{"text": "..."}` or `{"texts": [...]}`, with options.

        Raises:
            ValueError: the body is not such JSON, or exceeds the limits of a request.
        """
        try:
            request = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the body is not JSON: {error}") from error
        if not isinstance(request, dict) or ("text" in request) == ("texts" in request):
            raise ValueError('the body must be a JSON object with either "text" or "texts"')
        if unknown := request.keys() - {"text", "texts", "limits", *OPTIONS}:
            raise ValueError(
                f"unknown keys: {', '.join(sorted(unknown))}. Known keys: text, texts, limits, {', '.join(OPTIONS)}"
            )
        limits = request.get("limits")
        if "text" in request:
            texts, limits = [request["text"]], [limits]
        else:
            texts = request["texts"]
            if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TEXTS:
                raise ValueError(f"texts must be a list of 1 to {MOST_TEXTS} texts")
            limits = limits if isinstance(limits, list) else [limits] * len(texts)
            if len(limits) != len(texts):
                raise ValueError(f"limits must have an entry for each of {len(texts)} texts. Received: {len(limits)}")
        options = {name: request[name] for name in OPTIONS if request.get(name) is not None}
        for name in ("num_results", "beam_width"):
            value = options.get(name, 1)
            if type(value) is not int or not 1 <= value <= MOST_RESULTS:
                raise ValueError(f"{name} must be a whole number from 1 to {MOST_RESULTS} here. Received: {value!r}")
        blank_token = options.get("blank_token")
        if blank_token is not None:
            check_blank_token(blank_token)
        work = 0
        for i, (text, limit) in enumerate(zip(texts, limits), start=1):
            name = "text" if "text" in request else f"text {i}"
            if not isinstance(text, str):
                raise ValueError(f"{name} must be a string. Received: {type(text).__name__}")
            if len(text) > MOST_CHARACTERS:
                raise ValueError(f"{name} may have at most {MOST_CHARACTERS} characters. Received: {len(text)}")
            read = with_blanks(text, blank_token) if blank_token else text
            blanks = sum(piece.word is None for piece in Tokenizer(lower=True).split(read))
            if blanks > MOST_BLANKS:
                raise ValueError(f"{name} may have at most {MOST_BLANKS} blanks. Received: {blanks}")
            work += _work(blanks, options, _phrase_words(limit, name))
        if work > MOST_WORK:
            raise ValueError(
                f"the request is too large: blanks times num_results (or beam_width), summed over all texts, may be at "
                f"most {MOST_WORK:,}; order=confident multiplies a text's sum by its number of blanks, must_include by "
                f"its number of words plus one. Received: {work:,}"
            )
        return cls(texts, limits, options, work)


def _work(blanks, options, phrase_words) -> int:
    """Returns the number of searches that filling a text takes."""
    widths = [options.get(name) for name in ("num_results", "beam_width")]
    width = max([1, *(each for each in widths if isinstance(each, int))])
    return blanks * width * (1 + phrase_words) * (blanks if options.get("order") == "confident" else 1)


def _phrase_words(limits, where) -> int:
    """Returns the most words of a `must_include` in `limits`; leaves malformed limits to `Infiller.fill`.

    Raises:
        ValueError: the limits of a blank are too large.
    """
    found = 0
    for limit in limits if isinstance(limits, list) else [limits]:
        if not isinstance(limit, dict):
            continue
        if len(json.dumps(limit, ensure_ascii=False)) > MOST_LIMITS:
            raise ValueError(f"{where}: the limits of a blank may have at most {MOST_LIMITS} characters of JSON")
        for name in ("min_words", "max_words", "exact_words"):
            if isinstance(limit.get(name), int) and limit[name] > MOST_WORDS:
                raise ValueError(f"{where}: {name} may be at most {MOST_WORDS} here. Received: {limit[name]}")
        counts = {name: _words(limit.get(name)) for name in ("prefix", "banned_words", "must_include")}
        for name, count in counts.items():
            if count > MOST_WORDS:
                raise ValueError(f"{where}: {name} may have at most {MOST_WORDS} words here. Received: {count}")
        found = max(found, counts["must_include"])
    return found


def _words(value) -> int:
    texts = value if isinstance(value, list) else [value]
    return sum(len(list(Tokenizer(lower=True).split(text))) for text in texts if isinstance(text, str))


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
