"""Clients that are slow, silent, gone or too many, with a substitute for the model."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor

from serving_helper import ask, post, raw, serving_, wait_for

from text_infilling.app import server_app, server_protocol


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
