"""A training task: a corpus, its vocabulary, the masking, and a seed."""

import collections
import dataclasses
import functools
import math
from pathlib import Path

import numpy as np

from text_infilling.corpora.corpus import Corpus
from text_infilling.data.blank_rule import BlankRule
from text_infilling.data.pipeline import Pipeline, SplitStats, cached_split_stats, read
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.registry import built_model
from text_infilling.templates import TemplateFormat
from text_infilling.vocabulary import SPECIAL_TOKENS, Vocabulary

GROUP_ROWS = 100  # fewest answers in a group of similar length; smaller groups do not save time


@dataclasses.dataclass(frozen=True)
class Task:
    """A corpus with its vocabulary, masking and seed, as one row of a table describes it.

    Attributes:
        corpus: three files of sentences.
        vocabulary: words of the train split; for Grimm, NBA and prepositions of all splits.
        masking: "fixed", "random" or "any" (a random number of random blanks); or the name of the rule that made the
            blanks if the corpus contains them.
        mask_rate: fraction of words masked, in (0, 1), or a pair as in `BlankRule`; None if the corpus contains its
            blanks.
        blanks: blanks per sentence; with "any" the maximum.
        seed: for weights, batches, random masks and dropout.
        perplexity_batch: sentences per batch of the metric `ppl_paper`, which depends on it; the other metrics of a
            model whose attention masks padding do not. The default is the paper's for Yelp; see
            `evaluation.PAPER_BATCH` for its other corpora.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    masking: str
    mask_rate: float | tuple[float, float] | None
    blanks: int
    seed: int
    perplexity_batch: int = 10

    @functools.cached_property
    def blank_rule(self) -> BlankRule:
        return BlankRule("given" if self.corpus.blanks else self.masking, self.mask_rate, self.blanks)

    def survey(self, split: str) -> SplitStats:
        """Returns the statistics of one pass over the sentences of a split.

        Raises:
            ValueError: none of them is long enough for the blanks.
        """
        path = getattr(self.corpus, split)
        found = cached_split_stats(path, self.blank_rule, self.corpus.checksum)
        if not found.lines:
            raise ValueError(
                f"No sentence of {path} is long enough for {self.blanks} blanks at mask rate {self.mask_rate} "
                f"(the longest has {found.longest} words): lower blanks or raise mask_rate"
            )
        return found

    def batches(self, split: str, batch_size: int):
        """Yields line numbers and texts `[batch]` in file order, as `Pipeline.sentences` takes them.

        The whole split is held in memory.

        Raises:
            ValueError: none of them is long enough for the blanks.
        """
        lines = self.survey(split).lines
        columns = _read(getattr(self.corpus, split), self.blank_rule, self.corpus.checksum)
        for first in range(0, lines, batch_size):
            yield tuple(column[first : first + batch_size] for column in columns)

    def pipeline(self, split: str, template_format, batch_size: int) -> Pipeline:
        """Returns the pipeline of the split "train", "valid" or "test"."""
        return Pipeline(getattr(self.corpus, split), self.vocabulary, self.blank_rule, template_format, batch_size)

    def unknown_chances(self, word_dropout: float) -> np.ndarray | None:
        """Returns the probability that each word is learned as `<UNK>`, `[vocab]`, for `Pipeline.training`; None for 0.

        It is a / (a + n) for a word that occurs n times in train, with a = `word_dropout` (Kiperwasser and Goldberg
        2016, "Simple and accurate dependency parsing using bidirectional LSTM feature representations").
        """
        if not word_dropout:
            return None
        counts = collections.Counter(word for text in self.corpus.texts("train") for word in text.split())
        numbers = np.array([math.inf] * len(SPECIAL_TOKENS) + [counts[word] for word in self.vocabulary.words])
        return (word_dropout / (word_dropout + numbers)).astype(np.float32)

    def max_length(self, hparams: dict) -> int:
        """Returns the largest number of tokens of an infill in decoding, `<EOB>` included."""
        return hparams["decoding"]["max_length"] or max(2 * self.survey("train").longest_answer, 2)

    def check_positions(self, hparams: dict) -> None:
        """Raises ValueError if a sentence or infill is too long for `position.base`, or if a split has no sentence."""
        template_format = TemplateFormat.from_hparams(hparams)
        for split in ("test", "valid", "train"):
            template_format.check_base(self.survey(split).longest, self.blanks, self.max_length(hparams))


@functools.lru_cache(maxsize=8)
def _read(path: Path, rule: BlankRule, checksum: str):
    """Reads a split once for all models and epochs: creating an iterator each time takes longer than reading."""
    return read(path, rule)


def new_model(task: Task, name: str, hparams: dict, dtype: str = "float32") -> InfillingModel:
    """Builds a model with fresh weights for a task."""
    model = built_model(name, len(task.vocabulary), hparams, dtype)
    if task.masking != "fixed":  # "fixed" gives the answers of a sentence nearly equal lengths
        rows = hparams["train"]["batch_size"] * task.blanks
        model.row_groups = max(1, min(task.blanks, rows // GROUP_ROWS))
    return model
