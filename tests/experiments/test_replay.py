"""Reading and scoring the outputs that the paper's authors released."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from file_server import FileServer, unused_url
from hypothesis import given
from hypothesis import strategies as st

from experiments import released, replay
from experiments.released import SOURCES, Line
from experiments.tables import paper

ROOT = Path(__file__).parents[2]
TEXTS = st.text(st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=20)
LINES = [
    Line("<BOS> the <m> is <m> .", "<BOS> the soup is very hot .", "<BOS> the <UNK> is <BOA> good ."),
    Line("<BOS> the <m> is <m> .", "<BOS> the fish is cold .", "<BOS> the fish is cold ."),
    Line("<BOS> the <m> is <m> .", "<BOS> the tea is <UNK> .", "<BOS> tea is cold ."),
]


def blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture(scope="module")
def manifest(shared):
    """The entries of the 28 outputs by name."""
    entries = json.loads((shared / "original" / "MANIFEST.json").read_text("utf-8"))["files"]
    return {Path(entry["file"]).stem: entry for entry in entries}


@pytest.fixture(scope="module")
def replayed(shared, tmp_path_factory):
    """The content of replay.json and replay.md, and what the command prints: whether TensorFlow was imported."""
    out = tmp_path_factory.mktemp("results")
    code = (
        "import sys, atexit, runpy; atexit.register(lambda: print('tensorflow' in sys.modules)); "
        "sys.argv[0] = 'replay'; runpy.run_module('experiments.replay', run_name='__main__')"
    )
    flags = [f"--original_dir={shared / 'original'}", f"--results_dir={out}"]
    line = [sys.executable, "-c", code, *flags]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads((out / "replay.json").read_text("utf-8")), (out / "replay.md").read_text("utf-8"), done.stdout


def test_the_sources_are_those_of_the_manifest(manifest):
    ours = {one.name: (one.path, one.commit, one.blob, float(one.bleu), one.epoch) for one in SOURCES}
    keys = ("source_path", "source_commit", "source_blob", "file_name_bleu", "epoch")
    assert ours == {name: tuple(entry[key] for key in keys) for name, entry in manifest.items()}
    assert [one.name for one in SOURCES if one.is_printed] == [name for name, e in manifest.items() if e["paper_bleu"]]


def test_all_scores_are_those_of_the_manifest(replayed, manifest):
    outputs = replayed[0]["outputs"]
    assert outputs.keys() == manifest.keys()
    for name, entry in manifest.items():
        found = outputs[name]
        assert round(found["bleu"]["bleu_paper"], 3) == entry["bleu_original"], name
        assert round(found["template"]["bleu_paper"], 3) == entry["template_bleu_original"], name
        assert found["bleu"]["bleu"] == pytest.approx(entry["bleu_clean_nltk"], abs=0.01), name
        assert found["special"] == entry["special_tokens_in_fills"], name
        assert (found["exact"], found["sentences"]) == (entry["exact_matches"], entry["lines"]), name
        assert found["unaligned"] == entry["unaligned_outputs"], name
        assert found["same_templates"] == (1000 if entry["dataset"] == "yelp" else None), name


def test_self_attention_leads_clearly_in_each_printed_yelp_cell(replayed):
    printed = {source.name for source in SOURCES if source.is_printed}
    leads = [
        pair
        for pair in replayed[0]["differences"]
        if pair["first"] in printed and "self_attn" in pair["first"] and "yelp" in pair["first"]
    ]
    assert len(leads) == 10  # five cells, two other models
    assert all(pair[metric]["low"] > 0 for pair in leads for metric in replay.METRICS)


def test_the_page_marks_what_deviates(replayed):
    _, page, printed = replayed
    assert "17 of 17 outputs of printed cells have the printed BLEU" in page and page in printed
    rows = [row for row in page.splitlines() if "than the printed cell" in row]
    assert [re.search(r"(\d\d%, . blanks?) \| (\S+) \| (\d+)", row).groups() for row in rows] == [
        ("30%, 2 blanks", "Self-attn", "149"),
        ("50%, 1 blank", "Self-attn", "295"),
    ]


def test_nothing_imports_tensorflow(replayed):
    assert replayed[2].endswith("False\n")


def rounded(value):
    """Returns JSON values with rounded numbers: the last digits of exp and log depend on the processor."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return (
        list(map(rounded, value)) if isinstance(value, list) else round(value, 6) if isinstance(value, float) else value
    )


