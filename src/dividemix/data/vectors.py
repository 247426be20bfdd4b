"""Vectors (N, D) as they are given: what is allowed, and how they are read in blocks. They may be mapped from a file.

Shapes: N samples, D features.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError

_BLOCK_BYTES = 1 << 24  # of a block as float64: it stays in a processor's cache, and needs little memory


def blocks(vectors: NDArray[Any]) -> Iterator[slice]:
    """The rows of vectors (N, D) in blocks of about 16 MB as float64."""
    num_rows = max(1, _BLOCK_BYTES // (8 * max(vectors.shape[1], 1)))
    for start in range(0, len(vectors), num_rows):
        yield slice(start, min(start + num_rows, len(vectors)))


def check_vectors(vectors: NDArray[Any], where: str, like: tuple[int, ...] | None = None) -> None:
    """Raise InputError, starting with `where`, unless these are finite numbers (N, D), none empty.

    There must be at least two training vectors. Test vectors must have the length of the training vectors, whose shape
    is `like`.
    """
    if vectors.dtype.kind not in "iuf":
        raise InputError(f"{where} has type {vectors.dtype}: vectors must be numbers, such as float32")
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise InputError(f"{where} has shape {vectors.shape}: must be (N, D), a vector of D numbers for each sample")
    if like is None and len(vectors) < 2:
        raise InputError(f"{where} has one vector, at least two are needed")
    if like is not None and vectors.shape[1] != like[1]:
        raise InputError(f"{where} has vectors of {vectors.shape[1]} numbers, but the training vectors have {like[1]}")
    if vectors.dtype.kind != "f":
        return
    for rows in blocks(vectors):
        # NaN is not at most anything. Longer floats may be infinite as float32, which the networks compute with.
        is_finite = (np.abs(vectors[rows]) <= np.finfo(np.float32).max).all(axis=1)
        if not is_finite.all():
            row = rows.start + int(np.flatnonzero(~is_finite)[0])
            found = "a number above 3e38" if np.isfinite(vectors[row]).all() else "NaN or an infinite number"
            raise InputError(f"{where} has {found} in row {row}: replace it, or remove the row")


def vectors_fingerprint(vectors: NDArray[Any]) -> bytes:
    """32 bytes that identify vectors (N, D) by their values as float32, wherever they are stored."""
    whole = hashlib.blake2b(repr(vectors.shape).encode(), digest_size=32)
    for rows in blocks(vectors):
        whole.update(np.ascontiguousarray(vectors[rows], dtype=np.float32).data)
    return whole.digest()
