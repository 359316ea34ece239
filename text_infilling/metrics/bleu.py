"""The two BLEU scores of this project, from 0 to 100: `bleu_paper`, as printed in the paper, and the clean `bleu`.

Both are sacrebleu's corpus BLEU-4. They differ in the content of the strings (`prepare_for_paper`), the tokenizer and
the smoothing: the printed score counts `<BOS>` and `<UNK>`, each split into three tokens, as matches, and so is 9 to 33
points higher on Yelp.
"""

from collections.abc import Callable, Iterable, Sequence

import sacrebleu
from sacrebleu.metrics import BLEU

from text_infilling.vocabulary import BOS_ID, SPECIAL_TOKENS

# sacrebleu's options of each score; its default smoothing halves the precision for each order without a match.
OPTIONS: dict[str, dict[str, str]] = {
    "bleu_paper": {"tokenize": "intl"},
    "bleu": {"tokenize": "none", "smooth_method": "none"},
}


def prepare_for_paper(tokens: Sequence[str], replace_unknown: Callable[[Iterable[str]], list[str]]) -> str:
    """Returns the string that `bleu_paper` scores: `<BOS>`, then the tokens with each unknown word as `<UNK>`.

    Args:
        tokens: a sentence or a template. Special tokens are kept: the `<m>` of a template, and those that a model of
            the released protocol generates in a blank.
        replace_unknown: replaces the tokens that the run does not know by `<UNK>`, as `Vocabulary.replace_unknown`.
    """
    words = zip(tokens, replace_unknown(tokens), strict=True)
    return " ".join([SPECIAL_TOKENS[BOS_ID], *(token if token in SPECIAL_TOKENS else word for token, word in words)])


def bleu_paper(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns the paper's BLEU of prepared strings (`prepare_for_paper`), in [0, 100]; case-sensitive.

    The authors used the script of Tensor2Tensor; sacrebleu's international tokenizer with its default smoothing equals
    it within 3e-6 on all outputs that they released.

    Raises:
        ValueError: there are no sentences, or the numbers of hypotheses and references differ.
    """
    return _corpus_bleu(hypotheses, references, "bleu_paper")


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Returns clean corpus BLEU of raw, space-separated words, in [0, 100]: no `<BOS>`, no `<UNK>`, no smoothing.

    Raises:
        ValueError: there are no sentences, or the numbers of hypotheses and references differ.
    """
    return _corpus_bleu(hypotheses, references, "bleu")


def sentence_counts(hypotheses: Sequence[str], references: Sequence[str], metric: str) -> list[list[int]]:
    """Returns what corpus BLEU sums over the sentences, ten numbers per sentence.

    They are: tokens of the hypothesis, tokens of the reference, matching n-grams of 1 to 4 tokens, and all n-grams of 1
    to 4 tokens of the hypothesis.

    >>> sentence_counts(["the soup was hot"], ["the soup is hot ."], "bleu")
    [[4, 5, 3, 1, 0, 0, 4, 3, 2, 1]]

    Args:
        hypotheses: one string per sentence, as for `bleu_paper` or `bleu`.
        references: one string per sentence.
        metric: `bleu_paper` or `bleu`.
    """
    scorer = BLEU(force=True, **OPTIONS[metric])
    scores = (scorer.corpus_score([one], [[other]]) for one, other in zip(hypotheses, references, strict=True))
    return [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores]


def _corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], metric: str) -> float:
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            "BLEU needs at least one hypothesis and exactly one reference per hypothesis. "
            f"Received: {len(hypotheses)} hypotheses, {len(references)} references"
        )
    # force=True silences a warning about tokenized text: the corpora are tokenized on purpose.
    return float(sacrebleu.corpus_bleu(hypotheses, [references], force=True, **OPTIONS[metric]).score)
