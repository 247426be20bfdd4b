"""The readers of data, one file per kind of source, and the function that chooses among them."""

import dataclasses
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.assemble import assemble, with_test
from dividemix.data.builtin import BUILT_IN
from dividemix.data.classes import numbered
from dividemix.data.column_types import RowColumns
from dividemix.data.common_shape import LARGE, check_image_size
from dividemix.data.listing import Listing
from dividemix.data.readers.coco import list_coco
from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.folder import list_folder
from dividemix.data.readers.list_column import ARROW, find_column, read_list_column
from dividemix.data.readers.npy import read_npy
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.parquet import list_parquet
from dividemix.data.readers.row_table import read_row_table, rows_and_labels_like
from dividemix.data.readers.shard_sets import find_shards, is_compressed, is_pattern
from dividemix.data.readers.shards import list_shards
from dividemix.data.readers.table import list_table
from dividemix.data.readers.text_rows import read_text_rows
from dividemix.data.readers.vote_columns import VoteColumns
from dividemix.data.regression import refuse_regression
from dividemix.data.remote_files import is_remote
from dividemix.data.source import Source, kind_of
from dividemix.errors import InputError
from dividemix.meant import nearest, nearest_path


def read_source(data: str, root: Path | None = None, **options: Any) -> Source:
    """Read data: what `source_reader` takes. Raises InputError, naming what is unknown, missing or wrong."""
    return source_reader(data, root, **options)()


def source_reader(
    data: str,
    root: Path | None = None,
    *,
    test: str | None = None,
    image_size: int | None = None,
    large_size: int = LARGE,
    path_column: str = "path",
    label_column: str = "label",
    image_root: Path | None = None,
    features_column: str | None = None,
    text_column: str | None = None,
    row_columns: RowColumns | None = None,
    labels: str | None = None,
    test_labels: str | None = None,
    annotators: str | None = None,
    annotator_column: str | None = None,
    memory_gb: float = 4.0,
) -> Callable[[], Source]:
    """The reader of a built-in data set (a name in `BUILT_IN`) from its files in or at `root`, or of your own data.

    Your own data is a folder with a subfolder for each class, or a .csv, .tsv, .parquet, .npz, .npy, .arrow or .feather
    file, or shards: .tar files, or a folder of .tar or .parquet files; `test` is another folder or file. `image_size`
    and `large_size` are for image files (see `common_size`), `memory_gb` also limits the arrays of an .npz file. The
    columns, and `image_root`, which paths start from, are for tables; so are `annotators` (a column for each, a,b,c)
    and `annotator_column` (a row for each vote). With `row_columns`, the rows of a table are the samples. `labels`
    and `test_labels` are files of the labels of an .npy file. Raises InputError for what can be seen to be wrong before
    any data is read.
    """
    check_image_size(image_size)
    if data not in BUILT_IN:
        check_exists(data)
    if test is not None and test not in BUILT_IN:
        check_exists(test, "test")
        _refuse_same(data, test)
    if root is not None and data not in BUILT_IN:
        raise InputError(f"root {root} has no meaning for {data}, which is a path: leave it out")
    columns: dict[str, Any] = {"path_column": path_column, "label_column": label_column, "image_root": image_root}
    given_votes = VoteColumns.of(annotators, annotator_column)
    if given_votes is not None and (not is_table(data) or _suffix(data) == ".json"):
        named = "annotators" if annotator_column is None else "annotator_column"
        raise InputError(f"{named} has no meaning for {data}: only a table has such columns; leave it out")
    built_in = BUILT_IN.get(data)
    arrays = _array_reader(
        data,
        labels,
        path_column=path_column,
        label_column=label_column,
        features_column=features_column,
        text_column=text_column,
        row_columns=row_columns,
        memory_gb=memory_gb,
    )
    is_listed = arrays is None if built_in is None else built_in.lister is not None
    if not is_listed and image_size is not None:
        raise InputError(f"image_size {image_size} has no meaning for {data}, whose samples are arrays: leave it out")

    def read() -> Source:
        source: Source
        if built_in is not None:
            source = resolve_name(built_in.reader)(root, *([image_size] if is_listed else []))
        elif arrays is not None:
            source = arrays()
        else:
            votes = {} if given_votes is None else {"votes": given_votes}
            train, own_test = _listings(data, **columns, **votes)
            source = assemble(train, image_size=image_size, large_size=large_size, memory_gb=memory_gb)
            if own_test is not None:
                source = with_test(source, own_test, memory_gb=memory_gb)
        if built_in is None:
            refuse_regression(source, data)
        if test is None:
            return source
        if source.test_images is not None:
            raise InputError(f"test {test} is a second test set: {data} has its own; leave it out")
        return with_samples_of(
            source,
            test,
            features_column=features_column,
            text_column=text_column,
            row_columns=row_columns,
            labels=test_labels,
            memory_gb=memory_gb,
            **columns,
        )

    return read


