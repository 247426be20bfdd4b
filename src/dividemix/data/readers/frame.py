"""Read a table of pandas or polars: a path or an image, and a label, in each row."""

from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import label_name
from dividemix.data.listing import Listing
from dividemix.data.readers.parquet import class_name
from dividemix.data.readers.pixels import as_image
from dividemix.data.readers.rows import Row, list_rows
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.data.readers.vote_columns import VoteColumns
from dividemix.errors import InputError, shown

_IMAGES = ("path", "image", "img")


def is_frame(data: Any) -> bool:
    """Whether an object is a table of pandas or polars."""
    return hasattr(data, "columns") and (hasattr(data, "iloc") or hasattr(data, "iter_rows"))


def image_column(frame: Any, path_column: str | None) -> str | None:
    """The column of images, by name, else path, image or img; None if there is none."""
    candidates = _IMAGES if path_column is None else (path_column,)
    return next((name for name in candidates if name in list(frame.columns)), None)


def numbers_of(frame: Any, where: str) -> NDArray[Any]:
    """The numbers (N, D) of a table. Raises InputError, starting with `where`, if it has anything else."""
    values: NDArray[Any] = frame.to_numpy()
    if values.dtype != object:
        return values
    for row, cells in enumerate(values):  # columns of pandas' types with missing values are objects
        for name, cell in zip(frame.columns, cells, strict=True):
            if not isinstance(cell, Real):
                raise InputError(
                    f"{where} has {shown(cell, 50)} in row {row}, column {str(name)[:50]!r}: must be a number"
                )
    return values.astype(np.float64)


def names_of_numbers(frame: Any) -> tuple[str, ...] | None:
    """The names of a table's columns; None if they are no texts, such as pandas' numbers, or not all different."""
    names = tuple(frame.columns)
    return names if all(isinstance(name, str) for name in names) and len(set(names)) == len(names) else None


def numbers_like(frame: Any, names: tuple[str, ...] | None, where: str) -> NDArray[Any]:
    """The numbers (N, D) of the columns of these names, in their order; of all columns if either has no names.

    Raises InputError, starting with `where`, if a column is missing or has anything but numbers.
    """
    own = names_of_numbers(frame)
    if names is None or own is None:
        return numbers_of(frame, where)
    missing = [name for name in names if name not in own]
    if missing:
        found = ", ".join(repr(name[:50]) for name in own[:20])
        more = f" and {len(missing) - 1} more of the training" if len(missing) > 1 else " of the training"
        raise InputError(f"{where} has no column {missing[0][:50]!r}{more}: it has {found}; name all, in any order")
    return numbers_of(frame[list(names)], where)


def list_frame(
    frame: Any,
    where: str,
    *,
    path_column: str | None,
    label_column: str,
    classes: Sequence[str] | None,
    image_root: Path | None,
    votes: VoteColumns | None,
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if a column `split` names any, those to test on; as in a .csv table.

    Paths start from `image_root`, or from the working directory without one. Raises InputError if a column is missing.
    """
    image = image_column(frame, path_column)
    labels = (label_column,) if votes is None else votes.needed(label_column)
    for name in (image, *labels):
        if name is None or name not in list(frame.columns):
            wanted = " or ".join(map(repr, _IMAGES if path_column is None else (path_column,)))
            found = ", ".join(repr(str(column)[:50]) for column in list(frame.columns)[:20])
            raise InputError(f"{where} has no column {wanted if name is None else repr(name)}: it has {found}")
    extra = [name for name in (TRUE_LABEL, SPLIT) if name in list(frame.columns)]
    columns = {name: frame[name].to_list() for name in (str(image), *labels, *extra)}
    rows = list(_rows(columns, str(image), label_column, classes, where, votes))
    decided, found_votes = (rows, None) if votes is None else votes.decided(rows)
    options: dict[str, Any] = {"has_truth": TRUE_LABEL in extra, "has_splits": SPLIT in extra}
    return list_rows(
        decided, Path(where), classes=classes, image_root=image_root, votes=found_votes, folder=Path(), **options
    )


def _rows(
    columns: dict[str, list[Any]],
    image: str,
    label: str,
    classes: Sequence[str] | None,
    where: str,
    votes: VoteColumns | None,
) -> Iterator[Row]:
    """The rows of the table, numbered from 0."""

    def value(row: int, name: str) -> str | None:
        return class_name(columns[name][row], None if votes and name == votes.annotator else classes)

    for number, cell in enumerate(columns[image]):
        is_path = isinstance(cell, str | Path)
        is_missing = cell is None or cell != cell if not hasattr(cell, "shape") else False
        content = None if is_path or is_missing else as_image(cell, f"{where}[{image!r}][{number}]")
        yield Row(
            position=f"row {number}",
            path=str(cell) if is_path else None,
            content=content,
            label=value(number, label) if votes is None else None,
            true_label=class_name(columns[TRUE_LABEL][number], classes) if TRUE_LABEL in columns else None,
            split=label_name(columns[SPLIT][number]) if SPLIT in columns else None,
            votes=None if votes is None else votes.of_row(partial(value, number), label),
        )
