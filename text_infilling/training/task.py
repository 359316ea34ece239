"""What a model is to learn: a corpus, its vocabulary, which words are masked, a seed."""

import collections
import dataclasses
import functools
import math
from pathlib import Path

import numpy as np

from text_infilling.data.corpora import Corpus
from text_infilling.data.pipeline import Masking, Pipeline, Survey, read, survey_once
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.registry import built_model
from text_infilling.templates import Protocol
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary

GROUP_ROWS = 100  # answers of about one length that are trained together, at least; with fewer that does not pay


@dataclasses.dataclass(frozen=True)
class Task:
    """One setting of a table.

    Attributes:
        corpus: three files of sentences.
        vocabulary: of its train lines; for Grimm, NBA and prepositions of all splits.
        masking: "fixed" or "random", or, where the corpus has its blanks, the name of the rule they were made by.
        mask_rate: share of words masked, in (0, 1); None where the corpus has its blanks.
        blanks: of a sentence.
        seed: of weights, batches, random masks and dropout.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    masking: str
    mask_rate: float | None
    blanks: int
    seed: int

    @functools.cached_property
    def blank_rule(self) -> Masking:
        return Masking("given" if self.corpus.blanks else self.masking, self.mask_rate, self.blanks)

    def survey(self, split: str) -> Survey:
        """What one pass over the sentences of a split found.

        Raises:
            ValueError: none of them is long enough for the blanks.
        """
        path = getattr(self.corpus, split)
        found = survey_once(path, self.blank_rule, self.corpus.checksum)
        if not found.lines:
            raise ValueError(
                f"No sentence of {path} is long enough for {self.blanks} blanks at mask rate {self.mask_rate} "
                f"(the longest has {found.longest} words): lower --blanks or raise --mask_rate"
            )
        return found

    def batches(self, split: str, batch_size: int):
        """The sentences in file order: batches of numbers and texts `[batch]`, as `Pipeline.sentences` takes them.

        All of the split's are held in memory.

        Raises:
            ValueError: none of them is long enough for the blanks.
        """
        lines = self.survey(split).lines
        columns = _read(getattr(self.corpus, split), self.blank_rule, self.corpus.checksum)
        for first in range(0, lines, batch_size):
            yield tuple(column[first : first + batch_size] for column in columns)

    def pipeline(self, split: str, protocol, batch_size: int) -> Pipeline:
        """Batches of the split "train", "valid" or "test"."""
        return Pipeline(getattr(self.corpus, split), self.vocabulary, self.blank_rule, protocol, batch_size)

    def unknown_chances(self, word_dropout: float) -> np.ndarray | None:
        """The chance of each word to be learned as `<UNK>`, `[vocab]`, as `Pipeline.training` takes it; None for 0.

        It is a / (a + n) for a word that stands n times in train (Kiperwasser and Goldberg 2016, "Simple and accurate
        dependency parsing using bidirectional LSTM feature representations").
        """
        if not word_dropout:
            return None
        counts = collections.Counter(word for text in self.corpus.texts("train") for word in text.split())
        numbers = np.array([math.inf] * len(SPECIAL_TOKENS) + [counts[word] for word in self.vocabulary.words])
        return (word_dropout / (word_dropout + numbers)).astype(np.float32)

    def max_length(self, hparams: dict) -> int:
        """Tokens that decoding may give an infill, its `<EOB>` included."""
        return hparams["decoding"]["max_length"] or max(2 * self.survey("train").longest_answer, 2)

    def check_positions(self, hparams: dict) -> None:
        """Raises ValueError where a sentence or an infill is too long for `position.base`, or a split has none."""
        protocol = Protocol.from_hparams(hparams)
        for split in ("test", "valid", "train"):
            protocol.check_base(self.survey(split).longest, self.blanks, self.max_length(hparams))


@functools.lru_cache(maxsize=8)
def _read(path: Path, rule: Masking, checksum: str):
    """Of a corpus of this checksum, once for all models and epochs: to make an iterator takes longer than to read."""
    return read(path, rule)


def new_model(task: Task, name: str, hparams: dict, dtype: str = "float32") -> InfillingModel:
    """A model with fresh weights that is to learn a task."""
    model = built_model(name, len(task.vocabulary), hparams, dtype)
    if task.masking != "fixed":  # which gives a sentence answers of one length, or nearly so
        rows = hparams["train"]["batch_size"] * task.blanks
        model.row_groups = max(1, min(task.blanks, rows // GROUP_ROWS))
    return model
