"""Reads the requests of `text-infill serve`, and limits their size and work."""

import dataclasses
import json

from text_infilling.inference.fill_options import OPTIONS
from text_infilling.text.blanks import check_blank_token, with_blanks
from text_infilling.text.tokenizer import Tokenizer

MOST_BYTES = 64 * 1024  # per request
MOST_CHARACTERS = 10_000  # per text
MOST_TEXTS, MOST_BLANKS, MOST_RESULTS = 64, 64, 20  # per request, per text, per text
MOST_WORK = 4096  # per request: searches for an infill of a blank
MOST_WORDS = 64  # per blank, in each of its limits
MOST_LIMITS = 1000  # characters of JSON per blank


@dataclasses.dataclass(frozen=True)
class FillRequest:
    """A parsed request.

    Attributes:
        texts: the texts to fill.
        limits: one entry per text, as `limits` of `Infiller.fill`.
        options: other options of `Infiller.fill`.
        work: estimated cost in searches, at most `MOST_WORK`.
    """

    texts: list[str]
    limits: list
    options: dict
    work: int = 0

    @classmethod
    def read(cls, body: bytes) -> "FillRequest":
        """Parses a JSON body, `{"text": "..."}` or `{"texts": [...]}`, with options.

        Raises:
            ValueError: the body is not such JSON, or exceeds the limits of a request.
        """
        request = _parsed(body)
        texts, limits = _texts_and_limits(request)
        options = _options(request)
        work = 0
        for i, (text, limit) in enumerate(zip(texts, limits), start=1):
            name = "text" if "text" in request else f"text {i}"
            blanks = _count_blanks(text, name, options.get("blank_token"))
            work += _work(blanks, options, _phrase_words(limit, name))
        if work > MOST_WORK:
            raise ValueError(
                f"the request is too large: blanks times num_results (or beam_width), summed over all texts, may be at "
                f"most {MOST_WORK:,}; order=confident multiplies a text's sum by its number of blanks, must_include by "
                f"its number of words plus one. Received: {work:,}"
            )
        return cls(texts, limits, options, work)


def _parsed(body: bytes) -> dict:
    """Returns the JSON object of a body with either "text" or "texts", and no unknown key."""
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {error}") from error
    if not isinstance(request, dict) or ("text" in request) == ("texts" in request):
        raise ValueError('the body must be a JSON object with either "text" or "texts"')
    if unknown := request.keys() - {"text", "texts", "limits", *OPTIONS}:
        raise ValueError(
            f"unknown keys: {', '.join(sorted(unknown))}. Known keys: text, texts, limits, {', '.join(OPTIONS)}"
        )
    return request


def _texts_and_limits(request: dict) -> tuple[list, list]:
    """Returns the texts of a request, and the limits of each; checks their numbers only."""
    limits = request.get("limits")
    if "text" in request:
        return [request["text"]], [limits]
    texts = request["texts"]
    if not isinstance(texts, list) or not 1 <= len(texts) <= MOST_TEXTS:
        raise ValueError(f"texts must be a list of 1 to {MOST_TEXTS} texts")
    limits = limits if isinstance(limits, list) else [limits] * len(texts)
    if len(limits) != len(texts):
        raise ValueError(f"limits must have an entry for each of {len(texts)} texts. Received: {len(limits)}")
    return texts, limits


def _options(request: dict) -> dict:
    """Returns the other options of a request; checks those that determine its cost."""
    options = {name: request[name] for name in OPTIONS if request.get(name) is not None}
    for name in ("num_results", "beam_width"):
        value = options.get(name, 1)
        if type(value) is not int or not 1 <= value <= MOST_RESULTS:
            raise ValueError(f"{name} must be a whole number from 1 to {MOST_RESULTS} here. Received: {value!r}")
    if "blank_token" in options:
        check_blank_token(options["blank_token"])
    return options


def _count_blanks(text: object, name: str, blank_token: str | None) -> int:
    """Returns the number of blanks of a text.

    Raises:
        ValueError: the text is not a string, too long, or has too many blanks.
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string. Received: {type(text).__name__}")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{name} may have at most {MOST_CHARACTERS} characters. Received: {len(text)}")
    read = with_blanks(text, blank_token) if blank_token else text
    blanks = sum(piece.word is None for piece in Tokenizer(lower=True).split(read))
    if blanks > MOST_BLANKS:
        raise ValueError(f"{name} may have at most {MOST_BLANKS} blanks. Received: {blanks}")
    return blanks


def _work(blanks, options, phrase_words) -> int:
    """Returns the number of searches that filling a text takes."""
    widths = [options.get(name) for name in ("num_results", "beam_width")]
    width = max([1, *(each for each in widths if isinstance(each, int))])
    return blanks * width * (1 + phrase_words) * (blanks if options.get("order") == "confident" else 1)


def _phrase_words(limits, where) -> int:
    """Returns the most words of a `must_include` in `limits`; leaves malformed limits to `Infiller.fill`.

    Raises:
        ValueError: the limits of a blank are too large.
    """
    found = 0
    for limit in limits if isinstance(limits, list) else [limits]:
        if not isinstance(limit, dict):
            continue
        if len(json.dumps(limit, ensure_ascii=False)) > MOST_LIMITS:
            raise ValueError(f"{where}: the limits of a blank may have at most {MOST_LIMITS} characters of JSON")
        for name in ("min_words", "max_words", "exact_words"):
            if isinstance(limit.get(name), int) and limit[name] > MOST_WORDS:
                raise ValueError(f"{where}: {name} may be at most {MOST_WORDS} here. Received: {limit[name]}")
        counts = {name: _words(limit.get(name)) for name in ("prefix", "banned_words", "must_include")}
        for name, count in counts.items():
            if count > MOST_WORDS:
                raise ValueError(f"{where}: {name} may have at most {MOST_WORDS} words here. Received: {count}")
        found = max(found, counts["must_include"])
    return found


def _words(value) -> int:
    texts = value if isinstance(value, list) else [value]
    return sum(len(list(Tokenizer(lower=True).split(text))) for text in texts if isinstance(text, str))
