"""Scores the test outputs that the paper's authors released, and compares the scores with the printed ones.

Command:
    python -m experiments.replay --original_dir=../shared/original
    python -m experiments.replay

Without --original_dir the outputs are downloaded from the history of the authors' repository, checked, and cached.
Expected: RESULTS_DIR/replay.md and replay.json. All 17 outputs of printed Yelp cells and all 6 Template cells have the
printed BLEU; the output of the 18th cell (self-attention at 50%, one blank) was not released. In the printed Yelp cells
self-attention is clearly first by both BLEUs; on NBA reports and Grimm's tales it is not.
Duration: half a minute; nothing is trained.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import released
from experiments.cells import flags
from experiments.cells.setting import Setting
from experiments.released import Line, Source
from experiments.statistics import Difference, corpus_bleu, paired_bootstrap
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from experiments.tables.table import NO_VALUE
from text_infilling.corpora.pairs import fits_of
from text_infilling.masking.fixed_rule import fixed_template
from text_infilling.metrics.bleu import OPTIONS, sentence_counts
from text_infilling.utils import files
from text_infilling.vocabulary import TEMPLATE_BLANK

BOS = "<BOS>"
SPECIAL = (BOS, "<EOS>", "<PAD>", "<UNK>", TEMPLATE_BLANK, "<BOA>", "<EOA>")  # as the authors write them
METRICS = tuple(OPTIONS)
PAIRS = (("self_attention", "seq2seq"), ("self_attention", "gan"), ("gan", "seq2seq"))
RESAMPLES, SEED = 2000, 1
SETTINGS = (*paper.APPENDIX_TABLE, *paper.LONG_CONTENT_TABLE, *paper.PREPOSITIONS_TABLE)


@dataclasses.dataclass(frozen=True)
class Score:
    """The scores of one output.

    Attributes:
        bleu: both BLEUs of the filled sentences, by name.
        template: both BLEUs of the templates: on Yelp of those that our fixed masking rule makes from the true
            sentences, otherwise of those in the output.
        same_templates: number of templates in the output that our masking rule makes too; None if not on Yelp.
        special: special tokens in infills, by token.
        exact: number of filled sentences that equal the true sentence.
        sentences: number of test sentences.
        unaligned: number of filled sentences that do not contain their template's words in order.
        infill_length, answer_length: mean words per infill, and per true answer, where the template aligns.
    """

    bleu: dict[str, float]
    template: dict[str, float]
    same_templates: int | None
    special: dict[str, int]
    exact: int
    sentences: int
    unaligned: int
    infill_length: float
    answer_length: float


def stripped(text: str) -> str:
    """Returns a string of the authors without its `<BOS>`."""
    return text.removeprefix(f"{BOS} ")


@functools.cache  # many outputs have the same templates, and most are compared on the references of their own score
def counts(hypotheses: tuple[str, ...], references: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Returns the `[sentences, 10]` BLEU counts of strings with `<BOS>`, for each metric."""
    texts = {"bleu_paper": (hypotheses, references), "bleu": [list(map(stripped, x)) for x in (hypotheses, references)]}
    return {metric: np.array(sentence_counts(*texts[metric], metric)) for metric in METRICS}


