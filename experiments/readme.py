"""Writes the tables of results into README.md and docs/*.md, between markers, from finished cells.

Command:
    python -m experiments.readme

Expected: the text between `<!-- results:NAME -->` and `<!-- /results:NAME -->` is replaced with tables of the cells in
results/cells of the protocol `paper`, the preset `laptop` and the paper's masks. NAME is `summary` (short table for
Yelp), `yelp` or `pairs` (the tasks with three blanks).
Duration: under a second.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments import collect
from experiments.cells import flags
from experiments.cells.setting import Setting
from experiments.evaluate import Finished
from experiments.tables import paper
from experiments.tables.formats import markdown_rows
from experiments.tables.notes import comparisons, cut_references
from experiments.tables.table import NO_VALUE, NOT_RUN, Table, mean_and_spread, values_of
from experiments.tables.trained import trained_notes, training_of
from text_infilling.utils import files

PROTOCOL, PRESET = "paper", "laptop"
MODELS = paper.MODELS[1:]  # the models that are trained
TRAINED = ("budget", "optimizer", "epochs", "batch", "parameters", "TFLOP", "minutes")


def blocks(finished: Sequence[Finished]) -> dict[str, str]:
    """Returns the text to put between the markers, by name.

    Raises:
        ValueError: a table has no cells, or its cells cannot be in one table.
    """
    long_content = _trained_table(finished, "long_content", "pairs", paper.LONG_CONTENT_TABLE)
    prepositions = _trained_table(finished, "prepositions", "pairs", paper.PREPOSITIONS_TABLE)
    yelp = _trained_table(finished, "yelp", "fixed", paper.APPENDIX_TABLE)
    return {
        "summary": summary_block(yelp),
        "yelp": yelp_block(yelp),
        "pairs": pairs_block(long_content, prepositions),
    }


def summary_block(table: Table) -> str:
    """Returns a short table of the Yelp settings, without notes."""
    grid = [
        ("mask rate", "blanks", "model", "BLEU: paper", "BLEU: ours", "perplexity: paper", "perplexity: ours",
         "optimizer", "work in TFLOP"),
        ("---",) * 3 + ("---:",) * 6,
    ]  # fmt: skip
    for setting, model in _trained(table):
        _, optimizer, _, _, _, tflop, _ = training_of(table, setting, model)
        grid.append((
            setting.name, str(setting.blanks), paper.TITLES[model],
            _papers(setting, model, "bleu"), _ours(table, setting, model, "bleu_paper"),
            _papers(setting, model, "ppl"), _ours(table, setting, model, "ppl_paper"), optimizer, tflop,
        ))  # fmt: skip
    return markdown_rows(grid)


def yelp_block(table: Table) -> str:
    """Returns the table of the Yelp settings with its notes."""
    titles = ("mask rate", "blanks", "model", "BLEU: paper", "`bleu_paper`", "`bleu`",
              "perplexity: paper", "`ppl_paper`", "`ppl`", *TRAINED)  # fmt: skip

    def row(setting: Setting, model: str) -> tuple[str, ...]:
        return (
            setting.name, str(setting.blanks), paper.TITLES[model],
            _papers(setting, model, "bleu"), *(_ours(table, setting, model, key) for key in ("bleu_paper", "bleu")),
            _papers(setting, model, "ppl"), *(_ours(table, setting, model, key) for key in ("ppl_paper", "ppl")),
        )  # fmt: skip

    return _block(table, titles, 3, row, [])


def pairs_block(long_content: Table, prepositions: Table) -> str:
    """Returns the table of the tasks with three blanks with its notes."""
    table = dataclasses.replace(
        long_content,
        settings=[*long_content.settings, *prepositions.settings],
        results={**long_content.results, **prepositions.results},
    )
    titles = ("task", "model", "`ppl`", "`bleu_paper`", "words per infill (true answers)", "repeated trigram", *TRAINED,
              "perplexity: paper", "`ppl_paper`")  # fmt: skip

    def row(setting: Setting, model: str) -> tuple[str, ...]:
        words, true = (_ours(table, setting, model, f"mean_{what}_length") for what in ("infill", "answer"))
        return (
            setting.name, paper.TITLES[model], *(_ours(table, setting, model, key) for key in ("ppl", "bleu_paper")),
            f"{words} ({true})", _ours(table, setting, model, "repeating_infills", ".1%"),
            _papers(setting, model, "ppl"), _ours(table, setting, model, "ppl_paper"),
        )  # fmt: skip

    notes = [note for setting in table.settings for note in cut_references(table, setting)]
    return _block(table, titles, 2, row, [*notes, paper.padding_note([s.task for s in table.settings])], last=2)


def written(text: str, made: dict[str, str], name: str, kind: str = "results") -> str:
    """Returns `text` with the content between each pair of markers replaced by its block.

    Args:
        text: content of a file.
        made: blocks by name, from `blocks`.
        name: name of the file, for error messages.
        kind: first word of the markers.

    Raises:
        ValueError: a marker is unpaired or names an unknown block.
    """
    pairs = re.compile(rf"<!-- {kind}:(\w+) -->\n.*?<!-- /{kind}:\1 -->", re.DOTALL)
    if left := re.search(rf"<!-- /?{kind}:.*", pairs.sub("", text)):
        raise ValueError(f"{name} has an unpaired {left[0]}: expected <!-- {kind}:X --> ... <!-- /{kind}:X -->")

    def block(found: re.Match) -> str:
        if found[1] not in made:
            raise ValueError(f"{name} has <!-- {kind}:{found[1]} -->, expected one of: {', '.join(made)}")
        return f"<!-- {kind}:{found[1]} -->\n\n{made[found[1]]}\n\n<!-- /{kind}:{found[1]} -->"

    return pairs.sub(block, text)


def rewritten(root: Path, finished: Sequence[Finished]) -> dict[Path, str]:
    """Returns the new text of every README.md and docs/*.md with markers, by path.

    Raises:
        ValueError: no file has markers; see also `blocks` and `written`.
    """
    made = blocks(finished)
    texts = {path: path.read_text("utf-8") for path in [*root.glob("README.md"), *sorted(root.glob("docs/*.md"))]}
    found = {path: written(text, made, str(path)) for path, text in texts.items() if "<!-- results:" in text}
    if not found:
        raise ValueError(f"no README.md or docs/*.md in {root} has a line <!-- results:yelp -->: pass another --root")
    return found


def run(values: FlagValues) -> None:
    """Writes the tables into all files with markers."""
    for path, text in rewritten(Path(values.root), collect.read_all(Path(values.cells))).items():
        files.write_text(path, text)
        print(path, flush=True)


def _trained_table(finished: Sequence[Finished], corpora: str, masking: str, rows: Sequence[Setting]) -> Table:
    """Returns a table of the settings that have a trained model."""
    found = [one for one in finished if collect.common(one.cell.setting) == (corpora, masking, PROTOCOL, PRESET)]
    if not found:
        raise ValueError(f"no finished cell of {corpora}, masking {masking}, protocol {PROTOCOL}, preset {PRESET}")
    table = collect.table(found, rows)
    trained = {setting for setting, _ in _trained(table)}
    return dataclasses.replace(table, settings=[setting for setting in table.settings if setting in trained])


def _block(
    table: Table,
    titles: Sequence[str],
    left: int,
    row: Callable[[Setting, str], tuple[str, ...]],
    notes: Sequence[str],
    last: int = 0,
) -> str:
    """Returns a table and its notes.

    Args:
        table: the settings and their results.
        titles: titles of all columns.
        left: number of left-aligned columns.
        row: returns the columns of a setting and model, except those on training.
        notes: notes on these settings; the notes on training follow them.
        last: number of columns to put after those on training.
    """
    grid = [titles, ("---",) * left + ("---:",) * (len(titles) - left)]
    for setting, model in _trained(table):
        columns = row(setting, model)
        place = len(columns) - last
        grid.append((*columns[:place], *training_of(table, setting, model), *columns[place:]))
    lines = [f"- {note}" for note in (*comparisons(table), *notes, *trained_notes(table))]
    return "\n\n".join([markdown_rows(grid), "\n".join(lines)])


def _trained(table: Table) -> list[tuple[Setting, str]]:
    return [(setting, model) for setting in table.settings for model in MODELS if table.trained(setting, model)]


def _papers(setting: Setting, model: str, number: str) -> str:
    return paper.printed(setting, model, number) or NO_VALUE


def _ours(table: Table, setting: Setting, model: str, key: str, form: str = ".2f") -> str:
    values = values_of(table, setting, model, key)
    if not values:
        return NOT_RUN
    mean, spread = mean_and_spread(values)
    return format(mean, form) + ("" if spread is None else f" ± {spread:{form}}")


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_cells(values)
    absl_flags.DEFINE_string("root", ".", "Folder whose README.md and docs/ are rewritten.", flag_values=values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
