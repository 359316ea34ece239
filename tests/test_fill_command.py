"""The command `text-infill fill`: its lines, their order and their errors, with a stand-in for the model."""

import io
import json
import sys

import pytest
from serving_helper import Echo

from text_infilling import cli
from text_infilling.infiller import Infiller


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_a_line_that_is_not_utf_8_is_an_error_record_in_its_place(source, tmp_path, monkeypatch, capsys):
    content = "é ____\r\n".encode() + b"caf\xe9 ____\n\xff\n" + b"d ____"
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(cli, "CHUNK", 2)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    (tmp_path / "in.txt").write_bytes(content)
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--json", f"--file={tmp_path / 'in.txt' if source == 'file' else '-'}"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert error.value.code == 1 and [record["line"] for record in records] == [1, 2, 3, 4]
    assert [record.get("text") for record in records] == ["é é", None, None, "d d"]
    assert all("not UTF-8" in record["error"] for record in records[1:3])


def test_long_files_show_how_far_it_is(tmp_path, monkeypatch, capsys):
    now = iter(range(0, 10_000, 6))
    monkeypatch.setattr("text_infilling.progress.time.monotonic", lambda: next(now))
    monkeypatch.setattr(Infiller, "load", lambda folder: Echo())
    monkeypatch.setattr(cli, "CHUNK", 2)
    (tmp_path / "in.txt").write_text("a ____\n" * 8, "utf-8")
    with pytest.raises(SystemExit):
        cli.main(["fill", "--run=x", f"--file={tmp_path / 'in.txt'}"])
    assert capsys.readouterr().err.splitlines() == [
        "4 lines are done, 0 a second, 50%, 12 s left",
        "8 lines are done, 0 a second, 100%, 0 s left",
    ]


def test_the_command_fill_gives_each_text_the_limits_of_its_blanks(monkeypatch, capsys):
    given = []

    class Picky(Echo):
        def fill(self, texts, *, limits, **options):
            given.append((texts, limits))
            return super().fill(texts, limits=limits)

    monkeypatch.setattr(Infiller, "load", lambda folder: Picky())
    limits = [{"max_words": 1}, {"max_words": 2}]
    texts = ["a ____ ____", "forbidden ____ ____", "c ____ ____"]
    with pytest.raises(SystemExit) as error:
        cli.main(["fill", "--run=x", "--json", "--limits", json.dumps(limits), *texts])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert error.value.code == 1 and [record["line"] for record in records] == [1, 2, 3]
    assert [record.get("text") for record in records] == ["a a a", None, "c c c"] and "forbidden" in records[1]["error"]
    probe, together, *_ = given
    assert probe[0].count("____") == 2 and probe[1] == limits
    assert together == (texts, [limits] * 3)
