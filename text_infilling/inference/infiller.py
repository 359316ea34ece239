"""Fills the blanks of any text with a trained run.

infiller = Infiller.load("runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1")
infiller.fill("I ____ the soup, but the ____ was cold.").text
infiller.fill("____ is great!", num_results=5, limits={"max_words": 3}).alternatives
"""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf

from text_infilling.decoding.complete_texts import Sampling, fill_texts
from text_infilling.decoding.constrained import Constraints
from text_infilling.decoding.decode_blanks import BATCHES_AT_ONCE
from text_infilling.inference.fill_options import NO_REPEAT_NGRAM, check_options, is_sampled
from text_infilling.inference.limits import BlankLimits, Limits, LimitsReader, stack
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.models.registry import built_model
from text_infilling.runs.layout import CONFIG, WEIGHTS
from text_infilling.runs.run_folder import LONGEST_FILL, RunFolder, open_run
from text_infilling.text.blanks import with_blanks
from text_infilling.text.detokenizer import fill_in
from text_infilling.text.tokenizer import Piece, Tokenizer
from text_infilling.vocabulary import PAD_ID, SPECIAL_TOKENS, Vocabulary

_HYPOTHESES = 32, 128  # target range of hypotheses per batch of several texts; fewer if there are not enough texts
_MOST_NUMBERS = 2**29  # in memory at once: 2 GiB of templates, logits and continuations, if all infills are longest
_TRIES = 4  # attempts to find distinct results; each draws more samples or doubles the beam

Wish = Limits | Mapping | None


@dataclasses.dataclass(frozen=True)
class Filled:
    """A text with its blanks filled.

    Attributes:
        text: the whole text.
        fills: the infill of each blank, as it appears in `text`.
        log_probability: of all infills, in nats: the sum of `log_probabilities`.
        log_probabilities: of each infill with its `<EOB>`, given the blanks filled before it, in nats.
        token_log_probabilities: for each blank, of each of its `words` and then of `<EOB>`, in nats.
        words: for each blank, the words of the infill as the model writes them.
        alternatives: all requested results, best first; the first is this one.
    """

    text: str
    fills: list[str]
    log_probability: float
    log_probabilities: list[float]
    token_log_probabilities: list[list[float]]
    words: list[list[str]]
    alternatives: list["Filled"] = dataclasses.field(default_factory=list, repr=False)


