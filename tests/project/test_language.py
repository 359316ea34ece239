"""Sources, help texts and docs use plain technical English: idioms that readers stumbled over are out of use."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path for name in ("text_infilling", "experiments", "benchmarks", "tests") for path in (ROOT / name).rglob("*.py")
]
DOCS = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]

# What is out of use, and what to write instead.
IDIOMS = {
    r"\bstands?\b(?!-in\b| in for\b| for\b)": "is, are",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bhas no meaning with\b": "cannot be combined with",
    r"\bwhat becomes of\b": "the result of",
    r"\bof (one's|one) own\b": "custom, your own",
    r"\bgo(es|ne|ing)? on with\b": "resume",
    r"\bcomes? to nothing\b": "fails",
    r"\btakes? away again\b": "removes",
    r"\bso many\b": "n, that many",
    r"\bbut for\b": "except",
    r"\b(sentences|words|steps|lines|texts|files|updates|blanks) an? (second|batch|epoch|line|file|blank)\b": "per",
    r"\bin place of\b": "instead of",
}
# Where such words are right: (file, words).
ALLOWED = {
    ("tests/project/test_language.py", None),
    ("text_infilling/corpora/synthetic/reviews.py", "stand"),  # food stands
    ("text_infilling/corpora/synthetic/tales.py", "mended"),  # the past tense, in the word tables
}


def prose(path: Path) -> list[tuple[int, str]]:
    """Returns the numbered docstrings, comments and messages of a Python file; each line of a document."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return list(enumerate(text.splitlines(), start=1))
    found = [
        (t.start[0], t.string)
        for t in tokenize.generate_tokens(io.StringIO(text).readline)
        if t.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            found.append((node.lineno, node.value))
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            found.append((node.lineno, node.name.replace("_", " ")))
    return found


def complaints(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    return [
        f"{name}:{line}: {found[0]!r} (write: {better})"
        for line, text in prose(path)
        for idiom, better in IDIOMS.items()
        for found in re.finditer(idiom, " ".join(text.split()), re.IGNORECASE)
        if not {(name, None), (name, found[0].lower())} & ALLOWED
    ]


@pytest.mark.parametrize("path", [*SOURCES, *DOCS], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_idiom_that_is_out_of_use(path):
    assert complaints(path) == []


def test_the_check_finds_idioms_in_comments_docstrings_messages_and_test_names(tmp_path, monkeypatch):
    path = tmp_path / "module.py"
    path.write_text(
        '"""Mends it."""\n# It stands here.\ndef test_what_becomes_of_it():\n    raise ValueError("gone on with it")\n'
    )
    monkeypatch.setitem(complaints.__globals__, "ROOT", tmp_path)
    assert [complaint.split(":")[1] for complaint in sorted(complaints(path))] == ["1", "2", "3", "4"]
