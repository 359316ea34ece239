"""A local HTTP server for the download tests: complete files, ranges, truncated bodies and errors."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """An HTTP server that serves `files` on 127.0.0.1 while its `with` block runs.

    Attributes:
        files: content by path relative to the root; any other path is a 404.
        knows_ranges: whether the server supports ranges; if not, it answers every request with the whole file.
        cuts: number of body bytes that each of the next requests gets before the connection breaks, or None for all;
            requests after the end of the list get all.
        requests: path and `Range` header (or None) of every request so far.
        url: URL of the root.
    """

    def __init__(self, files: dict[str, bytes]):
        self.files = files
        self.knows_ranges = True
        self.cuts: list[int | None] = []
        self.requests: list[tuple[str, str | None]] = []

    def __enter__(self) -> "FileServer":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer._answer(self)

            def log_message(self, *_):
                """Keeps the output of the tests clean."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        asked = request.headers.get("Range")
        self.requests.append((request.path.lstrip("/"), asked))
        body = self.files.get(request.path.lstrip("/"))
        if body is None:
            request.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and self.knows_ranges else 0
        if start and start >= len(body):
            request.send_error(416)
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        request.send_header("Content-Length", str(len(body) - start))
        request.end_headers()
        cut = self.cuts.pop(0) if self.cuts else None
        request.wfile.write(body[start:] if cut is None else body[start : start + cut])


def unused_url() -> str:
    """Returns a local URL whose port has no server."""
    with FileServer({}) as server:
        return server.url
