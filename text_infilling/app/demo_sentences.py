"""The training sentences of the demo: made-up remarks of restaurant guests, plus made-up restaurant reviews."""

import random
from collections.abc import Iterator

from text_infilling.corpora.synthetic import reviews

REVIEWS, SAYINGS = 500, 9_500
_PATTERNS = (
    "{can} have a {dish} and a {drink} , please .",
    "{can} have a {dish} with {side} , please .",
    "{can} have {side} with the {dish} , please ?",
    "{can} have a table for {number} , please ?",
    "{who} would like the {dish} with {side} , please .",
    "{who} had a {drink} and the {dish} , thank you .",
    "the {dish} was so {good} that we {praise} !",
    "the {dish} was so {bad} that we {blame} !",
    "the {drink} and the {dish} were so {good} that we {praise} !",
    "the {drink} and the {dish} were so {bad} that we {blame} !",
)
_CHOICES = {
    "can": ["can i", "can we", "could i", "could we", "may i", "may we"],
    "who": ["i", "we"],
    "side": ["rice", "fries", "extra cheese", "a side salad", "no onions", "hot sauce", "garlic bread"],
    "number": ["two", "three", "four", "six", "ten people"],
    "praise": ["ordered it again", "will be back soon", "told all our friends", "asked for the recipe"],
    "blame": ["sent it back", "left hungry", "asked for our money back", "will never return"],
}


def sentences(seed: int = reviews.SEED) -> Iterator[str]:
    """Yields `SAYINGS` remarks and then `REVIEWS` reviews, tokenised and in lower case; fixed by the seed."""
    draw = random.Random(seed)
    for _ in range(SAYINGS):
        _, _, drinks, dishes = draw.choice(reviews.CUISINES)
        dish, kind = draw.choice([dish for dish in dishes if "+" not in dish]).rsplit(" ", 1)
        good, bad, _ = reviews.KINDS[kind]
        said = {name: draw.choice(choices) for name, choices in _CHOICES.items()}
        said |= {"dish": dish, "drink": draw.choice(drinks), "good": draw.choice(good), "bad": draw.choice(bad)}
        yield draw.choice(_PATTERNS).format(**said)
    yield from reviews.sentences(seed, REVIEWS)
