"""Fills the blanks of any text with a trained run.

infiller = Infiller.load("runs/yelp/yelp.fixed.rate0.4.blanks2.self_attention.paper.laptop.seed1")
infiller.fill("I ____ the soup, but the ____ was cold.").text
infiller.fill("____ is great!", num_results=5, limits={"max_words": 3}).alternatives
"""

import dataclasses
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from text_infilling.inference.batch_filler import BatchFiller, TextDecoder
from text_infilling.inference.load_model import load_model
from text_infilling.inference.planner import ATTEMPTS, Planner, plan, width_of
from text_infilling.inference.request import LimitsLike, MaskedText, RequestReader, SearchOptions, named
from text_infilling.inference.results import Filled, without_blanks
from text_infilling.models.infilling_model import InfillingModel
from text_infilling.runs.run_folder import LONGEST_FILL, RunFolder, open_run
from text_infilling.text.blanks import check_blank_token, with_blanks
from text_infilling.text.tokenizer import Tokenizer
from text_infilling.vocabulary import Vocabulary


class Infiller:
    """Filler of the blanks of texts, from a trained model.

    `Infiller.load("my_model").fill("I ____ the soup.").text` is the filled text.

    Args:
        model: built, with its weights. Padding is masked while it fills, whatever its template format.
        vocabulary: the vocabulary of the model.
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
        self.model, self.vocabulary, self.beam_width = model, vocabulary, beam_width
        self.tokenizer = tokenizer or Tokenizer.infer(vocabulary.words)
        self.longest, self.least = longest, least
        self.decoder = TextDecoder.of(model)
        self._reader = RequestReader(self.tokenizer, vocabulary, self.decoder.template_format, longest, least)
        self._planner = Planner.of(model)
        self._filler = BatchFiller(self.decoder, vocabulary)

    @classmethod
    def load(cls, run_folder: str | Path | RunFolder | None = None) -> "Infiller":
        """Returns the infiller of a trained run.

        Args:
            run_folder: a folder with config.json, vocabulary.txt and best.weights.h5, or the result of `open_run`;
                default: the base model.

        Raises:
            OSError: a file cannot be read.
            ValueError: the folder does not hold a trained run, or its files do not belong together.
        """
        run = run_folder if isinstance(run_folder, RunFolder) else open_run(run_folder)
        return cls(load_model(run), run.vocabulary, run.tokenizer, run.longest, run.beam_width, run.least)

    def fill(
        self,
        texts: str | Sequence[str],
        *,
        num_results: int = 1,
        beam_width: int | None = None,
        length_penalty: float | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        order: str = "left",
        blank_token: str | None = None,
        limits: LimitsLike | Sequence = None,
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
            length_penalty: ranks results by log probability / ((5 + tokens) / 6) ** length_penalty, from 0 (default)
                to 10 (GNMT, Wu et al. 2016); `<EOB>` counts as a token. The search itself is not changed, so it needs
                a beam of 2 or more to have an effect, or several samples.
            temperature: sampling temperature, from 1e-30 to 1e30; lower is closer to greedy search; default 1.
            top_k: samples are drawn from the k most probable words; default: all words.
            top_p: samples are drawn from the most probable words that make up this share of the probability, from
                1e-30 to 1; default: all words.
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
        options = SearchOptions.read(
            self.beam_width, num_results=num_results, beam_width=beam_width, temperature=temperature, top_k=top_k,
            top_p=top_p, seed=seed, order=order, no_repeat_ngram=no_repeat_ngram, length_penalty=length_penalty,
        )  # fmt: skip
        if blank_token is not None:
            check_blank_token(blank_token)
            rows = [with_blanks(text, blank_token) for text in rows]
        if one or not isinstance(limits, Sequence):
            limits = [limits] * len(rows)
        elif len(limits) != len(rows):
            raise ValueError(f"limits must have one entry per text, {len(rows)}. Received: {len(limits)}")
        results = self.search(self._reader.read(rows, limits), options)
        filled = [dataclasses.replace(found[0], alternatives=found) for found in results]
        return filled[0] if one else filled

    def search(self, texts: Sequence[MaskedText], options: SearchOptions) -> list[list[Filled]]:
        """Returns the distinct results of each text, best first; tries again while there are too few.

        `fill` reads texts and limits, and calls this method with the result.

        Raises:
            ValueError: the results may exceed memory, or no infill satisfies the limits.
        """
        found = [{} if text.places else {text.text: without_blanks(text.text)} for text in texts]
        left = [i for i, text in enumerate(texts) if text.places]
        for attempt in range(ATTEMPTS):
            sizes = {i: self._planner.size(texts[i], options, attempt) for i in left}
            for i, size in sizes.items():
                if size.is_too_large and not found[i]:
                    raise ValueError(
                        f"{named(i, len(texts))}the results take {size.hypotheses:,} hypotheses at a time, which may "
                        "not fit in memory: ask for fewer (num_results, beam_width), or for samples (seed)"
                    )
            batches, at_once = plan({i: size for i, size in sizes.items() if not size.is_too_large})
            if not batches:
                break
            filled = self._filler.fill([[texts[i] for i in batch] for batch in batches], at_once, options, attempt)
            left = []
            for i, ways in zip(itertools.chain(*batches), itertools.chain(*filled), strict=True):
                if not options.sampling:
                    found[i] = {}
                for way in ways:
                    found[i].setdefault(way.text, way)
                if len(found[i]) < options.num_results and len(ways) == width_of(options, attempt):
                    left.append(i)  # otherwise no more exist
        for i, results in enumerate(found):
            if not results:
                raise ValueError(
                    f"{named(i, len(texts))}no infill satisfies the limits: every candidate has probability 0"
                )
        distinct = [list(results.values()) for results in found]
        if options.length_penalty and not options.sampling:  # the best of the whole beam
            distinct = [sorted(results, key=partial(_rank, penalty=options.length_penalty)) for results in distinct]
        return [
            sorted(results[: options.num_results], key=partial(_rank, penalty=options.length_penalty))
            for results in distinct
        ]


def _rank(filled: Filled, penalty: float) -> float:
    """Returns the key that sorts results best first; `penalty` is the length penalty."""
    tokens = sum(map(len, filled.token_log_probabilities))
    return -filled.log_probability / ((5 + tokens) / 6) ** penalty
