"""Checks the paper's claims about its models against its own numbers, the released outputs, and finished cells.

Command:
    python -m experiments.claims

Expected: RESULTS_DIR/claims.md, from the cells in --cells and, for the released outputs, RESULTS_DIR/replay.json
(made by `experiments.replay`; without it the rows of the released outputs are "not run"). Intervals are over seeds or,
of one seed, over the test sentences in the cells' predictions.jsonl.
Duration: seconds per cell with predictions.jsonl, else under a second.
"""

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from absl.flags import FlagValues

from experiments import collect, effects
from experiments.cells import flags, record
from experiments.cells.setting import TASKS, Setting
from experiments.effects import Effect
from experiments.evaluate import Finished
from experiments.released import SOURCES
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from experiments.tables.table import NO_VALUE, NOT_RUN
from text_infilling.utils import files

OURS, OTHERS = "self_attention", ("seq2seq", "gan")
COMPARABLE = 1.0  # BLEU points
HEADER = ("whose", "setting", "metric", "paper's effect", "effect", "95% interval", "seeds", "verdict", "reason")


def verdict(papers: float | None, found: Effect | None) -> str:
    """Returns whether a directed claim holds.

    >>> verdict(3.7, Effect(3.5, 2.9, 4.1)), verdict(3.7, Effect(1.0)), verdict(3.7, Effect(-1.0)), verdict(3.7, None)
    ('holds', 'shrinks', 'fails', 'not run')

    Args:
        papers: the effect in the printed numbers; None if they have none.
        found: the effect to judge; None if it was not measured.
    """
    if found is None:
        return NOT_RUN
    if found.value <= 0:
        return "fails"
    is_unclear = found.low is not None and found.low <= 0
    return "shrinks" if is_unclear or (papers is not None and found.value < papers / 2) else "holds"


def verdict_comparable(found: Effect | None) -> str:
    """Returns whether two models are comparable: they differ by less than `COMPARABLE` points, or not clearly."""
    if found is None:
        return NOT_RUN
    is_unclear = found.low is not None and found.low <= 0 <= found.high
    return "holds" if is_unclear or abs(found.value) < COMPARABLE else "fails"


def lead(numbers: Mapping[str, float], others: Sequence[str] = OTHERS, model: str = OURS) -> float | None:
    """Returns the smallest BLEU lead of a model over others; None if a number is missing."""
    if not {model, *others} <= numbers.keys():
        return None
    return min(numbers[model] - numbers[other] for other in others)


def factor(numbers: Mapping[str, float]) -> float | None:
    """Returns how many times smaller self-attention's perplexity is than the others', minus 1; None if one is missing.

    >>> round(factor({"self_attention": 40.0, "seq2seq": 60.0, "gan": 58.0}), 2)
    0.45
    """
    if not {OURS, *OTHERS} <= numbers.keys():
        return None
    return min(numbers[other] / numbers[OURS] for other in OTHERS) - 1


def printed(setting: Setting, key: str) -> dict[str, float]:
    """Returns the numbers of the paper, or of the authors' logs, by model."""
    found = {model: paper.printed(setting, model, key) for model in paper.MODELS}
    return {model: float(number) for model, number in found.items() if number}


def of_cells(finished: Sequence[Finished], key: str, first: str, others: Sequence[str]) -> tuple[Effect | None, int]:
    """Returns the smallest effect of a model over others, and the number of seeds that all of them have.

    An effect is the difference in BLEU, or the factor of the perplexities minus 1, as the mean over the seeds. Its
    interval is over the seeds; of one seed it is that of BLEU over the test sentences, if there are predictions.
    """
    by_seed: dict[int, dict[str, Finished]] = {}
    for one in finished:
        if one.cell.model in (first, *others):
            by_seed.setdefault(one.cell.seed, {})[one.cell.model] = one
    runs = [models for models in by_seed.values() if len(models) == 1 + len(others)]
    if not runs:
        return None, 0
    return min(_effect(runs, key, first, other) for other in others), len(runs)


