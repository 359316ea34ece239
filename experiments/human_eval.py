"""Human evaluation as in the paper: pages on which annotators rank the three models' texts, and their agreement.

Commands:
    python -m experiments.human_eval export --seq2seq=CELL --gan=CELL --self_attention=CELL --study=FOLDER
    python -m experiments.human_eval import --study=FOLDER --answers=FOLDER_OF_DOWNLOADED_JSON
    python -m experiments.human_eval report --study=FOLDER

`export` writes one HTML file per annotator and key.json, which says whose text is whose: do not give it to annotators.
An annotator opens the file in a browser, ranks all items and sends back the JSON file that the page downloads.
`import` writes scores.json and refuses incomplete, duplicate or changed files by name; it writes the mean scores to
human.json of the three cells, from which `experiments.collect` makes the row of the tables. `report` prints the mean
score of each model (3 best, 1 worst) with a 95% interval, the agreement of the annotators, and the paper's scores if it
has any. The cells need predictions.jsonl.
"""

from pathlib import Path

import numpy as np
from absl import flags as absl_flags
from absl.flags import FlagValues

from experiments.annotation import study as studies
from experiments.annotation.agreement import kendalls_w, krippendorffs_alpha, mean_scores, sums_to_six
from experiments.annotation.study import KEY, MODELS, OPEN, TRUTH
from experiments.cells import cell as cells
from experiments.cells import flags
from experiments.cells.experiment import HUMAN
from experiments.cells.setting import Cell
from experiments.tables import paper
from text_infilling.utils import files
from text_infilling.utils.columns import aligned

COMMANDS = ("export", "import", "report")
SCORES = "scores.json"


def run(values: FlagValues) -> None:
    """Runs the command that the argument names."""
    if values.command not in COMMANDS:
        raise ValueError(f"expected one of {', '.join(COMMANDS)}. Received: {values.command}")
    folder = Path(values.study)
    if values.command == "export":
        print(*export(values, folder), sep="\n", flush=True)
        return
    study = files.read_object(folder / KEY, "study", "items", "pages", "cell", "folders")
    if values.command == "import":
        paths = sorted(Path(values.answers or "answers").glob("*.json"))
        found = studies.read_answers(study, paths)
        files.write_json(folder / SCORES, {"study": study["study"], "scores": found})
        for path in to_cells(study, found):
            print(path, flush=True)
        print(f"{len(found)} of {len(study['pages'])} annotators: {folder / SCORES}", flush=True)
    else:
        stored = files.read_object(folder / SCORES, "study", "scores")
        if stored["study"] != study["study"]:
            raise ValueError(f"{folder / SCORES} belongs to another study: import the answers again")
        print(report(study, stored["scores"]), flush=True)


def export(values: FlagValues, folder: Path) -> list[Path]:
    """Writes the pages of a new study and returns the paths.

    Raises:
        ValueError: a cell is missing, not finished, or of another model or setting; the study exists already.
        OSError: a file cannot be read or written.
    """
    predictions, settings = {}, {}
    for model in MODELS:
        if values[model].value is None:
            raise ValueError(f"expected --{model}=CELL, the folder of a finished cell")
        path = Path(values[model].value)
        cell, _ = cells.read_config(path)
        if cell.model != model:
            raise ValueError(f"--{model}={path} is a cell of {cell.model}")
        predictions[model], settings[model] = cells.read_predictions(path), cell
    if len({(cell.setting, cell.seed) for cell in settings.values()}) > 1:
        raise ValueError("expected three cells of the same setting and seed")
    study = studies.make(predictions, values["items"].value, values.annotators, values.checks, values.seed)
    files.make_folder(folder, "--study")
    if (folder / KEY).exists():
        raise ValueError(f"{folder} contains a study, whose answers need its {KEY}: pass another --study")
    folders = {model: str(Path(values[model].value).absolute()) for model in MODELS}
    return studies.export({"cell": settings[MODELS[0]].as_dict(), "folders": folders, **study}, folder)


def to_cells(study: dict, scores: dict[int, list[dict[str, int]]]) -> list[Path]:
    """Writes the mean score of each model to human.json of its cell, from which tables read it; returns the paths.

    Raises:
        OSError: a cell of the study was moved.
    """
    ranked = [i for i, item in enumerate(study["items"]) if TRUTH not in item["texts"]]
    paths = []
    for model, folder in study["folders"].items():
        mean = float(np.mean([items[i][model] for items in scores.values() for i in ranked]))
        paths.append(Path(folder) / HUMAN)
        files.write_json(paths[-1], {"human": mean, "study": study["study"], "annotators": len(scores)})
    return paths


def report(study: dict, scores: dict[str, list[dict[str, int]]]) -> str:
    """Returns the report of imported scores, by annotator and item."""
    ranked = [i for i, item in enumerate(study["items"]) if TRUTH not in item["texts"]]
    checks = [i for i, item in enumerate(study["items"]) if TRUTH in item["texts"]]
    table = np.array([[[items[i][model] for model in MODELS] for i in ranked] for items in scores.values()])
    setting = Cell.from_dict(study["cell"]).setting
    rows = [("model", "mean score", "95% interval", "paper")]
    means = mean_scores(table)
    for model, (mean, low, high) in zip(MODELS, means, strict=True):
        printed = paper.printed(setting, model, "human") or "-"
        rows.append((paper.TITLES[model], f"{mean:.3f}", f"[{low:.3f}, {high:.3f}]", printed))
    lines = [f"{setting.title}: {len(ranked)} items, {len(table)} annotators", "", *aligned(rows), ""]
    lines.append(f"The means {'sum' if sums_to_six([mean for mean, *_ in means]) else 'DO NOT SUM'} to 6.")
    if len(table) > 1:
        alpha, w = krippendorffs_alpha(table), kendalls_w(table)
        lines.append(f"Krippendorff's alpha (ordinal): {alpha:.3f}; Kendall's W, mean over items: {w:.3f}.")
    papers = [paper.numbers(setting).get(model, {}).get("human") for model in MODELS]
    if None not in papers and not sums_to_six(papers):
        lines.append(f"The paper's scores sum to {sum(papers):.3f}, which ranks without ties cannot.")
    for annotator, items in scores.items() if checks else ():
        passed = sum(items[i][TRUTH] > items[i][OPEN] for i in checks)
        lines.append(f"Annotator {annotator}: {passed} of {len(checks)} hidden checks passed.")
    return "\n".join(lines)


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    for model in MODELS:
        absl_flags.DEFINE_string(
            model, None, f"export: folder of a finished cell of {paper.TITLES[model]} with predictions.jsonl.",
            flag_values=values,
        )  # fmt: skip
    absl_flags.DEFINE_string("study", "human_eval", "Folder of the study.", flag_values=values)
    absl_flags.DEFINE_string(
        "answers", None, "import: folder of the downloaded *.json files. Default: answers.", flag_values=values
    )
    for name, default, least, what in (
        ("items", 40, 1, "test sentences to rank."),
        ("annotators", 10, 1, "annotators, one page each."),
        ("checks", 0, 0, "hidden checks: items with the true sentence and the open template."),
    ):
        absl_flags.DEFINE_integer(name, default, f"export: number of {what}", lower_bound=least, flag_values=values)
    absl_flags.DEFINE_integer("seed", 1, "export: seed of all choices and orders.", flag_values=values)


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__, positional=["COMMAND"])
