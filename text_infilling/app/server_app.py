"""The web application of `text-infill serve`: its pages, and who may use them."""

import asyncio
import contextlib
import dataclasses
import ipaddress
import json
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from text_infilling.app import server_metrics
from text_infilling.app.batcher import Batcher, QueueFull
from text_infilling.app.server_metrics import ServerMetrics
from text_infilling.app.server_openapi import document
from text_infilling.app.server_protocol import HEADERS, LINGER, RETRY
from text_infilling.app.server_request import MOST_BYTES, FillRequest
from text_infilling.runs.learned import Learned
from text_infilling.text.blanks import blank_warning
from text_infilling.utils.command import one_line

QUEUE_DEADLINE = 30.0  # seconds that a request waits in the queue
FILL_DEADLINE = 90.0  # seconds until a request that left the queue is answered
MOST_DISCARDED = 2**20  # bytes of a refused body that are read before the answer
CLIENT_LEFT = 499  # status in the metrics only, as nginx has it


class ServerApp:
    """The routes of the server, as an ASGI application.

    Args:
        page: the web page.
        about: entries that `/health` returns besides `status`.
        batcher: fills the texts.
        metrics: counts the answers.
        hosts: accepted names in the `Host` header, besides this machine's; None accepts all.
        allow_origins: origins of other pages that may use the server, such as `https://example.com`, or `*`.
        learned: what the model has learned, or None.
    """

    def __init__(
        self,
        page: bytes,
        about: Mapping,
        batcher: Batcher,
        metrics: ServerMetrics,
        hosts: frozenset[str] | None = None,
        allow_origins: Sequence[str] = (),
        learned: Learned | None = None,
    ):
        about = {**about, "learned": learned.as_dict()} if learned else about
        self._learned = learned
        self._page, self._about, self._batcher, self._metrics = page, about, batcher, metrics
        routes = {
            "/": self._get_page, "/health": self._get_health, "/metrics": self._get_metrics,
            "/openapi.json": self._get_document,
        }  # fmt: skip
        middleware = [Middleware(_Observer, metrics=metrics, paths=[*routes, "/fill"])]
        if hosts is not None:
            middleware.append(Middleware(_HostCheck, hosts=hosts | {urlsplit(each).hostname for each in allow_origins}))
        if allow_origins:
            middleware.append(
                Middleware(
                    CORSMiddleware, allow_origins=allow_origins, allow_methods=["GET", "POST"],
                    allow_headers=["Content-Type"],
                )
            )  # fmt: skip
        app = Starlette(
            routes=[*(Route(path, get) for path, get in routes.items()), Route("/fill", self._fill, methods=["POST"])],
            exception_handlers={HTTPException: _error_answer, Exception: _internal_error_answer},
        )
        app.router.redirect_slashes = False
        for cls, args, kwargs in reversed(middleware):
            app = cls(app, *args, **kwargs)
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        await self._app(scope, receive, send)

    async def _get_page(self, request: Request) -> Response:
        return Response(self._page, media_type="text/html")

    async def _get_health(self, request: Request) -> Response:
        return _json(HTTPStatus.OK, {"status": "ok", **self._about})

    async def _get_metrics(self, request: Request) -> Response:
        return Response(self._metrics.as_text(), media_type=server_metrics.CONTENT_TYPE)

    async def _get_document(self, request: Request) -> Response:
        return _json(HTTPStatus.OK, document())

    async def _fill(self, request: Request) -> Response:
        try:
            body = await _body(request)
            # In a thread, like the writing of the answer: other clients must not wait for a large text.
            read = await run_in_threadpool(FillRequest.read, body)
            results = await self._results(read, request)
        except ClientDisconnect:
            return Response(status_code=CLIENT_LEFT)  # to nobody
        except QueueFull:
            return _json(
                HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy with other texts: wait a second and try again"}
            )
        except ValueError as error:
            return _json(HTTPStatus.BAD_REQUEST, {"error": one_line(error)})
        return Response(await run_in_threadpool(_answer, read, results, self._learned), media_type="application/json")

    async def _results(self, read: FillRequest, request: Request) -> list:
        """Waits for the results of a request.

        Raises:
            QueueFull: the request has to wait too long.
            ClientDisconnect: the client left; its texts are no longer in the queue.
            Exception: any error of the infiller for these texts.
        """
        future = self._batcher.submit(read)
        answer = asyncio.wrap_future(future)
        left = asyncio.ensure_future(request.receive())  # nothing else arrives after the body
        try:
            for seconds in (QUEUE_DEADLINE, FILL_DEADLINE):
                await asyncio.wait([answer, left], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    return answer.result()
                if left.done():
                    raise ClientDisconnect
                if future.cancel():  # it is still in the queue
                    break
            raise QueueFull
        finally:
            answer.cancel()  # and with it the future, if it is still in the queue
            left.cancel()


def _answer(read: FillRequest, results: Sequence, learned: Learned | None) -> bytes:
    answers, blank_token = [dataclasses.asdict(filled) for filled in results], read.options.get("blank_token")
    for text, answer in zip(read.texts, answers):
        if warning := blank_warning(text, blank_token=blank_token):
            answer["warning"] = warning.message
        if learned and (unknown := learned.unknown_words(text, blank_token)):
            answer["unknown_words"] = unknown
        if learned and (far := learned.warning(text, blank_token)):
            answer["far_from_learned"] = far
    return json.dumps({"results": answers}, allow_nan=False).encode()


async def _body(request: Request) -> bytes:
    """Returns the body of a request, which `Protocol` gives a deadline.

    Raises:
        HTTPException: the headers do not announce JSON of an accepted size.
        ClientDisconnect: the client left.
    """
    length = request.headers.get("Content-Length")
    if length is None:
        refused = HTTPException(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing")
    elif int(length) > MOST_BYTES:
        refused = HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have at most {MOST_BYTES} bytes")
    elif request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        refused = HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json")
    else:
        return await request.body()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_discard(request), LINGER)
    raise refused


async def _discard(request: Request) -> None:
    """Reads what the client sends: closing the connection now would reset it, and lose the answer."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_DISCARDED:
            break


async def _error_answer(request: Request, error: HTTPException) -> Response:
    message = error.detail
    if error.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        message = "not found; the server has GET /, /health, /metrics and /openapi.json, and POST /fill"
    return _json(error.status_code, {"error": message}, error.headers)


async def _internal_error_answer(request: Request, error: Exception) -> Response:
    return _json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "internal error"})  # uvicorn logs the error


def _json(status: int, answer: object, headers: Mapping[str, str] | None = None) -> Response:
    headers = {**(headers or {}), **(RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else {})}
    return Response(json.dumps(answer, allow_nan=False), status, headers, "application/json")


class _Observer:
    """Adds the headers that every answer has, and counts answers."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, paths: Sequence[str]):
        self._app, self._metrics, self._paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin, path = time.monotonic(), scope["path"] if scope["path"] in self._paths else "other"

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if message["status"] == CLIENT_LEFT:
                    self._metrics.count_client_left()
                else:
                    seconds = time.monotonic() - begin if path == "/fill" else None
                    self._metrics.count_answer(path, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, send_counted)


class _HostCheck:
    """Refuses requests for other machines: a page whose DNS name was changed to this machine's address sends its own.

    Args:
        app: answers the accepted requests.
        hosts: accepted names besides `localhost` and loopback addresses.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str]):
        self._app, self._hosts = app, hosts | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._accepts(Headers(scope=scope).get("Host", "")):
            await self._app(scope, receive, send)
        else:
            message = "the Host header must name this machine, as in http://localhost, or an origin of --allow_origin"
            await _json(HTTPStatus.FORBIDDEN, {"error": message})(scope, receive, send)

    def _accepts(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._hosts or ipaddress.ip_address(name).is_loopback
        except ValueError:  # not an address
            return False
