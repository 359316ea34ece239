"""The frame of all commands: exit codes and one-line messages."""

import subprocess
import sys

import pytest

from text_infilling.utils import command


@pytest.mark.parametrize(
    ("outcome", "code", "printed"),
    [
        (None, 0, ""),
        (1, 1, ""),
        (ValueError("two\n  lines"), 1, "error: two lines\n"),
        (TimeoutError(), 1, "error: TimeoutError\n"),
        (ZeroDivisionError("no rows"), 1, "error: no rows\n"),
        (ImportError("no keras"), 1, "error: no keras; run `text-infill doctor` to see how to fix it\n"),
        (KeyboardInterrupt(), 130, "stopped: run it again\n"),
        (command.Terminated(), 143, "stopped by SIGTERM: run it again\n"),
    ],
    ids=repr,
)
def test_a_command_ends_with_a_code_and_at_most_one_line(monkeypatch, capsys, outcome, code, printed):
    def function():
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(command, "prepare", lambda: None)
    with pytest.raises(SystemExit) as error:
        command.run_command(function, "run it again")
    assert (error.value.code or 0, capsys.readouterr().err) == (code, printed)


def test_a_bug_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(command, "prepare", lambda: None)
    with pytest.raises(KeyError):
        command.run_command(lambda: {}["missing"])


def test_a_closed_pipe_prints_nothing():
    """As with `text-infill fill ... | head -1`."""
    script = (
        "from text_infilling.utils.command import run_command\nrun_command(lambda: [print(i) for i in range(10**6)])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert (process.stderr.read(), process.wait(30)) == ("", 1)
