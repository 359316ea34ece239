"""Search for infills within limits: number of words, prefix, banned words and required phrases.

One implementation covers all searches: a beam of one hypothesis is greedy search, and noise on the scores makes it
sampling. Required phrases add one beam per number of phrase words matched so far, as in grid beam search (Hokamp and
Liu 2017, "Lexically constrained decoding"), so a hypothesis with a phrase does not compete with one without it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from text_infilling.decoding import constraints as masks
from text_infilling.decoding.constraints import Constraints, words_needed
from text_infilling.decoding.loop import any_rows, drop_finished
from text_infilling.decoding.sampling import gumbel_noise
from text_infilling.vocabulary import BOB_ID, EOB_ID, PAD_ID

_NEVER = float("-inf")


class NBest(NamedTuple):
    """The infills found for one blank of every row, best first.

    Attributes:
        ids: `[rows, width, longest]` words, then `<PAD>`.
        lengths: `[rows, width]` words.
        log_probs: `[rows, width, longest + 1]` of each word and then of `<EOB>` under the model, in nats; then 0.
        scores: `[rows, width]` sum of `log_probs`; minus infinity if fewer infills were found.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    scores: tf.Tensor


class _Hypotheses(NamedTuple):
    """Open or ended hypotheses: the fields of `NBest`, with `keys`, the values that rank them, instead of `scores`."""

    ids: tf.Tensor
    lengths: tf.Tensor
    log_probs: tf.Tensor
    keys: tf.Tensor


