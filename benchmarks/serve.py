"""Measures `text-infill serve` under load, and compares every answer with `Infiller.fill`.

Command:
    python -m benchmarks.serve --preset=full
    python -m benchmarks.serve --run=FOLDER_OF_A_RUN

Without `--run`, serves an untrained model of the preset's sizes with 9,000 words, whose infills have exactly `--words`
words. Clients send one text with two blanks at a time, each over a new connection, as fast as they get answers. The row
with `dripping` clients has that many others beside, which send a byte per second of a request that never ends; the last
row sends `--requests` requests.

Columns: `p50_ms` and `p99_ms` are times of one request; `wrong` counts answers that differ from `Infiller.fill` in text
or infills, `refused` those with another status than 200; `rss_mib` is the memory of the server at the end of the row.
Expected: `wrong` and `refused` are 0, and `rss_mib` of the last two rows is about the same.
Duration on 2 cores: about three minutes with the preset smoke.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import math
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import common, fill

COLUMNS = (
    "benchmark", "model", "sizes", "clients", "dripping", "requests", "requests_per_s", "p50_ms", "p99_ms", "wrong",
    "refused", "rss_mib",
)  # fmt: skip
# (clients, dripping clients, share of --requests)
ROWS = ((1, 0, 0.05), (8, 0, 0.1), (64, 0, 0.2), (8, 200, 0.1), (64, 0, 1.0))
DRIP = 1.0  # seconds between two bytes
LONGEST = 120.0  # seconds that a client waits for an answer, and the benchmark for the end of the server


def new_parser() -> argparse.ArgumentParser:
    """Returns the parser of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    fill.add_run(parser)
    parser.add_argument(
        "--requests", type=common.positive, default=10_000, help="requests of the last row (default: %(default)s)"
    )
    common.add_output(parser)
    return parser


def rows_of(args: argparse.Namespace) -> Iterator[dict]:
    """Measures each run, with a server of its own."""
    for run in args.run or []:
        yield from measure(run, str(run), args.requests, None)
    if not args.run:
        with tempfile.TemporaryDirectory() as folder:
            common.isolated(fill.write_untrained, Path(folder), args)
            limits = {"exact_words": args.words}
            yield from measure(Path(folder), f"{args.preset}, untrained", args.requests, limits)


def measure(run: Path, sizes: str, requests: int, limits: dict | None) -> Iterator[dict]:
    """Yields the rows of a run."""
    expected = common.isolated(expected_answers, run, limits)
    with serving(run) as (address, process):
        model = json.loads(_request(address, "GET", "/health", None)[1])["model"]
        for clients, dripping, share in ROWS:
            count = max(clients, round(share * requests))
            with dripping_clients(address, dripping):
                begin = time.perf_counter()
                times, wrong, refused = load(address, expected, limits, clients, count)
                seconds = time.perf_counter() - begin
            times.sort()
            values = (
                "serve", model, sizes, clients, dripping, count, count / seconds, 1000 * _quantile(times, 0.5),
                1000 * _quantile(times, 0.99), wrong, refused, resident_mib(process.pid),
            )  # fmt: skip
            yield dict(zip(COLUMNS, values, strict=True))


def expected_answers(run: Path, limits: dict | None) -> dict[str, list]:
    """Returns, for each text, the filled text and the infills of `Infiller.fill`."""
    from text_infilling.inference.infiller import Infiller

    infiller = Infiller.load(run)
    return {text: _words(vars(infiller.fill(text, limits=limits))) for text in fill.TEXTS}


@contextlib.contextmanager
def serving(run: Path) -> Iterator[tuple[tuple[str, int], subprocess.Popen]]:
    """Runs `text-infill serve` during the `with` block; yields its address and process.

    Raises:
        OSError: it does not start, or does not stop with exit code 0 after SIGTERM.
    """
    command = [sys.executable, "-m", "text_infilling", "serve", "--run", str(run), "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline().split()
            if ready[:2] != ["ready", "at"]:
                raise OSError("the server did not start: see its message above")
            url = urlsplit(ready[2])
            yield (url.hostname, url.port), process
        finally:
            process.send_signal(signal.SIGTERM)
        if code := process.wait(LONGEST):
            raise OSError(f"the server stopped with exit code {code}")


def load(
    address: tuple[str, int], expected: Mapping[str, list], limits: dict | None, clients: int, count: int
) -> tuple[list[float], int, int]:
    """Sends `count` requests from `clients` threads; returns their times, and the numbers of wrong and refused ones."""

    def ask(text: str) -> tuple[float, bool, bool]:
        body = json.dumps({"text": text, "limits": limits})
        begin = time.perf_counter()
        status, answer = _request(address, "POST", "/fill", body)
        seconds = time.perf_counter() - begin
        if status != 200:
            return seconds, False, True
        return seconds, _words(json.loads(answer)["results"][0]) != expected[text], False

    with ThreadPoolExecutor(clients) as pool:
        results = list(pool.map(ask, itertools.islice(itertools.cycle(expected), count)))
    times, wrong, refused = zip(*results)
    return list(times), sum(wrong), sum(refused)


@contextlib.contextmanager
def dripping_clients(address: tuple[str, int], count: int) -> Iterator[None]:
    """Keeps `count` connections open that each send a byte per second; one that the server closes begins again."""
    stop = threading.Event()

    def drip() -> None:
        connections: list[socket.socket | None] = [None] * count
        while not stop.wait(DRIP):
            for i, connection in enumerate(connections):
                try:
                    connection = connection or socket.create_connection(address, timeout=5)
                    connection.sendall(b"G")
                    connections[i] = connection
                except OSError:
                    if connection:
                        connection.close()
                    connections[i] = None
        for connection in filter(None, connections):
            connection.close()

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        if count:
            time.sleep(2 * DRIP)  # until all are connected
        yield
    finally:
        stop.set()
        thread.join()


def resident_mib(process: int) -> float | None:
    """Returns the current memory of a process in MiB; None if the system does not show it (Linux does)."""
    try:
        status = Path(f"/proc/{process}/status").read_text("utf-8")
    except OSError:
        return None
    return int(status.partition("VmRSS:")[2].split()[0]) / 2**10


def _request(address: tuple[str, int], method: str, path: str, body: str | None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=LONGEST)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()


def _words(result: Mapping) -> list:
    return [result["text"], result["fills"]]


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[math.ceil(share * len(ordered)) - 1]


if __name__ == "__main__":
    common.main(new_parser(), rows_of, COLUMNS)
