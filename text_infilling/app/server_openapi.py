"""The OpenAPI document of `text-infill serve`."""

from text_infilling.app.server_request import (
    MOST_BLANKS,
    MOST_BYTES,
    MOST_CHARACTERS,
    MOST_RESULTS,
    MOST_TEXTS,
    MOST_WORDS,
    MOST_WORK,
)
from text_infilling.inference.fill_options import LARGEST, MOST_PENALTY, MOST_TOP_K, ORDERS, SMALLEST
from text_infilling.inference.fill_options import MOST_RESULTS as MOST_NGRAM

_TEXT = {
    "type": "string",
    "maxLength": MOST_CHARACTERS,
    "description": f"A text in which ____ is a blank; at most {MOST_BLANKS} blanks.",
    "examples": ["The ____ was good, but the ____ was cold."],
}
_WORDS = {"type": "integer", "minimum": 0, "maximum": MOST_WORDS}
_PHRASES = {"type": "array", "items": {"type": "string"}}
_LIMITS = {
    "type": ["object", "null"],
    "description": "Limits on an infill, in words. A list has one entry per blank.",
    "properties": {
        "min_words": _WORDS,
        "max_words": {**_WORDS, "description": "Maximum number of words."},
        "exact_words": {**_WORDS, "description": "Instead of min_words and max_words."},
        "prefix": {"type": "string", "description": "Words that the infill begins with."},
        "banned_words": {**_PHRASES, "description": "Words and phrases that the infill does not contain."},
        "must_include": {**_PHRASES, "description": "Words and phrases that the infill contains."},
    },
    "additionalProperties": False,
}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_STRINGS = {"type": "array", "items": {"type": "string"}}
_RESULT = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The whole text, filled."},
        "fills": {**_STRINGS, "description": "The infill of each blank."},
        "log_probability": {"type": "number", "description": "Of all infills, in nats."},
        "log_probabilities": {**_NUMBERS, "description": "Of each infill, in nats."},
        "token_log_probabilities": {
            "type": "array",
            "items": _NUMBERS,
            "description": "For each blank, of each of its words and then of its end, in nats.",
        },
        "words": {"type": "array", "items": _STRINGS, "description": "For each blank, the words of its infill."},
        "alternatives": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/Result"},
            "description": "All requested results, best first; the first is this one.",
        },
        "warning": {"type": "string", "description": "Why a mark in the text is not a blank; absent if all is well."},
        "unknown_words": {**_STRINGS, "description": "Words of the text that the model does not know; absent if none."},
        "far_from_learned": {"type": "string", "description": "Why infills may be poor; absent if the text is usual."},
    },
    "required": [
        "text", "fills", "log_probability", "log_probabilities", "token_log_probabilities", "words", "alternatives",
    ],
}  # fmt: skip
_LEARNED = {
    "type": "object",
    "description": "What the model has learned; null for what the run does not record.",
    "properties": {
        "corpus": {"type": ["string", "null"]},
        "masking": {"type": ["string", "null"]},
        "blanks": {"type": ["array", "null"], "description": "Fewest and most per text.", "items": {"type": "integer"}},
        "mask_rate": {
            "type": ["array", "null"],
            "description": "Lowest and highest share of words.",
            "items": {"type": "number"},
        },
        "lower_case": {"type": "boolean"},
        "summary": {"type": "string"},
    },
}
REQUEST = {
    "type": "object",
    "description": f"A text, or several texts, and how to fill them. Blanks times results (or beam width), summed over "
    f"all texts, may be at most {MOST_WORK:,}. A request has at most {MOST_BYTES:,} bytes.",
    "properties": {
        "text": _TEXT,
        "texts": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MOST_TEXTS},
        "limits": {
            "description": "For all blanks, or a list with one entry per blank; with texts, a list with one of these "
            "per text.",
            "anyOf": [
                _LIMITS,
                {"type": "array", "items": {"anyOf": [_LIMITS, {"type": "array", "items": _LIMITS}]}},
            ],
        },
        "num_results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "default": 1},
        "beam_width": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_RESULTS,
            "description": "Width of the search, at least num_results; not with samples.",
        },
        "length_penalty": {
            "type": "number",
            "minimum": 0,
            "maximum": MOST_PENALTY,
            "description": "Results are ranked by log probability / ((5 + tokens) / 6) ** length_penalty.",
        },
        "temperature": {
            "type": "number",
            "minimum": SMALLEST,
            "maximum": LARGEST,
            "description": "Of samples; any of temperature, top_k, top_p and seed asks for samples.",
        },
        "top_k": {"type": "integer", "minimum": 1, "maximum": MOST_TOP_K},
        "top_p": {"type": "number", "minimum": SMALLEST, "maximum": 1},
        "seed": {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1, "description": "Of samples."},
        "order": {"enum": list(ORDERS), "default": ORDERS[0], "description": "Of filling the blanks."},
        "blank_token": {"type": "string", "pattern": r"^\S+$", "description": "Another mask that is a blank."},
        "no_repeat_ngram": {
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_NGRAM,
            "description": "No infill has the same n consecutive words twice; 0 turns this off.",
        },
    },
    "additionalProperties": False,
    "oneOf": [{"required": ["text"]}, {"required": ["texts"]}],
}
# Statuses of `/fill` besides 200.
ERRORS = {
    400: "The request is not valid; the error says why.",
    408: "The request did not arrive in time.",
    411: "Content-Length is missing.",
    413: "The request is too large.",
    415: "The Content-Type is not application/json.",
    500: "An unexpected error; the log of the server has it.",
    503: "The server is busy or stopping: try again.",
}


def document() -> dict:
    """Returns the OpenAPI 3.1 document of the server.

    >>> sorted(document()["paths"])
    ['/', '/fill', '/health', '/metrics', '/openapi.json']
    """

    def answer(description: str, media_type: str, schema: dict) -> dict:
        return {"description": description, "content": {media_type: {"schema": schema}}}

    def get(summary: str, media_type: str, schema: dict) -> dict:
        return {"get": {"summary": summary, "responses": {"200": answer(summary, media_type, schema)}}}

    results = {
        "type": "object",
        "properties": {"results": {"type": "array", "items": {"$ref": "#/components/schemas/Result"}}},
        "required": ["results"],
    }
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    about = {
        "type": "object",
        "properties": {**{name: {"type": "string"} for name in ("status", "run", "model")}, "learned": _LEARNED},
    }
    errors = {
        str(status): answer(description, "application/json", {"$ref": "#/components/schemas/Error"})
        for status, description in ERRORS.items()
    }
    errors["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
    fill = {
        "summary": "Fills the blanks of texts.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Request"}}},
        },
        "responses": {"200": answer("One result per text.", "application/json", results), **errors},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "text-infill", "version": "1", "description": "Fills the blanks (____) of texts."},
        "paths": {
            "/": get("The web page.", "text/html", {"type": "string"}),
            "/fill": {"post": fill},
            "/health": get("The run and the model.", "application/json", about),
            "/metrics": get("Measurements in the format of Prometheus.", "text/plain", {"type": "string"}),
            "/openapi.json": get("This document.", "application/json", {"type": "object"}),
        },
        "components": {"schemas": {"Request": REQUEST, "Result": _RESULT, "Error": error}},
    }
