"""The readers of data, one file per kind of source, and the function that chooses among them."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from dividemix.data.assemble import Listing, assemble, with_test
from dividemix.data.builtin import BUILT_IN
from dividemix.data.classes import numbered
from dividemix.data.common_shape import LARGE, check_image_size
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.table import list_table
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
    image_root: Path | None = None,
    memory_gb: float = 4.0,
) -> Source:
    """Read a built-in data set (a name in `BUILT_IN`) from its files in or at `root`, or your own data.

    Your own data is a folder with a subfolder for each class, or a .csv, .tsv, .parquet or .npz file; `test` is
    another folder or file. `image_size` and `large_size` are for image files (see `common_size`), `memory_gb` also
    limits the arrays of an .npz file. The columns, and `image_root`, which paths start from, are for tables. Raises
    InputError, naming what is unknown, missing or wrong.
    """
    check_image_size(image_size)
    for given in (data, test):
        if given is not None and given not in BUILT_IN:
            _check_exists(given)
    if root is not None and data not in BUILT_IN:
        raise InputError(f"root {root} has no meaning for {data}, which is a path: leave it out")
    columns: dict[str, Any] = {"path_column": path_column, "label_column": label_column, "image_root": image_root}
    built_in = BUILT_IN.get(data)
    source: Source
    if built_in is not None and built_in.lister is not None:
        source = resolve_name(built_in.reader)(root, image_size)
    elif built_in is not None or _suffix(data) == ".npz":
        if image_size is not None:
            raise InputError(
                f"image_size {image_size} has no meaning for {data}, whose images are arrays: leave it out"
            )
        source = read_npz(Path(data), memory_gb=memory_gb) if built_in is None else resolve_name(built_in.reader)(root)
    else:
        train, own_test = _listings(data, **columns)
        source = assemble(train, image_size=image_size, large_size=large_size, memory_gb=memory_gb)
        if own_test is not None:
            source = with_test(source, own_test, memory_gb=memory_gb)
    if test is None:
        return source
    if source.test_images is not None:
        raise InputError(f"test {test} is a second test set: {data} has its own; leave it out")
    return with_images_of(source, test, memory_gb=memory_gb, **columns)


def with_images_of(source: Source, data: str, *, memory_gb: float = 4.0, **columns: Any) -> Source:
    """The source with the images of another folder or file as its test images, in its size and with its classes.

    If that has test images itself, they are used, else its training images. `columns` are what `read_source` takes for
    tables. Raises InputError if they cannot be read, or have a label that is not a class of the source.
    """
    _check_exists(data)
    if _suffix(data) != ".npz":
        found, for_test = _listings(data, **columns)
        return with_test(source, for_test or found, memory_gb=memory_gb)
    other = read_npz(Path(data), memory_gb=memory_gb)
    images, labels = other.test_images, other.test_labels
    if images is None or labels is None:
        images, labels = other.train_images, other.train_labels
    number = numbered([other.classes[label] for label in labels], source.classes, f"{data}: test labels")
    return dataclasses.replace(source, test_images=images, test_labels=number)


def is_table(data: str | None) -> bool:
    """Whether the data is a file with a row for each image."""
    return data is not None and _suffix(data) in _TABLES


def _listings(data: str, **columns: Any) -> tuple[Listing, Listing | None]:
    """The image files of a folder or a table: those to train on, and those to test on if it has any."""
    if not is_table(data):
        if data in BUILT_IN:
            raise InputError(f"test {data}: a test set must be a folder or a file of your own")
        return list_folder(Path(data))
    return _TABLES[_suffix(data)](Path(data), **columns)


def _check_exists(data: str) -> None:
    """Raise InputError unless the data is an existing folder, or an existing file of a known kind."""
    kinds = (*_TABLES, ".npz")
    known = f"a folder with one subfolder for each class, or a {', '.join(kinds[:-1])} or {kinds[-1]} file"
    shown = data if len(data) < 200 else f"{data[:200]}..."
    if not data or not os.path.exists(data):  # noqa: PTH110 (Path.exists raises on names that are too long)
        if _suffix(data) in kinds:
            raise InputError(f"{shown}: no such file")
        raise InputError(f"{shown!r}: no such file or folder. Give {known}; built-in data sets: {', '.join(BUILT_IN)}")
    if not Path(data).is_dir() and _suffix(data) not in kinds:
        raise InputError(f"{data}: not an image data set: give {known}")


def _suffix(data: str) -> str:
    """The extension of a file in lower case; empty for a folder."""
    return "" if os.path.isdir(data) else Path(data).suffix.lower()  # noqa: PTH112 (as above)


_TABLES: dict[str, Callable[..., tuple[Listing, Listing | None]]] = {
    ".csv": list_table,
    ".tsv": list_table,
    ".parquet": list_parquet,
}
