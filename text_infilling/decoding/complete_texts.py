"""Fills whole texts with any number of blanks, in either order and with several results per text, in one graph."""

from typing import NamedTuple

import tensorflow as tf

from text_infilling import templates
from text_infilling.decoding.constrained import constrained_search, sampler
from text_infilling.decoding.constraints import Constraints
from text_infilling.decoding.loop import any_rows
from text_infilling.decoding.sampling import fold_in
from text_infilling.vocabulary import PAD_ID

_NEVER = float("-inf")


class Sampling(NamedTuple):
    """Options of sampling; see `constrained.sampler`.

    Attributes:
        seed: `[2]` int64.
        temperature, top_p: float32 scalars.
        top_k: int32 scalar.
    """

    seed: tf.Tensor
    temperature: tf.Tensor
    top_k: tf.Tensor
    top_p: tf.Tensor


class Completions(NamedTuple):
    """Ways to fill all blanks of every text: best first, or samples in the order of their numbers.

    Attributes:
        ids: `[texts, width, blanks, longest]` words, then `<PAD>`.
        lengths: `[texts, width, blanks]` words; 0 if the text has no such blank.
        log_probs: `[texts, width, blanks, longest + 1]` of each word and then of `<EOB>`, in nats; then 0.
        scores: `[texts, width]` sum of `log_probs`; minus infinity if fewer ways were found.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor


class _Texts(NamedTuple):
    """The loop state of `fill_texts`; a row is a hypothesis: one partly filled version of a text.

    Attributes:
        template: `[texts * width, ...]`, all rows of the first text first.
        open: `[texts * width, blanks]` whether each blank is still open.
        scores: `[texts, width]` log probability of all infills so far; minus infinity for a missing hypothesis.
        ids, lengths, log_probs: `[texts * width, blanks, ...]`, as in `Completions`.
    """

    template: templates.Template
    open: tf.Tensor
    scores: tf.Tensor
    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor

    def unfinished(self) -> tf.Tensor:
        """Returns the blanks that remain to be filled: open ones of existing hypotheses, `[texts * width, blanks]`."""
        return self.open & tf.reshape(self.scores > _NEVER, [-1, 1])


def fill_texts(
    model,
    ids: tf.Tensor,
    lengths: tf.Tensor,
    places: tf.Tensor,
    counts: tf.Tensor,
    constraints: Constraints,
    width: int | tf.Tensor,
    confident: bool = False,
    sampling: Sampling | None = None,
    no_repeat_ngram: int | tf.Tensor = 0,
) -> Completions:
    """Fills all blanks of every text, one by one, in `width` ways.

    Without `sampling`, the search keeps the `width` best partly filled versions of each text: each is extended by the
    `width` best infills of its next blank, and the best `width` of these `width * width` are kept. With `sampling`,
    `width` independent samples are drawn. The result of a text depends neither on the other texts nor on padding.

    With a width of 2, a text of 2 blanks is first extended by 2 infills of its first blank, with scores of, say, -1
    and -3. The first version is extended by 2 infills of the second blank with scores of -4 and -6, the second version
    by 2 with scores of -1 and -3. The totals are -5, -7, -4 and -6, so the result is -4 (from the second version), -5.

    `decode_blanks.fill_blanks` has its own loop, because it keeps one infill per blank and fills blank k of all texts
    at the same time; it needs neither hypotheses nor the order of blanks, which are most of the code here.

    Args:
        model: an object with `template_format`, `vocabulary_size`, `start(template)` and `step(ids, time, state)`. Its
            template format must mask padding.
        ids: `[texts, length]` word ids, without `<BOS>` and `<EOS>`.
        lengths: `[texts]` words.
        places: `[texts, blanks]` number of words before each blank.
        counts: `[texts]` blanks.
        constraints: with the axes `[texts, blanks]` instead of `[rows]`.
        width: number of ways to fill each text; a tensor or an integer.
        confident: whether to try all open blanks and fill the one whose best infill has the highest mean log
            probability per token; default: fill from left to right.
        sampling: options of sampling; None for the most probable infills.
        no_repeat_ngram: as in `constrained_search`.
    """
    template_format, vocabulary_size = model.template_format, model.vocabulary_size
    texts, blanks = tf.shape(places)[0], tf.shape(places)[1]
    longest = tf.reduce_max(tf.concat([[0], tf.reshape(constraints.max_words, [-1])], axis=0))
    beam = width if sampling is None else 1
    template = templates.initial_template(ids, lengths, places, places, counts, template_format)
    template = _rows(template, tf.repeat(tf.range(texts), width))
    open_ = tf.repeat(tf.range(blanks)[None, :] < counts[:, None], width, axis=0)
    scores = tf.zeros([texts, width])
    if sampling is None:  # all hypotheses are equal at first, so only one may be extended
        scores = tf.where(tf.range(width)[None, :] == 0, scores, _NEVER)

    def body(time, state):
        template, open_, scores, ids, lengths, log_probs = state
        rank = tf.cumsum(tf.cast(open_, tf.int32), axis=1)
        tried = state.unfinished()
        if not confident:
            tried &= rank == 1
        pairs = tf.cast(tf.where(tried), tf.int32)
        rows, blank = pairs[:, 0], pairs[:, 1]
        attempt = _rows(template, rows)
        order = tf.cumsum(tf.cast(attempt.blanks, tf.int32), axis=1)
        only = attempt.blanks & (order == tf.gather_nd(rank, pairs)[:, None])
        within = Constraints(*(_pick(x, rows // width, blank) for x in constraints))
        draw = None
        if sampling is not None:
            draw = sampler(fold_in(sampling.seed, time), rows % width, width, *sampling[1:])
        found = constrained_search(
            model.step,
            model.start(attempt._replace(blanks=only)),
            within,
            beam,
            vocabulary_size,
            draw,
            no_repeat_ngram,
        )

        blank = _surest_blank(tried, pairs, found, confident)
        numbers = tf.scatter_nd(pairs, tf.range(tf.size(rows)), tf.shape(open_))
        chosen = tf.gather(numbers, blank, batch_dims=1)
        filled = tf.reduce_any(tried, axis=1)
        place = tf.where(filled, tf.gather(tf.argmax(only, axis=1, output_type=tf.int32), chosen), -1)

        # The best of all continuations; a row without an open blank does not change.
        stays = tf.where(tf.range(beam) == 0, 0.0, _NEVER)
        more = tf.where(filled[:, None], tf.gather(found.scores, chosen), stays[None, :])
        ways = tf.reshape(scores[:, :, None] + tf.reshape(more, [texts, width, beam]), [texts, -1])
        if sampling is None:
            scores, way = tf.math.top_k(ways, width)
        else:
            scores, way = ways, tf.broadcast_to(tf.range(width)[None, :], [texts, width])
        rows = tf.reshape(tf.range(texts)[:, None] * width + way // beam, [-1])
        which = tf.gather(chosen, rows), tf.reshape(way % beam, [-1])
        filled, blank, place = (tf.gather(x, rows) for x in (filled, blank, place))
        infill, infill_length = _pick(found.ids, *which), _pick(found.lengths, *which)
        infill = tf.pad(infill, [[0, 0], [0, longest - tf.shape(infill)[1]]])
        infill_log_probs = _pick(found.log_probs, *which)
        infill_log_probs = tf.pad(infill_log_probs, [[0, 0], [0, longest + 1 - tf.shape(infill_log_probs)[1]]])
        template = templates.fill_blank(
            _rows(template, rows),
            infill % vocabulary_size,  # as the model reads it, see `Constraints`
            infill_length,
            template_format,
            place,
        )
        here = filled[:, None] & (tf.range(blanks)[None, :] == blank[:, None])
        open_ = tf.gather(open_, rows) & ~here
        ids = tf.where(here[:, :, None], infill[:, None, :], tf.gather(ids, rows))
        lengths = tf.where(here, infill_length[:, None], tf.gather(lengths, rows))
        log_probs = tf.where(here[:, :, None], infill_log_probs[:, None, :], tf.gather(log_probs, rows))
        return time + 1, _Texts(template, open_, scores, ids, lengths, log_probs)

    start = _Texts(
        template=template,
        open=open_,
        scores=scores,
        ids=tf.fill([texts * width, blanks, longest], PAD_ID),
        lengths=tf.zeros([texts * width, blanks], tf.int32),
        log_probs=tf.zeros([texts * width, blanks, longest + 1]),
    )
    start = (tf.constant(0), start)
    _, found = tf.while_loop(
        lambda time, state: tf.reduce_any(state.unfinished()),
        body,
        start,
        shape_invariants=tf.nest.map_structure(any_rows, start),
    )
    apart = [texts, width, blanks]
    return Completions(
        tf.reshape(found.ids, [*apart, longest]),
        tf.reshape(found.lengths, apart),
        tf.reshape(found.log_probs, [*apart, longest + 1]),
        found.scores,
    )


def _surest_blank(tried, pairs, found, confident):
    """Returns the blank to fill in each row, `[rows]`: the one tried, or the one with the most confident infill.

    With blanks 0 and 2 tried in row 0, whose best infills have mean log probabilities of -1.5 and -0.5, it is 2.

    Args:
        tried: `[rows, blanks]` whether each blank was tried.
        pairs: `[tried, 2]` row and blank of each.
        found: `[tried, ...]` the infills of each.
        confident: whether more than one blank per row was tried.
    """
    surest = tf.where(tried, 0.0, _NEVER)
    if confident:
        means = found.scores[:, 0] / tf.cast(found.lengths[:, 0] + 1, tf.float32)
        surest = tf.tensor_scatter_nd_update(surest, pairs, tf.maximum(means, tf.float32.min))
    return tf.argmax(surest, axis=1, output_type=tf.int32)


def _rows(template, rows):
    """Returns the template of some rows, `[any]` indices."""
    return templates.Template(*(tf.gather(x, rows) for x in template))


def _pick(x, first, second):
    """Returns `x[first[i], second[i]]` for every i."""
    shape = tf.shape(x)
    # Not `gather_nd`, which fails if a later axis is empty.
    return tf.gather(tf.reshape(x, tf.concat([[shape[0] * shape[1]], shape[2:]], axis=0)), first * shape[1] + second)
