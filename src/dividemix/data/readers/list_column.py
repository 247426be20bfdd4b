"""Read vectors from a column of lists of numbers in a .parquet, .arrow or .feather file (pyarrow, an extra).

Shapes: N rows, D numbers of a vector.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import label_name, numbered
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.parquet import class_name, class_names, features_of, import_pyarrow
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.data.source import Skipped, Source
from dividemix.errors import InputError, is_refusal, refused

ARROW = (".arrow", ".feather")  # files in Arrow's own format: their samples are always vectors
_IMAGE_NAMES = ("image", "img")


def find_column(table: Path, wanted: str | None, path_column: str) -> str | None:
    """The column of vectors: the one that is wanted, or the only one of lists of numbers; None if samples are images.

    Raises InputError if the wanted column does not exist or has no lists, or there are several and none is wanted.
    """
    schema = _Columns(table).schema
    lists = [field.name for field in schema if _is_list(field.type)]
    found = ", ".join(repr(name[:50]) for name in lists) or "none"
    if wanted is not None:
        if wanted not in lists:
            raise InputError(
                f"{table}: features_column {wanted!r} has no lists of numbers; columns that have lists: {found}"
            )
        return wanted
    layout = features_of(schema.metadata).values()
    has_images = any(name in schema.names for name in (path_column, *_IMAGE_NAMES))
    if table.suffix.lower() not in ARROW and (has_images or any(one.get("_type") == "Image" for one in layout)):
        return None
    if not lists and table.suffix.lower() in ARROW:
        raise InputError(f"{table}: has no column of lists of numbers")
    if len(lists) > 1:
        raise InputError(f"{table}: its columns of lists of numbers are {found}: choose one by features_column")
    return lists[0] if lists else None


def read_list_column(table: Path, column: str, *, label_column: str = "label") -> Source:
    """The vectors in a column, with their labels, as a source.

    A column `split` tells samples to test on, `true_label` is for scoring only. Rows without a vector or a label are
    skipped. Raises InputError if vectors differ in length, or something else is wrong.
    """
    columns = _Columns(table)
    names = columns.schema.names
    if label_column not in names:
        found = ", ".join(repr(name[:50]) for name in names[:20])
        raise InputError(f"{table}: no column {label_column!r}, it has {found}: name the right one by label_column")
    others = [label_column, *(name for name in (TRUE_LABEL, SPLIT) if name in names and name != label_column)]
    classes = class_names(features_of(columns.schema.metadata), label_column, table)
    vectors, has_vector, cells = columns.read(column, others)
    given = [class_name(value, classes) for value in cells[label_column]]
    problems = dict.fromkeys(np.flatnonzero(~has_vector).tolist(), "no vector")
    problems |= {row: "no label, or not a class" for row, name in enumerate(given) if name is None}
    if 2 * len(problems) > len(given):
        first = next(iter(problems.items()))
        raise InputError(
            f"{table}: too many rows cannot be used, {len(problems)} of {len(given)}: row {first[0]}: {first[1]}"
        )
    parts: dict[bool, list[int]] = {True: [], False: []}
    for row, split in enumerate(cells.get(SPLIT, [None] * len(given))):
        if row not in problems:
            parts[SPLIT not in cells or _is_train(split, row, table)].append(row)
    rows, tested = (np.array(parts[is_train], dtype=np.int64) for is_train in (True, False))
    truth = None
    if TRUE_LABEL in cells:
        truth = [class_name(cells[TRUE_LABEL][row], classes) for row in rows]
        if None in truth:
            raise InputError(
                f"{table}: row {rows[truth.index(None)]} has no true label: fill in true_label in all training rows,"
                " or remove the column"
            )
    source = labelled(
        table.resolve().stem,
        vectors if len(rows) == len(vectors) else vectors[rows],
        [str(given[row]) for row in rows],
        true_labels=None if truth is None else [str(name) for name in truth],
        classes=classes,
        where=f"{table}: ",
        rows=rows,
        num_given=len(given),
        skipped=tuple(Skipped(f"row {row}", problem) for row, problem in sorted(problems.items())),
    )
    if not len(tested):
        return source
    labels = numbered([str(given[row]) for row in tested], source.classes, f"{table}: test labels")
    return dataclasses.replace(source, test_samples=vectors[tested], test_labels=labels)


def column_of(table: Path, wanted: str | None) -> NDArray[np.float32]:
    """The vectors (N, D) of a column, without labels. Raises InputError if there are none, or one is missing."""
    column = find_column(table, wanted, path_column="")
    if column is None:
        raise InputError(f"{table}: has no column of lists of numbers")
    vectors, has_vector, _ = _Columns(table).read(column, [])
    if not has_vector.all():
        raise InputError(f"{table}: row {int(np.flatnonzero(~has_vector)[0])} has no vector: remove the row")
    return vectors


class _Columns:
    """The columns of a file, read batch by batch, so that no second copy of the vectors is in memory."""

    def __init__(self, table: Path):
        self._table, self._is_parquet = table, table.suffix.lower() not in ARROW
        opener = import_pyarrow("parquet" if self._is_parquet else "dataset", table)
        if not table.is_file():
            raise InputError(f"{table}: no such file")
        try:
            self._file = opener.ParquetFile(table) if self._is_parquet else opener.dataset(table, format="ipc")
            self.schema = self._file.schema_arrow if self._is_parquet else self._file.schema
            self._num_rows = self._file.metadata.num_rows if self._is_parquet else self._file.count_rows()
        except Exception as error:  # pyarrow raises many kinds of errors for damaged files
            raise self._damaged(error) from error

    def read(
        self, column: str, others: list[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_], dict[str, list[Any]]]:
        """The vectors (N, D) of a column, which rows have one (N,), and the values of the other columns."""
        vectors: NDArray[np.float32] | None = None
        has_vector = np.zeros(self._num_rows, dtype=np.bool_)
        cells: dict[str, list[Any]] = {name: [] for name in others}
        start = 0
        for batch in self._batches([column, *others]):
            lists = batch.column(column)
            is_given = np.asarray(lists.is_valid())
            numbers = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
            num_given = int(is_given.sum())
            if num_given:
                lengths = np.diff(_offsets(lists))[is_given]
                if vectors is None:
                    vectors = np.empty((self._num_rows, int(lengths[0])), dtype=np.float32)
                if (lengths != vectors.shape[1]).any():
                    known = sorted({vectors.shape[1], *lengths.tolist()})[:5]
                    raise InputError(
                        f"{self._table}: vectors of column {column!r} have {known} numbers: all must have the same"
                    )
                vectors[start + np.flatnonzero(is_given)] = numbers.reshape(num_given, -1)
            has_vector[start : start + len(is_given)] = is_given
            start += len(is_given)
            for name in others:
                cells[name] += batch.column(name).to_pylist()
        if vectors is None or not vectors.shape[1]:
            raise InputError(f"{self._table}: column {column!r} has no vectors")
        return vectors, has_vector, cells

    def _batches(self, columns: list[str]) -> Iterator[Any]:
        try:
            if self._is_parquet:
                yield from self._file.iter_batches(columns=columns)
            else:
                yield from self._file.to_batches(columns=columns)
        except InputError:
            raise
        except Exception as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        if isinstance(error, OSError) and is_refusal(error):
            return refused(self._table, error)
        words = " ".join(str(error).split())[:200] or type(error).__name__
        kind = "a Parquet" if self._is_parquet else "an Arrow"
        return InputError(f"{self._table}: damaged, or not {kind} file: {words}")


def _offsets(lists: Any) -> NDArray[np.int64]:
    """Where each list begins and the last ends (N + 1,)."""
    if hasattr(lists, "offsets"):
        return np.asarray(lists.offsets, dtype=np.int64)
    size: int = lists.type.list_size
    return np.arange(len(lists) + 1, dtype=np.int64) * size


def _is_list(kind: Any) -> bool:
    """Whether a type of Arrow is a list of numbers."""
    inner = getattr(kind, "value_type", None)
    return (
        inner is not None
        and str(kind).split("<")[0] in ("list", "large_list", "fixed_size_list")
        and (str(inner) in ("float", "double", "halffloat") or str(inner).startswith(("int", "uint")))
    )


def _is_train(split: Any, row: int, table: Path) -> bool:
    """Whether a row is for training; otherwise it is for testing."""
    name = (label_name(split) or "").lower()
    if name not in TRAIN_NAMES + TEST_NAMES:
        known = ", ".join(TRAIN_NAMES + TEST_NAMES)
        raise InputError(f"{table}: row {row} has split {str(split)[:50]!r}: must be one of {known}")
    return name in TRAIN_NAMES