def _effect(runs: Sequence[Mapping[str, Finished]], key: str, first: str, other: str) -> Effect:
    is_bleu = key.startswith("bleu")
    pairs = [(models[first].metrics[key], models[other].metrics[key]) for models in runs]
    found = effects.of_seeds([a - b if is_bleu else b / a - 1 for a, b in pairs])
    if len(runs) == 1 and is_bleu:
        counts = [_counts(runs[0][model].folder, key) for model in (first, other)]
        if not any(one is None for one in counts):
            return effects.difference(*counts, key)
    return found


_counts = functools.cache(effects.counts)


def basis(found: Effect | None, seeds: int) -> str:
    """Returns what an interval of our cells is over."""
    if found is None:
        return ""
    if found.low is None:
        return "no interval: one seed"
    return "interval over the seeds" if seeds > 1 else "interval over the test sentences"


def work(finished: Sequence[Finished]) -> str:
    """Returns the useful work of each model's training, or its epochs if that is not recorded; empty without cells."""
    of: dict[str, list[record.Trained]] = {}
    for one in finished:
        if one.cell.model in (OURS, *OTHERS):
            of.setdefault(one.cell.model, []).append(record.read(one.folder, one.config))
    for what, name in (("tflop", "TFLOP of work"), ("epochs", "epochs")):
        numbers = {model: [getattr(one, what) for one in ones] for model, ones in of.items()}
        if of and all(None not in values for values in numbers.values()):
            shown = (f"{paper.TITLES[m]} {statistics.fmean(numbers[m]):.4g}" for m in (*OTHERS, OURS) if m in numbers)
            return f"{name}: {', '.join(shown)}"
    return ""


def released_lead(
    replay: dict | None, setting: Setting, metric: str, first: str, others: Sequence[str]
) -> Effect | None:
    """Returns the smallest lead of a model's printed output over others, with its interval, from replay.json."""
    if replay is None:
        return None
    names = {one.name: one for one in SOURCES if one.setting == setting and (one.is_printed or setting.task != "yelp")}
    found = [
        Effect(*(pair[metric][key] for key in ("value", "low", "high")))
        for pair in replay["differences"]
        if pair["first"] in names and pair["second"] in names
        and names[pair["first"]].model == first and names[pair["second"]].model in others
    ]  # fmt: skip
    return min(found) if len(found) == len(others) else None


def section(finished: Sequence[Finished], settings: Sequence[Setting], rows_of: Callable) -> str:
    """Returns the table of a claim: rows of each setting, for the released outputs and for each kind of cells."""
    kinds = sorted({(c.masking, c.protocol, c.preset) for c in (one.cell.setting for one in finished)})
    grid = [HEADER, ("---",) * len(HEADER)]
    for setting in settings:
        of_setting = [one for one in finished if paper.row_of(one.cell.setting) == setting]
        groups = {
            kind: [
                o
                for o in of_setting
                if (o.cell.setting.masking, o.cell.setting.protocol, o.cell.setting.preset) == kind
            ]
            for kind in kinds
            if (kind[0] == "pairs") == (setting.task != "yelp")
        }
        grid += rows_of(setting, groups)
    return markdown_rows(grid)


def bleu_rows(replay: dict | None, first: str, others: Sequence[str], judge: Callable) -> Callable:
    """Returns the function that makes the rows of a claim about BLEU."""

    def rows_of(setting: Setting, groups: dict) -> list[tuple[str, ...]]:
        papers, made = lead(printed(setting, "bleu"), others, first), []
        notes = dict.fromkeys(paper.notes(setting).get(model) for model in (first, *others))
        note = "; ".join(filter(None, notes))
        for metric in ("bleu_paper", "bleu"):
            found = released_lead(replay, setting, metric, first, others)
            made.append(_row("released", setting, metric, papers, found, NO_VALUE, judge(papers, found), note))
            for kind, cells in groups.items():
                found, seeds = of_cells(cells, metric, first, others)
                why = "; ".join(filter(None, [basis(found, seeds), found and work(cells)]))
                made.append(_row(" ".join(kind), setting, metric, papers, found, str(seeds), judge(papers, found), why))
        return made

    return rows_of


