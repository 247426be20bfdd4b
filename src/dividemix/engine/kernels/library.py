"""The compiled C++ kernels.

The object file is code that this process runs, so nobody else may be able to write it. Every process compiles it into a
new directory with a random name that only its user can open, and removes that once the file is loaded. An existing
object file is never used.
"""

import ctypes
import os
import shlex
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch

_SOURCE = Path(__file__).with_name("winograd.cpp")
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")


@cache
def load_library() -> ctypes.CDLL:
    """Compile winograd.cpp for this CPU, in about a second, and load it.

    The compiler is g++ or what the environment variable CXX names. Raises FileNotFoundError if there is none, and
    OSError if it fails, or the directory is not private.
    """
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    # torch's OpenMP library comes before the system's, which is then not needed: two would compete for the cores.
    threads = map(str, (Path(torch.__file__).parent / "lib").glob("libgomp*"))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        library = Path(folder) / "kernels.so"
        command = [*compiler, *_FLAGS, "-Wl,--as-needed", str(_SOURCE), "-o", str(library), *threads]
        result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        if result.returncode:
            raise OSError(f"{compiler[0]} cannot compile {_SOURCE.name}: {result.stderr.strip()}")
        status = Path(folder).lstat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise OSError(f"{folder} is not private: it must belong to this user, with mode 0700")
        loaded = ctypes.CDLL(str(library))
    loaded.convolution_workspace.restype = loaded.weight_gradient_workspace.restype = ctypes.c_int64
    return loaded
