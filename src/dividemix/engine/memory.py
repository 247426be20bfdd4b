"""The computer's memory: keeping what was freed for the next step, and telling when there is none left."""

import ctypes
import sys

# glibc's mallopt (malloc.h): blocks up to 32 MB, the most it allows, come from the heap, which grows by 64 MB at a time
# and shrinks only when 1 GB of it is free.
_OPTIONS = {"M_MMAP_THRESHOLD": (-3, 32 * 2**20), "M_TOP_PAD": (-2, 64 * 2**20), "M_TRIM_THRESHOLD": (-1, 2**30)}


def keep_freed_memory() -> bool:
    """Let malloc reuse the blocks that a step frees; whether the C library could be told so.

    A step on a CPU allocates and frees the same activations each time. By default glibc returns them to the kernel,
    which has to clear every page again for the next step: up to a twentieth of a step's time (LOG.md).
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
    """Whether an exception says that memory is short: torch's allocator for the CPU raises a plain RuntimeError."""
    is_torch = isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    )
    return is_torch or isinstance(error, MemoryError)
