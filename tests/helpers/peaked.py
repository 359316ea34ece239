"""Small models that clearly prefer some tokens, their searches as graphs, and their scores by teacher forcing."""

import functools

import numpy as np
import tensorflow as tf

from text_infilling import templates
from text_infilling.decoding.beam import beam_search
from text_infilling.decoding.decode_blanks import fill_blanks
from text_infilling.decoding.greedy import greedy_search
from text_infilling.models.self_attention import SelfAttentionModel
from text_infilling.models.seq2seq import Seq2SeqModel
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID, SPECIAL_TOKENS, UNK_ID

MAX_LENGTH = 6
FIRST_WORD = len(SPECIAL_TOKENS)
MATRIX, VECTOR = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)


@functools.cache
def peaked_model(words=12, dim=16, seed=0, name="self_attention"):
    """Returns a small model of the paper's protocol with weights so large that it clearly prefers some tokens."""
    if name == "self_attention":
        decoder = {"dim": dim, "num_blocks": 2, "num_heads": 2, "ffn_dim": 2 * dim}
        model = SelfAttentionModel(FIRST_WORD + words, {"decoder": decoder})
    else:
        units = {"units": dim}
        model = Seq2SeqModel(FIRST_WORD + words, {"embedder": {"dim": dim}, "encoder": units, "decoder": units})
    model.build()
    random = np.random.default_rng(seed)
    kernel, bias = model.output_weights()  # for self-attention, the kernel is the embedding
    for variable in model.weights:
        scale = {"embedding": 0.8, "output_kernel": 3.0}.get(variable.name, 2.0 * variable.shape[0] ** -0.5)
        values = random.normal(size=variable.shape, scale=scale)
        # Makes infills end, at different lengths.
        if variable is bias:
            values[EOB_ID] = 3.0
        elif variable is kernel:
            values[EOB_ID] *= 2.0
        variable.assign(values)
    return model


def batch(rows=12, words=12, seed=0, longest=9, most_blanks=2):
    """Returns the arguments of `initial_template`: sentences of different lengths and numbers of blanks."""
    random = np.random.default_rng(seed)
    lengths = random.integers(3, longest + 1, rows)
    ids = random.integers(FIRST_WORD, FIRST_WORD + words, (rows, longest))
    counts = random.integers(1, most_blanks + 1, rows)
    cuts = [np.sort(random.integers(0, length + 1, 2 * most_blanks)) for length in lengths]
    starts, ends = np.array(cuts)[:, ::2], np.array(cuts)[:, 1::2]
    return [tf.constant(x, tf.int32) for x in (ids, lengths, starts, ends, counts)]


def search(model, template, beam_width, max_length=MAX_LENGTH):
    """Returns the infills of the first open blank, by greedy or beam search.

    They are `[rows, ...]` by greedy search if `beam_width` is 0, else `[rows, beam_width, ...]`.
    """
    return search_graph(model, beam_width, max_length)(template)


@functools.cache
def search_graph(model, beam_width, max_length):
    def search(template):
        state, rows = model.start(template), tf.shape(template.ids)[0]
        if beam_width == 0:
            return greedy_search(model.step, state, rows, max_length)
        return beam_search(model.step, state, rows, max_length, beam_width)

    flags = tf.TensorSpec([None, None], tf.bool)
    signature = templates.Template(MATRIX, MATRIX, MATRIX, flags, VECTOR, VECTOR, VECTOR)
    return tf.function(search, input_signature=[signature], autograph=False)


@functools.cache
def fill_graph(model, beam_width):
    """Returns `fill_blanks` as a graph of sentences with at most two blanks."""
    spans = tf.TensorSpec([None, 2], tf.int32)
    return tf.function(
        lambda *sentences: fill_blanks(model, *sentences, MAX_LENGTH, beam_width),
        input_signature=[MATRIX, VECTOR, spans, spans, VECTOR],
        autograph=False,
    )


def teacher_forced(model, template, ids):
    """Returns the logits `[rows, length, vocab]` after `<BOB>` and the ids `[rows, length - 1]`, computed at once."""
    examples = {
        "template_ids": template.ids,
        "template_segment_ids": template.segment_ids,
        "template_offset_ids": template.offset_ids,
        "template_lengths": template.lengths,
        "answer_ids": tf.pad(tf.concat([tf.fill([len(ids), 1], BOB_ID), ids], axis=1), [[0, 0], [0, 1]]),
        "answer_segment_ids": templates.blank_segment_ids(template),
    }
    return model.output(model.answer_states(examples))


def scores_of(model, template, ids, lengths):
    """Returns the teacher-forced log probabilities `[rows]` of infills `[rows, length]` with their `<EOB>`."""
    log_probs = tf.nn.log_softmax(teacher_forced(model, template, ids)).numpy()
    labels = np.pad(ids, [[0, 0], [0, 1]])
    labels[np.arange(len(labels)), lengths] = EOB_ID
    each = np.take_along_axis(log_probs, labels[:, :, None], axis=2)[:, :, 0]
    return np.sum(each * (np.arange(labels.shape[1]) <= np.reshape(lengths, [-1, 1])), axis=1)


class LovesSpecialTokens:
    """A model that prefers `<UNK>`, then `<PAD>` and other special tokens over time, to all words."""

    favourites = tf.constant([UNK_ID, PAD_ID, BOB_ID, UNK_ID])

    def step(self, ids, time, state):
        wanted = tf.one_hot(tf.fill(tf.shape(ids), self.favourites[time]), 20) * 20.0
        by_row = tf.one_hot(FIRST_WORD + state["row"] % 3, 20) * 5.0
        return wanted + by_row - 5.0 * tf.one_hot(tf.fill(tf.shape(ids), EOB_ID), 20), state
