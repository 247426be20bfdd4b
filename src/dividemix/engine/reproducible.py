"""One arithmetic on all x86 processors with AVX2: variables that torch, oneDNN, MKL and numpy read when they load.

No torch import. Processors with AVX-512 compute the same bits as those without only if all of these are limited.
"""

import os
import sys

from dividemix.errors import InputError, OtherArithmeticError

VARIABLES = {
    "ATEN_CPU_CAPABILITY": "avx2",  # torch's own kernels
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # convolutions
    "MKL_CBWR": "COMPATIBLE",  # products of matrices, the same on processors of all vendors
    "OPENBLAS_CORETYPE": "Haswell",  # numpy's products of matrices
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}
_THREADS = "OMP_NUM_THREADS"  # sums are split by threads; the user may choose another number


def limit_arithmetic() -> None:
    """Set the variables, if torch and numpy are not loaded yet and so will read them."""
    if not {"torch", "numpy"} & sys.modules.keys():
        os.environ.update(limited(os.environ.copy()))


def limited(environment: dict[str, str]) -> dict[str, str]:
    """The environment with the variables; one thread unless it names another number."""
    return {_THREADS: "1"} | environment | VARIABLES


def require_limited(instruction_set: str) -> None:
    """Raise OtherArithmeticError unless the variables are set, and InputError if torch does not use AVX2 with them."""
    if missing := [f"{name}='{value}'" for name, value in VARIABLES.items() if os.environ.get(name) != value]:
        raise OtherArithmeticError(
            f"reproducible needs environment variables, before torch and numpy are loaded: {' '.join(missing)};"
            " dividemix train sets them itself"
        )
    if instruction_set != "AVX2":
        raise InputError(
            f"reproducible needs a processor with AVX2, and torch loaded after the variables were set: torch uses"
            f" {instruction_set}"
        )


def restart() -> None:
    """Start this program again, in the same process, with the variables set."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], limited(os.environ.copy()))
