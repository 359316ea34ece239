"""The paper's printed numbers and those of the authors' logs and outputs, as data; they are written nowhere else.

Tables "Results of varying mask rates and number of blanks" (main text: 30% and 50%), "Automatic and human evaluation
results for long content infilling" (main text: Grimm, NBA) and "Quantitative and human evaluations for different mask
rates and number of segments" (appendix: 30%, 40%, 50%). Numbers are as printed: the BLEU of self-attention at 50% and
one blank has two decimals. For prepositions the paper shows a sample and no numbers.
"""

from collections.abc import Sequence

from experiments.cells.setting import CONTROL, TASKS, Setting

MODELS = ("template", "seq2seq", "gan", "self_attention")
TITLES = {
    "template": "Template",
    "seq2seq": "Seq2Seq",
    "gan": "GAN",
    CONTROL: "GAN, weight 0",  # in our notes only
    "self_attention": "Self-attn",
}


def yelp(mask_rate: float, blanks: int) -> Setting:
    """Returns a setting of the paper on Yelp."""
    return Setting("yelp", "fixed", mask_rate, blanks, "paper", "full")


GRIMM, NBA, PREPOSITIONS = (
    Setting(task, "pairs", None, 3, "paper", "full") for task in ("grimm", "nba", "prepositions")
)

MAIN_TABLE = (yelp(0.3, 1), yelp(0.3, 2), yelp(0.5, 1), yelp(0.5, 2))
APPENDIX_TABLE = (yelp(0.3, 1), yelp(0.3, 2), yelp(0.4, 1), yelp(0.4, 2), yelp(0.5, 1), yelp(0.5, 2))
LONG_CONTENT_TABLE = (GRIMM, NBA)
PREPOSITIONS_TABLE = (PREPOSITIONS,)

# The settings that are run with the control, see `cells.setting.CONTROL`: those with results in this repository.
RACE = (yelp(0.5, 1), yelp(0.4, 2), GRIMM, NBA, PREPOSITIONS)

# The tables of each page of results.
TABLES: dict[str, dict[str, Sequence[Setting]]] = {
    "yelp": {"main": MAIN_TABLE, "appendix": APPENDIX_TABLE},
    "long_content": {"long_content": LONG_CONTENT_TABLE},
    "prepositions": {"prepositions": PREPOSITIONS_TABLE},
}

# NUMBERS[setting][model]: test BLEU, test perplexity, mean human rank score (1 worst, 3 best).
NUMBERS = {
    GRIMM: {
        "seq2seq": {"ppl": 10.411, "human": 1.991},
        "gan": {"ppl": 11.784, "human": 1.338},
        "self_attention": {"ppl": 9.647, "human": 2.664},
    },
    NBA: {
        "seq2seq": {"ppl": 10.303, "human": 1.909},
        "gan": {"ppl": 7.245, "human": 1.818},
        "self_attention": {"ppl": 6.538, "human": 2.273},
    },
    yelp(0.3, 1): {
        "template": {"bleu": 63.916},
        "seq2seq": {"bleu": 69.097, "ppl": 107.480, "human": 1.950},
        "gan": {"bleu": 68.470, "ppl": 144.127, "human": 1.775},
        "self_attention": {"bleu": 71.104, "ppl": 38.304, "human": 2.275},
    },
    yelp(0.3, 2): {
        "template": {"bleu": 42.233},
        "seq2seq": {"bleu": 64.174, "ppl": 43.044, "human": 1.838},
        "gan": {"bleu": 64.337, "ppl": 36.704, "human": 1.975},
        "self_attention": {"bleu": 65.914, "ppl": 21.028, "human": 2.188},
    },
    yelp(0.4, 1): {
        "template": {"bleu": 56.838},
        "seq2seq": {"bleu": 61.309, "ppl": 202.714, "human": 2.075},
        "gan": {"bleu": 61.778, "ppl": 230.569, "human": 1.865},
        "self_attention": {"bleu": 63.543, "ppl": 44.864, "human": 2.055},
    },
    yelp(0.4, 2): {
        "template": {"bleu": 38.279},
        "seq2seq": {"bleu": 55.460, "ppl": 59.877, "human": 2.005},
        "gan": {"bleu": 55.326, "ppl": 70.195, "human": 1.900},
        "self_attention": {"bleu": 59.192, "ppl": 25.914, "human": 2.045},
    },
    yelp(0.5, 1): {
        "template": {"bleu": 44.369},
        "seq2seq": {"bleu": 48.865, "ppl": 244.862, "human": 1.725},
        "gan": {"bleu": 48.861, "ppl": 287.415, "human": 1.863},
        "self_attention": {"bleu": 51.55, "ppl": 43.688, "human": 2.412},
    },
    yelp(0.5, 2): {
        "template": {"bleu": 32.498},
        "seq2seq": {"bleu": 42.613, "ppl": 99.421, "human": 1.875},
        "gan": {"bleu": 42.535, "ppl": 107.558, "human": 1.913},
        "self_attention": {"bleu": 44.418, "ppl": 32.397, "human": 2.238},
    },
}

