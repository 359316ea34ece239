"""Atomic writing: a reader sees the old file or folder, or the complete new one."""

import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from text_infilling.utils import files

ROOT = Path(__file__).resolve().parents[2]


def write(path, content, fail_with=None):
    """Writes a file, or a folder of files if the content is a dict."""
    with files.written_aside(path) as aside:
        if isinstance(content, dict):
            aside.mkdir()
            for name, text in content.items():
                (aside / name).write_text(text, "utf-8")
        else:
            aside.write_text(content, "utf-8")
        if fail_with:
            raise fail_with


def read(path):
    if path.is_dir():
        return {entry.name: entry.read_text("utf-8") for entry in path.iterdir()}
    return path.read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new"), [("old", "new"), ({"a": "1", "b": "2"}, {"a": "3"}), ("old", {"a": "1"}), ({"a": "1"}, "new")]
)
def test_new_content_replaces_old_content(tmp_path, old, new):
    for content in (old, new):
        write(tmp_path / "it", content)
        assert read(tmp_path / "it") == content
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
@pytest.mark.parametrize(("old", "new"), [("old", "new"), ({"a": "1"}, {"a": "3"})])
def test_a_failed_write_leaves_only_the_old_content(tmp_path, old, new, error):
    write(tmp_path / "it", old)
    with pytest.raises(type(error)):
        write(tmp_path / "it", new, fail_with=error)
    assert read(tmp_path / "it") == old and [path.name for path in tmp_path.iterdir()] == ["it"]


def killed_writer(folder, content):
    """Leaves in `folder` the files of a writer that was killed halfway."""
    code = (
        "import os, pathlib, signal, sys; from text_infilling.utils import files\n"
        "with files.written_aside(pathlib.Path(sys.argv[1])) as aside:\n"
        "    aside.write_text(sys.argv[2]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / "it"), content], cwd=ROOT, check=False)
    assert [path.name.startswith(files.ASIDE) for path in folder.iterdir()] == [True]


@pytest.mark.parametrize("name", ["it", "another"])
def test_the_next_writer_in_a_folder_removes_the_files_of_a_killed_writer(tmp_path, name):
    killed_writer(tmp_path, "half")
    write(tmp_path / name, {"a": "1"})
    assert read(tmp_path / name) == {"a": "1"} and [path.name for path in tmp_path.iterdir()] == [name]


def test_the_files_of_a_running_writer_are_not_removed(tmp_path):
    with files.written_aside(tmp_path / "it") as aside:
        aside.write_text("first")
        write(tmp_path / "another", "second")
        write(tmp_path / "it", "second")
        assert aside.read_text() == "first"
    assert read(tmp_path / "it") == "first" and read(tmp_path / "another") == "second"
    assert {path.name for path in tmp_path.iterdir()} == {"it", "another"}


def test_folders_of_the_user_are_not_removed(tmp_path):
    for name in ("aside.1", "aside.run", ".aside", "text_infilling-aside-1"):
        write(tmp_path / name, {"a": "mine"})
    write(tmp_path / "1", {"a": "new"})
    assert read(tmp_path / "aside.1") == {"a": "mine"} and len(list(tmp_path.iterdir())) == 5


def write_often(path, number):
    """Writes to one path many times and returns the errors."""
    errors = []
    for i in range(60):
        try:
            write(path, f"{number} {i} " * 2000)
            write(path.with_name("folder"), {"a": f"{number} {i}", "b": f"{number} {i}"})
        except OSError as error:
            errors.append(repr(error))
    return errors


@pytest.mark.parametrize(
    "make_pool", [ThreadPoolExecutor, partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context("spawn"))],
    ids=["threads", "processes"],
)  # fmt: skip
def test_many_writers_of_one_path_leave_it_complete_and_nothing_else(tmp_path, make_pool):
    with make_pool(4) as pool:
        found = list(pool.map(write_often, [tmp_path / "it"] * 4, range(4)))
    assert found == [[]] * 4
    number, i, *_ = read(tmp_path / "it").split()
    assert read(tmp_path / "it") == f"{number} {i} " * 2000
    assert len(set(read(tmp_path / "folder").values())) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"it", "folder"}


def test_the_error_names_a_folder_that_cannot_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"No such file or directory: '{tmp_path}/missing'"):
        files.write_text(tmp_path / "missing" / "it", "text")


def test_a_held_lock_makes_the_next_caller_wait(tmp_path):
    order = []

    def next_one():
        with files.held(tmp_path / "lock", lambda: order.append("waits")):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        with files.held(tmp_path / "lock", lambda: order.append("never")):
            future = pool.submit(next_one)
            while not order:
                time.sleep(0.01)
            order.append("first")
        future.result()
    assert order == ["waits", "first", "second"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[" * 100_000,
        "[" * 5000 + "]" * 5000,
        '{"a":' * 500 + "1" + "}" * 500,
        "1" * 5000,
        '"\xff',
        "",
    ],
    ids=["cut", "unclosed", "deep list", "deep object", "many digits", "not UTF-8", "empty"],
)
def test_the_error_for_invalid_json_is_one_line_that_names_the_file(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    for function, named in (
        (files.read_json, f"{path} is not JSON"),
        (files.read_jsonl, f"line 1 of {path} is not JSON"),
    ):
        if not text and function is files.read_jsonl:
            continue  # no line
        with pytest.raises(ValueError, match=named) as error:
            function(path)
        assert "\n" not in str(error.value) and len(str(error.value)) < 500


def test_json_nested_as_deep_as_in_run_files_is_read(tmp_path):
    text = "[" * files.DEEPEST_JSON + "]" * files.DEEPEST_JSON
    files.write_text(tmp_path / "it.json", text)
    assert repr(files.read_json(tmp_path / "it.json")) == text


@pytest.mark.parametrize(("text", "message"), [("[]", "a JSON object. Received: \\[\\]"), ('{"a": 1}', "has no b, c")])
def test_the_error_names_the_keys_that_an_object_lacks(tmp_path, text, message):
    files.write_text(tmp_path / "made.json", text)
    with pytest.raises(ValueError, match=f"{tmp_path}/made.json .*{message}"):
        files.read_object(tmp_path / "made.json", "a", "b", "c")


def test_the_sha256_of_a_file_is_that_of_sha256sum(tmp_path):
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")

    assert files.sha256(path) == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"


def test_the_sha256_of_a_large_file(shared):
    sums = dict(reversed(line.split()) for line in (shared / "data/SHA256SUMS").read_text().splitlines())

    assert files.sha256(shared / "data/yelp/train.txt") == sums["yelp/train.txt"]
