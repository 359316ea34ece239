"""What is printed on stderr during the import of TensorFlow, with a fake TensorFlow that prints the same lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTICE = "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
INFO = "I0000 00:00:1796221029.705691    6494 port.cc:153] oneDNN custom operations are on."
WARNING = "W0000 00:00:1796221029.705691    6494 gpu_device.cc:2342] Cannot dlopen some GPU libraries."
ERROR = "E0000 00:00:1796221029.705691    6494 cuda_dnn.cc:8310] Unable to register cuDNN factory"
FATAL = "F0000 00:00:1796221029.705691    6494 cpu_feature_guard.cc:99] compiled to use AVX2 instructions"
OTHER = "RuntimeWarning: numpy.dtype size changed"


COMMAND = "from text_infilling.utils.command import prepare; prepare()"
LIBRARY = "from text_infilling import FitConfig, Limits"


def imported(tmp_path, then="", level=None, before="", quiet=COMMAND):
    """Returns exit code and stderr lines of a process that imports a fake TensorFlow, which logs and runs `then`."""
    lines = "\n".join([NOTICE, INFO, WARNING, ERROR, FATAL, OTHER, ""])
    (tmp_path / "tensorflow.py").write_text(f"import os\nos.write(2, {lines!r}.encode())\n{then}\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    environment |= {"PYTHONPATH": f"{tmp_path}:{ROOT}"} | ({"TF_CPP_MIN_LOG_LEVEL": level} if level else {})
    script = f"import os, sys; {quiet}\n{before}\nimport tensorflow\nos.write(2, b'imported\\n')"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("quiet", [COMMAND, LIBRARY])
def test_start_up_lines_below_error_are_not_shown(tmp_path, quiet):
    assert imported(tmp_path, quiet=quiet) == (0, [ERROR, FATAL, OTHER, "imported"])


def test_the_library_changes_no_log_level_if_tensorflow_is_already_imported(tmp_path):
    found = imported(tmp_path, quiet=f"import tensorflow; {LIBRARY}", before="print(os.environ, file=sys.stderr)")
    assert found[0] == 0 and found[1][:-2] == [NOTICE, INFO, WARNING, ERROR, FATAL, OTHER]
    assert "TF_CPP_MIN_LOG_LEVEL" not in found[1][-2]


@pytest.mark.parametrize("program", ["''", "None", "'/usr/bin/uwsgi'"])
def test_a_python_inside_another_program_imports_without_the_filter(tmp_path, program):
    """There `sys.executable` cannot run the filter."""
    found = imported(tmp_path, quiet=f"sys.executable = {program}; {LIBRARY}")
    assert found == (0, [NOTICE, INFO, WARNING, ERROR, FATAL, OTHER, "imported"])


def test_a_process_without_stderr_imports_without_the_filter(tmp_path):
    (tmp_path / "tensorflow.py").write_text("print('imported')\n", "utf-8")
    script = f"{LIBRARY}\nimport tensorflow"
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "imported\n")


@pytest.mark.parametrize("quiet", [COMMAND, LIBRARY])
@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("0", [NOTICE, INFO, WARNING, ERROR, FATAL, OTHER]),
        ("1", [WARNING, ERROR, FATAL, OTHER]),
        ("3", [FATAL, OTHER]),
    ],
)
def test_a_log_level_set_by_the_user_is_respected(tmp_path, level, shown, quiet):
    assert imported(tmp_path, level=level, quiet=quiet) == (0, [*shown, "imported"])


def test_all_errors_are_shown_if_the_import_fails(tmp_path):
    code, err = imported(tmp_path, then="raise ImportError('libtensorflow is broken')")
    assert code == 1 and err[:3] == [ERROR, FATAL, OTHER] and err[-1] == "ImportError: libtensorflow is broken"


def test_all_errors_are_shown_if_the_import_aborts_the_process(tmp_path):
    code, err = imported(tmp_path, then="os.abort()")
    assert code < 0 and err == [ERROR, FATAL, OTHER]


def test_sigterm_during_the_import_stops_the_command(tmp_path):
    code, err = imported(tmp_path, then="import signal; signal.raise_signal(signal.SIGTERM)")
    assert code != 0 and err[:3] == [ERROR, FATAL, OTHER] and err[-1].endswith("Terminated")


def test_a_missing_tensorflow_still_raises_import_error(tmp_path):
    code, err = imported(tmp_path, before="sys.path.clear()")
    assert code == 1 and err[-1] == "ModuleNotFoundError: No module named 'tensorflow'"
