"""Read a table whose rows are the samples: numeric and categorical columns, and one column that is the target."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import numbered
from dividemix.data.column_types import RowColumns, numbers, typed_rows
from dividemix.data.readers.column_files import Columns, read_columns
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.parquet import class_name
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.data.source import Skipped, Source
from dividemix.data.table_rows import as_category, as_rows, is_numeric
from dividemix.errors import InputError


def read_row_table(table: Path, named: RowColumns) -> Source:
    """The rows of a file, with labels; a row's position in the file is its index.

    The columns `split` and `true_label` have the same meaning as in other tables. Raises InputError, naming the place,
    if the file is not such a table.
    """
    return rows_of_columns(read_columns(table, named.target), str(table), named, name=table.resolve().stem)


def rows_of_columns(columns: Columns, where: str, named: RowColumns, *, name: str = "data") -> Source:
    """As `read_row_table`, of columns in memory; `where` begins the errors."""
    cells, target, key = columns.cells, named.target, named.key
    named.check(list(cells), where)
    labels = [class_name(cell, columns.classes) for cell in cells[target]]
    unused = [i for i, label in enumerate(labels) if label is None]
    if 2 * len(unused) > len(labels) or not labels:
        raise InputError(
            f"{where}: {len(unused)} of {len(labels)} rows have no value in the target {target!r}: too many to continue"
        )
    tested = {i for i in range(len(labels)) if SPLIT in cells and _is_test(cells[SPLIT][i], columns.place(i), where)}
    trained = [i for i in range(len(labels)) if i not in tested and labels[i] is not None]
    if not trained:
        raise InputError(f"{where}: no row is for training: the column split must have the value train in some rows")
    truth = None
    if TRUE_LABEL in cells:
        truth = [class_name(cells[TRUE_LABEL][i], columns.classes) for i in trained]
        if None in truth:
            place = columns.place(trained[truth.index(None)])
            raise InputError(
                f"{where}: {place} has no true label: fill in true_label in all training rows, or remove the column"
            )
    used = (target, key, TRUE_LABEL, SPLIT)
    rows, notes = typed_rows({n: c for n, c in cells.items() if n not in used}, named, where, columns.place)
    source = labelled(
        name,
        rows[trained],
        [str(labels[i]) for i in trained],
        true_labels=None if truth is None else [str(label) for label in truth],
        where=f"{where}: ",
        rows=np.array(trained, dtype=np.int64),
        num_given=len(labels),
        paths=None if key is None else tuple(as_category(cells[key][i]) or "" for i in trained),
        skipped=tuple(Skipped(columns.place(i), f"no {target}") for i in unused),
        notes=tuple(notes),
    )
    checked = sorted(i for i in tested if labels[i] is not None)
    if not checked:
        return source
    numbers_ = numbered([str(labels[i]) for i in checked], source.classes, f"{where}: test labels")
    return dataclasses.replace(source, test_samples=rows[checked], test_labels=numbers_)


def rows_and_labels_like(
    source: Source, columns: Columns, where: str, target: str
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows of a test table, with the columns of the source, and their labels among its classes."""
    if target not in columns.cells:
        raise InputError(f"{where}: no column {target!r}: a test table needs the target")
    labels = [class_name(cell, columns.classes) for cell in columns.cells[target]]
    kept = [i for i, label in enumerate(labels) if label is not None]
    assert isinstance(source.train_samples, np.ndarray)
    rows = rows_like(source.train_samples.dtype, columns, where)
    return rows[kept], numbered([str(labels[i]) for i in kept], source.classes, f"{where}: test labels")


def rows_like(dtype: np.dtype[Any], columns: Columns, where: str) -> NDArray[Any]:
    """The rows (N,) of columns, with the names and types of other rows. Other columns are ignored.

    Raises InputError, starting with `where`, if a column is missing or has a value of another type.
    """
    found: dict[str, Any] = {}
    empty = np.empty(0, dtype)
    for name in dtype.names or ():
        if name not in columns.cells:
            there = ", ".join(repr(one[:50]) for one in list(columns.cells)[:20])
            raise InputError(f"{where}: no column {name!r}, which the model needs: the columns are {there}")
        cells = columns.cells[name]
        numeric = is_numeric(empty, name)
        found[name] = numbers(cells, name, where, columns.place) if numeric else [as_category(one) for one in cells]
    return as_rows(found)


def _is_test(split: Any, place: str, where: str) -> bool:
    word = str("" if split is None else split).strip().lower()
    if word in TEST_NAMES:
        return True
    if word in TRAIN_NAMES:
        return False
    raise InputError(f"{where}: {place}: split is {split!r}: it must be train or test")
