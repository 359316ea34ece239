"""Both BLEU scores of this project, from 0 to 100: `bleu_paper`, the one the paper prints, and `bleu`, a clean one.

Both are sacrebleu's corpus BLEU-4. They differ in what the strings hold (`prepare_for_paper`), in the tokenizer and in
the smoothing: the printed score counts `<BOS>` and `<UNK>`, each split into three tokens, as matches, and so lies 9 to
33 points higher on Yelp.
"""

from collections.abc import Callable, Iterable, Sequence

import sacrebleu

from text_infilling.vocabulary import BOS_ID, SPECIAL_TOKENS


def prepare_for_paper(tokens: Sequence[str], replace_unknown: Callable[[Iterable[str]], list[str]]) -> str:
    """The string that `bleu_paper` scores: `<BOS>` in front, each unknown word as `<UNK>`.

    Args:
        tokens: a sentence or a template. Its special tokens stay as they are: the `<m>` of a template, and what a model
            of the released protocol puts into a blank.
        replace_unknown: the tokens with `<UNK>` for those the run does not know, `Vocabulary.replace_unknown`.
    """
    words = zip(tokens, replace_unknown(tokens), strict=True)
    return " ".join([SPECIAL_TOKENS[BOS_ID], *(token if token in SPECIAL_TOKENS else word for token, word in words)])


def bleu_paper(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The paper's BLEU of prepared strings (`prepare_for_paper`), in [0, 100]; case is kept.

    The authors took the script of Tensor2Tensor; sacrebleu's international tokenizer with its default smoothing equals
    it within 3e-6 on everything they released.

    Raises:
        ValueError: no sentence at all, or not as many hypotheses as references.
    """
    return _corpus_bleu(hypotheses, references, tokenize="intl")


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Clean corpus BLEU of raw, space-separated words, in [0, 100]: no `<BOS>`, no `<UNK>`, no smoothing.

    Raises:
        ValueError: no sentence at all, or not as many hypotheses as references.
    """
    return _corpus_bleu(hypotheses, references, tokenize="none", smooth_method="none")


def _corpus_bleu(hypotheses: Sequence[str], references: Sequence[str], **options) -> float:
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            "BLEU takes at least one hypothesis and one reference for each. "
            f"Received: {len(hypotheses)} hypotheses, {len(references)} references"
        )
    # force=True only silences a warning: the corpora are tokenized on purpose.
    return float(sacrebleu.corpus_bleu(hypotheses, [references], force=True, **options).score)
