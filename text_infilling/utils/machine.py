"""The machine and the version of the code, for records of what was measured."""

import platform
import shutil
import subprocess
from pathlib import Path

from text_infilling.utils import files

ROOT = Path(__file__).resolve().parents[2]
# Those that the speed of matrix products depends on, as Linux names them.
_INSTRUCTION_SETS = ("avx", "avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def processor() -> str:
    """Returns the processor's name, from /proc/cpuinfo if the system has it."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def instruction_sets() -> list[str]:
    """Returns the processor's vector and matrix instruction sets by their names in /proc/cpuinfo; empty without it."""
    flags = _cpuinfo("flags").split()
    return [name for name in _INSTRUCTION_SETS if name in flags]


def _cpuinfo(field):
    """Returns a field of the first processor in /proc/cpuinfo, or an empty text."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == field), "")


def commit() -> str:
    """Returns the Git commit of this code, with `-dirty` if files differ; outside a checkout the package's version.

    Never fails: hours of training must not be lost because Git refuses to read the checkout.
    """
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode == 0:
            return result.stdout.strip()
    return f"version {files.versions(['text_infilling'])['text_infilling']}"
