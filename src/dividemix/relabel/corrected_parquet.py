"""A .parquet table with other labels (pyarrow, an extra): all other columns and the metadata stay."""

import importlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dividemix.data.readers.parquet import choose_columns, class_name, features_of, list_parquet, rows_of
from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction, by_path, class_number


def corrected_parquet(table: Path, decided: Sequence[Correction], path_column: str, label_column: str) -> bytes:
    """The table's content with the corrected labels, which are classes' numbers where the given ones are.

    Raises:
        InputError: for what is no table, and for corrections that do not fit it.
    """
    listing, _ = list_parquet(table, path_column=path_column, label_column=label_column)  # so that below is a table
    classes = None if listing.classes is None else list(listing.classes)
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    whole = parquet.read_table(table)
    names, features = list(whole.schema.names), features_of(whole.schema.metadata)
    image, label = choose_columns(names, features, path_column, label_column, table)

    columns = whole.select([image, label]).to_pydict()
    rows = list(rows_of(columns, image, label, classes))
    named = {number: (row.path or row.position, row.label) for number, row in enumerate(rows)}
    own_images = {number for number, row in enumerate(rows) if row.content is not None}
    values, field = columns[label], whole.schema.field(label)
    known = {class_name(value, classes): value for value in reversed(values)}
    is_number = arrow.types.is_integer(field.type) or arrow.types.is_floating(field.type)
    for row, one in by_path(decided, named, table, own_images).items():
        values[row] = _value(one, known, classes, is_number, table)
    try:
        column = arrow.array(values, type=field.type)
    except (arrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{table}: column {label!r} holds {field.type}, and a corrected label is none: choose one of its classes"
        ) from error
    file = io.BytesIO()
    parquet.write_table(whole.set_column(names.index(label), field, column), file)
    return file.getvalue()


def _value(
    correction: Correction, known: Mapping[str | None, Any], classes: list[str] | None, is_number: bool, table: Path
) -> Any:
    """The new label as the column holds it; `known` are the values of the classes that it names already."""
    new = correction.new_label
    if new in known:
        return known[new]
    if classes is not None:
        number = class_number(correction, classes, table)
        return number if is_number else new
    if is_number:
        return (
            int(new)
            if new.isascii() and new.isdigit()
            else class_number(correction, [name for name in known if name], table)
        )
    return new
