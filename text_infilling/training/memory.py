"""How the C library hands out memory."""

import ctypes
import platform

# Of glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_MOST = 2**31 - 1


def keep_freed_memory() -> bool:
    """Makes the process keep memory that was freed, for its next use; whether that could be done.

    By default glibc gives large blocks back to the system as soon as they are freed, and every tensor of more than 32
    MiB costs thousands of page faults again: at the paper's sizes of seq2seq, that was half the time of a training
    step. TensorFlow on the CPU uses the C library's allocator. The price is that memory stays at its peak.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return all([mallopt(_MMAP_MAX, 0), mallopt(_TRIM_THRESHOLD, _MOST), mallopt(_TOP_PAD, 2**26)])
