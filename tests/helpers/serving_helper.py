"""Helpers for tests of the server and its page: a stand-in for the model, a running server, a request."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time

from text_infilling.app.server import Server
from text_infilling.inference.results import Filled

BLANK = re.compile(r"(?<!\w)_{2,}(?!\w)")


class Echo:
    """A stand-in for `Infiller` that fills each blank with the first word of the text, numbered if not the best.

    Attributes:
        calls: the texts of each call.
        gate: event that each call waits for.
    """

    def __init__(self):
        self.calls, self.gate = [], threading.Event()
        self.gate.set()

    def fill(self, texts, *, limits, num_results=1, **options):
        texts = [texts] if isinstance(texts, str) else texts
        self.calls.append(texts)
        assert self.gate.wait(20)
        if (options.get("top_p") or 0) > 1:
            raise ValueError("top_p is a share\nand must not be above 1")
        return [self._filled(text, i, num_results) for i, text in enumerate(texts)]

    def _filled(self, text, i, num_results):
        if "forbidden" in text:
            raise ValueError(f"text {i + 1}: has a forbidden word")
        if "broken" in text:
            raise RuntimeError("secret detail")
        first, ways = [*text.split(), ""][0], []
        blanks = len(BLANK.findall(text))
        for n in range(num_results):
            word = first + str(n) * (n > 0)
            fills, whole = [word] * blanks, BLANK.sub(word.replace("\\", r"\\"), text)
            log_probs = [-0.5 - n] * blanks
            ways.append(Filled(whole, fills, sum(log_probs), log_probs, [[x] for x in log_probs], [[x] for x in fills]))
        return Filled(**{**vars(ways[0]), "alternatives": ways})


@contextlib.contextmanager
def serving_(infiller, page=None, run="runs/x", learned=None, **arguments):
    """Runs a server in a thread during the `with` block; `arguments` go to `Server`."""
    with Server(**{"port": 0, **arguments}) as server:
        server.page = page or server.page
        thread = threading.Thread(target=server.serve, args=(infiller, {"run": run, "model": "echo"}, learned))
        thread.start()
        try:
            yield server
        finally:
            if isinstance(infiller, Echo):
                infiller.gate.set()
            server.shutdown()
            thread.join()


def ask(server, method, path, body=None, headers=()):
    """Sends a request and returns status, headers and body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        return response.status, response.headers, response.read()


def post(server, **fields):
    """Returns status and JSON answer of `/fill`."""
    status, _, body = ask(server, "POST", "/fill", json.dumps(fields), {"Content-Type": "application/json"})
    return status, json.loads(body)


def wait_for(condition):
    """Waits until the condition holds, at most 20 seconds."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def raw(server, data: bytes) -> bytes:
    """Sends raw bytes and returns the whole answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))
