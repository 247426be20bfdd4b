"""Change labels in a .parquet table (pyarrow, an extra), drop deleted rows; all other columns and the metadata stay."""

import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dividemix.data.readers.parquet import choose_columns, class_name, features_of, list_parquet, rows_of
from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, by_path, class_number


def corrected_parquet(table: Path, decided: Sequence[Correction], path_column: str, label_column: str) -> bytes:
    """The table with the corrected labels, class numbers if the given labels are; InputError if they do not fit."""
    listing, _ = list_parquet(table, path_column=path_column, label_column=label_column)  # checks the table
    classes = None if listing.classes is None else list(listing.classes)
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    whole = parquet.read_table(table)
    names, features = list(whole.schema.names), features_of(whole.schema.metadata)
    image, label = choose_columns(names, features, path_column, label_column, table)

    columns = whole.select([image, label]).to_pydict()
    rows = list(rows_of(columns, image, label, classes))
    named = {number: (row.name, row.label) for number, row in enumerate(rows)}
    own_images = {number for number, row in enumerate(rows) if row.content is not None}
    values, field = columns[label], whole.schema.field(label)
    known = {class_name(value, classes): value for value in reversed(values)}
    is_number = arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type)
    changes = by_path(decided, named, table, own_images)
    for row, one in changes.items():
        if one.changes:
            values[row] = new_value(one, known, classes, is_number, table)
    try:
        column = arrow.array(values, type=field.type)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{table}: column {label!r} has type {field.type}, which does not fit a new label: choose an existing class"
        ) from error
    corrected = whole.set_column(names.index(label), field, column)
    if deleted := {row for row, one in changes.items() if one.deletes}:
        corrected = corrected.take([row for row in range(len(values)) if row not in deleted])
    file = io.BytesIO()
    parquet.write_table(corrected, file)
    return file.getvalue()


def new_value(
    correction: Correction, known: Mapping[str | None, Any], classes: list[str] | None, is_number: bool, table: Path
) -> Any:
    """The new label as a value of the column; `known` maps the classes in the column to their values."""
    new = correction.new_label
    if new in known:
        return known[new]
    if is_number and classes is None and new.isascii() and new.isdigit():
        return int(new)
    if not is_number and classes is None:
        return new
    number = class_number(correction, classes or [name for name in known if name], table)
    return number if is_number else new
