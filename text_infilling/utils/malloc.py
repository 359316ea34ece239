"""Settings of the C library's memory allocator."""

import ctypes
import platform

# Constants of glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_MOST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Makes the process keep freed memory for reuse; returns whether the C library supports it.

    By default glibc returns large blocks to the system as soon as they are freed, so every new tensor above 32 MiB
    causes thousands of page faults: with seq2seq at the paper's sizes, these took half the time of a training step.
    TensorFlow on the CPU uses the C library's allocator. The cost is that memory use stays at its peak.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all([mallopt(_MMAP_MAX, 0), mallopt(_TRIM_THRESHOLD, _MOST), mallopt(_TOP_PAD, 2**26)])