class Infiller:
    """Filler of the blanks of texts, from a trained model.

    Args:
        model: built, with its weights. Its protocol is changed to mask padding, so that the result of a text does not
            depend on the other texts of its batch; do not use the model for anything else.
        vocabulary: of the model.
        tokenizer: tokenizer of the model's corpus; default: inferred from the vocabulary.
        longest: default maximum number of words per infill.
        beam_width: default beam width; 1 is greedy search.
        least: minimum number of words of an infill whose limits do not set `min_words`.
    """

    def __init__(
        self,
        model: InfillingModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer | None = None,
        longest: int = LONGEST_FILL,
        beam_width: int = 1,
        least: int = 1,
    ):
        encoder_length = model.protocol.encoder_length and "template"  # the length of the true sentence is unknown
        model.protocol = model.protocol._replace(mask_padding=True, encoder_length=encoder_length)
        self.model, self.vocabulary, self.beam_width = model, vocabulary, beam_width
        self.tokenizer = tokenizer or Tokenizer.infer(vocabulary.words)
        self.longest, self.least = longest, least
        self._reader = LimitsReader(self.tokenizer, vocabulary, longest, least)
        self._graphs = {}

    @classmethod
    def load(cls, run_folder: str | Path | RunFolder) -> "Infiller":
        """Returns the infiller of a trained run.

        Args:
            run_folder: a folder with config.json, vocabulary.txt and best.weights.h5, or the result of `open_run`.

        Raises:
            OSError: a file cannot be read.
            ValueError: the folder does not hold a trained run, or its files do not belong together.
        """
        run = run_folder if isinstance(run_folder, RunFolder) else open_run(run_folder)
        try:
            model = built_model(run.model, len(run.vocabulary), run.hparams)
        except ValueError as error:
            raise ValueError(f"{run.path / CONFIG} does not describe a run: {error}") from error
        try:
            model.load_weights(run.path / WEIGHTS)
        except (ValueError, KeyError, OSError) as error:
            raise ValueError(
                f"{run.path / WEIGHTS} does not hold the weights of the {run.model} model that {CONFIG} beside it "
                "describes"
            ) from error
        return cls(model, run.vocabulary, run.tokenizer, run.longest, run.beam_width, run.least)

    def fill(
        self,
        texts: str | Sequence[str],
        *,
        num_results: int = 1,
        beam_width: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        order: str = "left",
        blank_token: str | None = None,
        limits: Wish | Sequence = None,
        no_repeat_ngram: int | None = None,
    ) -> Filled | list[Filled]:
        """Returns the texts with their blanks filled: one `Filled` for one text, a list for a list.

        A blank is `____` (two or more underscores), `__m__` or `[blank]`, alone between spaces or punctuation. Outside
        the blanks a text is not changed. The result for a text depends only on that text and the arguments, not on the
        other texts or on earlier calls.

        Without `temperature`, `top_k`, `top_p` and `seed`, the infills are the most probable ones found by greedy or
        beam search. The beam spans blanks: the `beam_width` best ways to fill the first blanks are extended at the next
        one, so several results are ranked by the probability of the whole text. The beam is at least `num_results`
        wide. With any of the four options, infills are samples, drawn until there are enough distinct results. Either
        way, fewer than `num_results` are returned if no more are found. With `must_include`, a sample is the result of
        a search on perturbed probabilities, which is close to a draw from the model, but not exactly one.

        Args:
            texts: one text or a list of them.
            num_results: distinct results for each text, see `Filled.alternatives`.
            beam_width: beam width; default: `decoding.beam_width` of the run, which is 1 unless set otherwise.
            temperature: sampling temperature, from 1e-30 to 1e30; lower is closer to greedy search; default 1.
            top_k: draws samples from the k most probable words.
            top_p: draws samples from the most probable words that make up this share of the probability, from 1e-30
                to 1.
            seed: seed of samples; default 0. The same seed always gives a text the same sample.
            order: "left": from left to right; or "confident": fill every open blank tentatively, keep the infill with
                the highest mean log probability per word, and repeat.
            blank_token: an additional blank mark, such as "[MASK]"; "<extra_id_0>" means any numbered mask.
            limits: one value for all blanks, or a list with one per blank. For a list of texts, the list has one entry
                per text instead, each in either form. See `Limits`; a dict works too, `{"max_words": 3}`.
            no_repeat_ngram: an infill never has the same n consecutive words twice, nor one word three times in a row,
                unless `prefix` or `must_include` contains the repetition or the limits leave no other word. 0 turns the
                rule off; default 3. Without the rule, a model may repeat one word up to `max_words`.

        Raises:
            ValueError: an argument is out of range; the results may exceed memory; limits contradict each other, or
                their number differs from that of the blanks; a text is not Unicode, or is longer than the model's
                positions; or no infill satisfies the limits.
        """
        one = isinstance(texts, str)
        rows = [texts] if one else texts
        if not isinstance(rows, Sequence) or not all(isinstance(text, str) for text in rows):
            raise ValueError(f"texts must be a string or a list of strings. Received: {texts!r}")
        check_options(
            num_results=num_results, beam_width=beam_width, temperature=temperature, top_k=top_k, top_p=top_p,
            seed=seed, order=order, blank_token=blank_token, no_repeat_ngram=no_repeat_ngram,
        )  # fmt: skip
        if blank_token is not None:
            rows = [with_blanks(text, blank_token) for text in rows]
        sampling = _sampling(temperature, top_k, top_p, seed)
        width = num_results = int(num_results)
        if sampling is None:
            width = max(self.beam_width, num_results) if beam_width is None else int(beam_width)
        if no_repeat_ngram is None:
            no_repeat_ngram = NO_REPEAT_NGRAM
        wishes = [limits] * len(rows)
        if not one and isinstance(limits, Sequence):
            wishes = list(limits)
            if len(wishes) != len(rows):
                raise ValueError(f"limits must have one entry per text, {len(rows)}. Received: {len(wishes)}")
        seen = {}
        read = [self._read(text, wish, _named(i, len(rows)), seen) for i, (text, wish) in enumerate(zip(rows, wishes))]
        results = self._results(read, num_results, width, sampling, order == "confident", no_repeat_ngram)
        filled = [dataclasses.replace(found[0], alternatives=found) for found in results]
        return filled[0] if one else filled

    def _read(self, text, wish, where, seen) -> "_Text":
        """Returns a text split into pieces, with ids and limits for the model.

        Args:
            text, wish: the text and its limits, from the user.
            where: name of the text with a colon, for messages; empty if there is only one text.
            seen: cache of the limits read in this call, by (limits, maximum number of words); updated.
        """
        try:
            pieces = self.tokenizer.split(text, self._reader.known)
        except ValueError as error:
            raise ValueError(f"{where}{error}") from error
        words = [piece.word for piece in pieces if piece.word is not None]
        blanks = len(pieces) - len(words)
        wishes = [wish] * blanks
        if isinstance(wish, Sequence):
            wishes = list(wish)
            if len(wishes) != blanks:
                raise ValueError(f"{where}limits must have one entry per blank, {blanks}. Received: {len(wishes)}")
        if not blanks:
            return _Text(text, pieces, [], [], [])
        protocol, most = self.model.protocol, self.model.protocol.base - 2  # see `Protocol.check_base`
        if len(pieces) > most:
            raise ValueError(
                f"{where}the model reads at most {most} words and blanks (position.base of the run is "
                f"{protocol.base}), so fill it part by part. Received: {len(words)} words and {blanks} blanks"
            )
        if protocol.segment_ids == "renumbered":  # infills and kept words merge into one segment
            most = (most - len(words)) // blanks
        for k, each in enumerate(wishes, start=1):
            if (id(each), most) not in seen:
                # Stores the limits object too, so that no other object can get its id.
                seen[id(each), most] = each, self._reader.read(each, f"{where}blank {k}", most)
        limits = [seen[id(each), most][1] for each in wishes]
        places, before = [], 0
        for piece in pieces:
            if piece.word is None:
                places.append(before)
            else:
                before += 1
        return _Text(text, pieces, self.vocabulary.encode(words), places, limits)

    def _results(self, texts, num_results, width, sampling, confident, no_repeat_ngram) -> list[list[Filled]]:
        """Returns the distinct results of each text, best first."""
        found = [{} if text.places else {text.text: _untouched(text.text)} for text in texts]
        left = [i for i, text in enumerate(texts) if text.places]
        for number in range(_TRIES):
            wide = width if sampling else width << number
            beam = 1 if sampling else wide
            sizes = {i: texts[i].hypotheses(wide, beam, confident) for i in left}
            numbers = {i: self._numbers(texts[i], beam) for i in left}
            too_large = [i for i in left if sizes[i] * numbers[i] > _MOST_NUMBERS]
            for i in too_large:
                if not found[i]:
                    raise ValueError(
                        f"{_named(i, len(texts))}the results take {sizes[i]:,} hypotheses at a time, which may not "
                        "fit in memory: ask for fewer (num_results, beam_width), or for samples (seed)"
                    )
            left = [i for i in left if i not in too_large]
            # Batches of texts with the same number of blanks and a similar size need little padding.
            left.sort(key=lambda i: (len(texts[i].places), sizes[i], len(texts[i].ids)))
            at_once = BATCHES_AT_ONCE
            if any(sizes[i] * numbers[i] * at_once > _MOST_NUMBERS for i in left):
                at_once = 1
            together = np.clip(math.ceil(sum(sizes[i] for i in left) / at_once), *_HYPOTHESES)
            batches = []
            while left:
                many = _fitting(((sizes[i], numbers[i]) for i in left), together, _MOST_NUMBERS // at_once)
                batches.append(left[:many])
                left = left[many:]
            self._graph(sampling is not None, confident)  # built once here, not once per thread
            complete = partial(
                self._complete,
                width=wide,
                sampling=sampling,
                draw=number,
                confident=confident,
                no_repeat_ngram=no_repeat_ngram,
            )
            with ThreadPoolExecutor(at_once) as pool:
                completed = list(pool.map(complete, [[texts[i] for i in batch] for batch in batches]))
            for i, ways in zip(itertools.chain(*batches), itertools.chain(*completed)):
                if not sampling:
                    found[i] = {}
                for filled in ways:
                    found[i].setdefault(filled.text, filled)
                if len(found[i]) < num_results and len(ways) == wide:  # otherwise no more exist
                    left.append(i)
        for i, results in enumerate(found):
            if not results:
                raise ValueError(
                    f"{_named(i, len(texts))}no infill satisfies the limits: every candidate has probability 0"
                )
        distinct = [list(results.values())[:num_results] for results in found]
        return [sorted(results, key=lambda filled: -filled.log_probability) for results in distinct]

    def _complete(self, texts, width, sampling, draw, confident, no_repeat_ngram) -> list[list[Filled]]:
        """Returns all results that the model finds for each text of a batch."""
        ids, lengths = _padded([text.ids for text in texts], PAD_ID)
        places, counts = _padded([text.places for text in texts], 0)
        arguments = [ids, lengths, places, counts, *stack([text.limits for text in texts]), width, no_repeat_ngram]
        if sampling:
            arguments += [np.array([sampling.seed, draw], np.int64), *sampling[1:]]
        arguments = [tf.constant(x) for x in arguments]
        completions = self._graph(sampling is not None, confident)(*arguments)
        ids, lengths, log_probs, scores = (x.numpy() for x in completions)
        ways = []
        for i, text in enumerate(texts):
            there = [w for w in range(width) if scores[i, w] > -math.inf]
            ways.append([self._filled(text, ids[i, w], lengths[i, w], log_probs[i, w]) for w in there])
        return ways

    def _numbers(self, text, beam):
        """Returns about how many numbers a hypothesis takes: logits, keys and values of its template, continuations."""
        layers = self.model.hparams["decoder"].get("num_blocks", 0)
        positions = len(text.pieces) + sum(limits.max_words for limits in text.limits)
        return 2 * len(self.vocabulary) + positions * 2 * layers * self.model.dim + 2 * beam * 8

    def _filled(self, text, ids, lengths, log_probs) -> Filled:
        fills, touching = [], []
        for limits, infill, length in zip(text.limits, ids.tolist(), lengths):
            words = [limits.typed.get(i) or self.vocabulary.words[i - len(SPECIAL_TOKENS)] for i in infill[:length]]
            words[: len(limits.prefix)] = limits.prefix_words
            fills.append(words)
            touching.append(limits.touching_in(infill[:length]))
        typed = [len(limits.prefix) for limits in text.limits]
        whole, shown = fill_in(text.text, text.pieces, fills, typed, touching)
        tokens = [row[: len(words) + 1] for row, words in zip(log_probs.tolist(), fills)]
        sums = [math.fsum(row) for row in tokens]
        return Filled(whole, shown, math.fsum(sums), sums, tokens, fills)

    def _graph(self, sampled, confident):
        """Returns the graph that fills a batch, built on first use; texts may have any length and number of blanks."""
        if (sampled, confident) not in self._graphs:
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
            if sampled:
                number = tf.TensorSpec([], tf.float32)
                signature += Sampling(tf.TensorSpec([2], tf.int64), number, scalar, number)

            @tf.function(input_signature=signature, autograph=False)
            def fill(ids, lengths, places, counts, *rest):
                constraints, (width, no_repeat_ngram, *sampling) = Constraints(*rest[:fields]), rest[fields:]
                sampling = Sampling(*sampling) if sampled else None
                return fill_texts(
                    self.model,
                    ids,
                    lengths,
                    places,
                    counts,
                    constraints,
                    width,
                    confident=confident,
                    sampling=sampling,
                    no_repeat_ngram=no_repeat_ngram,
                )

            self._graphs[sampled, confident] = fill.get_concrete_function()
        return self._graphs[sampled, confident]


@dataclasses.dataclass(frozen=True)
class _Text:
    """A text as the model reads it: word ids, and for each blank the number of words before it and its limits."""

    text: str
    pieces: list[Piece]
    ids: list[int]
    places: list[int]
    limits: list[BlankLimits]

    def hypotheses(self, width, beam, confident) -> int:
        """Returns the number of hypotheses computed at a time; see `fill_texts` and `constrained_search`."""
        beams = max(1 + sum(map(len, limits.phrases)) for limits in self.limits)
        return width * beam * beams * (len(self.places) if confident else 1)


def _fitting(texts, hypotheses_together, numbers_together) -> int:
    """Returns how many of the first texts make a batch.

    Each text is padded to the hypotheses and the length of the largest one.

    Args:
        texts: hypotheses, and numbers per hypothesis, of each text.
        hypotheses_together, numbers_together: maximum per batch; a single text may exceed it.
    """
    count = most_hypotheses = most_numbers = 0
    for hypotheses, numbers in texts:
        most_hypotheses, most_numbers = max(most_hypotheses, hypotheses), max(most_numbers, numbers)
        together = (count + 1) * most_hypotheses
        if count and (together > hypotheses_together or together * most_numbers > numbers_together):
            break
        count += 1
    return count


def _named(i, texts) -> str:
    """Returns the name of a text for the start of a message; empty if there is only one text."""
    return f"text {i + 1}: " if texts > 1 else ""


def _untouched(text):
    return Filled(text, [], 0.0, [], [], [])


def _sampling(temperature, top_k, top_p, seed) -> Sampling | None:
    """Returns the sampling options, or None if none is given."""
    if not is_sampled(temperature, top_k, top_p, seed):
        return None
    return Sampling(
        seed=int(seed or 0),
        temperature=np.float32(1.0 if temperature is None else temperature),
        top_k=np.int32(2**31 - 1 if top_k is None else top_k),
        top_p=np.float32(2.0 if top_p is None else top_p),  # 2: no word is excluded by rounding
    )


def _padded(rows, padding):
    """Returns the rows as one padded array `[rows, longest]`, and their lengths `[rows]`."""
    array = np.full([len(rows), max(map(len, rows))], padding, np.int32)
    for line, row in zip(array, rows):
        line[: len(row)] = row
    return array, np.array([len(row) for row in rows], np.int32)
