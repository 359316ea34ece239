"""The options of `text-infill fit`, with their checks; needs no TensorFlow."""

import dataclasses
from collections.abc import Iterable, Sequence

from text_infilling.configs.defaults import MAX_SEED, MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.corpora import own_texts
from text_infilling.masking import rules
from text_infilling.masking.checks import check_blanks, check_mask_rates
from text_infilling.text.tokenizer import Tokenizer

MAX_WORDS = 254  # per sentence: 256 tokens with `<BOS>` and `<EOS>`
MASK_RATE, BLANKS = 0.3, 4  # defaults


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """Options of a fit.

    >>> FitConfig(preset="smoke", mask_rate=0.2).blanks
    4

    Attributes:
        model: one of `defaults.MODELS`.
        masking: `any` (random blanks), one of `masking.rules.MASKINGS`, or `module:function`.
        mask_rate: fraction of the words masked, in (0, 1), default 0.3; a pair (low, high) draws it for each sentence.
            With `any` only.
        blanks: most blanks per sentence, default 4; with `any` only: the model learns any number from 1 up to it.
        keep_case: whether words keep their capitals; otherwise they are lower-cased. Not with `init_from`, whose run
            determines it.
        layout: `lines`: each line is a sentence; `paragraphs`: an empty line ends a paragraph.
        max_words: most words per sentence. A longer line or paragraph is cut into its sentences.
        preset: sizes and schedule.
        assignments: single hyperparameters, each `key=value`.
        seed: for weights, batches, masks and dropout.
        init_from: run folder that provides the initial weights and the sizes, or None.
        from_scratch: whether training starts from fresh weights; otherwise a small text starts from the base model, see
            `initial_run.base_run`. Not with `init_from`.
        column: column of CSV or TSV, or key of JSON Lines, with the texts; None for plain text.

    Raises:
        ValueError: an option is invalid, or cannot be combined with another.
    """

    model: str = "self_attention"
    masking: str = "any"
    mask_rate: float | tuple[float, float] | None = None
    blanks: int | None = None
    keep_case: bool = False
    layout: str = "lines"
    max_words: int = 60
    preset: str = "laptop"
    assignments: Sequence[str] = ()
    seed: int = 1
    init_from: str | None = None
    column: str | None = None
    from_scratch: bool = False

    def __post_init__(self):
        if not 4 <= self.max_words <= MAX_WORDS:
            raise ValueError(f"max_words must be from 4 to {MAX_WORDS}. Received: {self.max_words}")
        if self.model not in MODELS:
            raise ValueError(f"model must be one of {', '.join(MODELS)}. Received: {self.model!r}")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"seed must be from 0 to {MAX_SEED}. Received: {self.seed}")
        if self.layout not in own_texts.LAYOUTS:
            raise ValueError(f"layout must be one of {', '.join(own_texts.LAYOUTS)}. Received: {self.layout!r}")
        if self.masking == "any":
            # Set as dataclasses do it, because the class is frozen.
            object.__setattr__(self, "mask_rate", MASK_RATE if self.mask_rate is None else self.mask_rate)
            object.__setattr__(self, "blanks", BLANKS if self.blanks is None else self.blanks)
            check_mask_rates(self.mask_rate)
            check_blanks(self.blanks)
        else:
            if ":" not in self.masking and self.masking not in rules.MASKINGS:
                raise ValueError(
                    f"masking must be any, one of {', '.join(rules.MASKINGS)}, or module:function. "
                    f"Received: {self.masking!r}"
                )
            rules.load_rule(self.masking)
            for name in ("mask_rate", "blanks"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} cannot be combined with masking={self.masking}, which determines what is masked"
                    )
        if self.init_from and self.keep_case:
            raise ValueError(
                "keep_case cannot be combined with init_from: that run determines how capitals are treated"
            )
        if self.init_from and self.from_scratch:
            raise ValueError("from_scratch cannot be combined with init_from, which provides the weights")
        self.hparams()  # reports wrong assignments now

    def reading(self, tokenizer: Tokenizer, known: Iterable[str]) -> own_texts.Reading:
        """Returns how the texts are read; `known` are the words of the vocabulary of the initial run."""
        return own_texts.Reading(tokenizer, frozenset(known), self.layout, self.max_words, self.column)

    def hparams(self, fitting: Sequence[str] = ()) -> dict:
        """Returns the hyperparameters: the preset's, changed by the assignments in `fitting`, then by the user's."""
        return run_hparams("paper", self.preset, [*fitting, *self.assignments], model=self.model)
