"""Caption and footnotes of a table: how its numbers were made, and what limits a comparison with the paper's."""

from collections.abc import Sequence
from statistics import fmean

from experiments.cells.setting import CONTROL, Setting
from experiments.tables import paper
from experiments.tables.outputs import RESAMPLES, SEED
from experiments.tables.table import TRAINED, Table, is_yelps, mean_and_spread, values_of

ABOUT_INTERVALS = (
    f"Differences: 95% intervals from a paired bootstrap of the test sentences ({RESAMPLES:,} resamples, seed {SEED}); "
    "scores of several seeds are averaged. An interval does not show how much another seed would change the numbers. "
    "The best of our numbers is bold only if its difference from every other model's has an interval that excludes 0. "
    "No interval: predictions.jsonl is missing or does not have the counts of this metric."
)
# Names of the paper's corpora in captions, by family.
CAPTIONS = {
    "yelp": "Yelp",
    "long_content": "Grimm's tales and NBA reports",
    "prepositions": "Grimm's tales",
}


def caption(table: Table) -> str:
    """Returns a line on how our numbers were made, and a second line if they cannot be compared with the paper's."""
    setting, corpus = table.settings[0], table.family
    papers = "Yelp" if is_yelps(table) else "the authors' pairs"
    what = CAPTIONS.get(corpus, f"{corpus} corpus, not {papers}")
    note = f"; {table.note}" if table.note else ""
    parts = [f"Corpus: {what} ({table.origin}{note}); masking {setting.masking}; protocol {setting.protocol}; "
             f"preset {setting.preset}; {seeds(table.seeds)}."]  # fmt: skip
    if len(table.seeds) > 1:
        parts[0] += f" Ours: mean ± sample standard deviation over these {len(table.seeds)} seeds."
    other = []
    if corpus not in CAPTIONS:
        other.append("for another corpus")
    if setting.masking not in ("fixed", "pairs"):
        other.append("for other masks")
    if other:
        parts.append(f"The paper's numbers are {' and '.join(other)}; they cannot be compared with ours.")
    return "\n".join(parts)


def footnotes(table: Table) -> list[str]:
    """Returns notes on the paper's numbers and ours, one line each."""
    notes = []
    is_paired = (
        table.family in CAPTIONS and table.settings[0].masking == "pairs"
    )  # the authors' own sentences and blanks
    for setting in table.settings:
        if not paper.numbers(setting):
            notes.append(f"{setting.title}: the paper has no numbers for it.")
        epochs = {model: paper.best_epoch(setting, model) for model in paper.MODELS}
        if any(epochs.values()):
            best = ", ".join(f"{paper.TITLES[model]} {epoch}" for model, epoch in epochs.items() if epoch)
            notes.append(
                f"{setting.title}, authors' best epoch by test perplexity: {best}; the paper prints the last epoch."
            )
        for model, note in paper.notes(setting).items():
            notes.append(f"{setting.title}, {paper.TITLES[model]}, paper: {note}.")
        for model in ("template", *TRAINED):
            by_seed = table.of_model(setting, model)
            if model != "template" and by_seed and list(by_seed) != sorted(table.seeds):
                notes.append(f"{setting.title}, {paper.TITLES[model]}, ours: {seeds(list(by_seed))} only.")
            if changes := next((one.changed for one in by_seed.values() if one.changed), ""):
                notes.append(f"{setting.title}, {paper.TITLES[model]}, ours: {changes}.")
        notes += _answers(table, setting)
        if is_paired and setting.task in paper.NOTES_OF_TASKS:
            notes.append(f"{setting.title}: {paper.NOTES_OF_TASKS[setting.task]}.")
            notes += cut_references(table, setting)
    notes += comparisons(table)
    if is_paired:
        notes.append(paper.padding_note([setting.task for setting in table.settings]))
    notes += [f"Ours: {note}." for phrase, note in paper.NOTES_OF_CORPORA.items() if phrase in table.note]
    if any(paper.numbers(setting) for setting in table.settings):
        notes += [f"{paper.TITLES[model]}, paper: {note}." for model, note in paper.NOTES_OF_MODELS.items()]
    return notes + _sentences(table)


