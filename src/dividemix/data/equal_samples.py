"""Which samples are equal. A network that was trained on a sample knows its copies, too."""

import hashlib
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import ImageFiles, image_digest
from dividemix.data.source import Samples
from dividemix.data.table_rows import is_numeric, is_rows
from dividemix.data.vectors import blocks


def equal_groups(samples: Samples) -> NDArray[np.int64]:
    """The number (N,) of each sample's group: equal samples have the same one, groups are numbered as they appear.

    Images in files that are not decoded before training are equal if they have the same name and size.
    """
    numbers: dict[Hashable, int] = {}
    keys = (numbers.setdefault(key, len(numbers)) for key in _keys(samples))
    return np.fromiter(keys, dtype=np.int64, count=len(samples))


def _keys(samples: Samples) -> Iterable[Hashable]:
    """For each sample what identifies it."""
    if isinstance(samples, ImageFiles):
        return map(bytes, samples.digests)
    if is_rows(samples):
        return zip(*(_cells(samples, name) for name in samples.dtype.names or ()), strict=True)
    if samples.dtype == object:
        return samples.tolist()  # type: ignore[no-any-return]
    return _vector_keys(samples) if samples.ndim == 2 else map(image_digest, samples)


def _cells(rows: NDArray[Any], column: str) -> list[Any]:
    """The values (N,) of a column, None where one is missing: NaN does not equal itself."""
    values: list[Any] = rows[column].tolist()
    return [None if value != value else value for value in values] if is_numeric(rows, column) else values


def _vector_keys(vectors: NDArray[Any]) -> Iterator[bytes]:
    """The digest of each vector as float32, which is what trains; -0.0 counts as 0.0."""
    for rows in blocks(vectors):
        for vector in np.ascontiguousarray(vectors[rows], dtype=np.float32) + np.float32(0):
            yield hashlib.blake2b(vector.data, digest_size=16).digest()
