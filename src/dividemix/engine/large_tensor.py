"""Tensors that may be larger than the memory: in a file, which the system keeps in memory as far as there is room."""

import os
import tempfile
from contextlib import suppress

import torch
from torch import Tensor

IN_MEMORY = 1_000_000_000  # bytes; a larger tensor is in a file


def large_tensor(num_rows: int, num_columns: int) -> Tensor:
    """A float32 tensor (num_rows, num_columns) of any content on the CPU; in a file without a name if it is large.

    The file is in the folder for temporary files (TMPDIR) and goes with the tensor, also if the process is killed. Its
    room on the disk is taken at once. If there is too little, the tensor is in memory.
    """
    num_bytes = 4 * num_rows * num_columns
    if num_bytes > IN_MEMORY and hasattr(os, "posix_fallocate"):
        with suppress(OSError):
            return _in_file(num_rows, num_columns)
    return torch.empty(num_rows, num_columns)


def _in_file(num_rows: int, num_columns: int) -> Tensor:
    descriptor, name = tempfile.mkstemp(prefix="dividemix-", suffix=".tensor")
    try:
        os.posix_fallocate(descriptor, 0, 4 * num_rows * num_columns)  # a full disk is found here and not by a signal
        flat = torch.from_file(name, shared=True, size=num_rows * num_columns, dtype=torch.float32)
    finally:
        os.close(descriptor)
        os.unlink(name)  # noqa: PTH108 (it stays until the tensor is gone)
    return flat.view(num_rows, num_columns)
