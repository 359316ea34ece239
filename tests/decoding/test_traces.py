"""The worked examples of docs/decoding.md are what the searches do."""

import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from text_infilling import templates
from text_infilling.decoding import complete_texts, constrained
from text_infilling.decoding.constraints import unconstrained
from text_infilling.decoding.search_state import NEVER, Search
from text_infilling.vocabulary import BLANK_ID, BOB_ID, EOB_ID, PAD_ID, SPECIAL_TOKENS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decoding.md"
A, B, C = range(len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 3)
VOCAB = C + 1
NAMES = {A: "a", B: "b", C: "c", EOB_ID: "`<EOB>`", BLANK_ID: "`<m>`"}
UNLIKELY = -20.0


def rows_of(trace):
    """Returns the rows of a trace in the page as lists of cells, without its header."""
    text = re.search(rf"<!-- trace:{trace} -->(.*)<!-- /trace:{trace} -->", PAGE.read_text(), re.DOTALL)[1]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines()[2:]]


def logits(**log_probs):
    """Returns log probabilities `[vocab]`; what is left of the probability goes to a special token."""
    found = np.full(VOCAB, UNLIKELY)
    for name, value in log_probs.items():
        found[{"a": A, "b": B, "c": C, "end": EOB_ID}[name]] = value
    found[PAD_ID] = np.log(1 - np.sum(np.exp(found)))
    return tf.constant(found, tf.float32)


def shown(words, score):
    return " ".join([*(NAMES[word] for word in words), f"{score:.4g}"])


def hypotheses(found):
    """Returns the existing hypotheses of row 0 as text."""
    rows = zip(found.ids[0].numpy(), found.lengths[0].numpy(), found.keys[0].numpy())
    return ", ".join(shown(ids[:length], key) for ids, length, key in rows if key > UNLIKELY)


def test_the_trace_of_constrained_search():
    after = {
        (0, BOB_ID): logits(a=-1, b=-2, end=-3),
        (1, A): logits(end=-0.5, b=-1),
        (1, B): logits(end=-0.2, a=-3),
        (2, B): logits(end=-0.5, a=-1),
        (2, A): logits(end=-1, b=-1.5),
    }

    def step(ids, time, state):
        return tf.stack([after[int(time), int(i)] for i in ids]), state

    search = Search(step, 2, VOCAB, None, 0, tf.constant(1))
    now = constrained._start(search, {"cache": []}, unconstrained(tf.constant([4])))
    lines = []
    while tf.size(now.rows.done):  # a finished row is dropped
        log_probs = tf.reshape(step(now.tokens, now.time, {})[0], [1, -1, VOCAB])
        best = constrained._best_of_beams(search, constrained.continuations(search, now, log_probs))
        still_open = constrained._without_end(search, best).hypotheses(now)
        tried = [
            shown([*now.rows.open.ids[0, parent, : now.time].numpy(), token], key)
            for parent, token, key in zip(*(x[0].numpy() for x in (best.parents, best.tokens, best.keys)))
            if key > UNLIKELY
        ]
        time, now = int(now.time), constrained._advance(search, now)
        lines.append([str(time), ", ".join(tried), hypotheses(still_open), hypotheses(now.found)])
    assert lines == rows_of("search")


class Model:
    """The model of the second example: infills of one word; the word of the second blank depends on the first."""

    vocabulary_size = VOCAB
    template_format = templates.TemplateFormat()

    def start(self, template):
        first = tf.where(tf.reduce_sum(tf.cast(template.ids == BLANK_ID, tf.int32), axis=1) == 2, 0, template.ids[:, 1])
        return {"cache": [], "first": first}

    def step(self, ids, time, state):
        choices = {0: logits(a=-1, b=-2), A: logits(b=-3, a=-5), B: logits(a=-0.5, b=-6)}
        end = logits(end=-1e-6)
        return tf.stack([choices[int(f)] if int(time) == 0 else end for f in state["first"]]), state


def test_the_trace_of_filling_a_text():
    model, constraints = Model(), unconstrained(tf.constant([[2, 2]]))
    sentence = tf.constant([[C]]), tf.constant([1]), tf.constant([[0, 1]])
    template = templates.initial_template(*sentence, sentence[2], tf.constant([2]), model.template_format)
    request = complete_texts._Request(model, constraints, 2, False, None, 0)
    now = complete_texts._start(request, template, tf.constant([[True, True]]))
    lines = []
    while True:
        there = [k for k in range(2) if now.scores[0, k] > NEVER]
        texts = [now.template.ids[k, 1 : now.template.lengths[k] - 1].numpy() for k in there]
        versions = " / ".join(" ".join(NAMES[i] for i in text) for text in texts)
        lines.append([str(int(now.time)), versions, " / ".join(f"{now.scores[0, k]:.4g}" for k in there)])
        if not tf.reduce_any(now.unfinished()):
            break
        now = complete_texts._advance(request, now)
    assert lines == rows_of("texts")
