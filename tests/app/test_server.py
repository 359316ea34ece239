"""Real requests to a real server, most of them with a stand-in for the model."""

import json

import pytest
from serving_helper import ask, post, raw, serving_, wait_for

from text_infilling.app.server import Server
from text_infilling.runs.learned import Learned
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary

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
