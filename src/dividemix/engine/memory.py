"""The machine's memory: reuse what a step freed, and recognise errors that mean there is too little."""

import ctypes
import sys

# Options of glibc's mallopt (malloc.h). Blocks up to 32 MB, the most it allows, come from the heap. The heap grows by
# 64 MB at a time and shrinks only when 1 GB of it is free.
_OPTIONS = {"M_MMAP_THRESHOLD": (-3, 32 * 2**20), "M_TOP_PAD": (-2, 64 * 2**20), "M_TRIM_THRESHOLD": (-1, 2**30)}
# What oneDNN says when it gets no memory; it says nothing else of the reason.
_ONEDNN = ("could not create a primitive", "could not create a memory object", "could not execute a primitive")


def keep_freed_memory() -> bool:
    """Let malloc reuse the blocks that a step frees; returns whether the C library supports that.

    Every step on a CPU allocates and frees the same activations. By default glibc returns them to the operating system,
    which must clear every page again for the next step. That takes up to a twentieth of a step's time (LOG.md).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    accepted = [mallopt(option, value) == 1 for option, value in _OPTIONS.values()]
    return all(accepted)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory is short; torch and oneDNN raise a plain RuntimeError on a CPU."""
    if not isinstance(error, RuntimeError):
        return isinstance(error, MemoryError)
    is_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    return is_torch or str(error) in _ONEDNN
