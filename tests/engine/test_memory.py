"""Oracle: the C library's own account (mallinfo2) of the memory that it holds free for the next request."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from dividemix.engine.memory import is_out_of_memory

SCRIPT = """
import ctypes, sys
import torch
from dividemix.engine.memory import keep_freed_memory

NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]

try:
    mallinfo = ctypes.CDLL(None).mallinfo2
except (AttributeError, OSError):
    sys.exit(77)
mallinfo.restype = Info
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(77)
blocks = [torch.ones(16 * 2**20 // 4) for _ in range(12)]
del blocks
print(mallinfo().fordblks // 2**20)
"""


def megabytes_kept(mode: str) -> int:
    """Free megabytes in the heap after 12 blocks of 16 MB were allocated and freed."""
    result = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=False)
    if result.returncode == 77:
        pytest.skip("the C library has no mallopt or no mallinfo2")
    return int(result.stdout)


@pytest.mark.slow
def test_freed_memory_is_kept() -> None:
    assert megabytes_kept("keep") >= 12 * 16
    assert megabytes_kept("as it is") < 12 * 16  # else the first assertion would say nothing


def test_torch_on_a_cpu_and_numpy_are_understood_when_they_ask_for_too_much() -> None:
    for ask, error in ((torch.empty, RuntimeError), (np.empty, MemoryError)):
        with pytest.raises(error) as caught:
            ask(2**56)
        assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))
