"""Where data comes from: one file per source, and the door to all of them."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

from dividemix.data.assemble import LARGE, Listing, assemble, check_image_size, with_test
from dividemix.data.classes import numbered
from dividemix.data.readers.cifar import read_cifar10, read_cifar100
from dividemix.data.readers.clothing1m import read_clothing1m
from dividemix.data.readers.fashion import read_fashion
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.table import list_table
from dividemix.data.readers.webvision import read_webvision
from dividemix.data.source import Source
from dividemix.errors import InputError


def read_source(
    data: str,
    root: Path | None = None,
    *,
    test: str | None = None,
    image_size: int | None = None,
    large_size: int = LARGE,
    path_column: str = "path",
    label_column: str = "label",
    memory_gb: float = 4.0,
) -> Source:
    """The source of a built-in name (`READERS`), its files in or at `root`, or of one's own data.

    That is a folder with a subfolder for each class, a .csv, .tsv or .parquet file, or an .npz file; `test` is another
    of these. `image_size`, `large_size` and `memory_gb` are for image files (see `assemble`), the columns for tables.

    Raises:
        InputError: naming what is unknown, missing or wrong.
    """
    check_image_size(image_size)
    for given in (data, test):
        if given is not None and given not in READERS:
            _check_exists(given)
    if root is not None and data not in READERS:
        raise InputError(f"--root {root} has no meaning for {data}: give its path alone")
    if data in _OF_FILES:
        source = _OF_FILES[data](root, image_size)
    elif data in READERS or _suffix(data) == ".npz":
        if image_size is not None:
            raise InputError(
                f"--image_size {image_size} has no meaning for {data}, whose images are arrays: leave it out"
            )
        source = READERS[data](root) if data in READERS else read_npz(Path(data))
    else:
        train, own_test = _listings(data, path_column, label_column)
        source = assemble(train, image_size=image_size, large_size=large_size, memory_gb=memory_gb)
        if own_test is not None:
            source = with_test(source, own_test, memory_gb=memory_gb)
    if test is None:
        return source
    if source.test_images is not None:
        raise InputError(f"--test {test} is one test set too many: {data} has its own; leave it out")
    if _suffix(test) == ".npz":
        return _with_arrays(source, test)
    found, for_test = _listings(test, path_column, label_column)
    return with_test(source, for_test or found, memory_gb=memory_gb)


def _listings(data: str, path_column: str, label_column: str) -> tuple[Listing, Listing | None]:
    """The image files of a folder or a table: to train on, and to test on if it says so."""
    if _suffix(data) not in _TABLES:
        if data in READERS:
            raise InputError(f"--test {data}: the test set is a folder or file of one's own")
        return list_folder(Path(data))
    return _TABLES[_suffix(data)](Path(data), path_column=path_column, label_column=label_column)


def _check_exists(data: str) -> None:
    """Nothing, for a folder or a file of a kind that is read."""
    kinds = (*_TABLES, ".npz")
    known = f"known are {', '.join(READERS)}, a folder with a folder for each class, and {', '.join(kinds)} files"
    shown = data if len(data) < 200 else f"{data[:200]}..."
    if not data or not os.path.exists(data):  # noqa: PTH110 (that of Path raises on names that are too long)
        if _suffix(data) in kinds:
            raise InputError(f"{shown}: no such file")
        raise InputError(f"unknown data set {shown!r}: {known}")
    if not Path(data).is_dir() and _suffix(data) not in kinds:
        raise InputError(f"{data}: not an image data set: {known}")


def _with_arrays(source: Source, test: str) -> Source:
    """The source with the images of an .npz file to test on: its test images, or if it has none its training images."""
    other = read_npz(Path(test))
    images, labels = other.test_images, other.test_labels
    if images is None or labels is None:
        images, labels = other.train_images, other.train_labels
    names = [other.classes[label] for label in labels]
    return dataclasses.replace(
        source, test_images=images, test_labels=numbered(names, source.classes, f"{test}: test labels")
    )


def _suffix(data: str) -> str:
    """The ending of a file's name, in small letters; empty for a folder."""
    return "" if os.path.isdir(data) else Path(data).suffix.lower()  # noqa: PTH112 (as above)


def _embedded(root: Path | None) -> Source:
    """The embedded set, which has no root."""
    if root is not None:
        raise InputError(f"--root {root} has no meaning for fashion, which is part of the package: leave it out")
    return read_fashion()


# Built-in sets whose images lie in files, and so can have any size.
_OF_FILES: dict[str, Callable[[Path | None, int | None], Source]] = {
    "clothing1m": read_clothing1m,
    "webvision": read_webvision,
}
READERS: dict[str, Callable[..., Source]] = {
    "fashion": _embedded,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    **_OF_FILES,
}
_TABLES: dict[str, Callable[..., tuple[Listing, Listing | None]]] = {
    ".csv": list_table,
    ".tsv": list_table,
    ".parquet": list_parquet,
}
