"""The training sentences of the demo: made-up remarks of restaurant guests, plus made-up restaurant reviews."""

import random
from collections.abc import Iterator

from text_infilling.corpora.synthetic import reviews
from text_infilling.corpora.synthetic.grammar import Grammar

REVIEWS, REMARKS = 500, 9_500
_GRAMMAR = Grammar("remarks")


def sentences(seed: int = reviews.SEED) -> Iterator[str]:
    """Yields `REMARKS` remarks and then `REVIEWS` reviews, tokenised and in lower case; fixed by the seed."""
    draw = random.Random(seed)
    frames, choices = _GRAMMAR.lines("frames"), _GRAMMAR.columns("choices")
    for _ in range(REMARKS):
        _, _, drinks, dishes = draw.choice(reviews.CUISINES)
        dish, kind = draw.choice([dish for dish in dishes if "+" not in dish]).rsplit(" ", 1)
        good, bad, _ = reviews.KINDS[kind]
        words = {slot: draw.choice(options) for slot, (options,) in choices.items()}
        words |= {"dish": dish, "drink": draw.choice(drinks), "good": draw.choice(good), "bad": draw.choice(bad)}
        yield draw.choice(frames).format(**words)
    yield from reviews.sentences(seed, REVIEWS)
