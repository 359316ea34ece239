"""Fills whole texts with any number of blanks, in either order and with several results per text, in one graph."""

from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling import templates
from text_infilling.decoding.constrained import constrained_search, sampler
from text_infilling.decoding.constraints import Constraints
from text_infilling.decoding.loop import any_rows
from text_infilling.decoding.sampling import fold_in
from text_infilling.decoding.search_state import NEVER, NBest
from text_infilling.vocabulary import PAD_ID


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


class _Request(NamedTuple):
    """What does not change while texts are filled: the arguments of `fill_texts` that each step needs.

    Attributes:
        model, constraints, width, confident, sampling, no_repeat_ngram: see `fill_texts`.
    """

    model: Any
    constraints: Constraints
    width: int | tf.Tensor
    confident: bool
    sampling: Sampling | None
    no_repeat_ngram: int | tf.Tensor

    def beam(self) -> int | tf.Tensor:
        """Returns the number of infills to search for per version and blank."""
        return self.width if self.sampling is None else 1


class _Versions(NamedTuple):
    """The loop variables: `width` partly filled versions of each text; a row is a version.

    Attributes:
        time: scalar, number of steps so far.
        template: `[texts * width, ...]`, all versions of the first text first.
        open: `[texts * width, blanks]` whether each blank is still open.
        scores: `[texts, width]` log probability of all infills so far; minus infinity for a missing version.
        ids, lengths, log_probs: `[texts * width, blanks, ...]`, as in `Completions`.
    """

    time: tf.Tensor
    template: templates.Template
    open: tf.Tensor
    scores: tf.Tensor
    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor

    def unfinished(self) -> tf.Tensor:
        """Returns the blanks that remain to be filled: open ones of existing versions, `[texts * width, blanks]`."""
        return self.open & tf.reshape(self.scores > NEVER, [-1, 1])


class _Tries(NamedTuple):
    """The blanks for which infills are searched in a step.

    Attributes:
        is_tried: `[rows, blanks]`.
        pairs: `[tries, 2]` row and blank of each try.
        template: `[tries, ...]` the version of each try, in which only its blank is open.
    """

    is_tried: tf.Tensor
    pairs: tf.Tensor
    template: templates.Template


class _Next(NamedTuple):
    """The blank to fill in each row, and its infills.

    Attributes:
        exists: `[rows]` whether the row has a blank to fill. If not, its infills are not used.
        blank: `[rows]` index of the blank.
        place: `[rows]` index of the blank in the template; -1 if the row has no blank to fill.
        infills: `[rows, beam, ...]`; if the row has no blank to fill, the score of the first one is 0, so that the row
            is kept as it is, and the others are missing.
    """

    exists: tf.Tensor
    blank: tf.Tensor
    place: tf.Tensor
    infills: NBest


class _Best(NamedTuple):
    """The best continuations of each text by one infill.

    Attributes:
        scores: `[texts, width]` log probability of all infills.
        parents: `[texts * width]` rows of the versions that they continue.
        ranks: `[texts * width]` indices of the infills among those of their blank.
    """

    scores: tf.Tensor
    parents: tf.Tensor
    ranks: tf.Tensor


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
    request = _Request(model, constraints, width, confident, sampling, no_repeat_ngram)
    template = templates.initial_template(ids, lengths, places, places, counts, model.template_format)
    start = _start(request, template, tf.range(tf.shape(places)[1])[None, :] < counts[:, None])

    (last,) = tf.while_loop(
        lambda now: tf.reduce_any(now.unfinished()),
        lambda now: (_advance(request, now),),
        (start,),
        shape_invariants=(tf.nest.map_structure(any_rows, start),),
    )
    apart = tf.concat([tf.shape(last.scores), tf.shape(last.open)[1:]], axis=0)  # texts, width, blanks
    ids, lengths, log_probs = (
        tf.reshape(x, tf.concat([apart, tf.shape(x)[2:]], axis=0)) for x in (last.ids, last.lengths, last.log_probs)
    )
    return Completions(ids, lengths, log_probs, last.scores)


def _start(request: _Request, template: templates.Template, is_open: tf.Tensor) -> _Versions:
    """Returns the loop variables before the first step.

    Args:
        request: what does not change.
        template: `[texts, ...]`.
        is_open: `[texts, blanks]` whether the text has such a blank.
    """
    texts, blanks = tf.unstack(tf.shape(is_open))
    rows = texts * request.width
    longest = tf.reduce_max(tf.concat([[0], tf.reshape(request.constraints.max_words, [-1])], axis=0))
    scores = tf.zeros([texts, request.width])
    if request.sampling is None:  # all versions are equal at first, so only one may be extended
        scores = tf.where(tf.range(request.width)[None, :] == 0, scores, NEVER)
    return _Versions(
        time=tf.constant(0),
        template=_rows(template, tf.repeat(tf.range(texts), request.width)),
        open=tf.repeat(is_open, request.width, axis=0),
        scores=scores,
        ids=tf.fill([rows, blanks, longest], PAD_ID),
        lengths=tf.zeros([rows, blanks], tf.int32),
        log_probs=tf.zeros([rows, blanks, longest + 1]),
    )


def _advance(request: _Request, now: _Versions) -> _Versions:
    """Returns the loop variables after one more blank of each version."""
    tries = _tries(request, now)
    following = _next(request, tries, _infills(request, now, tries))
    return _filled(request, now, following, _best_continuations(request, now, following))


