"""Imports run one way: the modules and packages are in one order, and none imports a later one."""

import ast
import graphlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Each may import only what is before it; modules of one package may import each other, but not in a circle.
ORDER = [
    "utils",
    "hparams",
    "vocabulary",
    "configs",
    "text",
    "templates",
    "losses",
    "metrics",
    "masking",
    "runs",
    "layers",
    "decoding",
    "models",
    "corpora",
    "data",
    "training",
    "inference",
    "app",
    "__main__",
]
# Further limits: what a module or package may import of this library at most.
ALLOWED = {
    "utils": {"utils"},
    "hparams": set(),
    "vocabulary": {"utils"},
    "configs": {"configs", "hparams", "utils"},
    "metrics": {"metrics", "vocabulary"},
    "inference": set(ORDER) - {"training", "corpora", "data"},
    "masking": {"masking", "vocabulary"},
}
TENSORFLOW_FREE = ("utils", "hparams", "vocabulary", "configs", "runs")


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
    module = path.relative_to(root / "text_infilling").with_suffix("").parts[0]
    found = []
    for name in sorted(imported_names(path, root)):
        top, *rest = name.split(".")
        if top in ("experiments", "benchmarks", "tests"):
            found.append(f"{module} imports {name}, which is outside the library")
        elif name.startswith("absl.flags"):
            found.append(f"{module} imports {name}: library modules must not read flags")
        elif name.split(".")[0] == "tensorflow" and module in TENSORFLOW_FREE:
            found.append(f"{module} imports {name}, and must work without TensorFlow")
        elif top == "text_infilling" and rest and module in ORDER and rest[0] in ORDER:
            if ORDER.index(rest[0]) > ORDER.index(module):
                found.append(f"{module} imports {name}, which is after it")
            elif rest[0] not in ALLOWED.get(module, ORDER):
                found.append(f"{module} imports {name}, which is not in its ALLOWED list")
    return found


def library_files() -> list[Path]:
    return sorted(path for path in (ROOT / "text_infilling").rglob("*.py") if path.name != "__init__.py")


def test_every_module_of_the_library_is_in_the_order():
    modules = {path.relative_to(ROOT / "text_infilling").with_suffix("").parts[0] for path in library_files()}
    assert modules == set(ORDER)


def test_no_module_imports_a_later_one():
    assert [complaint for path in library_files() for complaint in complaints(path)] == []


@pytest.mark.parametrize("package", ["text_infilling", "experiments", "benchmarks"])
def test_modules_do_not_import_each_other_in_a_circle(package):
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    }
    graph = {
        module: {
            used
            for name in imported_names(path)
            for used in (name, name.rpartition(".")[0])
            if used in files and used != module
        }
        for module, path in files.items()
    }
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_packages_are_empty_except_the_public_names():
    """`models` also imports its classes, which registers them with Keras."""
    public = ("text_infilling", "models")
    packages = [path for path in (ROOT / "text_infilling").rglob("__init__.py") if path.parent.name not in public]
    assert packages
    for path in packages:
        assert len(ast.parse(path.read_text("utf-8")).body) == 1, path  # the docstring


def test_experiments_and_benchmarks_import_the_library_but_not_each_other():
    """Except for the fault campaign, which stops commands of `experiments` and damages their cells."""
    for package, other in (("experiments", "benchmarks"), ("benchmarks", "experiments")):
        paths = [
            path for path in (ROOT / package).rglob("*.py") if path.stem not in ("damaged_inputs", "process_faults")
        ]
        names = set().union(*map(imported_names, paths))
        assert "text_infilling" in {name.split(".")[0] for name in names}
        assert not {name for name in names if name.split(".")[0] in (other, "tests")}


def test_hparams_imports_only_the_standard_library():
    names = imported_names(ROOT / "text_infilling" / "hparams.py")
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_builders_import_only_the_standard_library():
    for path in (ROOT / "text_infilling" / "corpora" / "builders").glob("*.py"):
        names = imported_names(path)
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"text_infilling"}
        ours = [name for name in names if name.startswith("text_infilling")]
        allowed = ("text_infilling.corpora.builders.common", "text_infilling.utils.columns")
        assert all(name.startswith(allowed) for name in ours)


@pytest.mark.parametrize(
    ("module", "line", "expected"),
    [
        ("layers/attention.py", "from text_infilling.models import seq2seq", "which is after it"),
        ("layers/attention.py", "from text_infilling import models", "which is after it"),
        ("layers/attention.py", "from ..models.seq2seq import Seq2Seq", "which is after it"),
        ("templates.py", "def late():\n    import text_infilling.layers", "which is after it"),
        ("data/pipeline.py", "from text_infilling.training import trainer", "which is after it"),
        ("masking/spans.py", "from text_infilling.runs import layout", "which is after it"),
        ("metrics/bleu.py", "from text_infilling import templates", "not in its ALLOWED list"),
        ("inference/infiller.py", "from text_infilling.training import trainer", "not in its ALLOWED list"),
        ("models/gan.py", "import experiments.flags", "outside the library"),
        ("training/trainer.py", "from absl import flags", "read flags"),
        ("configs/protocols.py", "import tensorflow as tf", "without TensorFlow"),
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
