"""Runs a model on batches of texts, in graphs that take texts of any length with any number of blanks."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from text_infilling.decoding.complete_texts import Sampling, fill_texts
from text_infilling.decoding.constraints import Constraints
from text_infilling.inference.limit_arrays import stack
from text_infilling.inference.planner import width_of
from text_infilling.inference.request import MaskedText, SearchOptions
from text_infilling.inference.results import Filled, render
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.templates import TemplateFormat
from text_infilling.vocabulary import PAD_ID, Vocabulary


class TextDecoder(NamedTuple):
    """The parts of a model that `fill_texts` needs, with a template format under which padding is masked.

    The result for a text then does not depend on the other texts of its batch, nor on the length of the true sentence,
    which is unknown.
    """

    template_format: TemplateFormat
    vocabulary_size: int
    start: Callable
    step: Callable

    @classmethod
    def of(cls, model: InfillingModel) -> "TextDecoder":
        """Returns the decoder of a model, which is not changed."""
        encoder_length = model.template_format.encoder_length and "template"
        template_format = model.template_format._replace(mask_padding=True, encoder_length=encoder_length)
        return cls(
            template_format, model.vocabulary_size, partial(model.start, template_format=template_format), model.step
        )


class BatchFiller:
    """Filler of batches of texts.

    Args:
        decoder: the decoder of the model.
        vocabulary: the vocabulary of the model.
    """

    def __init__(self, decoder: TextDecoder, vocabulary: Vocabulary):
        self._decoder, self._vocabulary = decoder, vocabulary
        self._graphs = {}

    def fill(
        self, batches: Sequence[Sequence[MaskedText]], at_once: int, options: SearchOptions, attempt: int
    ) -> list[list[list[Filled]]]:
        """Returns all results that the model finds for each text of each batch, best first or in the order drawn.

        Args:
            batches: texts that are filled together; each has a blank.
            at_once: number of batches that run at the same time.
            options: the options of the request.
            attempt: number of earlier attempts to fill these texts.
        """
        graph = self._graph(options.sampling is not None, options.confident)  # built here once, not once per thread
        fill = partial(self._fill, graph=graph, options=options, attempt=attempt)
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(fill, batches))

    def _fill(self, texts, graph, options, attempt) -> list[list[Filled]]:
        width, sampling = width_of(options, attempt), options.sampling
        ids, lengths = _padded([text.ids for text in texts], PAD_ID)
        places, counts = _padded([text.places for text in texts], 0)
        limits = stack([text.limits for text in texts])
        arguments = [ids, lengths, places, counts, *limits, width, options.no_repeat_ngram]
        if sampling:
            arguments += [np.array([sampling.seed, attempt], np.int64), *sampling[1:]]
        ids, lengths, log_probs, scores = (x.numpy() for x in graph(*map(tf.constant, arguments)))
        return [
            [
                render(text, self._vocabulary, ids[i, w], lengths[i, w], log_probs[i, w])
                for w in range(width)
                if scores[i, w] > -math.inf
            ]
            for i, text in enumerate(texts)
        ]

    def _graph(self, is_sampled, confident):
        """Returns the graph that fills a batch, built on first use."""
        if (is_sampled, confident) not in self._graphs:
            self._graphs[is_sampled, confident] = _new_graph(self._decoder, is_sampled, confident)
        return self._graphs[is_sampled, confident]


def _new_graph(decoder, is_sampled, confident):
    matrix, vector, scalar = (tf.TensorSpec([None] * rank, tf.int32) for rank in (2, 1, 0))
    cube = tf.TensorSpec([None] * 3, tf.int32)
    constraints = Constraints(
        min_words=matrix,
        max_words=matrix,
        prefix=cube,
        prefix_lengths=matrix,
        banned=cube,
        phrases=tf.TensorSpec([None] * 4, tf.int32),
        phrase_lengths=cube,
        borders=tf.TensorSpec([None] * 5, tf.bool),
        overlaps=cube,
        sequences=tf.TensorSpec([None] * 5, tf.int32),
    )
    fields = len(constraints)
    signature = [matrix, vector, matrix, vector, *constraints, scalar, scalar]
    if is_sampled:
        number = tf.TensorSpec([], tf.float32)
        signature += Sampling(tf.TensorSpec([2], tf.int64), number, scalar, number)

    @tf.function(input_signature=signature, autograph=False)
    def fill(ids, lengths, places, counts, *rest):
        constraints, (width, no_repeat_ngram, *sampling) = Constraints(*rest[:fields]), rest[fields:]
        return fill_texts(
            decoder,
            ids,
            lengths,
            places,
            counts,
            constraints,
            width,
            confident=confident,
            sampling=Sampling(*sampling) if is_sampled else None,
            no_repeat_ngram=no_repeat_ngram,
        )

    return fill.get_concrete_function()


def _padded(rows, padding):
    """Returns the rows as one padded array `[rows, longest]`, and their lengths `[rows]`."""
    array = np.full([len(rows), max(map(len, rows))], padding, np.int32)
    for line, row in zip(array, rows):
        line[: len(row)] = row
    return array, np.array([len(row) for row in rows], np.int32)
