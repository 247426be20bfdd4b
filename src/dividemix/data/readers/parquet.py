"""Read a .parquet file: images as bytes or paths, class names from the Hugging Face layout (pyarrow, an extra)."""

import importlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dividemix.data.classes import label_name, printable
from dividemix.data.listing import Listing
from dividemix.data.readers.rows import Row, list_rows
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.data.readers.vote_columns import VoteColumns
from dividemix.errors import InputError, is_refusal, refused


def list_parquet(
    table: Path,
    *,
    path_column: str = "path",
    label_column: str = "label",
    image_root: Path | None = None,
    votes: VoteColumns | None = None,
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if a column `split` names any, those to test on.

    The images are in the column `path_column`; if there is none, in the column that the Hugging Face layout declares an
    image, or in `image` or `img`. Its values are file contents, paths (as in a .csv table), or structs of `bytes`
    and `path`. Labels are text or integers; integers count among the layout's class names, if there are any. With
    `votes`, they are the consensus of several annotators. Raises InputError if the file is not such a table, or pyarrow
    is missing.
    """
    import_pyarrow("parquet", table)
    if not table.is_file():
        raise InputError(f"{table}: no such file")
    with open_parquet(table) as file:
        schema = file.schema_arrow
        names, features = list(schema.names), features_of(schema.metadata)
        labels = (label_column,) if votes is None else votes.needed(label_column)
        image, label = choose_columns(names, features, path_column, labels[0], table)
        if image == label:
            raise InputError(f"{table}: images and labels are both column {image!r}: name two columns")
        more = [_first(names, [name], "annotators or annotator_column", table) for name in labels[1:]]
        extra = [name for name in (TRUE_LABEL, SPLIT) if name in names and name not in (image, label, *more)]
        columns = file.read(columns=[image, label, *more, *extra]).to_pydict()
    classes = class_names(features, label, table)
    rows = rows_of(columns, image, label, classes, votes)
    decided, found = (rows, None) if votes is None else votes.decided(list(rows))
    options: dict[str, Any] = {"has_truth": TRUE_LABEL in extra, "has_splits": SPLIT in extra}
    return list_rows(decided, table, classes=classes, image_root=image_root, votes=found, **options)


def import_pyarrow(module: str, table: Path) -> Any:
    """A module of pyarrow, which is an extra. Raises InputError, naming the table that needs it, if it is missing."""
    try:
        return importlib.import_module(f"pyarrow.{module}")
    except Exception as error:
        raise InputError(f"{table}: needs pyarrow: pip install 'dividemix[parquet]'") from error


@contextmanager
def open_parquet(table: Path) -> Iterator[Any]:
    """Pyarrow's ParquetFile, to be read while inside. Raises InputError if pyarrow is missing or the file damaged."""
    parquet = import_pyarrow("parquet", table)
    try:
        with parquet.ParquetFile(table) as file:
            yield file
    except InputError:
        raise
    except Exception as error:  # pyarrow raises many kinds of errors for damaged files
        raise damaged_parquet(table, error) from error


def damaged_parquet(name: object, error: Exception) -> InputError:
    """What to raise if pyarrow cannot read a file of that name: one line, whatever pyarrow says."""
    if isinstance(error, OSError) and is_refusal(error):
        return refused(name, error)
    words = " ".join(str(error).split())[:200] or type(error).__name__
    return InputError(f"{name}: damaged, or not a Parquet file: {words}")


def class_names(features: dict[str, dict[str, Any]], label: str, table: Path) -> list[str] | None:
    """The class names that the Hugging Face layout gives to a column; None if it has none."""
    classes = features.get(label, {}).get("names")
    if not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)) or len(set(classes)) < 2:
        return None
    if len(set(classes)) < len(classes):
        raise InputError(f"{table}: two classes of column {label!r} have the same name: use different names")
    return [printable(name) for name in classes]


def features_of(metadata: dict[bytes, bytes] | None) -> dict[str, dict[str, Any]]:
    """Column -> its entry in the Hugging Face layout; empty if there is no such layout."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {name: feature for name, feature in features.items() if isinstance(feature, dict)}
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def choose_columns(
    names: list[str], features: dict[str, Any], path_column: str, label_column: str, table: Path
) -> tuple[str, str]:
    """The columns of images and of labels: by name, or by the layout."""
    images = [name for name, feature in features.items() if feature.get("_type") == "Image"]
    labels = [name for name, feature in features.items() if feature.get("_type") == "ClassLabel"]
    return (
        _first(names, [path_column, *images, "image", "img"], "path_column", table),
        _first(names, [label_column, *labels[:1]], "label_column", table),
    )


def _first(names: list[str], candidates: list[str], option: str, table: Path) -> str:
    """The first candidate that is a column; it must be unique."""
    for name in candidates:
        if names.count(name) > 1:
            raise InputError(f"{table}: {names.count(name)} columns are called {name!r}: rename all but one")
        if name in names:
            return name
    found = ", ".join(repr(name[:50]) for name in names[:20])
    raise InputError(f"{table}: no column {candidates[0]!r}, it has {found}: name the right one by {option}")


def rows_of(
    columns: dict[str, list[Any]],
    image: str,
    label: str,
    classes: list[str] | None,
    votes: VoteColumns | None = None,
) -> Iterator[Row]:
    """The rows of the table, numbered from 0."""

    def vote(row: int, name: str) -> str | None:
        return class_name(columns[name][row], None if votes and name == votes.annotator else classes)

    for number, (cell, value) in enumerate(zip(columns[image], columns[label], strict=True)):
        problem = None
        given = cell if isinstance(cell, dict) else {"path" if isinstance(cell, str) else "bytes": cell}
        content, path = given.get("bytes"), given.get("path")
        if not (isinstance(path, str | None) and isinstance(content, bytes | None)):
            content, path, problem = None, None, "no image: not a struct of bytes and path"
            if cell is not given:
                problem = f"no image: {type(cell).__name__} instead of bytes, a path or a struct of both"
        name = class_name(value, classes)
        if name is None and value is not None:
            problem = problem or f"label {str(value)[:50]!r} is not one of the classes"
        yield Row(
            position=f"row {number}",
            path=path or None,
            content=content,
            label=name,
            true_label=class_name(columns[TRUE_LABEL][number], classes) if TRUE_LABEL in columns else None,
            split=label_name(columns[SPLIT][number]) if SPLIT in columns else None,
            votes=None if votes is None else votes.of_row(partial(vote, number), label),
            problem=problem,
        )


def class_name(value: Any, classes: Sequence[str] | None) -> str | None:
    """The class name of a label: if classes are given, a number is a position in them and a text is one of them."""
    if classes is None:
        return label_name(value)
    if isinstance(value, int | np.integer):
        return classes[int(value)] if 0 <= value < len(classes) else None
    name = label_name(value)
    return name if name in classes else None