def perplexity_rows(setting: Setting, groups: dict) -> list[tuple[str, ...]]:
    """Returns the rows of the claim about perplexity."""
    papers = factor(printed(setting, "ppl"))
    best = factor(printed(setting, "best_ppl"))
    epochs = {model: paper.best_epoch(setting, model) for model in (OURS, *OTHERS)}
    why = ", ".join(f"{paper.TITLES[model]} is best at epoch {epoch}" for model, epoch in epochs.items() if epoch)
    found = None if best is None else Effect(best)
    made = [_row("authors' best epoch", setting, "ppl_paper", papers, found, NO_VALUE, verdict(papers, found), why)]
    share = paper.PADDING_SHARES.get(setting.task)
    for metric in ("ppl_paper", "ppl"):
        for kind, cells in groups.items():
            found, seeds = of_cells(cells, metric, OURS, OTHERS)
            padded = f"{share:.0%} of the positions are padding" if share and metric == "ppl_paper" and found else ""
            why = "; ".join(filter(None, [basis(found, seeds), padded or (found and work(cells))]))
            made.append(_row(" ".join(kind), setting, metric, papers, found, str(seeds), verdict(papers, found), why))
    return made


def _row(whose, setting, metric, papers, found, seeds, judged, why) -> tuple[str, ...]:
    interval = NO_VALUE if found is None or found.low is None else f"[{found.low:+.2f}, {found.high:+.2f}]"
    return (
        whose, f"{TASKS[setting.task]} {setting.title}" if setting.task == "yelp" else setting.title, f"`{metric}`",
        NO_VALUE if papers is None else f"{papers:+.2f}", NO_VALUE if found is None else f"{found.value:+.2f}",
        interval, seeds, judged, why,
    )  # fmt: skip


def difficulty(finished: Sequence[Finished]) -> str:
    """Returns the table of the claim that results drop with mask rate and blanks: the paper's numbers, then ours."""
    titles = ("whose", "what rises", "metric", "model", "steps in the claimed direction", "mean step", "verdict")
    grid = [titles, ("---",) * len(titles)]
    one, two = paper.APPENDIX_TABLE[::2], paper.APPENDIX_TABLE[1::2]
    steps = {"mask rate": [*zip(one, one[1:]), *zip(two, two[1:])], "blanks": list(zip(one, two, strict=True))}
    for whose, number in _numbers(finished).items():
        for what, pairs in steps.items():
            for metric, sign in (("bleu_paper", -1), ("bleu", -1), ("ppl_paper", 1), ("ppl", 1)):
                for model in (*OTHERS, OURS):
                    both = [(number(a, model, metric), number(b, model, metric)) for a, b in pairs]
                    sizes = [sign * (b - a) for a, b in both if a is not None and b is not None]
                    if whose == "paper" and not sizes:
                        continue  # the paper has no such metric
                    right = sum(size > 0 for size in sizes)
                    judged = ("holds" if right == len(sizes) else "fails") if sizes else NOT_RUN
                    mean = f"{sign * statistics.fmean(sizes):+.2f}" if sizes else NO_VALUE
                    shown = f"{right} of {len(sizes)}"
                    grid.append((whose, what, f"`{metric}`", paper.TITLES[model], shown, mean, judged))
    return markdown_rows(grid)


def _numbers(finished):
    """Returns a function (setting, model, metric) -> number or None for the paper and for each kind of our cells."""
    keys = {"bleu_paper": "bleu", "ppl_paper": "ppl"}
    found = {"paper": lambda setting, model, metric: printed(setting, keys.get(metric, "")).get(model)}
    values: dict[str, dict[tuple, list[float]]] = {}
    for one in finished:
        setting = one.cell.setting
        if setting.task == "yelp":
            of_kind = values.setdefault(f"{setting.masking} {setting.protocol} {setting.preset}", {})
            for metric, value in one.metrics.items():
                of_kind.setdefault((paper.row_of(setting), one.cell.model, metric), []).append(value)
    for whose, of_kind in values.items():
        means = {key: statistics.fmean(numbers) for key, numbers in of_kind.items()}
        found[whose] = lambda setting, model, metric, means=means: means.get((setting, model, metric))
    return found


