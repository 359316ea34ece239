"""Checks of the mask rate and the number of blanks; imports nothing."""


def check_mask_rate(mask_rate: float) -> None:
    """Raises ValueError unless `mask_rate` is a number strictly between 0 and 1."""
    if isinstance(mask_rate, bool) or not isinstance(mask_rate, int | float) or not 0 < mask_rate < 1:
        raise ValueError(f"mask_rate must be a number greater than 0 and less than 1. Received: {mask_rate!r}")


def check_mask_rates(mask_rate: float | tuple[float, float]) -> None:
    """Raises ValueError unless `mask_rate` is a mask rate or a pair of two, the lower one first."""
    if not isinstance(mask_rate, tuple):
        check_mask_rate(mask_rate)
        return
    for rate in mask_rate:
        check_mask_rate(rate)
    if len(mask_rate) != 2 or not mask_rate[0] < mask_rate[1]:
        raise ValueError(f"A range of mask rates is a pair, the lower one first. Received: {mask_rate!r}")


def check_blanks(blanks: int) -> None:
    """Raises ValueError unless `blanks` is a whole number of at least 1."""
    if isinstance(blanks, bool) or not isinstance(blanks, int) or blanks < 1:
        raise ValueError(f"blanks must be a whole number of at least 1. Received: {blanks!r}")
