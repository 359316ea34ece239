"""Freed memory is reused without page faults."""

import platform
import subprocess
import sys

import pytest

# Counts the page faults of writing a large block after a block of the same size was freed.
FAULTS = """
import ctypes, resource
from text_infilling.utils.malloc import keep_freed_memory
{call}
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = ctypes.c_void_p(libc.malloc(2**26))
    ctypes.memset(block, 1, 2**26)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_freed_memory_is_reused_without_page_faults():
    def faults(call):
        return int(
            subprocess.run([sys.executable, "-c", FAULTS.format(call=call)], capture_output=True, check=True).stdout
        )

    assert faults("assert keep_freed_memory()") < 10 < faults("")
