"""The readers of data, one file per kind of source, and the function that chooses among them."""

import dataclasses
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
from dividemix.data.common_shape import LARGE, check_image_size
from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.list_column import ARROW, find_column, read_list_column
from dividemix.data.readers.listings import list_files
from dividemix.data.readers.npy import read_npy
from dividemix.data.readers.npz import read_npz
from dividemix.data.readers.paths import check_exists, is_table, refuse_same, suffix_of
from dividemix.data.readers.row_table import read_row_table, rows_and_labels_like
from dividemix.data.readers.shard_sets import find_shards
from dividemix.data.readers.table_columns import TableColumns
from dividemix.data.readers.text_rows import read_text_rows
from dividemix.data.regression import refuse_regression
from dividemix.data.source import Source, kind_of
from dividemix.errors import InputError

_USUAL = TableColumns()


def read_source(data: str, root: Path | None = None, **options: Any) -> Source:
    """Read data: what `source_reader` takes. Raises InputError, naming what is unknown, missing or wrong."""
    return source_reader(data, root, **options)()


def source_reader(
    data: str,
    root: Path | None = None,
    *,
    columns: TableColumns = _USUAL,
    labels: str | None = None,
    test: str | None = None,
    test_labels: str | None = None,
    image_size: int | None = None,
    large_size: int = LARGE,
    memory_gb: float = 4.0,
) -> Callable[[], Source]:
    """The reader of a built-in data set (a name in `BUILT_IN`) from its files in or at `root`, or of your own data.

    Your own data is a folder with a subfolder for each class, or a .csv, .tsv, .parquet, .npz, .npy, .arrow or .feather
    file, or shards: .tar files, or a folder of .tar or .parquet files; `test` is another folder or file. `columns` are
    those of tables. `labels` and `test_labels` are files of the labels of an .npy file. `image_size` and `large_size`
    are for image files (see `common_size`), `memory_gb` also limits the arrays of an .npz file. Raises InputError for
    what can be seen to be wrong before any data is read.
    """
    check_image_size(image_size)
    if data not in BUILT_IN:
        check_exists(data)
    if test is not None and test not in BUILT_IN:
        check_exists(test, "test")
        refuse_same(data, test)
    if root is not None and data not in BUILT_IN:
        raise InputError(f"root {root} has no meaning for {data}, which is a path: leave it out")
    if columns.votes is not None and (not is_table(data) or suffix_of(data) == ".json"):
        named = "annotators" if columns.votes.annotator is None else "annotator_column"
        raise InputError(f"{named} has no meaning for {data}: only a table has such columns; leave it out")
    built_in = BUILT_IN.get(data)
    arrays = _array_reader(data, columns, labels, memory_gb=memory_gb)
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
            train, own_test = list_files(data, columns)
            source = assemble(train, image_size=image_size, large_size=large_size, memory_gb=memory_gb)
            if not is_table(data) and find_shards(data) is None:  # names of folders are text
                source = dataclasses.replace(source, has_names=True)
            if own_test is not None:
                source = with_test(source, own_test, memory_gb=memory_gb)
        if built_in is None:
            refuse_regression(source, data)
        if test is None:
            return source
        if source.test_samples is not None:
            raise InputError(f"test {test} is a second test set: {data} has its own; leave it out")
        return with_samples_of(source, test, columns=columns, labels=test_labels, memory_gb=memory_gb)

    return read


def with_samples_of(
    source: Source,
    data: str,
    *,
    columns: TableColumns = _USUAL,
    labels: str | None = None,
    memory_gb: float = 4.0,
) -> Source:
    """The source with the samples of another folder or file as its test samples, in its size and with its classes.

    If that has test samples itself, they are used, else its training samples. `columns` are those of tables; each
    sample has one label, also where several annotators labelled the samples of the source. Raises InputError if they
    cannot be read, or have a label that is not a class of the source.
    """
    check_exists(data)
    columns = dataclasses.replace(columns, votes=None)
    if columns.rows is not None:
        table = read_columns(Path(data), columns.rows.target)
        rows, given = rows_and_labels_like(source, table, data, columns.rows.target)
        return dataclasses.replace(source, test_samples=rows, test_labels=given)
    arrays = _array_reader(data, columns, labels, option="test_labels", memory_gb=memory_gb)
    if arrays is None:
        if source.kind != "images":
            raise InputError(f"{data}: has images, but the training samples are {source.kind}")
        found, for_test = list_files(data, columns)
        return with_test(source, for_test or found, memory_gb=memory_gb)
    other = arrays()
    samples, numbers = other.test_samples, other.test_labels
    if samples is None or numbers is None:
        samples, numbers = other.train_samples, other.train_labels
    if (kind := kind_of(samples)) != source.kind:
        raise InputError(f"{data}: has {kind}, but the training samples are {source.kind}")
    number = numbered([other.classes[label] for label in numbers], source.classes, f"{data}: test labels")
    return dataclasses.replace(source, test_samples=samples, test_labels=number)


def training_images_like(source: Source, data: str, *, memory_gb: float = 4.0) -> NDArray[np.uint8]:
    """The training images (M, H, W, K) of another folder, table or .npz file, in the size of the source's images.

    Raises InputError if they cannot be read, are vectors, or do not fit in `memory_gb`.
    """
    check_exists(data)
    if suffix_of(data) == ".npz":
        images = read_npz(Path(data), memory_gb=memory_gb).train_samples
    else:
        listing, _ = list_files(data, _USUAL)
        known = dataclasses.replace(listing, labels=[source.classes[0]] * len(listing.files))  # no class matters here
        bare = dataclasses.replace(source, test_samples=None, test_labels=None)
        found = with_test(bare, known, memory_gb=memory_gb).test_samples
        assert found is not None
        images = found
    if not isinstance(images, np.ndarray) or images.ndim != 4:
        raise InputError(f"{data}: must have images that fit in memory: raise memory_gb, or use less data")
    return images


def _array_reader(
    data: str,
    columns: TableColumns,
    labels: str | None,
    *,
    option: str = "labels",
    memory_gb: float,
) -> Callable[[], Source] | None:
    """The reader of a file whose samples are arrays; None for image files and built-in data sets.

    Raises InputError for a file of labels, or a column of vectors, that the data has no use for.
    """
    path, suffix = Path(data), suffix_of(data)
    features, text, label = columns.features_column, columns.text_column, columns.label_column
    if labels is not None and suffix != ".npy":
        raise InputError(f"{option} {labels} has no meaning for {data}, which has its own labels: leave it out")
    if columns.rows is not None:
        if text is not None or features is not None:
            other = "features_column" if text is None else "text_column"
            raise InputError(f"target and {other} are both given: samples are rows, texts or vectors; leave one out")
        return partial(read_row_table, path, columns.rows)
    if text is not None:
        if features is not None:
            raise InputError(
                "text_column and features_column are both given: samples are texts or vectors; leave one out"
            )
        return partial(read_text_rows, path, text, label)
    if suffix == ".jsonl":
        raise InputError(f"{data}: name the column that has the texts by text_column, or the labels of rows by target")
    if suffix in (".parquet", *ARROW):
        column = find_column(path, features, columns.path_column)
        return None if column is None else partial(read_list_column, path, column, label_column=label)
    if features is not None:
        raise InputError(f"features_column {features!r} has no meaning for {data}: it is for .parquet and .arrow")
    if suffix == ".npy":
        of_labels = None if labels is None else Path(labels)
        return partial(read_npy, path, of_labels, option=option, label_column=label)
    return partial(read_npz, path, memory_gb=memory_gb) if suffix == ".npz" else None
