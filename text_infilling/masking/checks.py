"""Checks of the mask rate and the number of blanks; imports nothing."""


def check_mask_rate(mask_rate: float) -> None:
    """Raises ValueError unless `mask_rate` is a number strictly between 0 and 1."""
    if isinstance(mask_rate, bool) or not isinstance(mask_rate, int | float) or not 0 < mask_rate < 1:
        raise ValueError(f"mask_rate must be a number greater than 0 and less than 1. Received: {mask_rate!r}")


def check_blanks(blanks: int) -> None:
    """Raises ValueError unless `blanks` is a whole number of at least 1."""
    if isinstance(blanks, bool) or not isinstance(blanks, int) or blanks < 1:
        raise ValueError(f"blanks must be a whole number of at least 1. Received: {blanks!r}")
