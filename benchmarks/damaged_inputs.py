"""The damaged inputs of `benchmarks.faults`: run folders, texts, requests and HTTP, read in this process.

`campaign` yields a row per input file. It works in a temporary folder, with an untrained model of a few words.
"""

import contextlib
import gzip
import json
import random
import socket
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import keras
import numpy as np
from hypothesis import strategies

from benchmarks import fill
from benchmarks.damage import ABSURD, TRAP, Neighbours, Tally, damaged_bytes, damaged_json
from experiments.cells import cell as cells
from experiments.cells.setting import Cell, Setting
from text_infilling.app import server_protocol
from text_infilling.app.server import Server
from text_infilling.app.server_request import FillRequest
from text_infilling.app.text_stream import TextStream
from text_infilling.corpora import own_texts
from text_infilling.corpora.source_texts import source_files
from text_infilling.inference.fill_options import OPTIONS
from text_infilling.inference.infiller import Infiller
from text_infilling.inference.load_model import load_model
from text_infilling.inference.results import Filled, without_blanks
from text_infilling.runs import layout
from text_infilling.runs.checks import add_checksum, read_metrics
from text_infilling.runs.run_folder import open_run
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.training.resume import ResumePoint
from text_infilling.utils import files

CELL = Cell(Setting("yelp", "fixed", 0.4, 2, "paper", "smoke"), "self_attention", 1)
SIZES = ["decoder.dim=8", "decoder.num_blocks=1", "decoder.num_heads=2", "decoder.ffn_dim=8"]
WORDS = 50
SENTENCES = [f"Gärtner {i} waters the “{what}” in the evening — 5 €." for i in range(30) for what in ("rosé", "naïve")]
ENCODINGS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "utf-7", "latin-1", "cp1252", "cp037", "cp437", "iso8859-15",
    "koi8-r", "mac-roman", "shift-jis", "euc-jp", "gb18030", "big5", "euc-kr", "ascii",
)  # fmt: skip
# Shares of the inputs, in percent.
SHARES = {
    "config.json": 15, "config.json of a cell": 10, "vocabulary.txt": 5, "tokenizer.json": 5, "best.weights.h5": 5,
    "weights.npz": 5, "resume.npz": 5, "metrics.json": 5, "predictions.jsonl": 5, "made.json": 5, "texts to fit": 10,
    "texts to fill": 5, "requests": 15, "HTTP": 5,
}  # fmt: skip


def campaign(folder: Path, inputs: int, seed: int) -> Iterator[dict]:
    """Yields a row for each kind of damaged input.

    Args:
        folder: an empty folder to work in.
        inputs: number of inputs, of all kinds.
        seed: random seed of the damages.
    """
    (folder / f"{TRAP}.py").write_text("def function(words, tags): return []\n", "utf-8")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_on_path(folder))
        for name, read in {**_run_readers(folder / "a"), **_text_readers(folder / "b")}.items():
            path, function, names = read
            tally, rng = Tally(name), random.Random(f"{seed} {name}")
            for _ in range(_count(name, inputs)):
                _damage_and_read(tally, rng, path, function, names)
            yield tally.row("damaged")
        infiller = _Reading(folder / "a" / "run")
        yield fuzzed_requests(infiller, _count("requests", inputs), seed).row("fuzzed")
        yield fuzzed_http(infiller, _count("HTTP", inputs), seed).row("fuzzed")
        yield encodings(folder / "c").row("other encodings")


