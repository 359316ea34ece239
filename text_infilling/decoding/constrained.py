"""Search for infills within limits: number of words, prefix, banned words and required phrases.

One implementation covers all searches: a beam of one hypothesis is greedy search, and noise on the scores makes it
sampling. Required phrases add one beam per number of phrase words matched so far, as in grid beam search (Hokamp and
Liu 2017, "Lexically constrained decoding"), so a hypothesis with a phrase does not compete with one without it.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from text_infilling.decoding.constraints import Constraints, free_words
from text_infilling.decoding.continuations import continuations
from text_infilling.decoding.loop import any_rows, drop_finished
from text_infilling.decoding.sampling import gumbel_noise
from text_infilling.decoding.search_state import NEVER, Continuations, Hypotheses, NBest, Rows, Search, SearchState
from text_infilling.vocabulary import BOB_ID, EOB_ID


def constrained_search(
    step: Callable,
    state: dict[str, Any],
    constraints: Constraints,
    width: int | tf.Tensor,
    vocabulary_size: int,
    draw: Callable | None = None,
    no_repeat_ngram: int | tf.Tensor = 0,
) -> NBest:
    """Returns the most probable infills within the constraints, found by beam search, or samples.

    A hypothesis ends when `<EOB>` is among the `width` best continuations of its beam, or at `max_words`; a row is
    finished when no open hypothesis can still enter its `width` best ended ones. Infills contain no special tokens, and
    there is no length penalty. Probabilities are the model's own, over all its tokens, even if the constraints leave
    only one choice. The constraints must not contradict each other (see `limits.Limits`). Finished rows are dropped as
    in `greedy_search`.

    docs/decoding.md shows the state after each step of a small example.

    Args:
        step: `step(ids [rows], time, state) -> logits [rows, vocab], state`.
        state: a dict of nests of tensors `[rows, ...]`. Only the tensors under its key "cache" differ between the
            hypotheses of a row.
        constraints: of each row.
        width: beam width; 1 is greedy search.
        vocabulary_size: number of ids.
        draw: for samples, `draw(log_probs [active, hypotheses, vocab], row_numbers [active], time)` returns perturbed
            log probabilities, whose maximum is the sample; `width` must be 1, and a row is finished with its first
            ended hypothesis. See `sampler`.
        no_repeat_ngram: n-gram size of `constraints.repeats`; 0 turns the rule off. The prefix and the phrases may
            break the rule, and it is lifted if it leaves a hypothesis no continuation.
    """
    beams = tf.reduce_max(tf.concat([[0], tf.reduce_sum(constraints.phrase_lengths, axis=1)], axis=0)) + 1
    search = Search(step, width, vocabulary_size, draw, no_repeat_ngram, beams)
    start = _start(search, state, constraints)
    (last,) = tf.while_loop(
        lambda now: (now.time <= tf.shape(now.found.ids)[2]) & ~tf.reduce_all(now.rows.done),
        lambda now: (_advance(search, now),),
        (start,),
        shape_invariants=(tf.nest.map_structure(any_rows, start),),
    )
    found = last.found
    scores = tf.where(found.keys > NEVER, tf.reduce_sum(found.log_probs, axis=2), NEVER)
    return NBest(found.ids, found.lengths, found.log_probs, scores)


def sampler(
    seed: tf.Tensor,
    numbers: tf.Tensor,
    count: int | tf.Tensor,
    temperature: float | tf.Tensor,
    top_k: int | tf.Tensor,
    top_p: float | tf.Tensor,
) -> Callable:
    """Returns a `draw` for `constrained_search`: samples from softmax(log_probs / temperature), truncated to its top.

    A draw depends on the log probabilities and on (seed, number of the sample, time) only.

    Args:
        seed: `[2]` integers.
        numbers: `[rows]` number of each row's sample; rows with the same number get the same noise.
        count: number of samples; `numbers` are below it.
        temperature: above 0.
        top_k: draws from the k most probable tokens only.
        top_p: of these, draws from the smallest set of most probable tokens whose probabilities sum to at least
            `top_p`.
    """

    def draw(log_probs, row_numbers, time):
        best = tf.sort(log_probs, axis=-1, direction="DESCENDING")
        largest = tf.maximum(best[:, :, :1], tf.float32.min)  # finite even if no token is allowed
        best = tf.where(tf.range(tf.shape(best)[2]) < top_k, best, NEVER)
        probabilities = tf.nn.softmax((best - largest) / temperature)
        kept = (tf.cumsum(probabilities, axis=-1, exclusive=True) < top_p) & (best > NEVER)
        least = tf.reduce_min(tf.where(kept, best, tf.float32.max), axis=-1, keepdims=True)
        noise = gumbel_noise(count, tf.shape(log_probs)[2], seed, time)
        noise = tf.gather(noise, tf.gather(numbers, row_numbers))[:, None, :]
        # Gumbel-max trick, multiplied by the temperature: dividing by a tiny temperature would overflow.
        return tf.where(log_probs >= least, log_probs + temperature * noise, NEVER)

    return draw


def _start(search: Search, state: dict[str, Any], constraints: Constraints) -> SearchState:
    """Returns the loop variables before the first token. The hypotheses of a row are equal, so only one is possible."""
    rows, phrases = tf.unstack(tf.shape(constraints.phrase_lengths))
    hypotheses = search.beams * search.width
    longest = tf.reduce_max(tf.concat([[0], constraints.max_words], axis=0))
    first_only = tf.broadcast_to(tf.where(tf.range(hypotheses) == 0, 0.0, NEVER)[None, :], [rows, hypotheses])
    return SearchState(
        time=tf.constant(0),
        found=Hypotheses.missing(rows, search.width, longest),
        rows=Rows(
            active=tf.range(rows),
            done=tf.zeros([rows], tf.bool),
            constraints=constraints,
            words=free_words(constraints, search.vocabulary_size),
            progress=tf.zeros([rows, phrases, hypotheses], tf.int32),
            open=Hypotheses.missing(rows, hypotheses, longest)._replace(keys=first_only),
            ended=Hypotheses.missing(rows, search.width, longest),
        ),
        tokens=tf.fill([rows * hypotheses], BOB_ID),
        state=tf.nest.map_structure(lambda x: tf.repeat(x, hypotheses, axis=0), state),
    )


def _advance(search: Search, now: SearchState) -> SearchState:
    """Returns the loop variables after one more token per open hypothesis."""
    rows, hypotheses = tf.unstack(tf.shape(now.rows.open.keys))
    logits, state = search.step(now.tokens % search.vocabulary_size, now.time, now.state)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    log_probs = tf.reshape(log_probs, [rows, hypotheses, search.vocabulary_size])

    best = _best_of_beams(search, continuations(search, now, log_probs))
    kept = _without_end(search, best)  # [rows, hypotheses]
    following = now.rows._replace(
        progress=kept.progress,
        open=kept.hypotheses(now),
        ended=_with_ended(search, now, best),
    )
    following = following._replace(done=now.rows.done | _finished(search, following))

    parents = tf.reshape(kept.parents + tf.range(rows)[:, None] * hypotheses, [-1])
    state = {**state, "cache": tf.nest.map_structure(lambda x: tf.gather(x, parents), state["cache"])}
    found = _updated(now.found, following)
    following, (tokens, state) = drop_finished(
        following.done, following, (tf.reshape(kept.tokens, [-1]), state), hypotheses
    )
    return SearchState(now.time + 1, found, following, tokens, state)


def _best_of_beams(search, every):
    """Returns the best `2 * width` continuations of each beam: `[rows, beams * 2 * width]`.

    At most half of them end, so enough open ones are left.
    """
    in_beam = tf.reduce_sum(every.progress, axis=1)[:, None, :] == tf.range(search.beams)[None, :, None]
    keys, chosen = tf.math.top_k(tf.where(in_beam, every.keys[:, None, :], NEVER), 2 * search.width)
    flat = [tf.shape(keys)[0], search.beams * 2 * search.width]
    return every.take(tf.reshape(chosen, flat), tf.reshape(keys, flat))


def _without_end(search, best):
    """Returns the best `width` continuations of each beam that do not end: `[rows, beams * width]`."""
    rows, two = tf.shape(best.keys)[0], 2 * search.width
    keys = tf.reshape(tf.where(best.tokens == EOB_ID, NEVER, best.keys), [rows, search.beams, two])
    keys, chosen = tf.math.top_k(keys, search.width)
    chosen += tf.range(search.beams)[:, None] * two
    flat = [rows, search.beams * search.width]
    return best.take(tf.reshape(chosen, flat), tf.reshape(keys, flat))


def _with_ended(search: Search, now: SearchState, best: Continuations) -> Hypotheses:
    """Returns the `width` best ended hypotheses of each row; `<EOB>` ends one if it is among the `width` best."""
    rank = tf.range(tf.shape(best.keys)[1]) % (2 * search.width)  # in its beam
    ends = (best.tokens == EOB_ID) & (rank < search.width) & ~now.rows.done[:, None]
    newly = best._replace(keys=tf.where(ends, best.keys, NEVER)).hypotheses(now)
    pool = Hypotheses(*(tf.concat(pair, axis=1) for pair in zip(now.rows.ended, newly)))
    keys, kept = tf.math.top_k(pool.keys, search.width)
    return Hypotheses(*(tf.gather(x, kept, batch_dims=1) for x in pool))._replace(keys=keys)


def _finished(search: Search, rows: Rows) -> tf.Tensor:
    """Returns whether no open hypothesis of each row can still change its result, `[rows]`."""
    hope = tf.reduce_max(rows.open.keys, axis=1)
    if search.draw is None:
        return hope <= rows.ended.keys[:, -1]  # keys never increase
    return (rows.ended.keys[:, 0] > NEVER) | (hope == NEVER)


def _updated(found: Hypotheses, rows: Rows) -> Hypotheses:
    """Returns `found`, the ended hypotheses of all rows, with those of the rows that are still computed."""
    count = tf.size(rows.active)
    # Not scattered into `found`: a scatter fails if a later axis is empty.
    newest = count + tf.range(tf.shape(found.keys)[0])
    newest = tf.tensor_scatter_nd_update(newest, rows.active[:, None], tf.range(count))
    return Hypotheses(*(tf.gather(tf.concat([new, old], axis=0), newest) for old, new in zip(found, rows.ended)))
