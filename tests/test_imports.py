"""Modules form layers, and no module imports from a layer above its own."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# From the lowest layer up. Modules of the same layer may import each other.
LAYERS = [
    {
        "hparams",
        "vocabulary",
        "vocabulary_table",
        "tokenizer",
        "templates",
        "losses",
        "masking",
        "mask_checks",
        "files",
        "columns",
        "fill_options",
        "export_path",
        "command",
        "quiet",
        "progress",
        "tagging",
        "maskers",
        "metrics",
    },
    {"layers"},
    {"decoding"},
    {"models"},
    {"data"},
    {"training"},
    {
        "infiller",
        "run_folder",
        "batch",
        "detokenize",
        "limits",
        "graph_tokenizer",
        "graph_detokenize",
        "export",
    },
    {"fitting", "doctor", "serving"},
    {"cli", "__main__"},
]
# The only library modules that these may import; metrics only uses the names of the special tokens.
ALLOWED = {
    "hparams": set(),
    "masking": {"mask_checks"},
    "mask_checks": set(),
    "vocabulary": {"files"},
    "files": set(),
    "columns": set(),
    "fill_options": {"tokenizer"},
    "export_path": set(),
    "command": {"quiet"},
    "quiet": set(),
    "batch": set(),
    "progress": set(),
    "tagging": set(),
    "maskers": {"tagging"},
    "metrics": {"metrics", "vocabulary"},
}


def imported_names(path: Path, root: Path = ROOT) -> set[str]:
    """Returns the dotted names that a file imports anywhere, with relative imports made absolute."""
    package = list(path.relative_to(root).with_suffix("").parts[:-1])
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            # In `from package import module`, the last part may be a module too.
            names.update(".".join([*base, alias.name]) for alias in node.names)
    return names


def complaints(path: Path, root: Path = ROOT) -> list[str]:
    """Returns a message for each import that a library file must not have."""
    layers = {module: layer for layer, modules in enumerate(LAYERS) for module in modules}
    module = path.relative_to(root / "text_infilling").with_suffix("").parts[0]
    found = []
    for name in sorted(imported_names(path, root)):
        top, *rest = name.split(".")
        if top in ("experiments", "benchmarks", "tests"):
            found.append(f"{module} imports {name}, which is outside the library")
        elif name.startswith("absl.flags"):
            found.append(f"{module} imports {name}: library modules must not read flags")
        elif top == "text_infilling" and rest and module in layers and rest[0] in layers:
            if layers[rest[0]] > layers[module]:
                found.append(f"{module} imports {name}, which is above it")
            elif rest[0] not in ALLOWED.get(module, layers):
                found.append(f"{module} imports {name}, which is not in its ALLOWED list")
    return found


def library_files() -> list[Path]:
    return sorted(path for path in (ROOT / "text_infilling").rglob("*.py") if path.name != "__init__.py")


def test_every_module_of_the_library_has_a_layer():
    modules = {path.relative_to(ROOT / "text_infilling").with_suffix("").parts[0] for path in library_files()}
    assert modules <= set().union(*LAYERS)


def test_no_module_imports_from_a_higher_layer():
    packages = sorted((ROOT / "text_infilling").rglob("__init__.py"))
    assert [complaint for path in library_files() + packages for complaint in complaints(path)] == []


def test_experiments_and_benchmarks_import_the_library_but_not_each_other():
    for package, other in (("experiments", "benchmarks"), ("benchmarks", "experiments")):
        names = set().union(*map(imported_names, (ROOT / package).glob("*.py")))
        assert "text_infilling" in {name.split(".")[0] for name in names}
        assert not {name for name in names if name.split(".")[0] in (other, "tests")}


def test_hparams_imports_only_the_standard_library():
    names = imported_names(ROOT / "text_infilling" / "hparams.py")
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_masking_imports_only_numpy_tensorflow_and_its_checks():
    names = imported_names(ROOT / "text_infilling" / "masking.py")
    assert {name.split(".")[0] for name in names} - sys.stdlib_module_names == {"numpy", "tensorflow", "text_infilling"}
    assert all(name.startswith("text_infilling.mask_checks") for name in names if name.startswith("text_infilling"))


def test_builders_import_only_the_standard_library():
    for name in ("builders", "grimm_builder", "nba_builder"):
        names = imported_names(ROOT / "text_infilling" / "data" / f"{name}.py")
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"text_infilling"}
        ours = [name for name in names if name.startswith("text_infilling")]
        assert all(name.startswith(("text_infilling.data.builders", "text_infilling.columns")) for name in ours)


@pytest.mark.parametrize(
    ("module", "line", "expected"),
    [
        ("layers/attention.py", "from text_infilling.models import seq2seq", "which is above it"),
        ("layers/attention.py", "from text_infilling import models", "which is above it"),
        ("layers/attention.py", "from ..models.seq2seq import Seq2Seq", "which is above it"),
        ("templates.py", "def late():\n    import text_infilling.layers", "which is above it"),
        ("data/pipeline.py", "from text_infilling.training import presets", "which is above it"),
        ("metrics/bleu.py", "from text_infilling import templates", "not in its ALLOWED list"),
        ("models/gan.py", "import experiments.flags", "outside the library"),
        ("training/trainer.py", "from absl import flags", "read flags"),
        ("training/trainer.py", "from text_infilling.data import pipeline", None),
        ("templates.py", "from text_infilling.vocabulary import PAD_ID", None),
        ("metrics/bleu.py", "from text_infilling.metrics import perplexity", None),
        ("metrics/bleu.py", "from text_infilling.vocabulary import SPECIAL_TOKENS", None),
    ],
)
def test_forbidden_imports_are_reported(tmp_path, module, line, expected):
    path = tmp_path / "text_infilling" / module
    path.parent.mkdir(parents=True)
    path.write_text(line + "\n", encoding="utf-8")

    found = complaints(path, tmp_path)

    assert len(found) == (expected is not None)
    assert expected is None or expected in found[0]