def _count(name: str, inputs: int) -> int:
    return max(1, inputs * SHARES[name] // 100)


@contextlib.contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _damage_and_read(tally: Tally, rng: random.Random, path: Path, read: Callable, names: tuple[str, ...]) -> None:
    """Damages a file, reads it, and restores it."""
    intact = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.6:
        kind, content = damaged_json(rng, intact)
    else:
        others = [other.read_bytes() for other in path.parent.iterdir() if other.is_file() and other != path]
        kind, content = damaged_bytes(rng, intact, others)
    path.write_bytes(content)
    neighbours = Neighbours(path.parent.parent)
    tally.judge(kind, read, names)
    neighbours.check(tally)
    path.write_bytes(intact)


# Run folders


def _run_readers(folder: Path) -> dict[str, tuple]:
    """Writes a run, and returns for each of its files: its path, a function that reads it, and what errors name."""
    run, base = folder / "run", folder / "base"
    for path in (run, base):
        path.mkdir(parents=True)
    args = fill.new_parser().parse_args(["--preset=smoke", *(f"--set={size}" for size in SIZES)])
    write_run(run, args)
    model = load_model(open_run(run))
    for name in (layout.CONFIG, layout.VOCABULARY, layout.TOKENIZER):
        (base / name).write_bytes((run / name).read_bytes())
    arrays = {f"{i:03}": np.asarray(weights, np.float16) for i, weights in enumerate(model.get_weights())}
    np.savez(base / layout.BASE_WEIGHTS, **arrays)
    model.compile(keras.optimizers.Adam())
    model.optimizer.build(model.trainable_variables)
    point = ResumePoint(run / layout.RESUME_POINT, steps=1, interval=1.0, stateful={})
    point.set_model(model)
    point.save()

    def load(path: Path) -> Callable[[], object]:
        return lambda: load_model(open_run(path))

    def intact(path: Path) -> Callable[[], object]:
        weights = load_model(open_run(path)).get_weights()

        def read():
            found = load_model(open_run(path)).get_weights()
            if not all(map(np.array_equal, found, weights)):
                raise AssertionError("the weights differ")

        return read

    named = (str(run),)
    return {
        "config.json": (run / layout.CONFIG, load(run), named),
        "config.json of a cell": (run / layout.CONFIG, lambda: cells.read_config(run), named),
        "vocabulary.txt": (run / layout.VOCABULARY, load(run), named),
        "tokenizer.json": (run / layout.TOKENIZER, load(run), named),
        "best.weights.h5": (run / layout.WEIGHTS, intact(run), named),
        "weights.npz": (base / layout.BASE_WEIGHTS, intact(base), (str(base),)),
        "resume.npz": (run / layout.RESUME_POINT, point.restore, named),
        "metrics.json": (run / layout.METRICS, lambda: read_metrics(run), named),
        "predictions.jsonl": (run / layout.PREDICTIONS, lambda: cells.read_predictions(run), named),
    }


def write_run(folder: Path, args: Namespace) -> None:
    """Writes a run folder with all files of a finished cell, and untrained weights."""
    fill.write_untrained(folder, args, WORDS)
    add_checksum(folder / layout.WEIGHTS)  # as in training
    Tokenizer(lower=True).save(folder / layout.TOKENIZER)
    config = files.read_json(folder / layout.CONFIG)
    config |= {
        "cell": CELL.as_dict(),
        "corpus": {"checksum": "c0ffee"},
        "answers": {"empty": False},
        "mixed_precision": False,
        "versions": {"keras": keras.__version__},
        "where": {"data_dir": None, "source": "made up", "note": ""},
    }
    files.write_json(folder / layout.CONFIG, config)
    files.write_json(folder / layout.METRICS, {"bleu": 50.0, "ppl": 20.5, "sentences": 9})
    prediction = {"template": "a <m> b", "answer": ["x"], "infill": ["y"], "scores": [-1.5]}
    files.write_jsonl(folder / layout.PREDICTIONS, [prediction] * 5)


# Texts


def _text_readers(folder: Path) -> dict[str, tuple]:
    """Writes texts, and returns for each kind: its path, a function that reads it, and what errors name."""
    out, texts = folder / "run", folder / "texts"
    for path in (out, texts):
        path.mkdir(parents=True)
    text = "\n".join(SENTENCES) + "\n"
    source = texts / "texts.txt"
    source.write_text(text, "utf-8")
    (texts / "other.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in SENTENCES), "utf-8")
    (texts / "other.csv").write_text("text,n\n" + "".join(f'"{line}",1\n' for line in SENTENCES), "utf-8")
    (texts / "other.txt.gz").write_bytes(gzip.compress(text.encode()))
    (texts / "other.bin").write_bytes(bytes(range(256)) * 100)
    read_corpus(source, out)
    made = out / layout.SENTENCES / "made.json"
    return {
        "made.json": (made, lambda: read_corpus(source, out), (str(made),)),
        "texts to fit": (source, lambda: read_corpus(source, out), (source.name,)),
        "texts to fill": (source, lambda: read_stream(source), ("texts.txt",)),
    }


def read_corpus(source: Path, out: Path, column: str | None = None) -> None:
    """Reads texts as `fit` does."""
    with source_files(source, out, log=lambda _: None) as sources:
        reading = own_texts.Reading(Tokenizer(lower=True), frozenset(), "lines", 60, column)
        own_texts.corpus(sources, out / layout.SENTENCES, reading, "any", log=lambda _: None)


def read_stream(source: Path) -> None:
    """Reads texts as `fill --file` does."""
    with TextStream([], str(source)) as chunks:
        for chunk in chunks:
            assert all(isinstance(text, (str, ValueError)) for text in chunk)


def encodings(folder: Path) -> Tally:
    """Reads the sentences in each encoding, plain and compressed; accepts only those in UTF-8."""
    tally = Tally("texts to fit")
    (folder / "out").mkdir(parents=True)
    for encoding in ENCODINGS:
        content = ("\n".join(SENTENCES) + "\n").encode(encoding, "replace")
        for suffix, data in ((".txt", content), (".txt.gz", gzip.compress(content)), (".csv", b"text\n" + content)):
            path = folder / f"{encoding}{suffix}"
            path.write_bytes(data)
            column = "text" if suffix == ".csv" else None
            before = tally.accepted
            tally.judge(
                path.name, lambda path=path, column=column: read_corpus(path, folder / "out", column), [path.name]
            )
            is_utf8 = _is_text(data if suffix != ".txt.gz" else content)
            if tally.accepted > before and not is_utf8:
                tally.fail(f"{path.name} is accepted, but is not UTF-8")
    return tally


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode("utf-8")
    except UnicodeDecodeError:
        return False


# Requests


class _Reading(Infiller):
    """An infiller that reads and checks requests, and then fills nothing."""

    def __init__(self, folder: Path):
        run = open_run(folder)
        super().__init__(load_model(run), run.vocabulary, run.tokenizer, run.longest, run.beam_width, run.least)

    def _results(self, texts, options) -> list[list[Filled]]:
        return [[without_blanks(text.text)] for text in texts]


def _requests() -> strategies.SearchStrategy:
    """Returns a strategy of JSON values that resemble requests."""
    plain = strategies.one_of(
        strategies.none(), strategies.booleans(), strategies.integers(), strategies.floats(),
        strategies.text(max_size=20), strategies.sampled_from([value for value in ABSURD if len(repr(value)) < 100]),
    )  # fmt: skip
    anything = strategies.recursive(
        plain,
        lambda part: strategies.lists(part, max_size=4) | strategies.dictionaries(strategies.text(max_size=8), part),
        max_leaves=6,
    )
    text = strategies.lists(strategies.sampled_from(["w1", "____", "[MASK]", "__m__", ",", "n't", "é", "\u200b"])).map(
        " ".join
    )
    limits = strategies.dictionaries(
        strategies.sampled_from(["min_words", "max_words", "exact_words", "prefix", "banned_words", "must_include"]),
        strategies.integers(-1, 70) | text | strategies.lists(text, max_size=3) | anything, max_size=3,
    )  # fmt: skip
    number = strategies.integers(-1, 25) | strategies.floats(0, 2)
    sensible = {
        "text": text,
        "texts": strategies.lists(text, max_size=4),
        "limits": limits | strategies.lists(limits, max_size=3),
        "order": strategies.sampled_from(["left", "confident"]),
        "blank_token": strategies.sampled_from(["[MASK]", "<extra_id_0>", "(", "\\"]),
    }
    fields = {name: sensible.get(name, number) | anything for name in (*sensible, *OPTIONS)}
    valid = {name: sensible.get(name, strategies.integers(1, 20)) for name in fields if name not in ("text", "texts")}
    return strategies.one_of(
        anything,
        strategies.fixed_dictionaries({}, optional=fields),
        strategies.fixed_dictionaries({"text": text}, optional=valid),
        strategies.fixed_dictionaries({"text": text}, optional={"limits": limits, "num_results": number}),
    )


def fuzzed_requests(infiller: Infiller, count: int, seed: int) -> Tally:
    """Reads requests that hypothesis generates, as the server does."""
    tally = Tally("requests")

    def read(body: bytes) -> None:
        request = FillRequest.read(body)
        infiller.fill(request.texts, limits=request.limits, **request.options)

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(_requests().map(lambda value: json.dumps(value).encode()) | strategies.binary(max_size=50))
    def ask(body: bytes) -> None:
        tally.judge(repr(body[:200]), lambda: read(body), [""])

    ask()
    return tally


def fuzzed_http(infiller: Infiller, count: int, seed: int) -> Tally:
    """Sends damaged HTTP to a running server: each is answered, never with 500, and the server survives."""
    tally, rng = Tally("HTTP"), random.Random(f"{seed} HTTP")
    body = json.dumps({"text": "w1 ____ w2", "num_results": 2, "limits": {"max_words": 3}}).encode()
    head = "POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    intact = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    others = [b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\x02\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 50]

    def send(server: Server, data: bytes) -> None:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            answer = b""
            with contextlib.suppress(ConnectionError):
                while part := connection.recv(65536):
                    answer += part
        status = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")[:13]
        if not status.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")):
            raise AssertionError(f"the answer begins with {status!r}")
        if status.startswith(b"HTTP/1.1 4"):
            raise ValueError(status.decode())

    before = server_protocol.REQUEST_DEADLINE
    server_protocol.REQUEST_DEADLINE = 0.1  # for incomplete requests
    try:
        with Server(port=0) as server:
            thread = threading.Thread(target=server.serve, args=(infiller, {}))
            thread.start()
            try:
                for _ in range(count):
                    kind, data = damaged_bytes(rng, intact, others)
                    tally.judge(f"{kind}: {data[:300]!r}", lambda data=data: send(server, data), [""])
                send(server, intact)
            finally:
                server.shutdown()
                thread.join()
    finally:
        server_protocol.REQUEST_DEADLINE = before
    return tally
