"""Part-of-speech tags: which words of a sentence are nouns, verbs, prepositions.

The tags are the Penn Treebank's, given by NLTK's averaged perceptron, which the authors' masked sentences agree with.
"""

import functools
import os
from collections.abc import Iterable, Iterator, Sequence

PACKAGE = "averaged_perceptron_tagger_eng"


def tag(sentences: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """The Penn tags of each sentence, one a token, in the order of the sentences; some 30,000 tokens a second.

    The tagger is loaded at the call, once a process; the sentences are read as the tags are asked for.

    Raises:
        FileNotFoundError: the tagger's data is nowhere that NLTK looks.
    """
    tagger = _tagger()
    return ([label for _, label in tagger.tag(tokens)] for tokens in sentences)


@functools.cache
def _tagger():
    import nltk.data  # Here, since most runs never tag.
    from nltk.tag.perceptron import PerceptronTagger

    # NLTK reads NLTK_DATA when it is first imported, and it may have been set since.
    given = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    nltk.data.path[:0] = [folder for folder in given if folder not in nltk.data.path]
    try:
        return PerceptronTagger()
    except LookupError:
        searched = ", ".join(folder for folder in nltk.data.path if folder)
        raise FileNotFoundError(
            f"the tagger's data taggers/{PACKAGE} is in none of {searched}: get it with `python -m nltk.downloader "
            f"{PACKAGE}`, or set NLTK_DATA to a folder that holds it"
        ) from None


def is_there() -> bool:
    """Whether the tagger's data can be found."""
    try:
        _tagger()
    except FileNotFoundError:
        return False
    return True
