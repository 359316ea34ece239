"""Checks of the options of `Infiller.fill` that need neither a model nor TensorFlow."""

import math
import numbers

from text_infilling.text.blanks import check_blank_token

# All options except the limits.
OPTIONS = (
    "num_results", "beam_width", "length_penalty", "temperature", "top_k", "top_p", "seed", "order", "blank_token",
    "no_repeat_ngram",
)  # fmt: skip
MOST_RESULTS, MOST_TOP_K = 1000, 2**31 - 1
NO_REPEAT_NGRAM = 3  # by default no infill has the same 3 consecutive words twice
MOST_PENALTY = 10  # of the length penalty
ORDERS = ("left", "confident")
SMALLEST, LARGEST = 1e-30, 1e30  # range of float32 options, with room for products and sums


def check_options(
    *,
    num_results: int = 1,
    beam_width: int | None = None,
    length_penalty: float | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    order: str = "left",
    blank_token: str | None = None,
    no_repeat_ngram: int | None = None,
) -> None:
    """Checks the options of a request: those of `Infiller.fill`, except the limits.

    Raises:
        ValueError: an option has the wrong type, is out of range, or cannot be combined with another.
    """
    for name, value, most in (("temperature", temperature, LARGEST), ("top_p", top_p, 1)):
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < math.inf):
            raise ValueError(f"{name} must be a number above 0. Received: {name}={value!r}")
        if value is not None and not SMALLEST <= value <= most:
            raise ValueError(f"{name} must be from {SMALLEST:g} to {most:g}. Received: {name}={value!r}")
    if seed is not None:
        check_whole("seed", seed, -(2**63), 2**63 - 1)
    if top_k is not None:
        check_whole("top_k", top_k, 1, MOST_TOP_K)
    check_whole("num_results", num_results, 1, MOST_RESULTS)
    if beam_width is not None:
        if is_sampled(temperature, top_k, top_p, seed):
            raise ValueError("beam_width cannot be combined with samples (temperature, top_k, top_p or seed is given)")
        check_whole("beam_width", beam_width, num_results, MOST_RESULTS)
    if length_penalty is not None:
        number = isinstance(length_penalty, numbers.Real) and not isinstance(length_penalty, bool)
        if not (number and 0 <= length_penalty <= MOST_PENALTY):
            raise ValueError(
                f"length_penalty must be a number from 0 to {MOST_PENALTY}. Received: length_penalty={length_penalty!r}"
            )
    if order not in ORDERS:
        raise ValueError(f"order must be one of {', '.join(ORDERS)}. Received: {order!r}")
    if blank_token is not None:
        check_blank_token(blank_token)
    if no_repeat_ngram is not None:
        check_whole("no_repeat_ngram", no_repeat_ngram, 0, MOST_RESULTS)


def is_sampled(temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None) -> bool:
    """Returns whether any of the options asks for samples."""
    return any(option is not None for option in (temperature, top_k, top_p, seed))


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raises ValueError unless `value` is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}. Received: {name}={value!r}")
