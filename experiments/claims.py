"""Checks the paper's claims about its models against its own numbers, the released outputs, and finished cells.

Command:
    python -m experiments.claims

Expected: RESULTS_DIR/claims.md, from the cells in --cells and, for the released outputs, RESULTS_DIR/replay.json
(made by `experiments.replay`; without it the rows of the released outputs are "not run").
Duration: under a second.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl.flags import FlagValues

from experiments import collect
from experiments.cells import flags
from experiments.cells.setting import TASKS, Setting
from experiments.evaluate import Finished
from experiments.released import SOURCES
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from experiments.tables.table import NO_VALUE, NOT_RUN
from text_infilling.utils import files

OURS, OTHERS = "self_attention", ("seq2seq", "gan")
COMPARABLE = 1.0  # BLEU points
HEADER = ("whose", "setting", "metric", "paper's effect", "effect", "95% interval", "seeds", "verdict", "reason")


class Effect(NamedTuple):
    """An effect, positive in the direction of the claim, with its 95% interval if there is one."""

    value: float
    low: float | None = None
    high: float | None = None


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


def of_cells(finished: Sequence[Finished], key: str) -> tuple[dict[str, float], int]:
    """Returns a metric by model, as a mean over seeds, and the smallest number of seeds."""
    values = {m: [one.metrics[key] for one in finished if one.cell.model == m] for m in (OURS, *OTHERS)}
    return {m: statistics.fmean(v) for m, v in values.items() if v}, min(map(len, values.values()))


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
                numbers, seeds = of_cells(cells, metric)
                value = lead(numbers, others, first)
                found = None if value is None else Effect(value)
                why = "" if found is None else "no interval: one seed" if seeds == 1 else "mean over seeds"
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
            numbers, seeds = of_cells(cells, metric)
            value = factor(numbers)
            found = None if value is None else Effect(value)
            why = f"{share:.0%} of the positions are padding" if share and metric == "ppl_paper" and found else ""
            made.append(_row(" ".join(kind), setting, metric, papers, found, str(seeds), verdict(papers, found), why))
    return made


def _row(whose, setting, metric, papers, found, seeds, judged, why) -> tuple[str, ...]:
    interval = NO_VALUE if found is None or found.low is None else f"[{found.low:+.2f}, {found.high:+.2f}]"
    return (
        whose, f"{TASKS[setting.task]} {setting.title}" if setting.task == "yelp" else setting.title, f"`{metric}`",
        NO_VALUE if papers is None else f"{papers:+.2f}", NO_VALUE if found is None else f"{found.value:+.2f}",
        interval, seeds, judged, why,
    )  # fmt: skip


def difficulty() -> str:
    """Returns the table of the claim that results drop with mask rate and blanks, in the paper's own numbers."""
    grid = [("what rises", "metric", "model", "steps in the claimed direction", "verdict"), ("---",) * 5]
    one, two = paper.APPENDIX_TABLE[::2], paper.APPENDIX_TABLE[1::2]
    steps = {"mask rate": [*zip(one, one[1:]), *zip(two, two[1:])], "blanks": list(zip(one, two, strict=True))}
    for what, pairs in steps.items():
        for key, metric, sign in (("bleu", "`bleu_paper`", -1), ("ppl", "`ppl_paper`", 1)):
            for model in (*OTHERS, OURS):
                right = sum(sign * (printed(b, key)[model] - printed(a, key)[model]) > 0 for a, b in pairs)
                judged = "holds" if right == len(pairs) else "fails"
                grid.append((what, metric, paper.TITLES[model], f"{right} of {len(pairs)}", judged))
    return markdown_rows(grid)


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
        "change with another seed. Intervals of released outputs are from `results/replay.json`.",
        "## (a) Self-attention has the best BLEU (section 4.1)",
        section(finished, yelp, bleu),
        "## (b) Self-attention has the best perplexity (section 4.1)",
        section(finished, yelp, perplexity_rows),
        "## (c) Seq2seq and GAN are comparable (section 4.1)",
        f"The effect is GAN minus seq2seq. *holds*: less than {COMPARABLE:g} point, or the interval includes 0.",
        section(finished, yelp, comparable),
        "## (d) Results drop with mask rate and number of blanks (section 4.1)",
        "The paper's own numbers. A step is from one mask rate to the next with equal blanks, or from one blank to "
        "two.",
        difficulty(),
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