def bleus(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Returns both BLEUs of strings with `<BOS>`."""
    found = counts(tuple(hypotheses), tuple(references))
    return {name: float(corpus_bleu(rows.sum(axis=0), smoothed=name == "bleu_paper")) for name, rows in found.items()}


def score(setting: Setting, lines: Sequence[Line]) -> Score:
    """Returns the scores of an output."""
    expected, got = [line.expected for line in lines], [line.got for line in lines]
    templates, same = [line.template for line in lines], None
    if setting.mask_rate is not None:
        made = [
            " ".join([BOS, *fixed_template(stripped(text).split(), setting.mask_rate, setting.blanks, TEMPLATE_BLANK)])
            for text in expected
        ]
        same, templates = sum(map(str.__eq__, made, templates)), made
    special: collections.Counter[str] = collections.Counter()
    for line in lines:
        more = collections.Counter(line.got.split()) - collections.Counter(
            token for token in line.template.split() if token != TEMPLATE_BLANK
        )
        special.update({token: more[token] for token in SPECIAL if more[token]})
    infills, answers = ([_mean_length(line.template, text) for line, text in zip(lines, texts, strict=True)]
                        for texts in (got, expected))  # fmt: skip
    return Score(
        bleu=bleus(got, expected),
        template=bleus(templates, expected),
        same_templates=same,
        special=dict(special),
        exact=sum(map(str.__eq__, got, expected)),
        sentences=len(lines),
        unaligned=infills.count(None),
        infill_length=float(np.mean([length for length in infills if length is not None])),
        answer_length=float(np.mean([length for length in answers if length is not None])),
    )


def _mean_length(template: str, text: str) -> float | None:
    """Returns the mean words per blank of a filled template; None if it does not contain the template's words."""
    tokens = template.split()
    if not fits_of(tokens, text.split()):
        return None
    blanks = tokens.count(TEMPLATE_BLANK)
    return (len(text.split()) - (len(tokens) - blanks)) / blanks


def compare(outputs: Mapping[Source, Sequence[Line]]) -> dict[tuple[Source, Source], dict[str, Difference]]:
    """Returns how much better one model's output is than another's, for both BLEUs and all `PAIRS` of each setting.

    All outputs of a setting are compared on the same references: of each sentence the longest, as the authors cut some.
    """
    found = {}
    for setting in SETTINGS:
        ours = {source: lines for source, lines in outputs.items() if source.setting == setting}
        texts = zip(*([line.expected for line in lines] for lines in ours.values()))
        references = tuple(max(each, key=len) for each in texts)
        of = {source: counts(tuple(line.got for line in lines), references) for source, lines in ours.items()}
        for (a, b), (first, second) in itertools.product(itertools.permutations(ours, 2), PAIRS):
            if (a.model, b.model) == (first, second):
                found[a, b] = {
                    metric: paired_bootstrap(of[a][metric], of[b][metric], RESAMPLES, SEED, metric)
                    for metric in METRICS
                }
    return found


def deviation(source: Source, found: Score) -> str:
    """Returns how an output's scores deviate from the paper; empty if the printed BLEU is reproduced."""
    printed = paper.printed(source.setting, source.model, "bleu")
    if printed is None:
        return "" if f"{found.bleu['bleu_paper']:.3f}" == source.bleu else f"file name: {source.bleu}"
    if not source.is_printed:
        return f"another run or epoch ({source.epoch}) than the printed cell"
    return "" if f"{found.bleu['bleu_paper']:.3f}" == printed else f"printed: {printed}"


def markdown(scores: Mapping[Source, Score], differences: Mapping[tuple[Source, Source], dict]) -> str:
    """Returns the page of results."""
    grid = [
        ("setting", "model", "epoch", "BLEU: paper", "`bleu_paper`", "`bleu`", "special tokens in infills",
         "exact", "unaligned", "words per infill (true)", "deviation"),
        ("---", "---", *("---:",) * 8, "---"),
    ]  # fmt: skip
    for source, found in scores.items():
        special = ", ".join(f"{count} `{token}`" for token, count in found.special.items())
        grid.append((
            source.setting.title, paper.TITLES[source.model], str(source.epoch),
            paper.printed(source.setting, source.model, "bleu") or NO_VALUE,
            *(f"{found.bleu[metric]:.3f}" for metric in METRICS), special or "0",
            f"{found.exact} of {found.sentences}", str(found.unaligned),
            f"{found.infill_length:.2f} ({found.answer_length:.2f})", deviation(source, found),
        ))  # fmt: skip
    printed = [source for source in scores if source.is_printed]
    equal = sum(not deviation(source, scores[source]) for source in printed)
    templates = [
        ("setting", "Template BLEU: paper", "`bleu_paper`", "`bleu`", "templates equal to ours"),
        ("---", *("---:",) * 4),
    ]
    for setting in SETTINGS:
        first = next(found for source, found in scores.items() if source.setting == setting)
        same = NO_VALUE if first.same_templates is None else f"{first.same_templates} of {first.sentences}"
        papers = paper.printed(setting, "template", "bleu") or NO_VALUE
        templates.append((setting.title, papers, *(f"{first.template[metric]:.3f}" for metric in METRICS), same))
    pairs = [
        ("setting", "first", "second", *(f"`{metric}`: first - second [95%]" for metric in METRICS)),
        ("---",) * 3 + ("---:",) * len(METRICS),
    ]
    for (a, b), by_metric in differences.items():
        shown = (f"{x.value:+.2f} [{x.low:+.2f}, {x.high:+.2f}]" for x in by_metric.values())
        names = (f"{paper.TITLES[one.model]}, epoch {one.epoch}" for one in (a, b))
        pairs.append((a.setting.title, *names, *shown))
    return "\n\n".join([
        "# The authors' released outputs, scored again",
        f"Made by `experiments.replay`. {equal} of {len(printed)} outputs of printed cells have the printed BLEU to "
        "three decimals. For Grimm's tales, NBA reports and prepositions the paper prints no BLEU.",
        markdown_rows(grid),
        "## Template",
        "BLEU of the unfilled templates. On Yelp they are made from the true sentences by this project's fixed masking "
        "rule; for the other tasks they are those of the seq2seq output.",
        markdown_rows(templates),
        "## Differences between models",
        f"Paired bootstrap over the test sentences, {RESAMPLES} resamples, seed {SEED}. All models of a setting are "
        "compared on the same references: of each sentence the longest one, because the outputs of seq2seq and "
        "self-attention for prepositions contain true sentences that were cut at 16 words.",
        markdown_rows(pairs),
    ]) + "\n"  # fmt: skip


def as_json(scores: Mapping[Source, Score], differences: Mapping[tuple[Source, Source], dict]) -> dict:
    """Returns all numbers as JSON values, by the name of the output."""
    return {
        "outputs": {source.name: dataclasses.asdict(found) for source, found in scores.items()},
        "differences": [
            {"first": a.name, "second": b.name} | {name: one._asdict() for name, one in found.items()}
            for (a, b), found in differences.items()
        ],
        "resamples": RESAMPLES,
        "seed": SEED,
    }


def run(values: FlagValues) -> None:
    """Scores all outputs and writes both files."""
    folder = None if values.original_dir is None else Path(values.original_dir)
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    outputs = {source: released.read(source, folder) for source in released.SOURCES}
    scores = {source: score(source.setting, lines) for source, lines in outputs.items()}
    differences = compare(outputs)
    page = markdown(scores, differences)
    with files.held(results_dir):
        files.write_text(results_dir / "replay.md", page)
        files.write_json(results_dir / "replay.json", as_json(scores, differences))
    print(page, flush=True)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    absl_flags.DEFINE_string(
        "original_dir", None, "Folder that contains the authors' released outputs, outputs/*.jsonl. Default: they are "
        "downloaded to the cache.", flag_values=values,
    )  # fmt: skip
    flags.define_results_dir(values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
