"""Images that are too many to decode at the start: their files must exist, their content is checked when it is read.

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

from dividemix.data.classes import natural_sorted, numbered
from dividemix.data.image_files import ImageFiles, MadeWhenRead
from dividemix.data.images import ImageLike
from dividemix.data.listing import Listing, check_enough
from dividemix.data.source import Labels, Skipped, Source
from dividemix.data.threads import map_each
from dividemix.errors import is_refusal, refused

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
            found[split] = find_listed(listing, (side, side, 3))
            unused += found[split].skipped
        prefix = _PREFIXES.get(split, f"{split.upper()}: ")
        skipped += [Skipped(one.path, prefix + one.reason) for one in unused]
    train, test, val = found.pop("train"), found.pop("test"), found.pop("val", None)
    listing = splits["train"]
    return Source(
        name=name,
        classes=tuple(listing.classes or ()),
        train_samples=train.images,
        train_labels=train.labels,
        test_samples=test.images,
        test_labels=test.labels,
        val_samples=val.images if val else None,
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
    classes: tuple[str, ...]


def find_listed(listing: Listing, shape: tuple[int, int, int], *, keep: bool = False) -> Listed:
    """The images of a listing of files, in the shape (H, W, K); no file is opened. They are kept once read, if asked.

    An image is identified by its name in the list and the size of its file, not by its pixels. Raises InputError if
    more than half of the files do not exist.
    """
    sizes = file_sizes(listing.files) if listing.sizes is None else listing.sizes
    rows = np.flatnonzero(sizes > 0)
    skipped = [
        Skipped(listing.paths[row], "empty" if sizes[row] == 0 else "no such file")
        for row in np.flatnonzero(sizes < 1).tolist()
    ]
    check_enough(listing, skipped)
    digests = np.empty((len(rows), 16), dtype=np.uint8)
    labels = []
    for place, row in enumerate(map(int, rows)):
        digest = hashlib.blake2b(f"{listing.paths[row]}\n{sizes[row]}".encode(), digest_size=16)
        digests[place] = np.frombuffer(digest.digest(), dtype=np.uint8)
        labels.append(listing.labels[row])
    images = ImageFiles(listing.files, shape, rows, digests, checked=False, keep=keep)
    classes = listing.classes or natural_sorted(set(labels))
    numbers = numbered(labels, classes, listing.where)
    return Listed(images, numbers, rows, (*listing.skipped, *skipped), tuple(classes))


def file_sizes(files: Sequence[ImageLike]) -> NDArray[np.int64]:
    """Size of each file (N,) in bytes; -1 if there is no such file. Raises InputError if the system does not say."""
    chunks = [range(start, min(start + _CHUNK, len(files))) for start in range(0, len(files), _CHUNK)]

    def sizes(chunk: range) -> list[int]:
        return [_size(files[row]) for row in chunk]

    return np.array([size for found in map_each(sizes, chunks) for size in found], dtype=np.int64)


def _size(file: ImageLike) -> int:
    assert isinstance(file, Path)
    try:
        found = os.stat(file)  # noqa: PTH116 (twice as fast as Path.stat, which matters for a million files)
    except (OSError, ValueError) as error:  # ValueError: an invalid file name
        if is_refusal(error):
            raise refused(file, error) from error
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1
