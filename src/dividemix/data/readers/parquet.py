"""A .parquet file: images as bytes or paths, class names from the Hugging Face layout (pyarrow, an extra)."""

import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dividemix.data.assemble import Listing
from dividemix.data.classes import label_name, printable
from dividemix.data.readers.rows import Row, list_rows
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.errors import InputError


def list_parquet(
    table: Path, *, path_column: str = "path", label_column: str = "label"
) -> tuple[Listing, Listing | None]:
    """The images to train on and, with a column `split` that says so, those to test on.

    The images are in the column `path_column`; without one, in the one that the Hugging Face layout calls an image,
    or in `image` or `img`. It holds the files' content, or paths relative to the table's folder, or structs of
    `bytes` and `path`. Labels are text or whole numbers; for numbers the layout's class names are taken.

    Raises:
        InputError: for what is no such table, and where pyarrow is missing.
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except Exception as error:
        raise InputError(f"{table}: needs pyarrow: pip install 'dividemix[parquet]'") from error
    if not table.is_file():
        raise InputError(f"{table}: no such file")
    try:
        schema = parquet.read_schema(table)
        names, features = list(schema.names), features_of(schema.metadata)
        image, label = choose_columns(names, features, path_column, label_column, table)
        if image == label:
            raise InputError(f"{table}: images and labels are both column {image!r}: name two columns")
        extra = [name for name in (TRUE_LABEL, SPLIT) if name in names and name not in (image, label)]
        columns = parquet.read_table(table, columns=[image, label, *extra]).to_pydict()
    except InputError:
        raise
    except Exception as error:  # pyarrow raises of its own and Python's kinds on damaged files
        words = " ".join(str(error).split())[:200]
        raise InputError(f"{table}: damaged, or not a Parquet file: {words or type(error).__name__}") from error
    classes = features.get(label, {}).get("names")
    if not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)) or len(set(classes)) < 2:
        classes = None
    elif len(set(classes)) < len(classes):
        raise InputError(f"{table}: two classes of column {label!r} have the same name: give each its own")
    else:
        classes = [printable(name) for name in classes]
    rows = rows_of(columns, image, label, classes)
    return list_rows(rows, table, has_truth=TRUE_LABEL in extra, has_splits=SPLIT in extra, classes=classes)


def features_of(metadata: dict[bytes, bytes] | None) -> dict[str, dict[str, Any]]:
    """Column -> what the Hugging Face layout says of it; nothing where it says nothing."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except (LookupError, ValueError, TypeError, AttributeError):
        return {}


def choose_columns(
    names: list[str], features: dict[str, Any], path_column: str, label_column: str, table: Path
) -> tuple[str, str]:
    """The columns of images and of labels: by name, or by what the layout says of them."""
    images = [name for name, feature in features.items() if feature.get("_type") == "Image"]
    labels = [name for name, feature in features.items() if feature.get("_type") == "ClassLabel"]
    return (
        _first(names, [path_column, *images, "image", "img"], "--path_column", table),
        _first(names, [label_column, *labels[:1]], "--label_column", table),
    )


def _first(names: list[str], candidates: list[str], option: str, table: Path) -> str:
    """The first candidate that is a column, once."""
    for name in candidates:
        if names.count(name) > 1:
            raise InputError(f"{table}: column {name!r} is there {names.count(name)} times")
        if name in names:
            return name
    there = ", ".join(repr(name[:50]) for name in names[:20])
    raise InputError(f"{table}: no column {candidates[0]!r}, it has {there}: name it by {option}")


def rows_of(columns: dict[str, list[Any]], image: str, label: str, classes: list[str] | None) -> Iterator[Row]:
    """The table's rows, counted from 0."""
    for number, (cell, value) in enumerate(zip(columns[image], columns[label], strict=True)):
        content, path, problem = None, None, None
        if isinstance(cell, dict):
            content, path = cell.get("bytes"), cell.get("path")
        elif isinstance(cell, bytes):
            content = cell
        elif isinstance(cell, str):
            path = cell
        elif cell is not None:
            problem = f"no image: {type(cell).__name__} where bytes, a path or a struct of both is needed"
        if not (isinstance(path, str | None) and isinstance(content, bytes | None)):
            content, path, problem = None, None, "no image: a struct of bytes and path is needed"
        name = class_name(value, classes)
        if name is None and value is not None:
            problem = problem or f"label {str(value)[:50]!r} is none of the classes"
        yield Row(
            position=f"row {number}",
            path=path or None,
            content=content,
            label=name,
            true_label=class_name(columns[TRUE_LABEL][number], classes) if TRUE_LABEL in columns else None,
            split=label_name(columns[SPLIT][number]) if SPLIT in columns else None,
            problem=problem,
        )


def class_name(value: Any, classes: Sequence[str] | None) -> str | None:
    """The name of a label: where the classes are known, a number counts among them and a text is one of them."""
    if classes is None:
        return label_name(value)
    if isinstance(value, int | np.integer):
        return classes[int(value)] if 0 <= value < len(classes) else None
    name = label_name(value)
    return name if name in classes else None