def test_the_committed_results_are_those_of_the_command(replayed):
    made, page, _ = replayed
    assert rounded(json.loads((ROOT / "results" / "replay.json").read_text("utf-8"))) == rounded(made)
    assert (ROOT / "results" / "replay.md").read_text("utf-8") == page


@given(st.lists(st.builds(Line, TEXTS, TEXTS, TEXTS), max_size=4))
def test_a_file_of_the_authors_is_read_back(lines):
    assert released.parsed(released.as_released(lines), "x") == lines


@pytest.mark.parametrize("content", [b"- template: a\n", b"- template: a\n- got:      b\n- expected: c\n\n"])
def test_a_file_of_another_form_is_an_error_that_names_it(content):
    with pytest.raises(ValueError, match="output.txt does not consist of"):
        released.parsed(content, "output.txt")


@pytest.fixture
def source():
    content = released.as_released(LINES)
    return dataclasses.replace(SOURCES[0], path="folder/file", commit="c0ffee", blob=blob(content)), content


def test_an_output_is_downloaded_once_and_checked(source, monkeypatch, tmp_path):
    one, content = source
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path))
    with FileServer({"c0ffee/folder/file": content}) as server:
        monkeypatch.setattr(released, "REPOSITORY", server.url)
        assert released.read(one, None) == released.read(one, None) == LINES
        assert len(server.requests) == 1
        with pytest.raises(OSError, match="wrong checksum .*pass --original_dir=FOLDER"):
            released.read(dataclasses.replace(one, name="other", blob="0" * 40), None)


def test_without_a_network_the_command_prints_one_line_and_exits_with_1(tmp_path):
    code = f"from experiments import released, replay; released.REPOSITORY = {unused_url()!r}; " + (
        "replay.flags.main(replay.run, replay.define_flags, '')"
    )
    line = [sys.executable, "-c", code, f"--results_dir={tmp_path / 'results'}"]
    env = os.environ | {"TEXT_INFILLING_DATA": str(tmp_path)}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 1 and not done.stdout
    assert re.fullmatch(r"error: cannot download http.*: pass --original_dir=.*\n|error: .*; pass .*\n", done.stderr)
    assert not list((tmp_path / "results").iterdir())


def write(folder, source, lines):
    (folder / "outputs").mkdir()
    path = folder / "outputs" / f"{source.name}.jsonl"
    path.write_text("".join(json.dumps(line._asdict()) + "\n" for line in lines), "utf-8")
    return path


def test_a_changed_file_is_refused_by_name(source, tmp_path):
    path = write(tmp_path, source[0], LINES)
    assert released.read(source[0], tmp_path) == LINES
    path.write_text(path.read_text("utf-8").replace("good", "bad"), "utf-8")
    with pytest.raises(ValueError, match=f"{path.name} differs from the output"):
        released.read(source[0], tmp_path)
    path.write_text('{"template": "a", "got": "b"}\n', "utf-8")
    with pytest.raises(ValueError, match=f"line 1 of .*{path.name}"):
        released.read(source[0], tmp_path)


def test_scores_of_three_sentences_by_hand():
    found = replay.score(paper.NBA, LINES)
    assert found.special == {"<UNK>": 1, "<BOA>": 1}
    assert (found.exact, found.sentences, found.unaligned) == (1, 3, 1)
    assert (found.infill_length, found.answer_length) == ((1.5 + 1) / 2, (1.5 + 1 + 1) / 3)


def test_models_are_compared_on_complete_references():
    full, cut = LINES, [line._replace(expected=line.expected[:9]) for line in LINES]
    outputs = {}
    for setting in replay.SETTINGS:
        for one in (one for one in SOURCES if one.setting == setting):
            outputs[one] = cut if one.model == "self_attention" else full
    assert all(one.value == 0 for found in replay.compare(outputs).values() for one in found.values())
