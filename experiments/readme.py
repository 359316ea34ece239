"""Writes the tables of results into README.md and docs/*.md, between markers, from finished cells.

Command:
    python -m experiments.readme

Expected: the text between `<!-- results:NAME -->` and `<!-- /results:NAME -->` is replaced with tables of the cells in
results/cells of the protocol `paper`, the preset `laptop` and the paper's masks. NAME is `summary` (short table for
Yelp), `yelp` or `pairs` (the tasks with three blanks).
Duration: under a second.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import collect
from experiments.cells import flags
from experiments.evaluate import Finished
from experiments.tables import paper, tables
from experiments.tables.formats import markdown_rows
from text_infilling.utils import files

PROTOCOL, PRESET = "paper", "laptop"
MODELS = paper.MODELS[1:]  # the models that are trained
TRAINED = ("optimizer", "epochs", "batch", "parameters", "TFLOP", "minutes")


def blocks(finished: Sequence[Finished]) -> dict[str, str]:
    """Returns the text to put between the markers, by name.

    Raises:
        ValueError: a table has no cells, or its cells cannot be in one table.
    """
    long_content = _settings(finished, "long_content", "pairs", paper.LONG_CONTENT_TABLE)
    prepositions = _settings(finished, "prepositions", "pairs", paper.PREPOSITIONS_TABLE)
    yelp = _settings(finished, "yelp", "fixed", paper.APPENDIX_TABLE)
    return {
        "summary": summary_block(yelp),
        "yelp": yelp_block(yelp),
        "pairs": pairs_block([*long_content, *prepositions]),
    }


def summary_block(settings: Sequence[tables.Setting]) -> str:
    """Returns a short table of the Yelp settings, without notes."""
    grid = [
        ("mask rate", "blanks", "model", "BLEU: paper", "BLEU: ours", "perplexity: paper", "perplexity: ours",
         "optimizer", "work in TFLOP"),
        ("---",) * 3 + ("---:",) * 6,
    ]  # fmt: skip
    for setting, model in _trained(settings):
        optimizer, _, _, _, tflop, _ = tables.training_of(settings, setting, model)
        grid.append((
            setting.name, str(setting.blanks), paper.TITLES[model],
            _papers(setting, model, "bleu"), _ours(setting, model, "bleu_paper"),
            _papers(setting, model, "ppl"), _ours(setting, model, "ppl_paper"), optimizer, tflop,
        ))  # fmt: skip
    return markdown_rows(grid)


def yelp_block(settings: Sequence[tables.Setting]) -> str:
    """Returns the table of the Yelp settings with its notes."""
    titles = ("mask rate", "blanks", "model", "BLEU: paper", "`bleu_paper`", "`bleu`",
              "perplexity: paper", "`ppl_paper`", "`ppl`", *TRAINED)  # fmt: skip

    def row(setting: tables.Setting, model: str) -> tuple[str, ...]:
        return (
            setting.name, str(setting.blanks), paper.TITLES[model],
            _papers(setting, model, "bleu"), _ours(setting, model, "bleu_paper"), _ours(setting, model, "bleu"),
            _papers(setting, model, "ppl"), _ours(setting, model, "ppl_paper"), _ours(setting, model, "ppl"),
        )  # fmt: skip

    return _block(settings, titles, 3, row, [])


def pairs_block(settings: Sequence[tables.Setting]) -> str:
    """Returns the table of the tasks with three blanks with its notes."""
    titles = ("task", "model", "`ppl`", "`bleu_paper`", "words per infill (true answers)", "repeated trigram", *TRAINED,
              "perplexity: paper", "`ppl_paper`")  # fmt: skip

    def row(setting: tables.Setting, model: str) -> tuple[str, ...]:
        words, true = (_ours(setting, model, f"mean_{what}_length") for what in ("infill", "answer"))
        return (
            setting.name, paper.TITLES[model], _ours(setting, model, "ppl"), _ours(setting, model, "bleu_paper"),
            f"{words} ({true})", _ours(setting, model, "repeating_infills", ".1%"),
            _papers(setting, model, "ppl"), _ours(setting, model, "ppl_paper"),
        )  # fmt: skip

    return _block(settings, titles, 2, row, [paper.padding_note([s.task for s in settings])], last=2)


def written(text: str, made: dict[str, str], name: str) -> str:
    """Returns `text` with the content between each pair of markers replaced by its block.

    Args:
        text: content of a file.
        made: blocks by name, from `blocks`.
        name: name of the file, for error messages.

    Raises:
        ValueError: a marker is unpaired or names an unknown block.
    """
    pairs = re.compile(r"<!-- results:(\w+) -->\n.*?<!-- /results:\1 -->", re.DOTALL)
    if left := re.search(r"<!-- /?results:.*", pairs.sub("", text)):
        raise ValueError(f"{name} has an unpaired {left[0]}: expected <!-- results:X --> ... <!-- /results:X -->")

    def block(found: re.Match) -> str:
        if found[1] not in made:
            raise ValueError(f"{name} has <!-- results:{found[1]} -->, expected one of: {', '.join(made)}")
        return f"<!-- results:{found[1]} -->\n\n{made[found[1]]}\n\n<!-- /results:{found[1]} -->"

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


def run(values) -> None:
    """Writes the tables into all files with markers."""
    for path, text in rewritten(Path(values.root), collect.read_all(Path(values.cells))).items():
        files.write_text(path, text)
        print(path, flush=True)


def _settings(
    finished: Sequence[Finished], corpus: str, masking: str, keys: Sequence[paper.Key]
) -> list[tables.Setting]:
    """Returns the settings of a table that have a trained model."""
    wanted = (corpus, masking, PROTOCOL, PRESET)
    found = [one for one in finished if collect.common(one.cell) == wanted]
    if not found:
        raise ValueError(f"no finished cell of {corpus}, masking {masking}, protocol {PROTOCOL}, preset {PRESET}")
    return [setting for setting in collect.table(found, keys).settings if setting.trained]


def _block(
    settings: Sequence[tables.Setting],
    titles: Sequence[str],
    left: int,
    row: Callable[[tables.Setting, str], tuple[str, ...]],
    notes: Sequence[str],
    last: int = 0,
) -> str:
    """Returns a table and its notes.

    Args:
        settings: the settings of the table.
        titles: titles of all columns.
        left: number of left-aligned columns.
        row: returns the columns of a setting and model, except those on training.
        notes: notes on these settings; the notes on training follow them.
        last: number of columns to put after those on training.
    """
    grid = [titles, ("---",) * left + ("---:",) * (len(titles) - left)]
    for setting, model in _trained(settings):
        columns = row(setting, model)
        place = len(columns) - last
        grid.append((*columns[:place], *tables.training_of(settings, setting, model), *columns[place:]))
    lines = [f"- {note}" for note in (*notes, *tables.trained_notes(settings))]
    return "\n\n".join([markdown_rows(grid), "\n".join(lines)])


def _trained(settings: Sequence[tables.Setting]) -> list[tuple[tables.Setting, str]]:
    return [(setting, model) for setting in settings for model in MODELS if model in setting.trained]


def _papers(setting: tables.Setting, model: str, number: str) -> str:
    return paper.printed(setting.key, model, number) or tables.NO_VALUE


def _ours(setting: tables.Setting, model: str, key: str, form: str = ".2f") -> str:
    values = tables.values_of(setting, model, key)
    if not values:
        return tables.NOT_RUN
    mean, spread = tables.mean_and_spread(values)
    return format(mean, form) + ("" if spread is None else f" ± {spread:{form}}")


if __name__ == "__main__":
    flags.main(run, flags.define_readme, __doc__)
