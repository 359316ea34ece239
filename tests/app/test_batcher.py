"""Concurrent requests are batched, and each gets its own results."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving_helper import Echo, ask, post, wait_for

from text_infilling.app import server_app
from text_infilling.app.batcher import Batcher, QueueFull
from text_infilling.app.server_request import FillRequest
from text_infilling.inference.batch import fill_each


def test_waiting_requests_are_batched_and_each_gets_its_own_results(server, echo):
    echo.gate.clear()
    with ThreadPoolExecutor(20) as pool:
        first = pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        others = [pool.submit(post, server, texts=[f"t{i} ____", f"u{i} ____"]) for i in range(19)]
        wait_for(lambda: len(server.batcher._queue) == 19)
        echo.gate.set()
        assert first.result() == (200, post(server, text="first ____")[1])
        for i, other in enumerate(others):
            status, answer = other.result()
            assert status == 200
            assert [result["text"] for result in answer["results"]] == [f"t{i} t{i}", f"u{i} u{i}"]
    assert [len(texts) for texts in echo.calls] == [1, 38, 1]


def test_a_bad_text_does_not_affect_other_requests_of_its_batch(server, echo):
    echo.gate.clear()
    texts = [f"t{i} ____" for i in range(6)] + ["forbidden ____", "broken ____"]
    with ThreadPoolExecutor(9) as pool:
        pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        answers = [pool.submit(post, server, text=text) for text in texts]
        wait_for(lambda: len(server.batcher._queue) == len(texts))
        echo.gate.set()
        statuses = [answer.result()[0] for answer in answers]
    assert statuses == [200] * 6 + [400, 500]


def test_requests_with_different_options_are_not_batched(server, echo):
    echo.gate.clear()
    options = [{}, {"seed": 1}, {"seed": 1}, {"seed": 2}, {}, {"seed": True}]
    with ThreadPoolExecutor(9) as pool:
        pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        for i, each in enumerate(options):
            pool.submit(post, server, text=f"t{i} ____", **each)
            wait_for(lambda i=i: len(server.batcher._queue) == i + 1)
        echo.gate.set()
    together = [[text.split()[0] for text in texts] for texts in echo.calls[1:]]
    assert together == [["t0", "t4"], ["t1", "t2"], ["t3"], ["t5"]]


def test_a_request_that_exceeds_the_queue_gets_503_and_retry_after(server, echo):
    echo.gate.clear()
    with ThreadPoolExecutor(9) as pool:
        pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        waiting = [pool.submit(post, server, texts=["a ____"] * 64) for _ in range(4)]
        wait_for(lambda: len(server.batcher._queue) == 4)
        body = json.dumps({"text": "late ____"})
        status, headers, answer = ask(server, "POST", "/fill", body, {"Content-Type": "application/json"})
        echo.gate.set()
        assert status == 503 and headers["Retry-After"] == "1" and "wait" in json.loads(answer)["error"]
        assert [each.result()[0] for each in waiting] == [200] * 4
    assert post(server, text="late ____")[0] == 200


def test_a_request_that_waits_too_long_gets_503(server, echo, monkeypatch):
    monkeypatch.setattr(server_app, "QUEUE_DEADLINE", 0.2)
    echo.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        started = pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        status, answer = post(server, text="late ____")
        assert status == 503 and "wait" in answer["error"] and not server.batcher.waiting_texts()
        echo.gate.set()
        assert started.result()[0] == 200  # a request that is being filled does not time out
    assert echo.calls == [["first ____"]]


def test_a_batch_is_limited_to_the_work_of_one_request(server, echo):
    echo.gate.clear()
    with ThreadPoolExecutor(9) as pool:
        pool.submit(post, server, text="first ____")
        wait_for(lambda: echo.calls)
        for i, blanks in enumerate([60, 60, 60, 60, 10]):
            pool.submit(post, server, texts=[f"t{i} " + "____ " * blanks] * 20)
            wait_for(lambda i=i: len(server.batcher._queue) == i + 1)
        echo.gate.set()
    assert [[text.split()[0] for text in texts[::20]] for texts in echo.calls[1:]] == [["t0", "t1", "t2", "t4"], ["t3"]]


def test_a_closed_batcher_rejects_waiting_and_new_requests(echo):
    echo.gate.clear()
    batcher, request = Batcher(echo), FillRequest(["a ____"], [None], {})
    started = batcher.submit(request)
    wait_for(lambda: echo.calls)
    waiting = batcher.submit(request)
    batcher.close()
    with pytest.raises(QueueFull):
        waiting.result()
    with pytest.raises(QueueFull):
        batcher.submit(request)
    echo.gate.set()
    batcher.join()
    assert started.result()[0].text == "a a"


def test_a_cancelled_request_leaves_the_queue_unless_it_is_being_filled(echo):
    echo.gate.clear()
    batcher = Batcher(echo)
    requests = [FillRequest([f"{name} ____"], [None], {}) for name in "abc"]
    started = batcher.submit(requests[0])
    wait_for(lambda: echo.calls)
    first, second = map(batcher.submit, requests[1:])
    assert not started.cancel() and first.cancel() and batcher.waiting_texts() == 1
    echo.gate.set()
    assert started.result()[0].text == "a a" and second.result()[0].text == "c c"
    assert echo.calls == [["a ____"], ["c ____"]]
    batcher.close()
    batcher.join()


def test_fill_each_returns_only_the_given_errors_as_results():
    groups = [(["a ____"], [None]), (["forbidden"], [None])]
    good, bad = fill_each(Echo(), groups, {})
    assert good[0].text == "a a" and isinstance(bad, ValueError)
    with pytest.raises(RuntimeError):
        fill_each(Echo(), [*groups, (["broken"], [None])], {})


def test_fill_each_finds_the_failing_groups_by_bisection():
    echo, texts = Echo(), [f"t{i} ____" for i in range(64)]
    texts[5] = texts[40] = "forbidden ____"
    results = fill_each(echo, [([text], [None]) for text in texts], {})
    assert [i for i, result in enumerate(results) if isinstance(result, ValueError)] == [5, 40]
    assert all(result[0].text == f"t{i} t{i}" for i, result in enumerate(results) if i not in (5, 40))
    assert len(echo.calls) == 1 + 2 * 2 * 6 - 2  # two bisections of six halvings, which share the first