def page(finished: Sequence[Finished], replay: dict | None) -> str:
    """Returns the page of all claims."""
    yelp, long_content = paper.APPENDIX_TABLE, paper.LONG_CONTENT_TABLE
    bleu = bleu_rows(replay, OURS, OTHERS, verdict)
    comparable = bleu_rows(replay, "gan", ("seq2seq",), lambda _, found: verdict_comparable(found))
    return "\n\n".join([
        "# The paper's claims, checked",
        "Made by `experiments.claims`. An effect is the smaller lead of self-attention over the two other models: in "
        "BLEU points, or as the factor of the perplexities minus 1. *holds*: the effect has the claimed direction, is "
        "at least half of the printed one, and its interval, if there is one, excludes 0; *shrinks*: it has the "
        "direction only; *fails*: it has not. A verdict without an interval is that of the numbers alone and may "
        "change with another seed. Intervals are over the seeds (Student's t), or with one seed, for BLEU, over the "
        "test sentences (paired bootstrap): then they do not include what another seed would change. Those of "
        "released outputs are from `results/replay.json`. The reason is computed from the data: the epoch of the "
        "numbers, the share of padding, or the work that the models were trained with.",
        "## (a) Self-attention has the best BLEU (section 4.1)",
        section(finished, yelp, bleu),
        "## (b) Self-attention has the best perplexity (section 4.1)",
        section(finished, yelp, perplexity_rows),
        "## (c) Seq2seq and GAN are comparable (section 4.1)",
        f"The effect is GAN minus seq2seq. *holds*: less than {COMPARABLE:g} point, or the interval includes 0.",
        section(finished, yelp, comparable),
        "## (d) Results drop with mask rate and number of blanks (section 4.1)",
        "A step is from one mask rate to the next with equal blanks, or from one blank to two; ours are means over "
        "seeds, of the settings that were run. *holds*: all steps have the claimed direction (BLEU falls, perplexity "
        "rises); *fails*: one has not. The mean step has its own sign.",
        difficulty(finished),
        "## (e) Long content: self-attention has the best perplexity (section 4.2)",
        section(finished, long_content, perplexity_rows),
        "## (f) Filling in context beats a model without segment-aware positions (section 3.2)",
        "Not run: it needs the ablations.",
    ]) + "\n"  # fmt: skip


def run(values: FlagValues) -> None:
    """Writes claims.md."""
    results_dir = Path(values.results_dir)
    files.make_folder(results_dir, "--results_dir")
    with files.held(results_dir):  # else another command could write an index without this page
        print(write(of_real_corpora(collect.read_all(Path(values.cells))), results_dir), flush=True)
        collect.write_index(results_dir)


def write(finished: Sequence[Finished], results_dir: Path) -> Path:
    """Writes claims.md from finished cells and returns its path.

    Raises:
        ValueError: replay.json in `results_dir` is damaged.
        OSError: a file cannot be read or written.
    """
    path = results_dir / "claims.md"
    files.write_text(path, page(finished, read_replay(results_dir)))
    return path


def read_replay(results_dir: Path) -> dict | None:
    """Returns the content of replay.json in a folder of results; None if it is missing.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    stored = results_dir / "replay.json"
    return files.read_object(stored, "differences") if stored.exists() else None


def of_real_corpora(finished: Sequence[Finished]) -> list[Finished]:
    """Returns the cells except those of made-up sentences, which say nothing about the claims."""
    return [one for one in finished if not one.cell.setting.corpus.endswith("synthetic")]


if __name__ == "__main__":
    flags.main(run, flags.define_collect, __doc__)
