"""Change labels in a .csv, .tsv or .parquet table whose rows are the samples, drop deleted rows; all else stays."""

import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dividemix.data.readers.column_files import read_columns
from dividemix.data.readers.parquet import class_name
from dividemix.data.table_rows import as_category
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError
from dividemix.relabel.corrected_parquet import new_value
from dividemix.relabel.corrections import FOREIGN, Correction, check_agreement, check_given


def kind_of_rows(table: Path) -> str:
    """The extension of a table of rows. Raises InputError if its labels cannot be corrected."""
    if not table.exists():
        raise InputError(f"{table}: no such file or folder")
    kind = table.suffix.lower()
    if kind not in (".csv", ".tsv", ".parquet") or table.is_dir():
        raise InputError(f"{table}: labels of rows are corrected in .csv, .tsv and .parquet tables: convert it to .csv")
    return kind


def corrected_rows(table: Path, decided: Sequence[Correction], target: str, key: str | None) -> bytes:
    """The table with the corrected labels; a correction's index is the position of its row, its path is its key.

    Raises:
        InputError: if a correction names no row, another key than that of its row, or has another given label.
    """
    columns = read_columns(table, target)
    for name, flag in ((target, "target"), (key, "key")):
        if name is not None and name not in columns.cells:
            found = ", ".join(repr(one[:50]) for one in list(columns.cells)[:20])
            raise InputError(f"{table}: no column {name!r}, it has {found}: name the right one by {flag}")
    labels = [class_name(cell, columns.classes) for cell in columns.cells[target]]
    changes: dict[int, Correction] = {}
    for one in decided:
        if not 0 <= one.index < len(labels):
            raise InputError(f"{one.where}: {table} has no row {one.index}: {FOREIGN}")
        if one.path and key is None:
            raise InputError(f"{one.where}: its path {one.path[:100]!r} is a key: name the column of keys by key")
        if key is not None and one.path != (as_category(columns.cells[key][one.index]) or ""):
            raise InputError(f"{one.where}: {table} has no row {one.index} with key {one.path[:100]!r}: {FOREIGN}")
        check_given(one, labels[one.index], f"{table} has {columns.place(one.index)}")
        check_agreement(changes.setdefault(one.index, one), one)
    if table.suffix.lower() == ".parquet":
        return _parquet(table, changes, target, columns.classes)
    text = read_text_table(table, {target})
    column, records = text.columns.index(target), list(text.rows())
    for row, one in changes.items():
        if one.deletes:
            records[row].text = ""
        elif one.changes:
            records[row].replace(column, one.new_label, text.delimiter)
    return text.content(records)


def _parquet(table: Path, changes: dict[int, Correction], target: str, classes: Sequence[str] | None) -> bytes:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    whole = parquet.read_table(table)
    field, values = whole.schema.field(target), whole.column(target).to_pylist()
    known: dict[str | None, Any] = {class_name(value, classes): value for value in reversed(values)}
    is_number = arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type)
    for row, one in changes.items():
        if one.changes:
            values[row] = new_value(one, known, None if classes is None else list(classes), is_number, table)
    try:
        column = arrow.array(values, type=field.type)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        advice = "which does not fit a new label: choose an existing class"
        raise InputError(f"{table}: column {target!r} has type {field.type}, {advice}") from error
    corrected = whole.set_column(whole.schema.names.index(target), field, column)
    if deleted := {row for row, one in changes.items() if one.deletes}:
        corrected = corrected.take([row for row in range(len(values)) if row not in deleted])
    file = io.BytesIO()
    parquet.write_table(corrected, file)
    return file.getvalue()