# Numbers of the authors that are not in the paper. "outputs_bleu" and "outputs_bleu_clean" are our `bleu_paper` and
# `bleu` of the test outputs that they released, in which unknown words are `<UNK>`. "best_ppl" is the lowest test
# perplexity in the logs of a setting, "best_epoch" its epoch; the paper prints the last epoch. (A GAN's log is that of
# the run which the printed run continues. The outputs of self-attention at 50% and one blank are missing.)
AUTHORS = {
    yelp(0.3, 1): {
        "template": {"outputs_bleu_clean": 52.393},
        "seq2seq": {"outputs_bleu_clean": 59.045, "best_ppl": 46.505, "best_epoch": 22},
        "gan": {"outputs_bleu_clean": 58.21, "best_ppl": 47.668, "best_epoch": 15},
        "self_attention": {"outputs_bleu_clean": 61.801, "best_ppl": 36.337, "best_epoch": 89},
    },
    yelp(0.3, 2): {
        "template": {"outputs_bleu_clean": 29.618},
        "seq2seq": {"outputs_bleu_clean": 52.227, "best_ppl": 23.675, "best_epoch": 25},
        "gan": {"outputs_bleu_clean": 52.45, "best_ppl": 24.071, "best_epoch": 15},
        "self_attention": {"outputs_bleu_clean": 54.706, "best_ppl": 21.028, "best_epoch": 70},
    },
    yelp(0.4, 1): {
        "template": {"outputs_bleu_clean": 41.929},
        "seq2seq": {"outputs_bleu_clean": 48.475, "best_ppl": 64.911, "best_epoch": 25},
        "gan": {"outputs_bleu_clean": 49.18, "best_ppl": 67.698, "best_epoch": 25},
        "self_attention": {"outputs_bleu_clean": 51.569, "best_ppl": 43.068, "best_epoch": 70},
    },
    yelp(0.4, 2): {
        "template": {"outputs_bleu_clean": 17.512},
        "seq2seq": {"outputs_bleu_clean": 40.663, "best_ppl": 37.805, "best_epoch": 25},
        "gan": {"outputs_bleu_clean": 40.352, "best_ppl": 37.195, "best_epoch": 20},
        "self_attention": {"outputs_bleu_clean": 46.017, "best_ppl": 25.231, "best_epoch": 140},
    },
    yelp(0.5, 1): {
        "template": {"outputs_bleu_clean": 22.454},
        "seq2seq": {"outputs_bleu_clean": 30.373, "best_ppl": 59.919, "best_epoch": 25},
        "gan": {"outputs_bleu_clean": 30.439, "best_ppl": 59.812, "best_epoch": 20},
        "self_attention": {"best_ppl": 41.403, "best_epoch": 140},
    },
    yelp(0.5, 2): {
        "template": {"outputs_bleu_clean": 0.0},
        "seq2seq": {"outputs_bleu_clean": 24.762, "best_ppl": 34.444, "best_epoch": 25},
        "gan": {"outputs_bleu_clean": 24.65, "best_ppl": 35.597, "best_epoch": 20},
        "self_attention": {"outputs_bleu_clean": 29.843, "best_ppl": 28.301, "best_epoch": 65},
    },
    GRIMM: {
        "template": {"outputs_bleu": 1.61, "outputs_bleu_clean": 0.0},
        "seq2seq": {"outputs_bleu": 12.855, "outputs_bleu_clean": 2.51},
        "gan": {"outputs_bleu": 12.414, "outputs_bleu_clean": 1.846},
        "self_attention": {"outputs_bleu": 12.55, "outputs_bleu_clean": 2.77},
    },
    NBA: {
        "template": {"outputs_bleu": 15.069, "outputs_bleu_clean": 1.968},
        "seq2seq": {"outputs_bleu": 30.657, "outputs_bleu_clean": 11.38, "best_ppl": 10.303, "best_epoch": 149},
        "gan": {"outputs_bleu": 31.381, "outputs_bleu_clean": 12.969, "best_ppl": 7.207, "best_epoch": 140},
        "self_attention": {"outputs_bleu": 30.846, "outputs_bleu_clean": 12.429, "best_ppl": 6.021, "best_epoch": 60},
    },
    PREPOSITIONS: {
        "template": {"outputs_bleu": 36.537, "outputs_bleu_clean": 41.896},
        "seq2seq": {"outputs_bleu": 72.156, "outputs_bleu_clean": 66.225},
        "gan": {"outputs_bleu": 73.155, "outputs_bleu_clean": 67.578},
        "self_attention": {"outputs_bleu": 77.159, "outputs_bleu_clean": 72.483},
    },
}

