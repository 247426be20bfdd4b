"""Images that an official list names: their files must exist at the start, their content is checked when it is read.

Decoding a million files before the first epoch would take hours. So a file that turns out to be damaged during training
is used as a black image, with a warning that names it: one bad file does not end a run of many epochs, and a resumed
run stays the same. A file that has disappeared ends the run with an error.
"""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import numbered
from dividemix.data.image_files import ImageFiles, MadeWhenRead
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing, check_enough
from dividemix.data.source import Labels, Skipped, Source
from dividemix.data.threads import map_each

_CHUNK = 1000  # files that a thread looks up at a time
_PREFIXES = {"train": "", "val": "validation set: ", "test": "test set: "}  # of the reasons to skip an image


def files_under(folder: Path, names: Sequence[str]) -> MadeWhenRead:
    """The paths of these names below a folder."""
    return MadeWhenRead(len(names), lambda row: folder / names[row])


def listed_source(
    name: str, splits: Mapping[str, Listing], side: int, *, mean: tuple[float, ...], std: tuple[float, ...]
) -> Source:
    """The images of official lists as a source: train, test and perhaps val; other names are more test sets.

    Files must exist, but they are not decoded. Raises InputError if most images of a split are missing.
    """
    found: dict[str, Listed] = {}
    skipped: list[Skipped] = []
    for split, listing in splits.items():
        unused = list(listing.ignored)
        if len(listing.files) or not unused:
            found[split] = find_listed(listing, side)
            unused += found[split].skipped
        prefix = _PREFIXES.get(split, f"{split.upper()}: ")
        skipped += [Skipped(one.path, prefix + one.reason) for one in unused]
    train, test, val = found.pop("train"), found.pop("test"), found.pop("val", None)
    listing = splits["train"]
    return Source(
        name=name,
        classes=tuple(listing.classes or ()),
        train_images=train.images,
        train_labels=train.labels,
        test_images=test.images,
        test_labels=test.labels,
        val_images=val.images if val else None,
        val_labels=val.labels if val else None,
        other_tests={split: (one.images, one.labels) for split, one in found.items()},
        mean=mean,
        std=std,
        paths=tuple(listing.paths[row] for row in train.rows),
        rows=train.rows,
        num_given=len(listing.paths),
        skipped=tuple(skipped),
    )


class Listed(NamedTuple):
    """The images of a listing whose files exist, with their labels, their rows in it, and what was skipped."""

    images: ImageFiles
    labels: Labels
    rows: NDArray[np.int64]
    skipped: tuple[Skipped, ...]


def find_listed(listing: Listing, side: int) -> Listed:
    """The images of a listing of paths, as squares of `side` pixels in colour; no file is opened.

    An image is identified by its name in the list and the size of its file, not by its pixels. Raises InputError if
    more than half of the files do not exist.
    """
    sizes = file_sizes(listing.files)
    rows: list[int] = np.flatnonzero(sizes > 0).tolist()
    unusable = [(path, size) for path, size in zip(listing.paths, sizes, strict=True) if size < 1]
    skipped = [Skipped(path, "empty" if size == 0 else "no such file") for path, size in unusable]
    check_enough(listing, skipped)
    assert listing.classes is not None  # official lists always have them
    digests = [hashlib.blake2b(f"{listing.paths[row]}\n{sizes[row]}".encode(), digest_size=16).digest() for row in rows]
    packed = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 16)
    images = ImageFiles(listing.files, (side, side, 3), np.array(rows), packed, checked=False)
    labels = numbered([listing.labels[row] for row in rows], listing.classes, listing.where)
    return Listed(images, labels, np.array(rows), (*listing.skipped, *skipped))


def file_sizes(files: Sequence[ImageLike]) -> NDArray[np.int64]:
    """Size of each file (N,) in bytes; -1 if there is no such file."""
    chunks = [range(start, min(start + _CHUNK, len(files))) for start in range(0, len(files), _CHUNK)]

    def sizes(chunk: range) -> list[int]:
        return [_size(files[row]) for row in chunk]

    return np.array([size for found in map_each(sizes, chunks) for size in found], dtype=np.int64)


def _size(file: ImageLike) -> int:
    assert isinstance(file, Path)
    try:
        found = os.stat(file)  # noqa: PTH116 (twice as fast as Path.stat, which matters for a million files)
    except (OSError, ValueError):  # ValueError: an invalid file name
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1
