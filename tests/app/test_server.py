"""Real requests to a real server, most of them with a stand-in for the model."""

import contextlib
import http.client
import json
import math
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving_helper import ask, post, serving_, wait_for

from text_infilling.app import cli, server_app, server_protocol
from text_infilling.app.server import Server
from text_infilling.inference.infiller import Infiller
from text_infilling.runs.learned import Learned
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary


def raw(server, data: bytes) -> bytes:
    """Sends raw bytes and returns the whole answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


# Answers


def test_an_answer_has_all_fields_of_a_result(server):
    status, answer = post(server, text="cats ____ and ____", num_results=2)
    assert status == 200
    (result,) = answer["results"]
    assert result["text"] == "cats cats and cats" and result["fills"] == ["cats", "cats"]
    assert result["log_probabilities"] == [-0.5, -0.5] and result["token_log_probabilities"] == [[-0.5], [-0.5]]
    assert result["words"] == [["cats"], ["cats"]]
    assert [way["text"] for way in result["alternatives"]] == ["cats cats and cats", "cats cats1 and cats1"]


def test_texts_are_filled_in_their_order(server):
    _, answer = post(server, texts=["a ____", "b", "c ____"])
    assert [result["text"] for result in answer["results"]] == ["a a", "b", "c c"]


def test_the_result_for_a_text_without_a_blank_has_a_warning(server):
    _, answer = post(server, texts=["a ____", "the [MASK]", "un____able ____"])
    assert [(result.get("warning") or "").partition(":")[0] for result in answer["results"]] == [
        "",
        "the text has no blank, but [MASK]",
        "the text has un____able, which is not a blank",
    ]
    assert answer["results"][1]["warning"].endswith("; blank_token '[MASK]' accepts another mask")
    _, answer = post(server, text="the [MASK]", blank_token="[MASK]")
    assert "warning" not in answer["results"][0]


def test_answers_name_unknown_words_and_texts_far_from_what_the_model_learned(echo):
    cell = {"corpus": "yelp", "blanks": 1, "mask_rate": [0.2, 0.4]}
    learned = Learned.of(cell, Tokenizer(lower=True), Vocabulary(["the", "soup", "was"]))
    with serving_(echo, learned=learned) as server:
        _, answer = post(server, texts=["The soup ____", "the ramen was ____", "the ____ ____", "a b", "____"])
        about = json.loads(ask(server, "GET", "/health")[2])["learned"]
    found = [(one.get("unknown_words"), one.get("far_from_learned")) for one in answer["results"]]
    far = "it has 2 blanks, and the model learned texts with 1 blank: infills may be poor"
    assert found == [(None, None), (["ramen"], None), (None, far), (["a", "b"], None), (None, None)]
    assert about["summary"] == "texts of yelp in lower case, 1 blank per text, 20% to 40% of the words masked"
    assert about["blanks"] == [1, 1] and about["lower_case"] and about["masking"] is None


def test_health_names_the_run_and_the_model(server):
    status, _, body = ask(server, "GET", "/health")
    assert (status, json.loads(body)) == (200, {"status": "ok", "run": "runs/x", "model": "echo"})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/fill"), ("GET", "/../setup.py"), ("POST", "/"), ("POST", "/health"), ("PUT", "/fill"),
        ("OPTIONS", "*"), ("OPTIONS", "/fill"), ("GET", "/health/"), ("GET", "//fill"), ("FOO", "/none"),
    ],
)  # fmt: skip
def test_other_paths_and_methods_are_not_found(server, method, path):
    status, headers, body = ask(server, method, path)
    known = path in ("/", "/fill", "/health")
    assert status == (405 if known else 404) and ("Allow" in headers) == known
    assert headers["Content-Type"] == "application/json" and json.loads(body).keys() == {"error"}


def test_every_answer_has_security_headers_and_closes_the_connection(server):
    for method, path in (("GET", "/"), ("GET", "/health"), ("HEAD", "/"), ("GET", "/none"), ("POST", "/fill")):
        _, headers, _ = ask(server, method, path)
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Connection"] == "close"
        assert headers["Content-Security-Policy"].startswith("default-src 'self' 'unsafe-inline'")


def test_by_default_only_this_machine_can_connect(server):
    assert server.address == "127.0.0.1" and not server.is_public
    with Server("0.0.0.0", 0) as public:
        assert public.is_public


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("LOCALHOST:80", 200), ("127.0.0.1:8000", 200), ("[::1]:1", 200), ("127.9.9.9", 200),
        ("evil.example", 403), ("evil.example:8000", 403), ("10.0.0.1", 403), ("localhost.evil.example", 403),
        ("", 403), ("[", 403), ("localhost@evil.example", 403), ("evil.example@localhost", 200),
    ],
)  # fmt: skip
def test_a_server_of_this_machine_only_refuses_other_host_names(server, host, status):
    answered, headers, body = ask(server, "GET", "/health", headers={"Host": host})
    assert answered == status and headers["X-Content-Type-Options"] == "nosniff"
    assert status == 200 or json.loads(body)["error"].startswith("the Host header must")


def test_a_public_server_accepts_any_host_name(echo):
    with serving_(echo, host="0.0.0.0") as server:
        assert ask(server, "GET", "/health", headers={"Host": "my.example"})[0] == 200


PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "Content-Type"}


def test_allowed_pages_of_other_origins_may_use_the_server(echo):
    with serving_(echo, allow_origins=["https://good.example"]) as server:
        for origin, allowed in (("https://good.example", "https://good.example"), ("https://evil.example", None)):
            status, headers, _ = ask(server, "OPTIONS", "/fill", headers={"Origin": origin, **PREFLIGHT})
            assert (status == 200) == bool(allowed) and headers["Access-Control-Allow-Origin"] == allowed
            assert headers["X-Content-Type-Options"] == "nosniff"
            status, headers, _ = ask(server, "GET", "/health", headers={"Origin": origin})
            assert (status, headers["Access-Control-Allow-Origin"]) == (200, allowed)
        assert ask(server, "GET", "/health", headers={"Host": "good.example"})[0] == 200  # behind a proxy
        assert ask(server, "GET", "/health", headers={"Host": "evil.example"})[0] == 403


def test_by_default_no_other_page_may_use_the_server(server):
    status, headers, _ = ask(server, "OPTIONS", "/fill", headers={"Origin": "https://evil.example", **PREFLIGHT})
    assert status == 405 and "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("origin", ["good.example", "https://good.example/", "ftp://x", "https://", ""])
def test_an_origin_has_a_scheme_and_no_path(origin):
    with pytest.raises(ValueError, match="expected an origin like https://example.com"):
        Server(port=0, allow_origins=[origin])


def test_metrics_count_requests_errors_batches_and_times(server):
    assert post(server, texts=["a ____", "b ____"])[0] == 200
    assert post(server, text="forbidden ____")[0] == 400
    assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    status, headers, body = ask(server, "GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain; version=")
    samples = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if not line.startswith("#"))
    expected = {
        'text_infill_requests_total{path="/fill",status="200"}': 1,
        'text_infill_requests_total{path="/fill",status="400"}': 1,
        'text_infill_requests_total{path="other",status="400"}': 1,
        "text_infill_errors_total": 2,
        "text_infill_fill_seconds_count": 2,
        'text_infill_batch_texts_bucket{le="1.0"}': 1,
        'text_infill_batch_texts_bucket{le="2.0"}': 2,
        "text_infill_queue_texts": 0,
        "text_infill_connections": 1,
    }
    assert {name: float(samples[name]) for name in expected} == expected


# Errors


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, 'either "text" or "texts"'),
        ({"text": "a", "texts": ["a"]}, 'either "text" or "texts"'),
        ({"text": 3}, "text must be a string"),
        ({"texts": "abc"}, "1 to 64 texts"),
        ({"texts": []}, "1 to 64 texts"),
        ({"texts": ["a"] * 65}, "1 to 64 texts"),
        ({"texts": ["a", "a" * 10_001]}, "text 2 may have at most 10000 characters. Received: 10001"),
        ({"text": "____ " * 65}, "at most 64 blanks. Received: 65"),
        ({"text": "[MASK] " * 65, "blank_token": "[MASK]"}, "at most 64 blanks. Received: 65"),
        ({"text": "a", "blank_token": ""}, "blank_token must be a string without white space, not empty. Received: ''"),
        ({"text": "a", "blank_token": 3}, "blank_token must be a string without white space, not empty. Received: 3"),
        ({"text": "a", "num_results": 21}, "num_results must be a whole number from 1 to 20 here. Received: 21"),
        ({"text": "a", "num_results": "3"}, "num_results must be a whole number from 1 to 20 here. Received: '3'"),
        ({"text": "a", "beam_width": 1000}, "beam_width must be a whole number from 1 to 20 here"),
        ({"texts": ["a", "b"], "limits": [None]}, "each of 2 texts. Received: 1"),
        ({"text": "a", "temprature": 1}, "unknown keys: temprature"),
        ({"text": "\ud800 ____"}, "surrogate"),
        ({"text": "a ____", "top_p": 3}, "top_p is a share and must not be above 1"),
        ({"text": "forbidden ____"}, "text 1: has a forbidden word"),
        ({"texts": ["a", "forbidden"]}, "text 2: has a forbidden word"),
        (
            {"texts": ["____ " * 64] * 64, "num_results": 20, "order": "confident"},
            "summed over all texts, may be at most 4,096; order",
        ),
        ({"texts": ["____ " * 64] * 4, "num_results": 2, "beam_width": 17}, "Received: 4,352"),
        ({"text": "____ " * 64, "num_results": 2, "order": "confident"}, "Received: 8,192"),
        ({"texts": ["____ " * 64] * 2, "limits": {"must_include": ["a b"] * 20}}, "Received: 5,248"),
        ({"text": "____", "limits": {"exact_words": 65}}, "text: exact_words may be at most 64 here. Received: 65"),
        ({"text": "____", "limits": [None, {"max_words": 10**9}]}, "max_words may be at most 64 here"),
        ({"text": "____", "limits": {"banned_words": list("ab" * 33)}}, "banned_words may have at most 64 words here"),
        ({"text": "____", "limits": {"prefix": ",." * 33}}, "prefix may have at most 64 words here. Received: 66"),
        ({"text": "____", "limits": {"must_include": "a " * 65}}, "must_include may have at most 64 words here"),
        (
            {"texts": ["a", "____"], "limits": {"banned_words": ["a" * 1000]}},
            "text 1: the limits of a blank may have at most",
        ),
    ],
)
def test_a_bad_request_is_answered_with_a_one_line_error(server, fields, message):
    status, answer = post(server, **fields)
    assert status == 400 and answer.keys() == {"error"}
    assert message in answer["error"] and "\n" not in answer["error"]


def test_requests_at_the_limits_are_filled(server):
    assert post(server, texts=["a"] * 64, num_results=20)[0] == 200
    assert post(server, texts=["____ " * 64, "a" * 10_000])[0] == 200
    assert post(server, texts=["____ " * 16] * 16, num_results=16)[0] == 200
    assert post(server, text="____ " * 64, order="confident")[0] == 200
    limits = {"max_words": 64, "banned_words": ["a"] * 64, "must_include": "b"}
    assert post(server, texts=["____"] * 64, limits=limits)[0] == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"[" * 60_000, b'{"text": ' + b"1" * 9_000 + b"}"])
def test_a_body_that_is_not_a_json_object_is_an_error(server, body):
    status, _, answer = ask(server, "POST", "/fill", body, {"Content-Type": "application/json"})
    assert status == 400 and json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ("Content-Type: application/json", b"", 411),
        ("Content-Type: application/json\r\nTransfer-Encoding: chunked", b"5\r\nhello\r\n0\r\n\r\n", 411),
        ("Content-Type: application/json\r\nContent-Length: -1", b"", 400),
        ("Content-Type: application/json\r\nContent-Length: two", b"{}", 400),
        ("Content-Type: application/json\r\nContent-Length: 65537", b"x" * 65537, 413),
        ("Content-Type: application/json\r\nContent-Length: " + "9" * 20, b"{}", 413),
        ("Content-Type: application/json\r\nContent-Length: " + "9" * 5000, b"{}", 400),
        ("Content-Type: text/plain\r\nContent-Length: 2", b"{}", 415),
        ("Content-Length: 2", b"{}", 415),
        ("nonsense", b"", 400),
    ],
)
def test_a_body_needs_a_valid_length_and_content_type(server, headers, body, status):
    answer = raw(server, b"POST /fill HTTP/1.1\r\nHost: localhost\r\n" + headers.encode() + b"\r\n\r\n" + body)
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and json.loads(content)["error"]


def test_malformed_http_is_answered_with_json(server):
    assert json.loads(raw(server, b"GET / HTTP/1.1 and more\r\n\r\n").splitlines()[-1])["error"]


def test_an_unexpected_error_is_logged_and_not_shown_to_the_client(server, caplog):
    status, answer = post(server, text="broken ____")
    assert (status, answer) == (500, {"error": "internal error"})
    wait_for(lambda: "secret detail" in caplog.text)
    assert post(server, text="a ____")[0] == 200


def test_the_connection_of_a_silent_client_is_closed(server, monkeypatch):
    monkeypatch.setattr(server_protocol, "REQUEST_DEADLINE", 0.2)
    announced = (
        b"POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    for begun in (announced, b"GET /", b""):
        head, _, body = raw(server, begun).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ") and "did not arrive within 0.2 seconds" in json.loads(body)["error"]


def begun(server, data: bytes):
    """Opens a connection and sends the beginning of a request."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    connection.sendall(data)
    return connection


