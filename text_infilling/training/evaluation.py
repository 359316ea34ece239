"""Computes the metrics and predictions of a model on a split."""

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from text_infilling.decoding.decode_blanks import BATCHES_AT_ONCE, fill_blanks
from text_infilling.metrics.bleu import bleu, bleu_paper, prepare_for_paper
from text_infilling.metrics.diversity import distinct, largest_share, repeating
from text_infilling.metrics.perplexity import Perplexity
from text_infilling.text.vocabulary_table import VocabularyTable
from text_infilling.training.task import Task
from text_infilling.vocabulary import BLANK_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS

# Sentences per test batch in the paper's experiments, for `Task.perplexity_batch`.
PAPER_BATCH = {"yelp": 10, "grimm": 150, "prepositions": 150, "nba": 200}
PAPER_SMOOTHING = 0.1  # label smoothing in `ppl_paper`, independent of that in training
_LINES = [tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.string)]  # line numbers and texts
DIAGNOSTIC_BATCH = 50  # sentences; soft infills of a batch take `[rows, length, vocab]` in memory
DECODING_BATCH = 250  # used if padding is masked: then the result does not depend on the batch size


class Evaluator:
    """Evaluator of one model on any split; its graphs are traced once.

    Args:
        model: a built model.
        task: provides sentences and blanks. The masks of validation and test are the same for every seed.
        hparams: hyperparameters of the run, of which `decoding` is read.
    """

    def __init__(self, model, task: Task, hparams: dict):
        self.model, self.task = model, task
        # Examples do not depend on the split.
        pipeline = task.pipeline("valid", model.template_format, task.perplexity_batch)
        table = VocabularyTable(task.vocabulary)
        self._tables = pipeline, table  # TensorFlow deletes a table with its Python object; graphs do not hold it
        decoding = hparams["decoding"]
        self._cut = decoding["cut_at_special"]
        max_length = task.max_length(hparams)

        @tf.function(input_signature=_LINES, autograph=False)
        def score(numbers, texts):
            examples = pipeline.examples(numbers, texts)._asdict()
            scores = model.score(examples, with_padding=True, smoothing=PAPER_SMOOTHING)
            return (*scores, examples["answer_lengths"])

        @tf.function(input_signature=_LINES, autograph=False)
        def fill(numbers, texts):
            sentences = pipeline.sentences(numbers, texts)
            filled = fill_blanks(model, *sentences, max_length, decoding["beam_width"], decoding["forbid_special"])
            _, _, starts, ends, counts = sentences
            tokens = table.tokens(filled.ids)
            return tokens, filled.lengths, filled.scores, starts, ends, counts, filled.positions

        @tf.function(input_signature=_LINES, autograph=False)
        def diagnose(numbers, texts):
            seed = tf.stack([tf.constant(0, tf.int64), numbers[0]])
            return model.diagnostics(pipeline.examples(numbers, texts)._asdict(), seed)

        # Traced once, here: TensorFlow warns if many functions of one name are traced, which happens with one per cell.
        self.score, self.fill = score.get_concrete_function(), fill.get_concrete_function()
        self._diagnose = diagnose.get_concrete_function() if model.DIAGNOSTICS else None

    def perplexities(self, split: str) -> dict[str, float]:
        """Returns `ppl_paper`, `ppl` and `ppl_words` on the split "valid", "test" or "train"."""
        perplexity = Perplexity()
        for scores in computed(self.score, self.task.batches(split, self.task.perplexity_batch)):
            perplexity.update(*scores)
        return perplexity.result()

    def diagnostics(self, split: str) -> dict[str, float]:
        """Returns the model's own metrics, `InfillingModel.DIAGNOSTICS`, on a split; empty for most models."""
        if not self.model.DIAGNOSTICS:
            return {}
        columns = zip(*computed(self._diagnose, self.task.batches(split, DIAGNOSTIC_BATCH)), strict=True)
        return {
            name: float(np.mean(np.concatenate(column)))
            for name, column in zip(self.model.DIAGNOSTICS, columns, strict=True)
        }

    def fills(self, split: str) -> list["Fill"]:
        """Returns the infills of every sentence of a split, in file order."""
        batch = DECODING_BATCH if self.model.template_format.mask_padding else self.task.perplexity_batch
        batches, found = list(self.task.batches(split, batch)), []
        for (_, texts), columns in zip(batches, computed(self.fill, batches), strict=True):
            tokens, lengths, scores, starts, ends, counts, _ = (column.tolist() for column in columns)
            rows = zip(_words(texts, self.task), tokens, lengths, starts, ends, scores, counts, strict=True)
            for words, row, sizes, *rest, count in rows:
                infills = [[word.decode() for word in infill[:size]] for infill, size in zip(row, sizes, strict=True)]
                if self._cut:
                    infills = [list(itertools.takewhile(_is_inside, infill)) for infill in infills]
                found.append(Fill(words, infills[:count], *(columns[:count] for columns in rest)))
        return found

    def __call__(self, split: str) -> tuple[dict[str, float], list[dict]]:
        """Returns all metrics on a split, and the predictions they are computed from."""
        fills = self.fills(split)
        metrics = {**_bleus(fills, self.task), **self.perplexities(split), **_template_metrics(fills, self.task, split)}
        infills = [infill for fill in fills for infill in fill.infills]
        answers = [answer for fill in fills for answer in fill.answers]
        metrics["mean_infill_length"] = sum(map(len, infills)) / len(infills)
        metrics["mean_answer_length"] = sum(map(len, answers)) / len(answers)
        right = sum(len(infill) == len(answer) for infill, answer in zip(infills, answers, strict=True))
        metrics["right_length"] = right / len(infills)
        metrics["distinct_1"], metrics["distinct_2"] = distinct(infills, 1), distinct(infills, 2)
        metrics["largest_share"] = largest_share(infills)
        metrics["repeating_infills"], metrics["repeating_answers"] = repeating(infills), repeating(answers)
        metrics |= self.diagnostics(split)
        return metrics, [fill.prediction() for fill in fills]


