"""Part-of-speech tags: which words of a sentence are nouns, verbs, prepositions.

The tags are Penn Treebank tags from NLTK's averaged perceptron, which agrees with the authors' masked sentences.
"""

import functools
import os
from collections.abc import Iterable, Iterator, Sequence

PACKAGE = "averaged_perceptron_tagger_eng"


def tag(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Returns the Penn tags of each sentence, one per token, in order; about 30,000 tokens per second.

    The call loads the tagger, once per process; the sentences are read lazily.

    Raises:
        FileNotFoundError: NLTK does not find the tagger's data.
    """
    tagger = _tagger()
    return ([label for _, label in tagger.tag(tokens)] for tokens in sentences)


@functools.cache
def _tagger():
    import nltk.data  # Imported here, since most runs never tag.
    from nltk.tag.perceptron import PerceptronTagger

    # NLTK reads NLTK_DATA only when it is first imported; the variable may have been set since.
    given = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    nltk.data.path[:0] = [folder for folder in given if folder not in nltk.data.path]
    try:
        return PerceptronTagger()
    except LookupError:
        searched = ", ".join(folder for folder in nltk.data.path if folder)
        raise FileNotFoundError(
            f"the tagger's data taggers/{PACKAGE} is in none of {searched}: get it with `python -m nltk.downloader "
            f"{PACKAGE}`, or set NLTK_DATA to a folder that contains it"
        ) from None


def is_there() -> bool:
    """Returns whether the tagger's data can be found."""
    try:
        _tagger()
    except FileNotFoundError:
        return False
    return True