class _Rows(NamedTuple):
    """The loop state of the rows that are still computed.

    Attributes:
        active: `[rows]` indices of the rows among all rows.
        done: `[rows]` whether each row is finished.
        constraints: of each row.
        words: `[rows, vocab]` whether each word is free, which means not banned.
        progress: `[rows, phrases, hypotheses]` words matched of each phrase.
        open: `[rows, hypotheses]` hypotheses without `<EOB>`.
        ended: `[rows, width]` the best hypotheses with `<EOB>` so far, best first.
    """

    active: tf.Tensor
    done: tf.Tensor
    constraints: Constraints
    words: tf.Tensor
    progress: tf.Tensor
    open: _Hypotheses
    ended: _Hypotheses


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

    A row without phrases, with a width of 2 and the words a and b; scores are sums of log probabilities:

        time  best continuations                           open afterwards     ended afterwards
        0     a -1, b -2, <EOB> -3                         a -1, b -2
        1     a <EOB> -1.5, a b -2, b <EOB> -2.2, b a -5   a b -2, b a -5      a -1.5
        2     a b <EOB> -2.4, a b a -3, b a <EOB> -6       a b a -3            a -1.5, a b -2.4

    At time 1, `b <EOB>` is not among the 2 best, so it does not end. After time 2 the row is finished: -3 < -2.4.

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
    c = constraints
    rows, phrases = tf.shape(c.phrase_lengths)[0], tf.shape(c.phrase_lengths)[1]
    beams = tf.reduce_max(tf.concat([[0], tf.reduce_sum(c.phrase_lengths, axis=1)], axis=0)) + 1
    hypotheses, longest = beams * width, tf.reduce_max(tf.concat([[0], c.max_words], axis=0))
    state = tf.nest.map_structure(lambda x: tf.repeat(x, hypotheses, axis=0), state)

    def body(time, found, of_rows, of_hypotheses):
        active, done, c, words, progress, open_, ended = of_rows
        ids, state = of_hypotheses  # [rows * hypotheses, ...]
        rows = tf.size(active)
        logits, state = step(ids % vocabulary_size, time, state)
        log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
        log_probs = tf.reshape(log_probs, [rows, hypotheses, vocabulary_size])
        in_prefix = (time < c.prefix_lengths)[:, None]
        past = open_.ids[:, :, :time]
        completing, repeats = masks.completing(past, c.sequences), masks.repeats(past, no_repeat_ngram)
        tokens, token_log_probs, keys = _continuations(
            log_probs, of_rows, time, in_prefix, completing, repeats, width, draw
        )
        each = tf.shape(tokens)[2]  # continuations per hypothesis

        keys = tf.reshape(open_.keys[:, :, None] + keys, [rows, -1])
        tokens, token_log_probs = (tf.reshape(x, [rows, -1]) for x in (tokens, token_log_probs))
        new_progress = masks.advance(tf.repeat(progress, each, axis=2), tokens, c)
        needed = words_needed(new_progress, c.phrase_lengths, c.overlaps)
        in_time = time + 1 + needed <= c.max_words[:, None]
        keys = tf.where(in_time | (tokens == EOB_ID) | in_prefix, keys, _NEVER)

        # The best of each beam: [rows, beams, 2 * width]. At most half of them end, so enough open ones are left.
        beam = tf.reduce_sum(new_progress, axis=1)[:, None, :]
        in_beam = beam == tf.range(beams)[None, :, None]
        keys, chosen = tf.math.top_k(tf.where(in_beam, keys[:, None, :], _NEVER), 2 * width)
        is_end = tf.gather(tokens, chosen, batch_dims=1) == EOB_ID
        ends = is_end & (tf.range(2 * width) < width) & ~done[:, None, None]

        flat = [rows, -1]
        new_ended = _extended(
            open_,
            time,
            tokens,
            token_log_probs,
            tf.reshape(chosen, flat),
            tf.reshape(tf.where(ends, keys, _NEVER), flat),
        )
        ended = _best(_Hypotheses(*(tf.concat(pair, axis=1) for pair in zip(ended, new_ended))), width)

        keys, kept = tf.math.top_k(tf.where(is_end, _NEVER, keys), width)
        chosen = tf.reshape(tf.gather(chosen, kept, batch_dims=2), flat)
        open_ = _extended(open_, time, tokens, token_log_probs, chosen, tf.reshape(keys, flat))
        ids = tf.reshape(tf.gather(tokens, chosen, batch_dims=1), [-1])
        progress = tf.gather(new_progress, chosen, batch_dims=1, axis=2)
        parents = tf.reshape(chosen // each + tf.range(rows)[:, None] * hypotheses, [-1])
        state = {**state, "cache": tf.nest.map_structure(lambda x: tf.gather(x, parents), state["cache"])}
        hope = tf.reduce_max(open_.keys, axis=1)
        # Without noise, keys never increase.
        done |= hope <= ended.keys[:, -1] if draw is None else (ended.keys[:, 0] > _NEVER) | (hope == _NEVER)
        found = _updated(found, ended, active)
        of_rows = _Rows(active, done, c, words, progress, open_, ended)
        return time + 1, found, *drop_finished(done, of_rows, (ids, state), hypotheses)

    first_only = tf.broadcast_to(tf.where(tf.range(hypotheses) == 0, 0.0, _NEVER)[None, :], [rows, hypotheses])
    of_rows = _Rows(
        active=tf.range(rows),
        done=tf.zeros([rows], tf.bool),
        constraints=c,
        words=masks.free_words(c, vocabulary_size),
        progress=tf.zeros([rows, phrases, hypotheses], tf.int32),
        open=_none(rows, hypotheses, longest)._replace(keys=first_only),
        ended=_none(rows, width, longest),
    )
    start = (tf.constant(0), _none(rows, width, longest), of_rows, (tf.fill([rows * hypotheses], BOB_ID), state))
    _, ended, *_ = tf.while_loop(
        lambda time, found, of_rows, _: (time <= longest) & ~tf.reduce_all(of_rows.done),
        body,
        start,
        shape_invariants=tf.nest.map_structure(any_rows, start),
    )
    found = ended.keys > _NEVER
    scores = tf.where(found, tf.reduce_sum(ended.log_probs, axis=2), _NEVER)
    return NBest(ended.ids, ended.lengths, ended.log_probs, scores)


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
        best = tf.where(tf.range(tf.shape(best)[2]) < top_k, best, _NEVER)
        probabilities = tf.nn.softmax((best - largest) / temperature)
        kept = (tf.cumsum(probabilities, axis=-1, exclusive=True) < top_p) & (best > _NEVER)
        least = tf.reduce_min(tf.where(kept, best, tf.float32.max), axis=-1, keepdims=True)
        noise = gumbel_noise(count, tf.shape(log_probs)[2], seed, time)
        noise = tf.gather(noise, tf.gather(numbers, row_numbers))[:, None, :]
        # Gumbel-max trick, multiplied by the temperature: dividing by a tiny temperature would overflow.
        return tf.where(log_probs >= least, log_probs + temperature * noise, _NEVER)

    return draw


def _continuations(log_probs, of_rows, time, in_prefix, completing, repeats, width, draw):
    """Returns the candidate next tokens: the best free words or `<EOB>`, the next word of the prefix and each phrase.

    Args:
        log_probs: `[rows, hypotheses, vocab]` of the model.
        of_rows: the loop state.
        time: length of the hypotheses.
        in_prefix: `[rows, 1]` whether the next word belongs to the prefix.
        completing: `[rows, hypotheses, any]` ids that are excluded, even as part of a phrase.
        repeats: `[rows, hypotheses, any]` ids that are excluded from the free words, unless no other is left.
        width, draw: as in `constrained_search`.

    Returns:
        Ids, their log probabilities, and the keys that rank them (minus infinity for an excluded id), each
        `[rows, hypotheses, continuations]`.
    """
    c, progress = of_rows.constraints, of_rows.progress
    rows, hypotheses, vocabulary_size = tf.unstack(tf.shape(log_probs))
    may_end = (time >= c.min_words)[:, None] & (words_needed(progress, c.phrase_lengths, c.overlaps) == 0) & ~in_prefix
    may_continue = (time < c.max_words)[:, None] & ~in_prefix
    is_end = tf.range(vocabulary_size) == EOB_ID
    allowed = tf.where(is_end, may_end[:, :, None], (of_rows.words & may_continue)[:, None, :])
    allowed = tf.cond(tf.size(completing) > 0, lambda: masks.without(allowed, completing), lambda: allowed)
    fresh = masks.without(allowed, repeats)
    # With more words than that, at least one is always left, so the check of every word can be skipped.
    most_left_out = tf.shape(c.banned)[1] + tf.shape(completing)[2] + tf.shape(repeats)[2]
    fresh = tf.cond(
        vocabulary_size - EOB_ID - 1 > most_left_out,
        lambda: fresh,
        lambda: tf.where(tf.reduce_any(fresh, axis=2, keepdims=True), fresh, allowed),
    )
    keys = tf.where(fresh, log_probs, _NEVER)
    if draw is not None:
        keys = draw(keys, of_rows.active, time)
    keys, free = tf.math.top_k(keys, tf.minimum(2 * width, vocabulary_size))

    of_prefix = tf.gather(tf.pad(c.prefix, [[0, 0], [0, 1]]), tf.minimum(time, tf.shape(c.prefix)[1]), axis=1)
    of_phrases = tf.gather(tf.pad(c.phrases, [[0, 0], [0, 0], [0, 1]]), progress, batch_dims=2, axis=2)
    of_phrases = tf.transpose(of_phrases, [0, 2, 1])  # [rows, hypotheses, phrases]
    unmet = tf.transpose(progress < c.phrase_lengths[:, :, None], [0, 2, 1])
    phrases = tf.shape(of_phrases)[2]
    earlier = tf.linalg.band_part(tf.ones([phrases, phrases], tf.bool), -1, 0) & ~tf.eye(phrases, dtype=tf.bool)
    is_free = (keys > _NEVER)[:, :, None, :]
    twice = tf.reduce_any((of_phrases[:, :, :, None] == free[:, :, None, :]) & is_free, axis=3) | tf.reduce_any(
        (of_phrases[:, :, :, None] == of_phrases[:, :, None, :]) & unmet[:, :, None, :] & earlier, axis=3
    )
    completes = tf.reduce_any(tf.equal(of_phrases[:, :, :, None], completing[:, :, None, :]), axis=3)
    forced = tf.concat([tf.broadcast_to(of_prefix[:, None, None], [rows, hypotheses, 1]), of_phrases], axis=2)
    may_be_forced = tf.concat(
        [
            tf.broadcast_to(in_prefix[:, :, None], [rows, hypotheses, 1]),
            unmet & ~twice & ~completes & tf.broadcast_to(may_continue[:, :, None], [rows, hypotheses, 1]),
        ],
        axis=2,
    )
    forced_log_probs = tf.gather(log_probs, forced % vocabulary_size, batch_dims=2)
    tokens = tf.concat([free, forced], axis=2)
    token_log_probs = tf.concat([tf.gather(log_probs, free, batch_dims=2), forced_log_probs], axis=2)
    return tokens, token_log_probs, tf.concat([keys, tf.where(may_be_forced, forced_log_probs, _NEVER)], axis=2)


def _none(rows, count, longest):
    """Returns `count` missing hypotheses for every row."""
    nothing = tf.fill([rows, count, longest], PAD_ID)
    lengths = tf.zeros([rows, count], tf.int32)
    return _Hypotheses(nothing, lengths, tf.zeros([rows, count, longest + 1]), tf.fill([rows, count], _NEVER))


def _extended(hypotheses, time, tokens, log_probs, chosen, keys):
    """Returns hypotheses extended by some of their continuations.

    With 2 hypotheses of 3 continuations each, the continuation 4 is the second one of the second hypothesis.

    Args:
        hypotheses: `[rows, hypotheses]`, each with `time` words.
        time: index of the new token.
        tokens, log_probs: `[rows, hypotheses * continuations]`, all continuations of the first hypothesis first.
        chosen: `[rows, any]` indices of continuations.
        keys: `[rows, any]` of the results.
    """
    each = tf.shape(tokens)[1] // tf.shape(hypotheses.ids)[1]
    longest = tf.shape(hypotheses.ids)[2]
    parents, token = chosen // each, tf.gather(tokens, chosen, batch_dims=1)
    log_prob = tf.gather(log_probs, chosen, batch_dims=1)
    is_word = (tf.range(longest) == time) & (token != EOB_ID)[:, :, None]
    return _Hypotheses(
        ids=tf.where(is_word, token[:, :, None], tf.gather(hypotheses.ids, parents, batch_dims=1)),
        lengths=tf.fill(tf.shape(token), time) + tf.cast(token != EOB_ID, tf.int32),
        log_probs=tf.where(
            tf.range(longest + 1) == time, log_prob[:, :, None], tf.gather(hypotheses.log_probs, parents, batch_dims=1)
        ),
        keys=keys,
    )


def _updated(found, ended, active):
    """Returns `found`, the ended hypotheses of all rows, with those of the rows `active` replaced by `ended`."""
    rows = tf.size(active)
    # Not scattered into `found`: a scatter fails if a later axis is empty.
    newest = tf.tensor_scatter_nd_update(rows + tf.range(tf.shape(found.keys)[0]), active[:, None], tf.range(rows))
    return _Hypotheses(*(tf.gather(tf.concat([y, x], axis=0), newest) for x, y in zip(found, ended)))


def _best(hypotheses, width):
    """Returns the `width` hypotheses of each row with the largest keys, best first."""
    keys, kept = tf.math.top_k(hypotheses.keys, width)
    return _Hypotheses(*(tf.gather(x, kept, batch_dims=1) for x in hypotheses))._replace(keys=keys)