def test_clients_that_send_slowly_do_not_stop_the_server(server, monkeypatch):
    monkeypatch.setattr(server_protocol, "MOST_CONNECTIONS", 20)
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(contextlib.closing(begun(server, b"GET / HTT"))) for _ in range(60)]
        assert post(server, text="a ____")[0] == 200
        head, _, body = b"".join(iter(lambda: slow[0].recv(65536), b"")).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in head and b"nosniff" in head
        assert json.loads(body) == {"error": "too many connections: wait a second and try again"}


def test_beyond_the_limit_of_connections_a_new_one_is_refused_while_all_others_are_answered(server, echo, monkeypatch):
    monkeypatch.setattr(server_protocol, "MOST_CONNECTIONS", 3)
    echo.gate.clear()
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(post, server, text="a ____") for _ in range(3)]
        wait_for(lambda: echo.calls and server.batcher.waiting_texts() + len(echo.calls[0]) == 3)
        assert raw(server, b"").startswith(b"HTTP/1.1 503 ")
        echo.gate.set()
        assert [answer.result()[0] for answer in answers] == [200] * 3


def test_a_client_that_does_not_read_its_answer_is_disconnected(echo, monkeypatch):
    monkeypatch.setattr(server_protocol, "READING_DEADLINE", 0.2)
    with serving_(echo, page=b"x" * 30_000_000) as server:
        with begun(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as connection:
            assert connection.recv(8) == b"HTTP/1.1"
            wait_for(lambda: not server._uvicorn.server_state.connections)


def test_a_request_that_takes_too_long_gets_503(server, echo, monkeypatch):
    monkeypatch.setattr(server_app, "QUEUE_DEADLINE", 0.1)
    monkeypatch.setattr(server_app, "FILL_DEADLINE", 0.1)
    echo.gate.clear()
    status, headers, _ = ask(server, "POST", "/fill", '{"text": "a ____"}', {"Content-Type": "application/json"})
    assert status == 503 and headers["Retry-After"] == "1"


def test_a_client_that_leaves_is_dropped_from_the_queue(server, echo):
    echo.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        body = b'{"text": "a ____"}'
        head = b"POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        with begun(server, head % len(body) + body):
            wait_for(server.batcher.waiting_texts)
        wait_for(lambda: not server.batcher.waiting_texts())
        echo.gate.set()
        assert first.result()[0] == 200
    assert echo.calls == [["first ____"]]
    assert b"text_infill_clients_left_total 1.0" in ask(server, "GET", "/metrics")[2]


def test_a_client_that_disconnects_is_not_logged(server, echo, capfd, caplog):
    echo.gate.clear()
    body = json.dumps({"text": "a ____"}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        linger = b"\1\0\0\0\0\0\0\0"  # closing resets the connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        head = (
            f"POST /fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        wait_for(lambda: echo.calls)
    echo.gate.set()
    assert post(server, text="b ____")[0] == 200
    assert capfd.readouterr().err == caplog.text == ""


# A real model


def test_a_model_fills_over_http_what_it_fills_alone():
    from text_infilling.models.self_attention import SelfAttentionModel

    words = ["the", "cat", "dog", "sleeps", "runs", ",", "."]
    sizes = {"dim": 16, "num_heads": 2, "ffn_dim": 16, "num_blocks": 1}
    model = SelfAttentionModel(len(Vocabulary(words)), {"decoder": sizes})
    model.build()
    infiller = Infiller(model, Vocabulary(words), longest=4)
    texts = ["The ____ sleeps.", "____, ____", "no blank"]
    limits = [{"exact_words": 2}, [{"max_words": 1}, {"min_words": 2}], None]
    infiller.fill("____")  # traces the graph before any request waits for it, as the command does
    with serving_(infiller) as server:
        status, answer = post(server, texts=texts, limits=limits, num_results=3)
        _, one = post(server, text=texts[1], limits=limits[1], num_results=3)
        refused = post(server, text=texts[1], limits=[None])
    assert status == 200
    for result, text, limit in zip(answer["results"], texts, limits):
        alone = infiller.fill(text, limits=limit, num_results=3)
        assert [way["text"] for way in result["alternatives"]] == [way.text for way in alone.alternatives]
        assert math.isclose(result["log_probability"], alone.log_probability, abs_tol=1e-4)
    assert one["results"][0]["text"] == answer["results"][1]["text"]
    assert refused[0] == 400 and "one entry per blank, 2" in refused[1]["error"]


# The command


STAND_IN = """
import json, sys, time, types
class Infiller:
    load = classmethod(lambda cls, folder: cls())
    def fill(self, texts, **options):
        if "slow" in texts[0]:
            print("filling", flush=True)
            time.sleep(2)
        return []
sys.modules["text_infilling.inference.infiller"] = types.SimpleNamespace(Infiller=Infiller)
from text_infilling.app import cli, commands
commands.open_run = lambda folder: types.SimpleNamespace(path=folder, model="stub", learned=None)
cli.main(sys.argv[1:])
"""


def command(tmp_path, *arguments):
    """Starts `text-infill serve` without a model, as a process."""
    line = [sys.executable, "-c", STAND_IN, "serve", "--run", str(tmp_path), *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_command_prints_its_url_and_stops_on_ctrl_c(tmp_path, host):
    with command(tmp_path, "--port=0", "--host", host) as process:
        ready = process.stdout.readline()
        port = urllib.parse.urlsplit(ready.split()[2]).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert ready.startswith(f"ready at http://{host}:{port}/")
    assert health == {"status": "ok", "run": str(tmp_path), "model": "stub"}
    assert process.returncode == 130
    *warning, last = err.splitlines()
    assert last == "stopped"
    assert [line.split(":")[0] for line in warning] == ["warning"] * (host == "0.0.0.0")


def test_on_sigterm_the_running_request_is_answered_and_waiting_ones_get_503(tmp_path):
    with command(tmp_path, "--port=0") as process:
        port = urllib.parse.urlsplit(process.stdout.readline().split()[2]).port
        running, waiting = (http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(2))
        running.request("POST", "/fill", '{"text": "slow ____"}', {"Content-Type": "application/json"})
        assert process.stdout.readline() == "filling\n"
        waiting.request("POST", "/fill", '{"text": "a ____"}', {"Content-Type": "application/json"})
        time.sleep(0.5)  # until it is in the queue
        process.send_signal(signal.SIGTERM)
        answers = running.getresponse(), waiting.getresponse()
        assert [answer.status for answer in answers] == [200, 503]
        assert json.loads(answers[0].read()) == {"results": []}
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "stopped by SIGTERM\n")


def test_a_port_in_use_prints_a_one_line_error(server, tmp_path):
    with command(tmp_path, f"--port={server.port}") as process:
        out, err = process.communicate(timeout=20)
    assert process.returncode == 1 and not out
    assert err.startswith(f"error: cannot listen on 127.0.0.1 port {server.port}: ") and err.count("\n") == 1


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_packages_one_line_says_how_to_install_them(missing, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("text_infilling.app.server")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["serve", "--port=0"])
    assert exit_.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: serve needs {missing}: run `pip install -e '.[serve]'`") and err.count("\n") == 1
