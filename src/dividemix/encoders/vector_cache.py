"""Vectors on disk while and after they are computed: in chunks, so that an interrupted computation continues.

A folder has vectors.npy, the whole array, and chunks.json, the digest of each finished chunk. A chunk whose digest does
not fit is computed again.
"""

import io
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.errors import DamagedCacheWarning, InputError
from dividemix.lock import exclusive
from dividemix.stored import digest_of, read_json

CHUNK = 1024  # samples


class _Chunks(TypedDict):
    num_samples: int
    num_features: int
    digests: dict[str, str]  # number of a finished chunk -> digest of its bytes


def cached(
    folder: Path, num_samples: int, compute: Callable[[list[range]], Iterable[NDArray[np.float32]]]
) -> NDArray[np.float32]:
    """Vectors (N, D) of a folder, mapped from its file; `compute` gives those of the chunks that it lacks.

    It waits for a process that is filling the folder. Raises InputError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder, wait=True):  # another process may be computing the same vectors
            return _filled(folder, num_samples, compute)
    except OSError as error:
        words = f"{folder}: cannot be written: {error.strerror or error}"
        raise InputError(f"{words}; free some space, or set DIVIDEMIX_CACHE to another folder") from error


def _filled(
    folder: Path, num_samples: int, compute: Callable[[list[range]], Iterable[NDArray[np.float32]]]
) -> NDArray[np.float32]:
    path, record = folder / "vectors.npy", folder / "chunks.json"
    chunks = [range(start, min(start + CHUNK, num_samples)) for start in range(0, num_samples, CHUNK)]
    known = _known(path, record, num_samples)
    digests = {} if known is None else known["digests"]
    missing = [chunk for number, chunk in enumerate(chunks) if str(number) not in digests]
    if missing:
        if known is not None:  # the file may have been cut
            os.truncate(path, _num_bytes((num_samples, known["num_features"])))
        for chunk, vectors in zip(missing, compute(missing), strict=True):
            if known is None:
                known = {"num_samples": num_samples, "num_features": vectors.shape[1], "digests": digests}
                _create(path, (num_samples, vectors.shape[1]))
            content = np.ascontiguousarray(vectors, dtype=np.float32).tobytes()
            if len(content) != 4 * len(chunk) * known["num_features"]:
                raise InputError(f"the encoder gave vectors of different lengths: {vectors.shape[1]} numbers")
            with path.open("r+b") as file:  # not through a map: on a full disk that would end the process
                file.seek(-4 * known["num_features"] * (num_samples - chunk.start), os.SEEK_END)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            digests[str(chunk.start // CHUNK)] = digest_of(content)
            atomic.write_text(record, json.dumps(known))
    whole: NDArray[np.float32] = np.load(path, mmap_mode="c")
    return whole


def _create(path: Path, shape: tuple[int, int]) -> None:
    """An .npy file of zeros."""
    with atomic.replacing(path) as file:
        file.write(_header(shape))
        file.truncate(_num_bytes(shape))


def _header(shape: tuple[int, int]) -> bytes:
    """What an .npy file of float32 vectors begins with."""
    content = io.BytesIO()
    npy_format.write_array_header_1_0(content, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return content.getvalue()


def _num_bytes(shape: tuple[int, int]) -> int:
    """The size of an .npy file of float32 vectors."""
    return len(_header(shape)) + 4 * shape[0] * shape[1]


def _known(path: Path, record: Path, num_samples: int) -> _Chunks | None:
    """What chunks.json says, without the chunks that are damaged; None if nothing can be used.

    Raises InputError if the system refuses to read: the vectors are there, and may have taken hours.
    """
    if not record.exists():
        return None
    try:
        known = read_json(record, _Chunks)
        digests, shape = known["digests"], (known["num_samples"], known["num_features"])
        found = _intact(path, shape, digests) if shape[0] == num_samples and path.is_file() else {}
        if damaged := digests.keys() - found.keys():
            words = f"{path}: {len(damaged)} of {len(digests)} parts were damaged and are computed again"
            warnings.warn(words, DamagedCacheWarning, stacklevel=2)
        return known | {"digests": found} if found else None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (InputError, ValueError) as error:
        if isinstance(error.__cause__, OSError):
            raise
        warnings.warn(f"{record}: damaged; the vectors are computed again", DamagedCacheWarning, stacklevel=2)
        return None


def _intact(path: Path, shape: tuple[int, int], digests: dict[str, str]) -> dict[str, str]:
    """The digests of the chunks that are as they were written. The file may be cut, or only be read."""
    header, width, intact = _header(shape), 4 * shape[1], {}
    with path.open("rb") as file:
        if file.read(len(header)) != header:
            return {}
        for number, start in enumerate(range(0, shape[0], CHUNK)):
            file.seek(len(header) + start * width)
            if digest_of(file.read(width * (min(start + CHUNK, shape[0]) - start))) == digests.get(str(number)):
                intact[str(number)] = digests[str(number)]
    return intact


def chunks_of(ranges: list[range], batch: int) -> Iterator[tuple[range, bool]]:
    """The samples of the chunks in batches, each with whether it is the last of its chunk."""
    for chunk in ranges:
        for start in range(chunk.start, chunk.stop, batch):
            stop = min(start + batch, chunk.stop)
            yield range(start, stop), stop == chunk.stop
