"""A reader of a file or folder that is written aside sees the old one, or the whole new one."""

import pytest

from text_infilling import files


def write(path, content, fail_with=None):
    """A file, or for a dict a folder of files."""
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
def test_what_is_new_takes_the_place_of_what_is_old(tmp_path, old, new):
    for content in (old, new):
        write(tmp_path / "it", content)
        assert read(tmp_path / "it") == content
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


@pytest.mark.parametrize("error", [ValueError(), KeyboardInterrupt()])
@pytest.mark.parametrize(("old", "new"), [("old", "new"), ({"a": "1"}, {"a": "3"})])
def test_a_failure_leaves_the_old_and_nothing_else(tmp_path, old, new, error):
    write(tmp_path / "it", old)
    with pytest.raises(type(error)):
        write(tmp_path / "it", new, fail_with=error)
    assert read(tmp_path / "it") == old and [path.name for path in tmp_path.iterdir()] == ["it"]


@pytest.mark.parametrize("left", ["half", {"a": "half", "b": "half"}])
def test_what_a_killed_process_left_is_no_part_of_the_new(tmp_path, left):
    write(tmp_path / f"{files.ASIDE}it", left)
    write(tmp_path / "it", {"a": "1"})
    assert read(tmp_path / "it") == {"a": "1"} and [path.name for path in tmp_path.iterdir()] == ["it"]


def test_json_that_is_none_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{", "utf-8")
    with pytest.raises(ValueError, match=f"{path} is no JSON"):
        files.read_json(path)
