"""The server of `text-infill serve`: a web page that fills blanks, and a JSON API.

curl -H 'Content-Type: application/json' -d '{"text": "The ____ was good.", "num_results": 3}' 127.0.0.1:8000/fill

Needs the extra `serve` (Starlette, uvicorn, prometheus-client).
"""

import functools
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from text_infilling.app.batcher import Batcher
from text_infilling.app.server_app import ServerApp
from text_infilling.app.server_metrics import ServerMetrics
from text_infilling.app.server_protocol import Protocol
from text_infilling.runs.learned import Learned

if TYPE_CHECKING:  # imports TensorFlow
    from text_infilling.inference.infiller import Infiller

FOLDER = Path(__file__).parent
BACKLOG = 128  # connections that wait to be accepted
ORIGIN = re.compile(r"\*|https?://[^/?#\s*]+")


def web_page() -> bytes:
    """Returns the page as one file: page.html with the style and the scripts in it."""
    page = (FOLDER / "page.html").read_text("utf-8")
    for name in ("page.css", "page_results.js", "page.js"):
        page = page.replace(f"/* {name} */", (FOLDER / name).read_text("utf-8"))
    return page.encode()


class Server:
    """An HTTP server that listens once it is created, and answers while `serve` runs.

    Args:
        host: address to listen on.
        port: port to listen on; 0 picks a free one, see `url`.
        allow_origins: origins of other web pages that may use the server, such as `https://example.com`, or `*`.

    Raises:
        OSError: the address or port cannot be used.
        ValueError: an origin is not one.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8000, allow_origins: Sequence[str] = ()):
        for origin in allow_origins:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(f"expected an origin like https://example.com, or *. Received: {origin!r}")
        self._host, self._allow_origins = host, allow_origins
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((host, port))
            self._socket.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            self._socket.close()
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
            raise OSError(f"cannot listen on {host} port {port}: {reason}; give another --port or --host") from error
        self.address, self.port = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        self.page = web_page()
        self._stopping, self._uvicorn = False, None

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_) -> None:
        self._socket.close()

    @property
    def is_public(self) -> bool:
        """Whether other machines can reach the server."""
        return not ipaddress.ip_address(self.address).is_loopback

    def serve(self, infiller: "Infiller", about: Mapping, learned: Learned | None = None) -> None:
        """Answers requests until `shutdown` is called in another thread, SIGTERM or Ctrl-C.

        Then finishes the requests that are being filled, and refuses those that wait. A second Ctrl-C does not wait.

        Args:
            infiller: fills the texts.
            about: entries that `/health` returns besides `status`.
            learned: what the model has learned; with it, answers name unknown words and texts that are far from it.

        Raises:
            KeyboardInterrupt: after Ctrl-C; in the main thread, after SIGTERM whatever its handler raises.
        """
        metrics = ServerMetrics(
            lambda: self.batcher.waiting_texts(), lambda: len(self._uvicorn.server_state.connections)
        )
        self.batcher = Batcher(infiller, metrics.count_batch)
        hosts = None if self.is_public else frozenset([self._host.lower()])
        app = ServerApp(self.page, about, self.batcher, metrics, hosts, self._allow_origins, learned)
        protocol = functools.partial(
            Protocol, receiving={}, on_refused=functools.partial(metrics.count_answer, "other")
        )
        config = uvicorn.Config(
            app, http=protocol, ws="none", loop="asyncio", lifespan="off", backlog=BACKLOG, log_config=None,
            log_level="error", access_log=False, server_header=False, proxy_headers=False,
        )  # fmt: skip
        self._uvicorn = _Uvicorn(config, self.batcher)
        self._uvicorn.should_exit = self._stopping
        try:
            self._uvicorn.run(sockets=[self._socket])
        finally:
            self.batcher.close()
            if not self._uvicorn.force_exit:
                self.batcher.join()

    def shutdown(self) -> None:
        """Makes `serve` return soon; may be called in any thread."""
        self._stopping = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


class _Uvicorn(uvicorn.Server):
    """uvicorn's server, which rejects what waits in the queue as soon as it shuts down."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher):
        super().__init__(config)
        self._batcher = batcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._batcher.close()
        await super().shutdown(sockets)
