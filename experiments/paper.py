"""The paper's printed numbers, as data: the one place where they stand.

Tables "Results of varying mask rates and number of blanks" (main text: 30% and 50%), "Automatic and human evaluation
results for long content infilling" (main text: Grimm, NBA) and "Quantitative and human evaluations for different mask
rates and number of segments" (appendix: 30%, 40%, 50%). Numbers are as printed: the BLEU of self-attention at 50% and
one blank has two decimals there. Of prepositions the paper shows a sample and no numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

MODELS = ("template", "seq2seq", "gan", "self_attention")
TITLES = {"template": "Template", "seq2seq": "Seq2Seq", "gan": "GAN", "self_attention": "Self-attn"}


class Key(NamedTuple):
    """Names a setting: mask rate (None where a rule masks words by what they are), blanks of a sentence, task."""

    mask_rate: float | None
    blanks: int
    task: str = "yelp"


MAIN_TABLE = (Key(0.3, 1), Key(0.3, 2), Key(0.5, 1), Key(0.5, 2))
APPENDIX_TABLE = (Key(0.3, 1), Key(0.3, 2), Key(0.4, 1), Key(0.4, 2), Key(0.5, 1), Key(0.5, 2))
LONG_CONTENT_TABLE = (Key(None, 3, "grimm"), Key(None, 3, "nba"))
PREPOSITIONS_TABLE = (Key(None, 3, "prepositions"),)

# The tables of the tasks that share a page; what a task is called in them.
TABLES: dict[str, dict[str, Sequence[Key]]] = {
    "yelp": {"main": MAIN_TABLE, "appendix": APPENDIX_TABLE},
    "long_content": {"long_content": LONG_CONTENT_TABLE},
    "prepositions": {"prepositions": PREPOSITIONS_TABLE},
}
TASKS = {"yelp": "Yelp", "grimm": "Grimm's tales", "nba": "NBA reports", "prepositions": "Prepositions"}

# NUMBERS[key][model]: test BLEU, test perplexity, mean human rank score (1 worst, 3 best).
NUMBERS = {
    Key(None, 3, "grimm"): {
        "seq2seq": {"ppl": 10.411, "human": 1.991},
        "gan": {"ppl": 11.784, "human": 1.338},
        "self_attention": {"ppl": 9.647, "human": 2.664},
    },
    Key(None, 3, "nba"): {
        "seq2seq": {"ppl": 10.303, "human": 1.909},
        "gan": {"ppl": 7.245, "human": 1.818},
        "self_attention": {"ppl": 6.538, "human": 2.273},
    },
    Key(0.3, 1): {
        "template": {"bleu": 63.916},
        "seq2seq": {"bleu": 69.097, "ppl": 107.480, "human": 1.950},
        "gan": {"bleu": 68.470, "ppl": 144.127, "human": 1.775},
        "self_attention": {"bleu": 71.104, "ppl": 38.304, "human": 2.275},
    },
    Key(0.3, 2): {
        "template": {"bleu": 42.233},
        "seq2seq": {"bleu": 64.174, "ppl": 43.044, "human": 1.838},
        "gan": {"bleu": 64.337, "ppl": 36.704, "human": 1.975},
        "self_attention": {"bleu": 65.914, "ppl": 21.028, "human": 2.188},
    },
    Key(0.4, 1): {
        "template": {"bleu": 56.838},
        "seq2seq": {"bleu": 61.309, "ppl": 202.714, "human": 2.075},
        "gan": {"bleu": 61.778, "ppl": 230.569, "human": 1.865},
        "self_attention": {"bleu": 63.543, "ppl": 44.864, "human": 2.055},
    },
    Key(0.4, 2): {
        "template": {"bleu": 38.279},
        "seq2seq": {"bleu": 55.460, "ppl": 59.877, "human": 2.005},
        "gan": {"bleu": 55.326, "ppl": 70.195, "human": 1.900},
        "self_attention": {"bleu": 59.192, "ppl": 25.914, "human": 2.045},
    },
    Key(0.5, 1): {
        "template": {"bleu": 44.369},
        "seq2seq": {"bleu": 48.865, "ppl": 244.862, "human": 1.725},
        "gan": {"bleu": 48.861, "ppl": 287.415, "human": 1.863},
        "self_attention": {"bleu": 51.55, "ppl": 43.688, "human": 2.412},
    },
    Key(0.5, 2): {
        "template": {"bleu": 32.498},
        "seq2seq": {"bleu": 42.613, "ppl": 99.421, "human": 1.875},
        "gan": {"bleu": 42.535, "ppl": 107.558, "human": 1.913},
        "self_attention": {"bleu": 44.418, "ppl": 32.397, "human": 2.238},
    },
}

# What stands behind single numbers, by key and model. Source: the authors' training logs.
NOTES = {
    (Key(0.3, 1), "seq2seq"): "BLEU is of epoch 149, perplexity of epoch 150",
    (Key(0.3, 1), "self_attention"): "BLEU is of epoch 149, perplexity of epoch 150",
    (Key(0.3, 2), "seq2seq"): "BLEU is of epoch 149, perplexity of epoch 150",
    (Key(0.3, 2), "self_attention"): "BLEU is of epoch 80, perplexity of epoch 70 of a run that failed later; "
    "another run ends at BLEU 64.165, below seq2seq",
    (Key(0.4, 1), "seq2seq"): "printed after overfitting, perplexity was 64.91 earlier",
    (Key(0.5, 1), "seq2seq"): "printed after overfitting, perplexity was 59.92 at epoch 25",
    (Key(0.5, 1), "self_attention"): "BLEU is 51.553 in the log; no outputs were released",
    (Key(0.5, 2), "seq2seq"): "printed after overfitting: perplexity was 34.44 at epoch 25, BLEU 44.37 at epoch "
    "30, where the lead of self-attention is nearly gone",
    (Key(None, 3, "grimm"), "seq2seq"): "of the three the first in bleu_paper of the released outputs",
    (Key(None, 3, "nba"), "gan"): "of the three the first in both BLEUs of the released outputs",
    (Key(None, 3, "nba"), "seq2seq"): "trained with batches of 500, that is 40% of the updates of the other two",
}

# Of all settings of a model.
NOTES_OF_MODELS = {
    "gan": "not adversarial: its discriminator saw true answers only and had a loss of 0.000000 throughout"
}

# Printed with other than three decimals, by key, model and number.
DECIMALS = {(Key(0.5, 1), "self_attention", "bleu"): 2}


def task_of(corpus: str) -> str:
    """The task that a corpus is for, by its name, e.g. `grimm` for `grimm_built`."""
    return "yelp" if corpus == "synthetic" else corpus.partition("_")[0]


def page_of(task: str) -> str:
    """The page in `TABLES` of a task; the task itself where it has none."""
    for page, named in TABLES.items():
        if any(key.task == task for keys in named.values() for key in keys):
            return page
    return task


def setting(key: Key) -> dict[str, dict[str, float]]:
    """The paper's numbers of a setting, `{model: {"bleu", "ppl", "human"}}`; empty where the paper has none."""
    return NUMBERS.get(key, {})


def printed(key: Key, model: str, number: str) -> str | None:
    """One number with the decimals that the paper gives it; None where the paper has none."""
    value = setting(key).get(model, {}).get(number)
    return None if value is None else f"{value:.{DECIMALS.get((key, model, number), 3)}f}"
