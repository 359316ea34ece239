"""The OpenAPI document says what the reader of requests accepts, and what the server answers."""

import dataclasses
import json
import math

import pytest
from serving_helper import ask, post

from text_infilling.app.server_openapi import document
from text_infilling.app.server_request import FillRequest
from text_infilling.inference.fill_options import OPTIONS, check_options
from text_infilling.inference.limits import Limits
from text_infilling.inference.results import Filled

SCHEMAS = document()["components"]["schemas"]
PROPERTIES = SCHEMAS["Request"]["properties"]
LIMITS = PROPERTIES["limits"]["anyOf"][0]["properties"]


def reads(**fields):
    """Returns whether the reader and the check of the options accept a request."""
    try:
        check_options(**FillRequest.read(json.dumps(fields).encode()).options)
    except ValueError:
        return False
    return True


def edges(schema):
    """Returns values at the limits of a schema, and just beyond them."""
    if "enum" in schema:
        return schema["enum"], ["other", 1]
    if schema["type"] == "string":
        return ["[MASK]", "x"], ["", "a b", 1]
    least, most = schema["minimum"], schema["maximum"]
    if schema["type"] == "integer":
        return [least, most], [least - 1, most + 1, 1.5, "1", True]
    return [least, most, 1], [math.nextafter(least, -math.inf), math.nextafter(most, math.inf), -1, "1", True]


def test_the_document_has_the_fields_of_requests_limits_and_results():
    assert set(PROPERTIES) == {"text", "texts", "limits", *OPTIONS}
    assert set(LIMITS) == {field.name for field in dataclasses.fields(Limits)}
    fields = {field.name for field in dataclasses.fields(Filled)}
    assert set(SCHEMAS["Result"]["properties"]) == fields | {"warning", "unknown_words", "far_from_learned"}
    assert set(SCHEMAS["Result"]["required"]) == fields


@pytest.mark.parametrize("name", OPTIONS)
def test_options_have_the_range_of_the_document(name):
    good, bad = edges(PROPERTIES[name])
    assert all(reads(text="a ____", **{name: value}) for value in good)
    assert not any(reads(text="a ____", **{name: value}) for value in bad)


def test_texts_and_limits_have_the_range_of_the_document():
    texts = PROPERTIES["texts"]
    for count, is_accepted in ((texts["minItems"], True), (texts["maxItems"], True), (texts["maxItems"] + 1, False)):
        assert reads(texts=["a"] * count) == is_accepted
    longest = PROPERTIES["text"]["maxLength"]
    assert reads(text="a" * longest) and not reads(text="a" * (longest + 1))
    for name in ("min_words", "max_words", "exact_words"):
        most = LIMITS[name]["maximum"]
        assert reads(text="____", limits={name: most})
        assert not reads(text="____", limits={name: most + 1})
    assert not reads(text="a", texts=["a"]) and not reads()
    assert SCHEMAS["Request"]["oneOf"] == [{"required": ["text"]}, {"required": ["texts"]}]


def test_the_server_answers_every_path_of_the_document(server):
    status, headers, body = ask(server, "GET", "/openapi.json")
    assert status == 200 and headers["Content-Type"] == "application/json" and json.loads(body) == document()
    assert document()["openapi"].startswith("3.")
    for path, methods in document()["paths"].items():
        if "get" in methods:
            status, headers, _ = ask(server, "GET", path)
            (media_type,) = methods["get"]["responses"]["200"]["content"]
            assert status == 200 and headers["Content-Type"].startswith(media_type)
            assert ask(server, "HEAD", path)[::2] == (200, b"")
    (result,) = post(server, text=PROPERTIES["text"]["examples"][0])[1]["results"]
    assert set(SCHEMAS["Result"]["required"]) <= set(result) <= set(SCHEMAS["Result"]["properties"])