def with_samples_of(
    source: Source,
    data: str,
    *,
    features_column: str | None = None,
    text_column: str | None = None,
    row_columns: RowColumns | None = None,
    labels: str | None = None,
    memory_gb: float = 4.0,
    **columns: Any,
) -> Source:
    """The source with the samples of another folder or file as its test samples, in its size and with its classes.

    If that has test samples itself, they are used, else its training samples. `columns` are what `read_source` takes
    for tables. Raises InputError if they cannot be read, or have a label that is not a class of the source.
    """
    check_exists(data)
    if row_columns is not None:
        table = read_columns(Path(data), row_columns.target)
        rows, given = rows_and_labels_like(source, table, data, row_columns.target)
        return dataclasses.replace(source, test_images=rows, test_labels=given)
    arrays = _array_reader(
        data,
        labels,
        option="test_labels",
        path_column=columns.get("path_column", "path"),
        label_column=columns.get("label_column", "label"),
        features_column=features_column,
        text_column=text_column,
        memory_gb=memory_gb,
    )
    if arrays is None:
        if source.kind != "images":
            raise InputError(f"{data}: has images, but the training samples are {source.kind}")
        found, for_test = _listings(data, **columns)
        return with_test(source, for_test or found, memory_gb=memory_gb)
    other = arrays()
    samples, numbers = other.test_images, other.test_labels
    if samples is None or numbers is None:
        samples, numbers = other.train_images, other.train_labels
    if (kind := kind_of(samples)) != source.kind:
        raise InputError(f"{data}: has {kind}, but the training samples are {source.kind}")
    number = numbered([other.classes[label] for label in numbers], source.classes, f"{data}: test labels")
    return dataclasses.replace(source, test_images=samples, test_labels=number)


def training_images_like(source: Source, data: str, *, memory_gb: float = 4.0) -> NDArray[np.uint8]:
    """The training images (M, H, W, K) of another folder, table or .npz file, in the size of the source's images.

    Raises InputError if they cannot be read, are vectors, or do not fit in `memory_gb`.
    """
    check_exists(data)
    if _suffix(data) == ".npz":
        images = read_npz(Path(data), memory_gb=memory_gb).train_images
    else:
        listing, _ = _listings(data)
        known = dataclasses.replace(listing, labels=[source.classes[0]] * len(listing.files))  # no class matters here
        bare = dataclasses.replace(source, test_images=None, test_labels=None)
        found = with_test(bare, known, memory_gb=memory_gb).test_images
        assert found is not None
        images = found
    if not isinstance(images, np.ndarray) or images.ndim != 4:
        raise InputError(f"{data}: must have images that fit in memory: raise memory_gb, or use less data")
    return images


def _array_reader(
    data: str,
    labels: str | None,
    *,
    option: str = "labels",
    path_column: str,
    label_column: str,
    features_column: str | None,
    text_column: str | None,
    row_columns: RowColumns | None = None,
    memory_gb: float,
) -> Callable[[], Source] | None:
    """The reader of a file whose samples are arrays; None for image files and built-in data sets.

    Raises InputError for a file of labels, or a column of vectors, that the data has no use for.
    """
    path, suffix = Path(data), _suffix(data)
    if labels is not None and suffix != ".npy":
        raise InputError(f"{option} {labels} has no meaning for {data}, which has its own labels: leave it out")
    if row_columns is not None:
        if text_column is not None or features_column is not None:
            other = "features_column" if text_column is None else "text_column"
            raise InputError(f"target and {other} are both given: samples are rows, texts or vectors; leave one out")
        return partial(read_row_table, path, row_columns)
    if text_column is not None:
        if features_column is not None:
            raise InputError(
                "text_column and features_column are both given: samples are texts or vectors; leave one out"
            )
        return partial(read_text_rows, path, text_column, label_column)
    if suffix == ".jsonl":
        raise InputError(f"{data}: name the column that has the texts by text_column, or the labels of rows by target")
    if suffix in (".parquet", *ARROW):
        column = find_column(path, features_column, path_column)
        return None if column is None else partial(read_list_column, path, column, label_column=label_column)
    if features_column is not None:
        raise InputError(
            f"features_column {features_column!r} has no meaning for {data}: it is for .parquet and .arrow"
        )
    if suffix == ".npy":
        of_labels = None if labels is None else Path(labels)
        return partial(read_npy, path, of_labels, option=option, label_column=label_column)
    return partial(read_npz, path, memory_gb=memory_gb) if suffix == ".npz" else None


