"""Read the columns of a .csv, .tsv, .parquet or .jsonl file: the cells of each by its name."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dividemix.data.readers.parquet import class_names, features_of, open_parquet
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError

ROW_FILES = (".csv", ".tsv", ".parquet", ".jsonl")
_MOST_EMPTY = 50  # cells of a .jsonl table for each that has a value


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The cells of each column, and where a user finds each row; `classes` names those of numbered labels."""

    cells: dict[str, list[Any]]
    places: Sequence[str]
    classes: Sequence[str] | None = None

    def place(self, row: int) -> str:
        """Where a user finds a row, such as "line 7"."""
        return self.places[row]


def read_columns(table: Path, label: str | None = None) -> Columns:
    """All columns of a table, by name. A column without a name is called after its number.

    Raises InputError if the file is missing, damaged, cut off, of another kind, or has a column twice. `label` is the
    column of labels.
    """
    suffix = table.suffix.lower()
    if suffix not in _READERS:
        raise InputError(f"{table}: to train on rows, give a {', '.join(ROW_FILES[:-1])} or {ROW_FILES[-1]} file")
    if not table.is_file():
        raise InputError(f"{table}: no such file")
    return _READERS[suffix](table, label)


def named(columns: Sequence[str], where: str) -> list[str]:
    """The names of columns, none empty. Raises InputError, starting with `where`, if two are equal."""
    names = [name or f"column {number}" for number, name in enumerate(columns, start=1)]
    name, number = Counter(names).most_common(1)[0] if names else ("", 0)
    if number > 1:
        raise InputError(f"{where}: {number} columns are called {name!r}: rename all but one")
    return names


def _text_columns(table: Path, label: str | None) -> Columns:
    text = read_text_table(table, set() if label is None else {label})
    names = named(text.columns, str(table))
    records = list(text.rows())
    for record in records:
        if len(record.fields) != len(names):
            raise InputError(
                f"{table}: line {record.line} has {len(record.fields)} fields, the header has {len(names)}: the file is"
                " cut off, or a value with commas is not in quotes"
            )
    cells = {name: [record.value(i) for record in records] for i, name in enumerate(names)}
    return Columns(cells=cells, places=[f"line {record.line}" for record in records])


def _parquet_columns(table: Path, label: str | None) -> Columns:
    with open_parquet(table) as file:
        names = named(file.schema_arrow.names, str(table))
        columns = file.read().columns
        cells = {name: column.to_pylist() for name, column in zip(names, columns, strict=True)}
        metadata = features_of(file.schema_arrow.metadata)
    classes = None if label is None else class_names(metadata, label, table)
    num_rows = len(next(iter(cells.values()), []))
    return Columns(cells=cells, places=[f"row {i}" for i in range(num_rows)], classes=classes)


def _json_columns(table: Path, label: str | None) -> Columns:
    try:
        lines = table.read_text(encoding="utf-8-sig").split("\n")
        objects = [(number, json.loads(line)) for number, line in enumerate(lines, start=1) if line.strip()]
    except OSError as error:
        raise InputError(f"{table}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{table}: not a file with one JSON object in each line: {error}") from error
    if wrong := [number for number, one in objects if not isinstance(one, dict)]:
        raise InputError(f"{table}: line {wrong[0]} is not a JSON object")
    names = named(list(dict.fromkeys(name for _, one in objects for name in one)), str(table))
    num_cells = len(names) * len(objects)
    if num_cells > max(_MOST_EMPTY * sum(len(one) for _, one in objects), 10**6):  # a small file, gigabytes of cells
        raise InputError(
            f"{table}: {len(names):,} different names of fields in {len(objects):,} lines: not the rows of one table"
        )
    cells = {name: [one.get(name) for _, one in objects] for name in names}
    return Columns(cells=cells, places=[f"line {number}" for number, _ in objects])


_READERS: dict[str, Callable[[Path, str | None], Columns]] = {
    ".csv": _text_columns,
    ".tsv": _text_columns,
    ".parquet": _parquet_columns,
    ".jsonl": _json_columns,
}
