"""Rows of a table (N,) as samples: a structured array with a field for each column, named like it.

A numeric column is float64, NaN where a value is missing. A categorical column has texts, None where one is missing.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.classes import printable
from dividemix.errors import InputError

_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "<na>", "nat")  # in lower case


def is_rows(samples: Any) -> bool:
    """Whether samples are rows of a table."""
    return isinstance(samples, np.ndarray) and samples.dtype.names is not None


def is_numeric(rows: NDArray[Any], column: str) -> bool:
    """Whether a column of rows is numeric."""
    return rows.dtype[column] == np.float64


def as_rows(columns: Mapping[str, Sequence[float] | Sequence[str | None] | NDArray[Any]]) -> NDArray[Any]:
    """The rows (N,) of columns of equal length: arrays of float64 are numeric, all others are texts or None."""
    kinds = [np.float64 if isinstance(values, np.ndarray) else np.object_ for values in columns.values()]
    num_rows = len(next(iter(columns.values())))
    rows = np.empty(num_rows, dtype=[(name, kind) for name, kind in zip(columns, kinds, strict=True)])
    for name, values in columns.items():
        rows[name] = values
    return rows


def as_number(cell: Any) -> float | None:
    """The number in a cell, NaN if it is missing; None if it is neither."""
    if cell is None or isinstance(cell, str):
        text = "" if cell is None else cell.strip()
        if text.lower() in _MISSING:
            return math.nan
        if "_" in text:  # which Python allows between digits
            return None
        cell = text
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) or number != number else None


def as_category(cell: Any) -> str | None:
    """The category in a cell: text without spaces around it, a whole number in digits; None if it is missing."""
    cell = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = "" if cell is None else printable(str(cell).strip())
    return None if text.lower() in _MISSING else text


def check_rows(rows: NDArray[Any], where: str, like: NDArray[Any] | None = None) -> None:
    """Raise InputError, starting with `where`, unless there are rows, and their columns are those of others, `like`."""
    if not len(rows):
        raise InputError(f"{where} has no rows")
    if like is not None and rows.dtype != like.dtype:
        raise InputError(f"{where} has other columns than the training rows")


def rows_fingerprint(rows: NDArray[Any]) -> bytes:
    """32 bytes that identify rows (N,): the names of the columns and all values."""
    whole = hashlib.blake2b(repr((rows.shape, rows.dtype.names)).encode(), digest_size=32)
    for name in rows.dtype.names or ():
        values = rows[name]
        if is_numeric(rows, name):
            whole.update(np.where(np.isnan(values), np.nan, values + 0.0).tobytes())
            continue
        for value in values.tolist():
            raw = b"" if value is None else b"=" + value.encode("utf-8", "surrogatepass")
            whole.update(len(raw).to_bytes(8, "little") + raw)
    return whole.digest()
