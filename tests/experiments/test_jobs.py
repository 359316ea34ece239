"""Parallel calls, each in its own process."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.cells import jobs


def double(number):
    print(f"doubling {number}")
    return 2 * number


def own_process(_):
    return os.getpid()


def fail_or_die(how):
    if how == "fail":
        raise ValueError("no such thing")
    if how == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return how


def wait(path):
    try:
        Path(path).touch()
        time.sleep(60)
    except KeyboardInterrupt:
        Path(path).with_suffix(".stopped").touch()
        raise


def test_every_call_returns_its_result_and_prefixes_its_lines_with_its_title(capfd):
    numbers = [(n,) for n in range(3)]
    results = {each: future.result() for each, future in jobs.run(double, numbers, ["a", "b", "c"], 2)}
    assert results == {(0,): 0, (1,): 2, (2,): 4}
    assert sorted(capfd.readouterr().out.splitlines()) == ["a | doubling 0", "b | doubling 1", "c | doubling 2"]


def test_no_two_calls_share_a_process():
    ids = [future.result() for _, future in jobs.run(own_process, [(1,), (2,)], ["", ""], 1)]
    assert len({*ids, os.getpid()}) == 3


def test_a_call_that_fails_or_whose_process_is_killed_does_not_stop_the_others():
    found = dict(jobs.run(fail_or_die, [("fail",), ("die",), ("live",)], ["", "", ""], 1))
    with pytest.raises(ValueError, match="no such thing"):
        found["fail",].result()
    with pytest.raises(OSError, match="killed.*--jobs"):
        found["die",].result()
    assert found["live",].result() == "live"


def test_stopping_the_command_stops_running_processes_and_starts_no_others(tmp_path):
    paths = [tmp_path / "quick", tmp_path / "first", tmp_path / "second"]
    started = time.monotonic()
    running = jobs.run(wait_unless_quick, [(str(path),) for path in paths], ["", "", ""], 2)
    next(running)
    while not paths[1].exists() or not paths[2].exists():
        time.sleep(0.1)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt)
    assert time.monotonic() - started < 50
    assert paths[1].with_suffix(".stopped").exists() and paths[2].with_suffix(".stopped").exists()


COMMAND = """
import sys, test_jobs
from experiments.cells import jobs
if __name__ == "__main__":
    list(jobs.run(test_jobs.wait, [(sys.argv[1],)], [""], 1))
"""


def test_killing_the_command_ends_its_processes(tmp_path):
    (tmp_path / "command.py").write_text(COMMAND)
    here = Path(__file__).parent
    path = tmp_path / "running"
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parents[1]}"}
    command = subprocess.Popen([sys.executable, str(tmp_path / "command.py"), str(path)], env=environment)
    for file in (path, path.with_suffix(".stopped")):
        if file.suffix:
            command.kill()
            command.wait()
        waited = time.monotonic()
        while not file.exists():
            assert time.monotonic() - waited < 50
            time.sleep(0.1)


def wait_unless_quick(path):
    if not path.endswith("quick"):
        wait(path)


def test_a_title_is_printed_once_per_line_even_if_the_line_is_written_in_pieces():
    stream = io.StringIO()
    titled = jobs.Titled(stream, "t")
    for text in ("one", " line\ntwo\n", "\nend"):
        titled.write(text)
    assert stream.getvalue() == "t | one line\nt | two\nt | \nt | end"
