"""A study: the items that annotators rank, their pages, and reading the answers.

Source: Paper, section 4.1, "Quantitative and Human Evaluation": 40 test sentences, ten annotators, the texts of three
models in random order; the best gets a score of 3, the others 2 and 1.
"""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.tables import paper
from experiments.tables.outputs import filled_text
from text_infilling.runs.checks import check_types
from text_infilling.utils import files
from text_infilling.vocabulary import TEMPLATE_BLANK

PAGE = Path(__file__).with_name("page.html")
MODELS = paper.MODELS[1:]
TRUTH, OPEN = "truth", "open template"  # the texts of hidden checks
KEY = "key.json"
RANKS = [1, 2, 3]


def make(predictions: Mapping[str, Sequence[dict]], items: int, annotators: int, checks: int, seed: int) -> dict:
    """Returns the key of a new study: which text of each page is whose.

    Args:
        predictions: lines of predictions.jsonl of the three models, for the same test sentences.
        items: number of test sentences to rank.
        annotators: number of pages.
        checks: number of hidden checks: items with the true sentence, a model's and the open template.
        seed: seed of the choice and of all orders.

    Raises:
        ValueError: the models have other templates or too few sentences.
    """
    templates = [[line["template"] for line in predictions[model]] for model in MODELS]
    if not templates[0] == templates[1] == templates[2]:
        raise ValueError("the models' predictions are not of the same templates: pass cells of one setting")
    if not 1 <= items + checks <= len(templates[0]):
        raise ValueError(f"expected 1 to {len(templates[0])} items and checks in all. Received: {items + checks}")
    rng = random.Random(seed)
    chosen = []
    for number, line in enumerate(rng.sample(range(len(templates[0])), items + checks)):
        one = {model: predictions[model][line] for model in MODELS}
        template = templates[0][line]
        texts = {model: filled_text(template, each["infill"]) for model, each in one.items()}
        if number >= items:
            model = rng.choice(MODELS)
            blanks = ["____"] * template.split().count(TEMPLATE_BLANK)
            texts = {
                TRUTH: filled_text(template, one[model]["answer"]),
                model: texts[model],
                OPEN: filled_text(template, blanks),
            }
        chosen.append({"line": line, "template": template.replace(TEMPLATE_BLANK, "____"), "texts": texts})
    study = hashlib.sha256(json.dumps([chosen, seed]).encode()).hexdigest()[:12]
    pages = []
    for annotator in range(1, annotators + 1):
        order = rng.sample(range(len(chosen)), len(chosen))
        shown = [{"item": i, "whose": rng.sample(list(chosen[i]["texts"]), len(RANKS))} for i in order]
        pages.append({"annotator": annotator, "key": f"{rng.getrandbits(64):016x}", "items": shown})
    return {"study": study, "items": chosen, "pages": pages}


def page(study: dict, one: dict) -> str:
    """Returns the page of an annotator, a single HTML file that does not say whose text is whose."""
    items = [(study["items"][shown["item"]], shown["whose"]) for shown in one["items"]]
    data = {
        "study": study["study"],
        "annotator": one["annotator"],
        "key": one["key"],
        "items": [{"template": item["template"], "texts": [item["texts"][w] for w in whose]} for item, whose in items],
    }
    # A text must not end the script.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return PAGE.read_text("utf-8").replace("/*DATA*/null", text)


def export(study: dict, folder: Path) -> list[Path]:
    """Writes the key and all pages to a folder and returns the paths."""
    pages = {folder / f"annotator{one['annotator']:02d}.html": page(study, one) for one in study["pages"]}
    for path, text in pages.items():
        files.write_text(path, text)
    files.write_json(folder / KEY, study)
    return [*pages, folder / KEY]


def checksum(text: str) -> int:
    """Returns the 32-bit FNV-1a hash of the UTF-16 code units, as the page computes it."""
    value, units = 0x811C9DC5, text.encode("utf-16-le")
    for i in range(0, len(units), 2):
        value = ((value ^ int.from_bytes(units[i : i + 2], "little")) * 0x01000193) & 0xFFFFFFFF
    return value


def read_answer(study: dict, path: Path) -> tuple[int, list[dict[str, int]]]:
    """Returns the annotator of a downloaded result and the score of each text, by item and by whose text it is.

    Raises:
        ValueError: the file is not a complete, unchanged result of this study; the message names it.
    """
    answer = files.read_json(path)
    try:
        check_types(answer, {"study": str, "annotator": int, "scores": list, "checksum": int})
        if answer["study"] != study["study"]:
            raise ValueError(f"it belongs to the study {files.shown(answer['study'])}, not to {study['study']}")
        one = next((one for one in study["pages"] if one["annotator"] == answer["annotator"]), None)
        if one is None:
            raise ValueError(f"the study has no annotator {answer['annotator']}")
        if len(answer["scores"]) != len(one["items"]):
            raise ValueError(f"incomplete: {len(answer['scores'])} of {len(one['items'])} items")
        for number, scores in enumerate(answer["scores"], start=1):
            if not isinstance(scores, list) or not all(type(x) is int for x in scores) or sorted(scores) != RANKS:
                raise ValueError(f"incomplete: item {number} should have the scores 1, 2, 3. Received: {scores!r}")
        signed = {key: answer[key] for key in ("study", "annotator", "scores")}
        text = f"{one['key']} {json.dumps(signed, separators=(',', ':'), ensure_ascii=False)}"
        if checksum(text) != answer["checksum"]:
            raise ValueError("it was changed after its download")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    found: list[dict[str, int]] = [{} for _ in study["items"]]
    for shown, scores in zip(one["items"], answer["scores"], strict=True):
        found[shown["item"]] = dict(zip(shown["whose"], scores, strict=True))
    return answer["annotator"], found


def read_answers(study: dict, paths: Sequence[Path]) -> dict[int, list[dict[str, int]]]:
    """Returns the scores of all annotators, see `read_answer`.

    Raises:
        ValueError: there are no files, a file is refused, or two are of one annotator.
    """
    if not paths:
        raise ValueError("no answers: expected at least one downloaded *.json file")
    found, of = {}, {}
    for path in paths:
        annotator, scores = read_answer(study, path)
        if annotator in found:
            raise ValueError(f"{path}: duplicate of {of[annotator]}, both are of annotator {annotator}")
        found[annotator], of[annotator] = scores, path
    return found
