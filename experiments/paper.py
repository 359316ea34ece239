"""The paper's printed numbers, as data: the one place where they stand.

Tables "Results of varying mask rates and number of blanks" (main text: 30% and 50%) and "Quantitative and human
evaluations for different mask rates and number of segments" (appendix: 30%, 40%, 50%). Numbers are as printed: the
BLEU of self-attention at 50% and one blank has two decimals there.
"""

MODELS = ("template", "seq2seq", "gan", "self_attention")
TITLES = {"template": "Template", "seq2seq": "Seq2Seq", "gan": "GAN", "self_attention": "Self-attn"}

MAIN_TABLE = ((0.3, 1), (0.3, 2), (0.5, 1), (0.5, 2))
APPENDIX_TABLE = ((0.3, 1), (0.3, 2), (0.4, 1), (0.4, 2), (0.5, 1), (0.5, 2))
YELP_TABLES = {"main": MAIN_TABLE, "appendix": APPENDIX_TABLE}

# YELP[mask_rate, blanks][model]: test BLEU, test perplexity, mean human rank score (1 worst, 3 best).
YELP = {
    (0.3, 1): {
        "template": {"bleu": 63.916},
        "seq2seq": {"bleu": 69.097, "ppl": 107.480, "human": 1.950},
        "gan": {"bleu": 68.470, "ppl": 144.127, "human": 1.775},
        "self_attention": {"bleu": 71.104, "ppl": 38.304, "human": 2.275},
    },
    (0.3, 2): {
        "template": {"bleu": 42.233},
        "seq2seq": {"bleu": 64.174, "ppl": 43.044, "human": 1.838},
        "gan": {"bleu": 64.337, "ppl": 36.704, "human": 1.975},
        "self_attention": {"bleu": 65.914, "ppl": 21.028, "human": 2.188},
    },
    (0.4, 1): {
        "template": {"bleu": 56.838},
        "seq2seq": {"bleu": 61.309, "ppl": 202.714, "human": 2.075},
        "gan": {"bleu": 61.778, "ppl": 230.569, "human": 1.865},
        "self_attention": {"bleu": 63.543, "ppl": 44.864, "human": 2.055},
    },
    (0.4, 2): {
        "template": {"bleu": 38.279},
        "seq2seq": {"bleu": 55.460, "ppl": 59.877, "human": 2.005},
        "gan": {"bleu": 55.326, "ppl": 70.195, "human": 1.900},
        "self_attention": {"bleu": 59.192, "ppl": 25.914, "human": 2.045},
    },
    (0.5, 1): {
        "template": {"bleu": 44.369},
        "seq2seq": {"bleu": 48.865, "ppl": 244.862, "human": 1.725},
        "gan": {"bleu": 48.861, "ppl": 287.415, "human": 1.863},
        "self_attention": {"bleu": 51.55, "ppl": 43.688, "human": 2.412},
    },
    (0.5, 2): {
        "template": {"bleu": 32.498},
        "seq2seq": {"bleu": 42.613, "ppl": 99.421, "human": 1.875},
        "gan": {"bleu": 42.535, "ppl": 107.558, "human": 1.913},
        "self_attention": {"bleu": 44.418, "ppl": 32.397, "human": 2.238},
    },
}

# What stands behind single numbers, by (mask_rate, blanks, model). Source: the authors' training logs.
NOTES = {
    (0.3, 1, "seq2seq"): "BLEU is of epoch 149, perplexity of epoch 150",
    (0.3, 1, "self_attention"): "BLEU is of epoch 149, perplexity of epoch 150",
    (0.3, 2, "seq2seq"): "BLEU is of epoch 149, perplexity of epoch 150",
    (0.3, 2, "self_attention"): "BLEU is of epoch 80, perplexity of epoch 70 of a run that failed later; "
    "another run ends at BLEU 64.165",
    (0.4, 1, "seq2seq"): "printed after overfitting, perplexity was 64.91 earlier",
    (0.5, 1, "seq2seq"): "printed after overfitting, perplexity was 59.92 at epoch 25",
    (0.5, 1, "self_attention"): "BLEU is 51.553 in the log; no outputs were released",
    (0.5, 2, "seq2seq"): "printed after overfitting, perplexity was 34.44 at epoch 25",
}

# Printed with other than three decimals, by (mask_rate, blanks, model, number).
DECIMALS = {(0.5, 1, "self_attention", "bleu"): 2}


def setting(mask_rate: float, blanks: int) -> dict[str, dict[str, float]]:
    """The paper's numbers of a setting, `{model: {"bleu", "ppl", "human"}}`; empty where the paper has none."""
    return YELP.get((mask_rate, blanks), {})


def printed(mask_rate: float, blanks: int, model: str, number: str) -> str | None:
    """One number with the decimals that the paper gives it; None where the paper has none."""
    value = setting(mask_rate, blanks).get(model, {}).get(number)
    return None if value is None else f"{value:.{DECIMALS.get((mask_rate, blanks, model, number), 3)}f}"
