"""The machine and the version of the code, for records of what was measured."""

import platform
import shutil
import subprocess
from pathlib import Path

from text_infilling.utils import files

ROOT = Path(__file__).resolve().parents[2]


def processor() -> str:
    """Returns the processor's name, from /proc/cpuinfo if the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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
