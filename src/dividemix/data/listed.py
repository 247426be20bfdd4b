"""Images that an official list names: that the files are there is checked at the start, their content when it is read.

Decoding a million files before the first epoch would take hours. So a file that turns out to be damaged while training
is taken for a black image, with a warning that names it: a run of many epochs does not end for one bad file, and stays
the same when it is resumed. A file that is gone by then ends the run with an error.
"""

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dividemix.data.assemble import Listing, check_enough
from dividemix.data.classes import numbered
from dividemix.data.image_files import ImageFiles
from dividemix.data.images import ImageLike
from dividemix.data.source import Labels, Skipped
from dividemix.data.threads import map_each

_CHUNK = 1000  # files that a thread looks for at a time


class FilesUnder(Sequence[Path]):
    """Paths below a folder by their names; each is made when it is asked for, as a million of them take much memory."""

    def __init__(self, folder: Path, names: Sequence[str]):
        self._folder = folder
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Path: ...
    @overload
    def __getitem__(self, index: slice) -> "FilesUnder": ...
    def __getitem__(self, index: int | slice) -> "Path | FilesUnder":
        if isinstance(index, slice):
            return FilesUnder(self._folder, self._names[index])
        return self._folder / self._names[index]


@dataclass(frozen=True, eq=False)
class Listed:
    """The images of a listing that are there, with their labels, their rows in it, and what is missing."""

    images: ImageFiles
    labels: Labels
    rows: NDArray[np.int64]
    skipped: tuple[Skipped, ...]


def find_listed(listing: Listing, side: int) -> Listed:
    """The images of a listing of paths, as squares of `side` pixels in colour; no file is opened.

    What tells the same data again is each file's name in the list and its size, not its pixels.

    Raises:
        InputError: if more than half of the files are not there.
    """
    sizes = file_sizes(listing.files)
    rows: list[int] = np.flatnonzero(sizes > 0).tolist()
    skipped = [
        Skipped(path, "empty" if size == 0 else "no such file")
        for path, size in zip(listing.paths, sizes, strict=True)
        if size < 1
    ]
    check_enough(listing, skipped)
    assert listing.classes is not None  # official lists have theirs
    digests = [hashlib.blake2b(f"{listing.paths[row]}\n{sizes[row]}".encode(), digest_size=16).digest() for row in rows]
    packed = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
    return Listed(
        images=ImageFiles(listing.files, (side, side, 3), np.array(rows), packed, checked=False),
        labels=numbered([listing.labels[row] for row in rows], listing.classes, listing.where),
        rows=np.array(rows),
        skipped=(*listing.skipped, *skipped),
    )


def file_sizes(files: Sequence[ImageLike]) -> NDArray[np.int64]:
    """Bytes of each file (N,), given by its path; -1 where there is no such file."""
    chunks = [range(start, min(start + _CHUNK, len(files))) for start in range(0, len(files), _CHUNK)]

    def sizes(chunk: range) -> list[int]:
        return [_size(files[row]) for row in chunk]

    return np.array([size for found in map_each(sizes, chunks) for size in found], dtype=np.int64)


def _size(file: ImageLike) -> int:
    assert isinstance(file, Path)
    try:
        found = os.stat(file)  # noqa: PTH116 (half as long as Path.stat, which a million files feel)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1
