"""Writes the tables of results in README.md and docs/*.md from finished cells, between markers.

Command:
    python -m experiments.readme

Expected: between `<!-- results:NAME -->` and `<!-- /results:NAME -->` the tables of the cells in results/cells of the
protocol `paper`, the preset `laptop` and the paper's masks. NAME is `summary` (Yelp in short), `yelp` or `pairs` (the
tasks with three blanks).
Duration: under a second.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments import collect, flags, paper, tables
from experiments.evaluate import Finished
from experiments.formats import markdown_rows
from text_infilling import files

PROTOCOL, PRESET = "paper", "laptop"
MODELS = paper.MODELS[1:]  # those that are trained
TRAINED = ("optimizer", "epochs", "batch", "parameters", "TFLOP", "minutes")


def blocks(finished: Sequence[Finished]) -> dict[str, str]:
    """Returns the text between the markers of each name.

    Raises:
        ValueError: there are no cells for one of them, or cells cannot be in one table.
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
    """Returns a short table of Yelp's settings without notes."""
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
    """Returns the table of Yelp's settings and its notes."""
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
    """Returns the table of the tasks with three blanks and its notes."""
    titles = ("task", "model", "`ppl`", "`bleu_paper`", "words per infill (true)", "a trigram twice", *TRAINED,
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
    """Returns a text with a block in place of what is between each pair of markers.

    Args:
        text: of a file.
        made: see `blocks`.
        name: of the file, for errors.

    Raises:
        ValueError: a marker has no partner, or names no block.
    """
    pairs = re.compile(r"<!-- results:(\w+) -->\n.*?<!-- /results:\1 -->", re.DOTALL)
    if left := re.search(r"<!-- /?results:.*", pairs.sub("", text)):
        raise ValueError(
            f"{name} has {left[0]} without its partner: expected <!-- results:X --> ... <!-- /results:X -->"
        )

    def block(found: re.Match) -> str:
        if found[1] not in made:
            raise ValueError(f"{name} has <!-- results:{found[1]} -->, expected of: {', '.join(made)}")
        return f"<!-- results:{found[1]} -->\n\n{made[found[1]]}\n\n<!-- /results:{found[1]} -->"

    return pairs.sub(block, text)


def rewritten(root: Path, finished: Sequence[Finished]) -> dict[Path, str]:
    """Returns the new text of every file of a project that has markers, by path.

    Raises:
        ValueError: no file has markers; see also `blocks` and `written`.
    """
    made = blocks(finished)
    texts = {path: path.read_text("utf-8") for path in [*root.glob("README.md"), *sorted(root.glob("docs/*.md"))]}
    found = {path: written(text, made, str(path)) for path, text in texts.items() if "<!-- results:" in text}
    if not found:
        raise ValueError(f"no README.md or docs/*.md in {root} has a line <!-- results:yelp -->: give another --root")
    return found


def run(values) -> None:
    """Writes the tables into all files with markers."""
    for path, text in rewritten(Path(values.root), collect.read_all(Path(values.cells))).items():
        files.write_text(path, text)
        print(path, flush=True)


def _settings(
    finished: Sequence[Finished], corpus: str, masking: str, keys: Sequence[paper.Key]
) -> list[tables.Setting]:
    """Returns the settings of a table in which a model was trained."""
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
    """Returns a table and its notes; how a model was trained is before the `last` columns.

    Args:
        settings: of the table.
        titles: of all columns.
        left: columns that are aligned to the left.
        row: makes the columns of a setting and model, but for those of training.
        notes: of these settings; those of training follow.
        last: see above.
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
