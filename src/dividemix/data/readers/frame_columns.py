"""The columns of a table in a Python program: pandas, polars, a data set of Hugging Face, a dict, a list of dicts."""

from collections.abc import Mapping
from typing import Any

from dividemix.data.readers.column_files import Columns, named
from dividemix.data.readers.frame import is_frame
from dividemix.errors import InputError


def columns_of(data: Any, where: str) -> Columns:
    """The cells of each column by name. Raises InputError, starting with `where`, if this is no table."""
    if isinstance(data, Mapping) and data and not any(_is_column(values) for values in data.values()):
        data = [data]  # one row
    if isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data):
        names = list(dict.fromkeys(name for row in data for name in row))
        cells = {name: [row.get(name) for row in data] for name in names}
    elif is_frame(data):
        names = named([str(name) for name in data.columns], where)
        cells = {name: _cells(data, i, name) for i, name in enumerate(names)}
    elif hasattr(data, "column_names"):
        cells = {name: list(data[name]) for name in data.column_names}
    elif isinstance(data, Mapping):
        cells = {name: _listed(values) for name, values in data.items()}
    else:
        raise InputError(
            f"{where} is {type(data).__name__}: with target or text_column it must be a table of pandas or polars, or a"
            " list of dicts"
        )
    lengths = {len(values) for values in cells.values()}
    if len(lengths) > 1:
        raise InputError(f"{where}: its columns have different lengths: {', '.join(map(str, sorted(lengths)))}")
    num_rows = max(lengths, default=0)
    return Columns(cells={str(name): c for name, c in cells.items()}, places=[f"row {i}" for i in range(num_rows)])


def _cells(frame: Any, number: int, name: str) -> list[Any]:
    """The values of a column of a frame, by its number where the frame has one: a name may not be a text."""
    column = frame.iloc[:, number] if hasattr(frame, "iloc") else frame[name]
    return [None if _is_missing(value) else value for value in column.to_list()]


def _is_missing(value: Any) -> bool:
    """Whether a value is pandas' NA or NaT, or NaN; NA has no truth value."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)