# Notes on single numbers, by setting and model. Source: the authors' training logs.
NOTES = {
    (yelp(0.3, 1), "seq2seq"): "BLEU is from epoch 149, perplexity from epoch 150",
    (yelp(0.3, 1), "self_attention"): "BLEU is from epoch 149, perplexity from epoch 150",
    (yelp(0.3, 2), "seq2seq"): "BLEU is from epoch 149, perplexity from epoch 150",
    (yelp(0.3, 2), "self_attention"): "BLEU is from epoch 80, perplexity from epoch 70 of a run that later failed; "
    "another run ends at BLEU 64.165, below seq2seq",
    (yelp(0.5, 1), "self_attention"): "BLEU is 51.553 in the log; no outputs were released",
    (yelp(0.5, 2), "seq2seq"): "BLEU was 44.37 at epoch 30, almost as high as that of self-attention",
    (NBA, "seq2seq"): "trained with batches of 500, so with 40% of the updates of the other two models",
}

# Notes on all settings of a model.
NOTES_OF_MODELS = {"gan": "not adversarial: its discriminator only saw true answers and its loss was always 0.000000"}

# Fraction of padding among the positions that `ppl_paper` counts on the test sentences of the authors' pairs.
PADDING_SHARES = {"grimm": 0.64, "nba": 0.62, "prepositions": 0.52}
# Limits of a comparison with the authors' numbers, by task; for the authors' pairs.
NOTES_OF_TASKS = {
    "nba": "7 of the 1,000 test sentences are among the training pairs",
    "prepositions": "the true sentences in the authors' outputs of Seq2Seq and Self-attn are cut at 16 words (320 of "
    "2,890 are longer); those of our test set are complete",
}
CUT_REFERENCES = {"prepositions": 16}  # words
# Keyed by a phrase in the note on a corpus.
NOTES_OF_CORPORA = {
    "stand-in for the paper's 104K sentences": "29% of the training sentences of the stand-in come from the same file "
    "as the test set; none of them is a test sentence"
}

# Numbers not printed with three decimals, by setting, model and number.
DECIMALS = {(yelp(0.5, 1), "self_attention", "bleu"): 2}


def row_of(setting: Setting) -> Setting:
    """Returns the paper's setting that one of ours is compared with; it may be in none of the tables.

    >>> row_of(Setting("nba_built", "word_classes", None, 3, "released", "laptop")) == NBA
    True
    """
    task = setting.task
    masking = "fixed" if task == "yelp" else "pairs"
    return Setting(task, masking, setting.mask_rate, setting.blanks, "paper", "full")


def page_of(task: str) -> str:
    """Returns the page of a task in `TABLES`; the task itself if it has none."""
    for page, named in TABLES.items():
        if any(row.task == task for rows in named.values() for row in rows):
            return page
    return task


def numbers(setting: Setting) -> dict[str, dict[str, float]]:
    """Returns the paper's numbers for a setting, `{model: {"bleu", "ppl", "human"}}`; empty if there are none."""
    return NUMBERS.get(row_of(setting), {})


def notes(setting: Setting) -> dict[str, str]:
    """Returns the notes on the paper's numbers for a setting, by model."""
    return {model: note for (row, model), note in NOTES.items() if row == row_of(setting)}


def padding_note(tasks: Sequence[str]) -> str:
    """Returns a note on the padding in `ppl_paper` for the authors' pairs of these tasks."""
    shares = ", ".join(f"{TASKS[task]} {PADDING_SHARES[task]:.0%}" for task in tasks)
    return (
        f"`ppl_paper` counts padding (fraction of its positions on the authors' test sets: {shares}), on which "
        "models of the protocol `paper` are not trained: compare models by `ppl`."
    )


def best_epoch(setting: Setting, model: str) -> int | None:
    """Returns the epoch of `best_ppl`; None if it is not in the logs."""
    return AUTHORS.get(row_of(setting), {}).get(model, {}).get("best_epoch")


def printed(setting: Setting, model: str, number: str) -> str | None:
    """Returns a number of the paper or of `AUTHORS` with the decimals that the paper prints; None if it is missing."""
    row = row_of(setting)
    value = (NUMBERS.get(row, {}).get(model, {}) | AUTHORS.get(row, {}).get(model, {})).get(number)
    return None if value is None else f"{value:.{DECIMALS.get((row, model, number), 3)}f}"