def _tries(request: _Request, now: _Versions) -> _Tries:
    """Returns the first open blank of each row, or all open blanks if the most confident one is to be filled."""
    rank = tf.cumsum(tf.cast(now.open, tf.int32), axis=1)  # 1 for the first open blank
    is_tried = now.unfinished()
    if not request.confident:
        is_tried &= rank == 1
    pairs = tf.cast(tf.where(is_tried), tf.int32)
    template = _rows(now.template, pairs[:, 0])
    order = tf.cumsum(tf.cast(template.blanks, tf.int32), axis=1)
    only = template.blanks & (order == tf.gather_nd(rank, pairs)[:, None])
    return _Tries(is_tried, pairs, template._replace(blanks=only))


def _infills(request: _Request, now: _Versions, tries: _Tries) -> NBest:
    """Returns the best infills of each try, or a sample: `[tries, beam, ...]`."""
    rows, blanks = tries.pairs[:, 0], tries.pairs[:, 1]
    draw = None
    if request.sampling is not None:
        seed, *options = request.sampling
        draw = sampler(fold_in(seed, now.time), rows % request.width, request.width, *options)
    return constrained_search(
        request.model.step,
        request.model.start(tries.template),
        Constraints(*(_pick(x, rows // request.width, blanks) for x in request.constraints)),
        request.beam(),
        request.model.vocabulary_size,
        draw,
        request.no_repeat_ngram,
    )


def _blank_to_fill(request: _Request, tries: _Tries, found: NBest) -> tf.Tensor:
    """Returns the blank to fill in each row, `[rows]`: the one tried, or the one with the most confident infill.

    With blanks 0 and 2 tried in row 0, whose best infills have mean log probabilities of -1.5 and -0.5, it is 2.
    """
    confidence = tf.where(tries.is_tried, 0.0, NEVER)
    if request.confident:
        means = found.scores[:, 0] / tf.cast(found.lengths[:, 0] + 1, tf.float32)
        confidence = tf.tensor_scatter_nd_update(confidence, tries.pairs, tf.maximum(means, tf.float32.min))
    return tf.argmax(confidence, axis=1, output_type=tf.int32)


def _next(request: _Request, tries: _Tries, found: NBest) -> _Next:
    """Returns the blank to fill in each row, and its infills, given the infills of all tries."""
    blank = _blank_to_fill(request, tries, found)
    exists = tf.reduce_any(tries.is_tried, axis=1)
    numbers = tf.scatter_nd(tries.pairs, tf.range(tf.shape(tries.pairs)[0]), tf.shape(tries.is_tried))
    chosen = tf.gather(numbers, blank, batch_dims=1)  # the try of each row
    place = tf.gather(tf.argmax(tries.template.blanks, axis=1, output_type=tf.int32), chosen)
    infills = NBest(*(tf.gather(x, chosen) for x in found))
    unchanged = tf.where(tf.range(request.beam()) == 0, 0.0, NEVER)
    scores = tf.where(exists[:, None], infills.scores, unchanged[None, :])
    return _Next(exists, blank, tf.where(exists, place, -1), infills._replace(scores=scores))


def _best_continuations(request: _Request, now: _Versions, following: _Next) -> _Best:
    """Returns the best continuations of each text: of `width * beam`, or of one per version if they are samples."""
    texts, width = tf.unstack(tf.shape(now.scores))
    beam = request.beam()
    totals = now.scores[:, :, None] + tf.reshape(following.infills.scores, [texts, width, beam])
    totals = tf.reshape(totals, [texts, width * beam])
    if request.sampling is None:
        scores, chosen = tf.math.top_k(totals, width)
    else:
        scores, chosen = totals, tf.broadcast_to(tf.range(width)[None, :], [texts, width])
    parents = tf.range(texts)[:, None] * width + chosen // beam
    return _Best(scores, tf.reshape(parents, [-1]), tf.reshape(chosen % beam, [-1]))


def _filled(request: _Request, now: _Versions, following: _Next, best: _Best) -> _Versions:
    """Returns the loop variables after the best continuations."""
    _, blanks, longest = tf.unstack(tf.shape(now.ids))
    exists, blank, place = (tf.gather(x, best.parents) for x in following[:3])
    infill, length, log_probs = (_pick(x, best.parents, best.ranks) for x in following.infills[:3])
    infill = tf.pad(infill, [[0, 0], [0, longest - tf.shape(infill)[1]]])
    log_probs = tf.pad(log_probs, [[0, 0], [0, longest + 1 - tf.shape(log_probs)[1]]])
    here = exists[:, None] & (tf.range(blanks)[None, :] == blank[:, None])  # [rows, blanks]
    return _Versions(
        time=now.time + 1,
        template=templates.fill_blank(
            _rows(now.template, best.parents),
            infill % request.model.vocabulary_size,  # as the model reads it, see `Constraints`
            length,
            request.model.template_format,
            place,
        ),
        open=tf.gather(now.open, best.parents) & ~here,
        scores=best.scores,
        ids=tf.where(here[:, :, None], infill[:, None, :], tf.gather(now.ids, best.parents)),
        lengths=tf.where(here, length[:, None], tf.gather(now.lengths, best.parents)),
        log_probs=tf.where(here[:, :, None], log_probs[:, None, :], tf.gather(now.log_probs, best.parents)),
    )


def _rows(template, rows):
    """Returns the template of some rows, `[any]` indices."""
    return templates.Template(*(tf.gather(x, rows) for x in template))


def _pick(x, first, second):
    """Returns `x[first[i], second[i]]` for every i."""
    shape = tf.shape(x)
    # Not `gather_nd`, which fails if a later axis is empty.
    return tf.gather(tf.reshape(x, tf.concat([[shape[0] * shape[1]], shape[2:]], axis=0)), first * shape[1] + second)
