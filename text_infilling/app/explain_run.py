"""Shows what a trained model computes for a text: the most probable next words and the attention over the template."""

import html
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from text_infilling import templates
from text_infilling.app.explain import Token, Turn, check_blanks, filling
from text_infilling.inference.batch_filler import TextDecoder
from text_infilling.inference.load_model import load_model
from text_infilling.models.self_attention import SelfAttentionModel
from text_infilling.runs.run_folder import RunFolder
from text_infilling.utils.columns import aligned
from text_infilling.vocabulary import BOB_ID, EOB_ID

BEST = 5  # next words shown


class Step(NamedTuple):
    """What the model computes after one token of an infill.

    Attributes:
        token: the token: `<BOB>` or a word.
        next_words: the `BEST` most probable next tokens except special tokens other than `<EOB>`, with their
            probabilities.
        attention: weight of each token of the template, the mean over all blocks and heads; empty for a model without
            attention.
    """

    token: str
    next_words: list[tuple[str, float]]
    attention: list[float]


class Explained(NamedTuple):
    """The filling of one blank and what the model computes at each step."""

    turn: Turn
    steps: list[Step]


def explained(run: RunFolder, text: str, infills: Sequence[str] = ()) -> tuple[list[Explained], list[Token]]:
    """Returns what a model computes for each blank, left to right, and the filled text at the end.

    Args:
        run: a trained run.
        text: with blanks.
        infills: infills of the first blanks; the model writes the others, by greedy search.

    Raises:
        ValueError: the text has no blank, or fewer blanks than there are infills.
    """
    model = load_model(run)
    decoder, known = TextDecoder.of(model), frozenset(run.vocabulary.words)
    words = [piece.word for piece in run.tokenizer.split(text, known)]
    check_blanks(words, infills)
    given = [[piece.word for piece in run.tokenizer.split(infill, known)] for infill in infills]
    steps: list[list[Step]] = []

    def infill_of(number: int, template: templates.Template) -> list[str]:
        state = decoder.start(template)
        forced = None if number >= len(given) else [*run.vocabulary.encode(given[number]), EOB_ID]
        with warnings.catch_warnings():  # Keras warns that `<BOB>` can attend only to itself
            warnings.filterwarnings("ignore", "You are using a softmax over axis", UserWarning)
            ids, next_words = _written(decoder, run, state, forced)
            attention: list[list[float]] = [[]] * len(ids)
            if isinstance(model, SelfAttentionModel):
                weights = model.template_attention(tf.constant([ids]), state)[:, 0]  # [blocks, heads, length, template]
                attention = tf.reduce_mean(weights, axis=(0, 1)).numpy().tolist()
        tokens = run.vocabulary.decode(ids)
        steps.append([Step(*one) for one in zip(tokens, next_words, attention, strict=True)])
        return given[number] if number < len(given) else tokens[1:]

    turns, filled = filling(words, run.vocabulary, decoder.template_format, infill_of)
    return [Explained(*one) for one in zip(turns, steps, strict=True)], filled


def _written(decoder, run, state, forced):
    """Returns the ids of an infill after `<BOB>`, and the best next words after each of them.

    Args:
        decoder: the model.
        run: its run.
        state: of `decoder.start`, for one row.
        forced: the ids to write, with `<EOB>`; None for those of greedy search.
    """
    ids, next_words = [BOB_ID], []
    while True:
        logits, state = decoder.step(tf.constant([ids[-1]]), tf.constant(len(next_words)), state)
        probabilities = tf.nn.softmax(tf.cast(logits[0], tf.float32)).numpy()
        best = EOB_ID + np.argsort(-probabilities[EOB_ID:], kind="stable")[:BEST]  # `<EOB>` is the last special token
        next_words.append(list(zip(run.vocabulary.decode(best.tolist()), probabilities[best].tolist(), strict=True)))
        chosen = int(best[0]) if forced is None else forced[len(next_words) - 1]
        if chosen == EOB_ID or (forced is None and len(ids) > run.longest):
            return ids, next_words
        ids.append(chosen)


def as_text(found: Sequence[Explained], filled: Sequence[Token]) -> str:
    """Returns the explanation for a terminal, from the result of `explained`."""
    parts = []
    for turn, steps in found:
        best = [("after", *(f"{k}." for k in range(1, BEST + 1)))]
        best += [(step.token, *(f"{word} {p:.3f}" for word, p in step.next_words)) for step in steps]
        parts += [
            f"Blank {turn.blank} of {len(found)}: the most probable next words and their probabilities:",
            "\n".join(aligned(best, left=range(BEST + 1))),
        ]
        if steps[0].attention:
            grid = [("", *(token.token for token in turn.template))]
            grid += [(step.token, *(f"{weight:.2f}" for weight in step.attention)) for step in steps]
            parts += ["Attention over the template, mean over all blocks and heads:", "\n".join(aligned(grid))]
    return "\n\n".join([*parts, "Filled: " + " ".join(token.token for token in filled[1:-1])])


STYLE = """
:root { color-scheme: light dark; --ink: #111; --paper: #fff; --heat: 0 114 178 }
@media (prefers-color-scheme: dark) { :root { --ink: #eee; --paper: #161616; --heat: 86 180 233 } }
body { font: 1rem/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 0 auto; padding: 1rem }
.wide { overflow-x: auto }
table { border-collapse: collapse }
th, td { padding: .25rem .5rem; text-align: left; white-space: nowrap }
.heat th:not(:first-child), .heat td { text-align: right }
.heat td { background: rgb(var(--heat) / calc(var(--weight) * 60%)) }
"""


def as_html(found: Sequence[Explained], filled: Sequence[Token], about: str) -> str:
    """Returns one self-contained HTML page, from the result of `explained`; `about` says which model computed it."""
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>What the model computes</title>\n<style>{STYLE}</style>",
        f"<h1>What the model computes</h1>\n<p>{html.escape(about)}</p>",
        f"<p>Filled: {html.escape(' '.join(token.token for token in filled[1:-1]))}</p>",
    ]
    for turn, steps in found:
        parts.append(f"<h2>Blank {turn.blank} of {len(found)}</h2>")
        rows = [
            _row("td", step.token, [f"{word} {p:.3f}" for word, p in step.next_words], [""] * BEST) for step in steps
        ]
        head = _row("th", "after", [f"{k}." for k in range(1, BEST + 1)], [""] * BEST)
        parts += ["<h3>The most probable next words</h3>", _table("", [head, *rows])]
        if steps[0].attention:
            words = [token.token for token in turn.template]
            rows = [
                _row("td", step.token, [f"{x:.2f}" for x in step.attention],
                     [f' style="--weight: {x:.3f}"' for x in step.attention])
                for step in steps
            ]  # fmt: skip
            parts.append("<h3>Attention over the template, mean over all blocks and heads</h3>")
            parts.append(_table("heat", [_row("th", "", words, [""] * len(words)), *rows]))
    return "\n".join(parts) + "\n</html>\n"


def _row(cell, first, texts, attributes):
    cells = "".join(f"<{cell}{a}>{html.escape(t)}</{cell}>" for t, a in zip(texts, attributes, strict=True))
    return f"<tr><th>{html.escape(first)}</th>{cells}</tr>"


def _table(name, rows):
    return f'<div class="wide"><table class="{name}">{"".join(rows)}</table></div>'