def computed(function, batches):
    """Yields the outputs of a graph per batch, as arrays; computes several batches in parallel."""
    with ThreadPoolExecutor(BATCHES_AT_ONCE) as pool:
        yield from pool.map(lambda batch: [x.numpy() for x in function(*batch)], batches)


@dataclasses.dataclass(frozen=True)
class Fill:
    """A sentence and the infills of its blanks.

    Attributes:
        words: words of the true sentence.
        infills: words of the infill, per blank.
        starts, ends: blank k covers `words[starts[k] : ends[k]]`.
        scores: log probability of each infill, in nats.
    """

    words: list[str]
    infills: list[list[str]]
    starts: list[int]
    ends: list[int]
    scores: list[float]

    @property
    def answers(self) -> list[list[str]]:
        return [self.words[start:end] for start, end in zip(self.starts, self.ends, strict=True)]

    @property
    def template(self) -> list[str]:
        return self.sentence([[SPECIAL_TOKENS[BLANK_ID]]] * len(self.starts))

    def sentence(self, infills: list[list[str]]) -> list[str]:
        """Returns the words of the sentence with each blank replaced by an infill."""
        words, position = [], 0
        for start, end, infill in zip(self.starts, self.ends, infills, strict=True):
            words += [*self.words[position:start], *infill]
            position = end
        return words + self.words[position:]

    def prediction(self) -> dict:
        """Returns a line of predictions.jsonl: one string per blank, and the template with its blanks as `<m>`."""
        return {
            "template": " ".join(self.template),
            "answer": [" ".join(answer) for answer in self.answers],
            "infill": [" ".join(infill) for infill in self.infills],
            "scores": self.scores,
        }


def evaluate_template(task: Task, split: str = "test") -> dict[str, float]:
    """Returns the metrics of the unfilled template: the column Template of the paper's tables."""
    return _template_metrics(_open(task, split), task, split)


def open_predictions(task: Task, split: str) -> list[dict]:
    """Returns the lines of predictions.jsonl of a split before it is filled: templates and answers, no infills."""
    return [fill.prediction() for fill in _open(task, split)]


def _open(task, split):
    """Returns the sentences of a split with their blanks and without infills."""
    pipeline = task.pipeline(split, None, DECODING_BATCH)
    sentences = tf.function(pipeline.sentences, input_signature=_LINES, autograph=False).get_concrete_function()
    fills = []
    for numbers, texts in task.batches(split, DECODING_BATCH):
        _, _, *columns = sentences(numbers, texts)
        rows = zip(_words(texts, task), *(column.numpy().tolist() for column in columns), strict=True)
        fills += [Fill(words, [], starts[:n], ends[:n], scores=[]) for words, starts, ends, n in rows]
    return fills


def _is_inside(word):
    """Returns whether a word of an infill does not end it, as the authors' code ends texts before they are scored."""
    return word not in (SPECIAL_TOKENS[PAD_ID], SPECIAL_TOKENS[EOS_ID])


def _words(texts, task):
    return [[word.decode() for word in row] for row in task.blank_rule.words_of(texts).to_list()]


def _template_metrics(fills, task, split):
    open_ = [dataclasses.replace(fill, infills=[[SPECIAL_TOKENS[BLANK_ID]]] * len(fill.starts)) for fill in fills]
    return {
        **{f"template_{name}": score for name, score in _bleus(open_, task).items()},
        "sentences": len(fills),
        "left_out": task.survey(split).left_out,
    }


def _bleus(fills, task):
    """Returns both BLEU scores of the filled sentences."""
    hypotheses, references = [fill.sentence(fill.infills) for fill in fills], [fill.words for fill in fills]

    def paper(rows):
        return [prepare_for_paper(row, task.vocabulary.replace_unknown) for row in rows]

    # Before infills and `<m>` are inserted: the literal word `<m>` in a text is an unknown word.
    known = [dataclasses.replace(fill, words=task.vocabulary.replace_unknown(fill.words)) for fill in fills]

    return {
        "bleu_paper": bleu_paper(
            paper(fill.sentence(fill.infills) for fill in known), paper(fill.words for fill in known)
        ),
        "bleu": bleu([" ".join(row) for row in hypotheses], [" ".join(row) for row in references]),
    }
