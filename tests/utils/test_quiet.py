"""What a command prints on stderr while it imports TensorFlow, with a fake TensorFlow that prints the same lines."""

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


def imported(tmp_path, then="", level=None, before=""):
    """Returns exit code and stderr lines of a process that imports a fake TensorFlow, which logs and runs `then`."""
    lines = "\n".join([NOTICE, INFO, WARNING, ERROR, FATAL, OTHER, ""])
    (tmp_path / "tensorflow.py").write_text(f"import os\nos.write(2, {lines!r}.encode())\n{then}\n", "utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    environment |= {"PYTHONPATH": f"{tmp_path}:{ROOT}"} | ({"TF_CPP_MIN_LOG_LEVEL": level} if level else {})
    script = (
        f"import os, sys; from text_infilling.utils.command import prepare; prepare()\n{before}\n"
        "import tensorflow\nos.write(2, b'imported\\n')"
    )
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.splitlines()


def test_start_up_lines_below_error_are_not_shown(tmp_path):
    assert imported(tmp_path) == (0, [ERROR, FATAL, OTHER, "imported"])


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("0", [NOTICE, INFO, WARNING, ERROR, FATAL, OTHER]),
        ("1", [WARNING, ERROR, FATAL, OTHER]),
        ("3", [FATAL, OTHER]),
    ],
)
def test_a_log_level_set_by_the_user_is_respected(tmp_path, level, shown):
    assert imported(tmp_path, level=level) == (0, [*shown, "imported"])


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
