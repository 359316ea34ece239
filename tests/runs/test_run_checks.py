"""A damaged or hostile run folder is one clear error before a model is built; its config imports nothing."""

import json
import math
import shutil
from pathlib import Path

import h5py
import pytest
from finished_cells import CELL, finish
from infilling_runs import SIZES, WORDS, write_run

from experiments import collect
from experiments.cells import cell as cells
from text_infilling.app import cli
from text_infilling.configs.defaults import MODELS
from text_infilling.configs.protocols import run_hparams
from text_infilling.inference import load_model
from text_infilling.inference.infiller import Infiller
from text_infilling.runs import checks
from text_infilling.runs.run_folder import open_run
from text_infilling.training.task import built_model

DEEP = "[" * 2000 + "]" * 2000
DIGITS = "1" * 5000


@pytest.fixture
def run(infiller_run, tmp_path):
    """A complete run, for a test to damage."""
    return Path(shutil.copytree(infiller_run, tmp_path / "run"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A complete run of each model."""
    return {name: write_run(tmp_path_factory.mktemp(name), name) for name in MODELS}


def damaged(**changes):
    """Returns a function that sets keys of config.json, `__` for a dot; a number too large for JSON is a string."""

    def damage(folder):
        path = folder / "config.json"
        config = json.loads(path.read_text("utf-8"))
        for key, value in changes.items():
            *groups, name = key.split("__")
            part = config
            for group in groups:
                part = part.setdefault(group, {})
            part[name] = f"@{value}@" if isinstance(value, str) and value[0].isdigit() else value
        text = json.dumps(config)
        path.write_text(text.replace('"@', "").replace('@"', ""), encoding="utf-8")

    return damage


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content.encode())


def cut(name, size):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: round(size * len(content))])

    return damage


def dim(value):
    return damaged(hparams__decoder__dim=value)


DAMAGES = {
    "config deep": (written("config.json", DEEP), "config.json is not JSON: lists and objects are nested"),
    "config list": (written("config.json", "[]"), "config.json .* is not an object. Received: "),
    "config string": (written("config.json", '"cell"'), "config.json .* is not an object. Received: 'cell'"),
    "config null": (written("config.json", "null"), "config.json .* is not an object. Received: None"),
    "config empty": (written("config.json", ""), "config.json is not JSON"),
    "config cut": (cut("config.json", 0.7), "config.json is not JSON"),
    "config not UTF-8": (lambda folder: (folder / "config.json").write_bytes(b"\xff{}"), "config.json is not JSON"),
    "cell list": (damaged(cell=[]), "config.json .*cell must be dict. Received: "),
    "model list": (damaged(cell__model=["gan"]), r"cell.model must be str. Received: \['gan'\]"),
    "model unknown": (damaged(cell__model="os"), "cell.model must be one of .* Received: 'os'"),
    "hparams list": (damaged(hparams=[]), "hparams must be dict"),
    "group missing": (damaged(hparams={}), "config.json .*it has no hparams"),
    "group null": (damaged(hparams__decoder=None), "'decoder' must be dict. Received: None"),
    "group deep": (
        damaged(hparams__decoder=json.loads("[" * 60 + "]" * 60)), r"'decoder' must be a dict. Received: \[\["
    ),
    "unknown key": (damaged(hparams__decoder__import="os"), "Unknown hyperparameter 'decoder.import'"),
    "unknown group": (damaged(hparams__os={"system": "ls"}), "Unknown hyperparameter 'os'"),
    "vocabulary null": (damaged(vocabulary=None), "vocabulary must be dict"),
    "hash number": (damaged(vocabulary__hash=1), "vocabulary.hash must be str. Received: 1"),
    "where list": (damaged(where=[]), "where must be dict"),
    "versions text": (damaged(versions="of 2020"), "versions must be dict"),
    "digits": (dim(DIGITS), "config.json is not JSON"),
    "dim huge": (dim(8_000_000), "decoder.dim must be .*less than 65536. Received: decoder.dim=8000000"),
    "dim of 4000 digits": (dim(DIGITS[:4000]), "decoder.dim must be .* Received: decoder.dim=1111"),
    "dim large": (dim(60_000), "best.weights.h5 .* decoder.dim=60000,"),
    "dim zero": (dim(0), "decoder.dim must be at least 1"),
    "dim negative": (dim(-16), "decoder.dim must be at least 1"),
    "dim infinite": (dim("1e999"), "'decoder.dim' must be int. Received: inf"),
    "dim float": (dim(16.0), "'decoder.dim' must be int"),
    "dim bool": (dim(True), "'decoder.dim' must be int"),
    "dim text": (dim("sixteen"), "'decoder.dim' must be int"),
    "blocks huge": (damaged(hparams__decoder__num_blocks=10**9), "decoder.num_blocks must be .* less than 1000"),
    "blocks many": (damaged(hparams__decoder__num_blocks=999), "best.weights.h5 .* decoder.num_blocks=999,"),
    "blocks fewer": (damaged(hparams__decoder__num_blocks=1), "best.weights.h5 .* decoder.num_blocks=1,"),
    "ffn huge": (damaged(hparams__decoder__ffn_dim=65_000), "best.weights.h5 .* decoder.ffn_dim=65000"),
    "heads": (damaged(hparams__decoder__num_heads=3), "num_heads=3"),
    "dropout NaN": (damaged(hparams__decoder__residual_dropout=math.nan), "decoder.residual_dropout must be"),
    "dropout of 400 digits": (
        damaged(hparams__decoder__residual_dropout=DIGITS[:400]), "'decoder.residual_dropout' must be float"
    ),
    "base huge": (damaged(hparams__position__base=2**40), "position.base must be"),
    "base zero": (damaged(hparams__position__base=0), "position.base must be"),
    "longest huge": (damaged(hparams__decoding__max_length=10**12), "decoding.max_length must be"),
    "longest negative": (damaged(hparams__decoding__max_length=-1), "decoding.max_length must be"),
    "beam huge": (damaged(hparams__decoding__beam_width=10**9), "decoding.beam_width must be"),
    "beam zero": (damaged(hparams__decoding__beam_width=0), "decoding.beam_width must be"),
    "choice": (damaged(hparams__position__layout="os:system"), "position.layout must be one of"),
    "vocabulary shorter": (cut("vocabulary.txt", 0.5), "vocabulary"),
    "vocabulary longer": (
        lambda folder: (folder / "vocabulary.txt").write_text("\n".join([*WORDS, "more", ""])), "is not the one that"
    ),
    "vocabulary empty": (written("vocabulary.txt", ""), "vocabulary.txt is not a vocabulary"),
    "weights empty": (written("best.weights.h5", ""), "best.weights.h5 does not hold"),
    "weights text": (written("best.weights.h5", "weights"), "best.weights.h5 does not hold"),
    "weights cut": (cut("best.weights.h5", 0.6), "best.weights.h5 does not hold"),
    "weights cut at the end": (cut("best.weights.h5", 0.999), "best.weights.h5 does not hold"),
    "tokenizer deep": (written("tokenizer.json", DEEP), "tokenizer.json is not JSON: lists and objects are nested"),
    "tokenizer list": (written("tokenizer.json", "[1]"), "tokenizer.json should hold"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_a_one_line_error_with_file_and_key_before_a_model_is_built(run, monkeypatch, damage):
    def build(*_):
        raise AssertionError("memory for a model")

    if not damage.startswith("tokenizer"):
        monkeypatch.setattr(load_model, "built_model", build)
    change, message = DAMAGES[damage]
    change(run)
    with pytest.raises((ValueError, OSError), match=message) as error:
        Infiller.load(run)
    assert str(run) in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 1000


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("key", ["vocabulary", *sorted({key for sizes in SIZES.values() for key in sizes})])
def test_the_number_of_parameters_is_that_of_the_model(name, key):
    key, _, value = key.partition("=")
    changed = {"decoder.num_blocks": 3, "decoder.num_heads": 4}.get(key, 24)
    assignments = SIZES[name] + [f"{key}={changed}"] * any(each.startswith(key) for each in SIZES[name])
    if key.endswith("units") and name != "self_attention":
        assignments += ["encoder.units=24", "decoder.units=24"]
    hparams = run_hparams("paper", "smoke", assignments, model=name)
    vocabulary_size = 35 + 5 * (key == "vocabulary")
    scalars = 2 if name == "gan" else 0  # its temperature and baseline
    assert checks.parameters(name, vocabulary_size, hparams) + scalars == (
        built_model(name, vocabulary_size, hparams).count_params()
    )


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_another_model_are_an_error_with_the_sizes(runs, name, tmp_path):
    for another in set(MODELS) - {name}:
        folder = Path(shutil.copytree(runs[name], tmp_path / another))
        shutil.copy(runs[another] / "best.weights.h5", folder)
        with pytest.raises(ValueError, match=f"{folder}/best.weights.h5 does not hold the weights of the {name} model"):
            Infiller.load(folder)


@pytest.mark.parametrize("kernel_sizes", [[], [0], [3, 10**9], [3] * 10_000, [3, 4, 6], [3, True], 3, None])
def test_kernel_sizes_of_a_gan_are_checked(runs, tmp_path, kernel_sizes):
    folder = Path(shutil.copytree(runs["gan"], tmp_path / "run"))
    damaged(hparams__classifier__kernel_sizes=kernel_sizes)(folder)
    with pytest.raises(ValueError, match="kernel_sizes") as error:
        Infiller.load(folder)
    assert len(str(error.value)) < 1000


def external(file, name, other_file):
    del file[name]
    file[name] = h5py.ExternalLink(str(other_file), "vars/0")


def soft(file, name, other_file):
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def unallocated(file, name, other_file):
    del file[name]
    file.create_dataset(name, (35, 16), "f4", chunks=(35, 16), compression="gzip")


def stored_outside(file, name, other_file):
    del file[name]
    file.create_dataset(name, (35, 16), "f4", external=[(str(other_file), 0, 35 * 16 * 4)])


def of_objects(file, name, other_file):
    del file[name]
    file.create_dataset(name, (35, 16), h5py.string_dtype())


def never_written(file, name, other_file):
    del file[name]
    file.create_dataset(name, (2**20, 2**20), "f4")


@pytest.mark.parametrize("damage", [external, soft, unallocated, stored_outside, of_objects, never_written])
def test_weights_that_keras_does_not_write_are_refused(run, tmp_path, damage):
    shutil.copy(run / "best.weights.h5", tmp_path / "other.h5")
    with h5py.File(run / "best.weights.h5", "a") as file:
        damage(file, "vars/0", tmp_path / "other.h5")
    with pytest.raises(ValueError, match=f"{run}/best.weights.h5 does not hold the weights"):
        Infiller.load(run)


@pytest.mark.parametrize(
    "text",
    ["[]", "null", '{"a": "high"}', '{"a": [1]}', '{"a": true}', f'{{"a": {DIGITS[:4000]}}}', DEEP, "{"],
)
def test_metrics_that_are_not_numbers_are_a_one_line_error(run, tmp_path, text, capsys):
    finished = finish(tmp_path, CELL, {})
    for folder in (run, finished):
        (folder / "metrics.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"{finished}/metrics.json"):
        collect.read_cells(tmp_path, "yelp/*")
    with pytest.raises(SystemExit) as error:
        cli.main(["info", str(run)])
    assert error.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_info_escapes_control_characters_of_a_config(run, capsys):
    """They could change what a terminal shows: here one clears the screen, one forges a row, one reverses a text."""
    hostile = "a\x1b[2Jb\nmodel         c\u202ed café"
    changes = {"cell__corpus": hostile, "cell__masking": hostile, "where": {"source": hostile}}
    damaged(**changes, versions={hostile: hostile})(run)
    cli.commands.info(cli.new_parser().parse_args(["info", str(run)]))
    rows = capsys.readouterr().out.splitlines()
    escaped = r"a\x1b[2Jb\nmodel         c\u202ed café"
    names = ["model", "parameters", "vocabulary", "corpus", "masking", "learned", "longest", "made"]
    assert [row.partition(" ")[0] for row in rows] == names
    assert rows[3:5] == [f"corpus        {escaped} ({escaped})", f"masking       {escaped}"]
    assert escaped in rows[5] and rows[7] == f"made with     {escaped} {escaped}"


def test_metrics_may_be_infinite(tmp_path):
    finish(tmp_path, CELL, {"ppl": float("inf")})
    (found,) = collect.read_cells(tmp_path, "yelp/*")
    assert found.metrics == {"ppl": float("inf")}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 of .*predictions.jsonl is not JSON"),
        (DEEP, "line 2 of .*predictions.jsonl is not JSON"),
        ("[]", "line 2 of .*predictions.jsonl is not a prediction: it is not an object"),
        ("{}", "line 2 of .*predictions.jsonl is not a prediction: it has no template"),
        ('{"template": 1, "answer": [], "infill": []}', "template must be str"),
    ],
)
def test_an_invalid_prediction_is_an_error_that_names_its_line(tmp_path, line, message):
    whole = '{"template": "a <m>", "answer": ["b"], "infill": ["c"], "scores": [-1.0]}\n'
    (tmp_path / "predictions.jsonl").write_text(f"{whole}{line}\n", encoding="utf-8")
    assert cells.read_predictions(tmp_path, 1) == [json.loads(whole)]
    with pytest.raises(ValueError, match=message) as error:
        cells.read_predictions(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("corpus", "../../elsewhere"), ("corpus", "other"), ("corpus", None), ("corpus", ["yelp"]),
        ("protocol", "../paper"), ("preset", "auto"), ("model", "sklearn"), ("model", {}),
        ("masking", "../fixed"), ("masking", "a/b:c"), ("masking", "a:b:0"), ("masking", "a:b.c"), ("masking", 1),
        ("mask_rate", 2.0), ("mask_rate", math.nan), ("mask_rate", "high"), ("mask_rate", True),
        ("blanks", 0), ("blanks", 10**12), ("blanks", 2.0), ("seed", -1), ("seed", 2**31), ("seed", "one"),
        ("more", 1),
    ],
)  # fmt: skip
def test_the_name_of_a_cell_has_known_values_and_is_never_a_path(tmp_path, key, value):
    folder = finish(tmp_path, CELL, {"bleu": 1.0})
    damaged(**{f"cell__{key}": value})(folder)
    with pytest.raises(ValueError, match=rf"{folder}/config.json does not name a cell: .*cell\.{key}") as error:
        collect.read_cells(tmp_path, "yelp/*")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"where": []}, "where must be dict"),
        ({"where": {"data_dir": 1, "source": "", "note": ""}}, "where.data_dir must be str or null"),
        ({"where": {"data_dir": None, "source": None, "note": ""}}, "where.source must be str"),
        ({"corpus": {}}, "it has no corpus.checksum"),
        ({"mixed_precision": "os"}, "mixed_precision must be bool"),
        ({"hparams": {"optimizer": {"name": "os.system"}}}, "optimizer.name must be one of adam, muon"),
    ],
)
def test_the_other_keys_of_a_cells_config_are_checked(tmp_path, changes, message):
    folder = finish(tmp_path, CELL, {"bleu": 1.0}, **changes)
    with pytest.raises(ValueError, match=f"{folder}/config.json does not name a cell: .*{message}"):
        collect.read_cells(tmp_path, "yelp/*")


def test_a_changed_number_in_weights_with_a_checksum_is_an_error(run):
    path = run / "best.weights.h5"
    checks.add_checksum(path)
    Infiller.load(run)
    content = bytearray(path.read_bytes())
    with h5py.File(path) as file:
        items = []
        file.visititems(lambda _, item: items.append(item))
        places = [item.id.get_offset() for item in items if isinstance(item, h5py.Dataset)]
    content[places[0] + 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="best.weights.h5 .*its numbers have another checksum than it states"):
        open_run(run)