def comparisons(table: Table) -> list[str]:
    """Returns notes on the control and on the intervals of differences, for all settings."""
    found = [note for setting in table.settings for note in (*_control(table, setting), *_intervals(table, setting))]
    return [*found, ABOUT_INTERVALS] if found else []


def cut_references(table: Table, setting: Setting) -> list[str]:
    """Returns a note with our BLEU on references that are cut as those of the authors, if theirs are."""
    words, shown = paper.CUT_REFERENCES.get(setting.task), []
    for model in paper.MODELS[1:] if words else ():
        outputs = [one.outputs for one in table.of_model(setting, model).values()]
        if outputs and None not in outputs:
            shown.append(f"{paper.TITLES[model]} {fmean(one.bleu_of_cut_references(words) for one in outputs):.2f}")
    return (
        [f"{setting.title}, ours, bleu_paper on references cut at {words} words: {', '.join(shown)}."] if shown else []
    )


def seeds(numbers: Sequence[int]) -> str:
    """Returns seeds as text, e.g. `seeds 1, 2`."""
    return f"seed{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _control(table: Table, setting: Setting) -> list[str]:
    """Returns a note with the numbers of the GAN with weight 0, if it was run."""
    shown = []
    for metric in ("bleu_paper", "bleu", "ppl_paper", "ppl"):
        if values := values_of(table, setting, CONTROL, metric):
            number, spread = mean_and_spread(values)
            shown.append(f"{metric} {number:.2f}" + ("" if spread is None else f" ± {spread:.2f}"))
    if not shown:
        return []
    note = (
        f"{setting.title}, ours: {paper.TITLES[CONTROL]}, a control that is trained like the GAN but without its "
        f"adversarial loss: {', '.join(shown)}."
    )
    return [note, *_differences(table, setting, [("gan", CONTROL)])]


def _intervals(table: Table, setting: Setting) -> list[str]:
    """Returns a note on the differences between self-attention and the other models."""
    return _differences(table, setting, [("self_attention", other) for other in ("seq2seq", "gan")])


def _differences(table: Table, setting: Setting, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Returns a note on the differences of the pairs of models that were run."""
    found = []
    for first, second in pairs:
        if not (table.of_model(setting, first) and table.of_model(setting, second)):
            continue
        shown = []
        for metric in ("bleu_paper", "bleu", "ppl"):
            one = table.difference(setting, metric, first, second)
            interval = "no interval" if one is None else f"{one.value:+.2f} [{one.low:+.2f}, {one.high:+.2f}]"
            shown.append(f"{metric} {interval}")
        found.append(f"{paper.TITLES[first]} minus {paper.TITLES[second]}: {', '.join(shown)}")
    return [f"{setting.title}, ours: {'; '.join(found)}."] if found else []


def _sentences(table: Table) -> list[str]:
    """Returns notes on the number of test sentences; a single note if it is the same for all settings."""
    settings_of: dict[tuple[int, int], list[str]] = {}
    for setting in table.settings:
        metrics = table.all_metrics(setting)
        for count in sorted({(int(m["sentences"]), int(m["left_out"])) for m in metrics if "sentences" in m}):
            settings_of.setdefault(count, []).append(setting.title)
    return [
        f"{'Ours' if len(settings_of) == 1 else '; '.join(titles) + ', ours'}: "
        f"{sentences} test sentences; {left_out} left out as too short for their blanks."
        for (sentences, left_out), titles in settings_of.items()
    ]


def _answers(table: Table, setting: Setting) -> list[str]:
    """Returns a note with the numbers of `LINES_OF_LONG_INFILLS` for the true answers."""
    keys = ("mean_answer_length", "repeating_answers")
    if setting.task != "yelp":
        for metrics in table.all_metrics(setting):
            if all(key in metrics for key in keys):
                length, repeating = (metrics[key] for key in keys)
                return [f"{setting.title}: true answers have {length:.3f} words on average; "
                        f"a fraction of {repeating:.3f} repeats a trigram."]  # fmt: skip
    return []