def is_table(data: str | None) -> bool:
    """Whether the data is a file with a row for each image."""
    return data is not None and _suffix(data) in _TABLES


def list_data(data: str, *, features_column: str | None = None, **columns: Any) -> Listing | None:
    """The training images of a folder or a table, before any is opened; None for arrays and built-in data sets.

    `columns` are what `read_source` takes for tables. Raises InputError if the data cannot be read.
    """
    if data in BUILT_IN:
        return None
    check_exists(data)
    if _suffix(data) in (".npy", ".npz", *ARROW):
        return None
    if _suffix(data) == ".parquet" and find_column(Path(data), features_column, columns["path_column"]) is not None:
        return None
    return _listings(data, **columns)[0]


def _listings(data: str, **columns: Any) -> tuple[Listing, Listing | None]:
    """The image files of a folder, shards or a table: those to train on, and those to test on if there are any."""
    if not is_table(data):
        if data in BUILT_IN:
            raise InputError(f"test {data}: a test set must be a folder or a file of your own")
        shards = find_shards(data)
        if shards is not None:
            names = ("path_column", "label_column")
            return list_shards(shards, **{name: columns[name] for name in names if name in columns})
        return list_folder(Path(data))
    return _TABLES[_suffix(data)](Path(data), **columns)


def check_exists(data: str, option: str = "") -> None:
    """Raise InputError unless the data, given as that option, is an existing folder or file of a known kind."""
    if is_pattern(data) or is_compressed(data) or is_remote(data):
        return  # find_shards reports what is wrong
    kinds = (*_TABLES, *ARROW, ".jsonl", ".npy", ".npz", ".tar")
    known = f"a folder with one subfolder for each class, or a {', '.join(kinds[:-1])} or {kinds[-1]} file"
    shown = repr(data if len(data) < 200 else f"{data[:200]}...")
    where = f"{option} is {shown}" if option else shown
    if not data or not os.path.exists(data):  # noqa: PTH110 (Path.exists raises on names that are too long)
        if near := nearest_path(data) or nearest(data, BUILT_IN):
            raise InputError(f"{where}: no such file or folder: did you mean {near!r}?")
        if _suffix(data) in kinds:
            raise InputError(f"{where}: no such file")
        raise InputError(f"{where}: no such file or folder. Give {known}; built-in data sets: {', '.join(BUILT_IN)}")
    if not Path(data).is_dir() and _suffix(data) not in kinds:
        sheet = "save the sheet as .csv" if _suffix(data) in (".xls", ".xlsx", ".ods") else f"give {known}"
        raise InputError(f"{data}: not a data set: {sheet}")
    if not Path(data).is_dir() and not Path(data).is_file():  # a device or a pipe, which may have no end
        raise InputError(f"{where}: not a file or folder: give {known}")


def _refuse_same(data: str, test: str) -> None:
    """Raise InputError if the test data is the training data, whose scores would mean nothing."""
    is_there = os.path.exists(data) and os.path.exists(test)  # noqa: PTH110 (not so for a pattern of shards)
    if data == test or (is_there and os.path.samefile(data, test)):  # noqa: PTH121 (both are text)
        raise InputError(f"test is {test!r}: that is the training data: give other samples, or leave it out")


def _suffix(data: str) -> str:
    """The extension of a file in lower case; empty for a folder, a pattern and an address."""
    return "" if is_pattern(data) or is_remote(data) or os.path.isdir(data) else Path(data).suffix.lower()  # noqa: PTH112 (as above)


_TABLES: dict[str, Callable[..., tuple[Listing, Listing | None]]] = {
    ".csv": list_table,
    ".tsv": list_table,
    ".parquet": list_parquet,
    ".json": list_coco,
}
