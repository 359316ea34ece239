"""The cache of corpora: each target is made once, appears only when it is complete, and is used without a lock."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pytest

from text_infilling.corpora.cache import cache_folder, prepared
from text_infilling.corpora.corpus import load_corpus
from text_infilling.corpora.masked_corpora import load_corpus as load_masked_corpus


def count_and_make(log, folder):
    """Appends a line to `log`, and writes two files slowly."""
    with open(log, "a", encoding="utf-8") as lines:
        lines.write("made\n")
    folder.mkdir()
    for name in ("one.txt", "two.txt"):
        time.sleep(0.2)
        (folder / name).write_text(f"{name} by {os.getpid()}", "utf-8")


def prepare(cache, log):
    """Returns the content of the prepared files, as this process sees them."""
    folder = prepared(cache, cache / "parent" / "folder", partial(count_and_make, log))
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


def load_both(cache):
    """Returns two corpora loaded from an empty cache."""
    corpora = load_corpus("synthetic", cache_dir=cache), load_masked_corpus("nba", "synthetic", cache_dir=cache)
    return [(corpus, corpus.test.read_text("utf-8")) for corpus in corpora]


POOLS = pytest.mark.parametrize(
    "make_pool",
    [ThreadPoolExecutor, partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context("spawn"))],
    ids=["threads", "processes"],
)


@POOLS
def test_several_at_once_get_one_complete_folder_that_is_made_once(tmp_path, make_pool):
    cache, log = tmp_path / "cache", tmp_path / "log"
    with make_pool(4) as pool:
        first, *others = pool.map(prepare, [cache] * 8, [log] * 8)
    assert first.keys() == {"one.txt", "two.txt"} and others == [first] * 7
    assert log.read_text("utf-8") == "made\n"
    assert sorted(path.name for path in cache.iterdir()) == [".lock", "parent"]
    assert [path.name for path in (cache / "parent").iterdir()] == ["folder"]


def test_two_processes_that_load_corpora_at_once_get_the_same_files(tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        one, other = pool.map(load_both, [tmp_path / "cache"] * 2)
    assert one == other
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [".lock", "prepared", "synthetic"]
    assert len(list((tmp_path / "cache" / "prepared").iterdir())) == 1


def test_a_complete_target_is_neither_made_nor_locked(tmp_path):
    (tmp_path / "there.txt").write_text("kept", "utf-8")
    assert prepared(tmp_path, tmp_path / "there.txt", None) == tmp_path / "there.txt"
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"]


def test_an_incomplete_target_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "damaged.txt").touch()
    log = tmp_path / "log"
    prepared(tmp_path, tmp_path / "folder", partial(count_and_make, log), lambda path: (path / "two.txt").exists())
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["one.txt", "two.txt"]


def test_a_failure_leaves_nothing_and_the_next_call_tries_again(tmp_path):
    def fail(folder):
        folder.mkdir()
        (folder / "one.txt").touch()
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        prepared(tmp_path, tmp_path / "folder", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert prepared(tmp_path, tmp_path / "folder", lambda folder: folder.mkdir()).is_dir()


def test_the_error_of_an_unwritable_cache_names_the_environment_variable(tmp_path):
    (tmp_path / "file").write_text("in the way", "utf-8")

    with pytest.raises(OSError, match="set TEXT_INFILLING_DATA"):
        prepared(tmp_path / "file" / "cache", tmp_path / "file" / "cache" / "folder", None)


def test_the_environment_variable_sets_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TEXT_INFILLING_DATA", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("TEXT_INFILLING_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "text_infilling"
