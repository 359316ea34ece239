"""The tokens that constraints allow after each open hypothesis: free words and `<EOB>`, words of prefix and phrases."""

import tensorflow as tf

from text_infilling.decoding import constraints as masks
from text_infilling.decoding.constraints import words_needed
from text_infilling.decoding.search_state import NEVER, Continuations, Search, SearchState
from text_infilling.vocabulary import EOB_ID


def continuations(search: Search, now: SearchState, log_probs: tf.Tensor) -> Continuations:
    """Returns the continuations of all open hypotheses, those of the first one first.

    A continuation that leaves too few words for the phrases is excluded.

    Args:
        search: what does not change.
        now: the open hypotheses.
        log_probs: `[rows, hypotheses, vocab]` of the next token.
    """
    c = now.rows.constraints
    tokens, token_log_probs, keys = _next_tokens(search, now, log_probs)
    rows, hypotheses, each = tf.unstack(tf.shape(tokens))
    flat = [rows, hypotheses * each]
    tokens = tf.reshape(tokens, flat)
    keys = tf.reshape(now.rows.open.keys[:, :, None] + keys, flat)
    progress = masks.advance(tf.repeat(now.rows.progress, each, axis=2), tokens, c)
    in_time = now.time + 1 + words_needed(progress, c.phrase_lengths, c.overlaps) <= c.max_words[:, None]
    return Continuations(
        parents=tf.broadcast_to(tf.repeat(tf.range(hypotheses), each), flat),
        tokens=tokens,
        log_probs=tf.reshape(token_log_probs, flat),
        keys=tf.where(in_time | (tokens == EOB_ID) | now.in_prefix(), keys, NEVER),
        progress=progress,
    )


def _next_tokens(search, now, log_probs):
    """Returns ids, their log probabilities, and their keys, each `[rows, hypotheses, continuations]`.

    They are the best free tokens, the next word of the prefix, and the next word of each phrase.
    """
    rows, hypotheses, vocabulary_size = tf.unstack(tf.shape(log_probs))
    completing = masks.completing(now.rows.open.ids[:, :, : now.time], now.rows.constraints.sequences)
    free, free_keys = _free_tokens(search, now, log_probs, completing)
    is_free = (free_keys > NEVER)[:, :, None, :]
    of_prefix = _prefix_words(now)
    of_phrases, may_follow = _phrase_words(now)

    same = of_phrases[:, :, :, None] == free[:, :, None, :]  # [rows, hypotheses, phrases, free]
    is_also_free = tf.reduce_any(same & is_free, axis=3)
    completes = tf.reduce_any(tf.equal(of_phrases[:, :, :, None], completing[:, :, None, :]), axis=3)
    in_prefix = tf.broadcast_to(now.in_prefix()[:, :, None], [rows, hypotheses, 1])
    is_possible = tf.concat([in_prefix, may_follow & ~is_also_free & ~completes], axis=2)

    required = tf.concat([tf.broadcast_to(of_prefix[:, None, None], [rows, hypotheses, 1]), of_phrases], axis=2)
    tokens = tf.concat([free, required], axis=2)
    token_log_probs = tf.gather(log_probs, tokens % vocabulary_size, batch_dims=2)
    required_keys = tf.where(is_possible, token_log_probs[:, :, tf.shape(free)[2] :], NEVER)
    return tokens, token_log_probs, tf.concat([free_keys, required_keys], axis=2)


def _free_tokens(search, now, log_probs, completing):
    """Returns the `2 * width` best tokens that are neither banned nor repeats, and their keys; `<EOB>` is one of them.

    Args:
        search, now, log_probs: as in `continuations`.
        completing: `[rows, hypotheses, any]` ids that would complete a banned sequence.
    """
    c = now.rows.constraints
    vocabulary_size = tf.shape(log_probs)[2]
    is_complete = words_needed(now.rows.progress, c.phrase_lengths, c.overlaps) == 0  # [rows, hypotheses]
    may_end = (now.time >= c.min_words)[:, None] & is_complete & ~now.in_prefix()
    is_end = tf.range(vocabulary_size) == EOB_ID
    allowed = tf.where(is_end, may_end[:, :, None], (now.rows.words & now.may_continue())[:, None, :])
    allowed = tf.cond(tf.size(completing) > 0, lambda: masks.without(allowed, completing), lambda: allowed)

    repeats = masks.repeats(now.rows.open.ids[:, :, : now.time], search.no_repeat_ngram)
    fresh = masks.without(allowed, repeats)
    # With more words than that, at least one is always left, so the check of every word can be skipped.
    most_left_out = tf.shape(c.banned)[1] + tf.shape(completing)[2] + tf.shape(repeats)[2]
    fresh = tf.cond(
        vocabulary_size - EOB_ID - 1 > most_left_out,
        lambda: fresh,
        lambda: tf.where(tf.reduce_any(fresh, axis=2, keepdims=True), fresh, allowed),
    )
    keys = tf.where(fresh, log_probs, NEVER)
    if search.draw is not None:
        keys = search.draw(keys, now.rows.active, now.time)
    keys, free = tf.math.top_k(keys, tf.minimum(2 * search.width, vocabulary_size))
    return free, keys


def _prefix_words(now):
    """Returns the next word of each prefix, `[rows]`; after its end, any id."""
    prefix = now.rows.constraints.prefix
    return tf.gather(tf.pad(prefix, [[0, 0], [0, 1]]), tf.minimum(now.time, tf.shape(prefix)[1]), axis=1)


def _phrase_words(now):
    """Returns the next word of each phrase, and whether it may follow: `[rows, hypotheses, phrases]` each.

    A word that is the next one of several incomplete phrases may follow as that of the first of them only.
    """
    c, progress = now.rows.constraints, now.rows.progress
    words = tf.gather(tf.pad(c.phrases, [[0, 0], [0, 0], [0, 1]]), progress, batch_dims=2, axis=2)
    words = tf.transpose(words, [0, 2, 1])
    unmet = tf.transpose(progress < c.phrase_lengths[:, :, None], [0, 2, 1])
    phrases = tf.shape(words)[2]
    earlier = tf.linalg.band_part(tf.ones([phrases, phrases], tf.bool), -1, 0) & ~tf.eye(phrases, dtype=tf.bool)
    same = words[:, :, :, None] == words[:, :, None, :]  # [rows, hypotheses, phrases, phrases]
    twice = tf.reduce_any(same & unmet[:, :, None, :] & earlier, axis=3)
    return words, unmet & ~twice & now.may_continue()[:, :, None]
