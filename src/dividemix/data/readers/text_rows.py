"""Read a table with a text and a label in each row: .csv, .tsv, .parquet, or .jsonl with an object in each line."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dividemix.data.classes import label_name, numbered
from dividemix.data.readers.labelled import labelled
from dividemix.data.readers.parquet import class_name, class_names, features_of, open_parquet
from dividemix.data.readers.rows import TEST_NAMES, TRAIN_NAMES
from dividemix.data.readers.table import SPLIT, TRUE_LABEL
from dividemix.data.source import Skipped, Source
from dividemix.data.text_table import read_text_table
from dividemix.data.texts import as_texts
from dividemix.errors import InputError

TEXT_FILES = (".csv", ".tsv", ".parquet", ".jsonl")
_MAX_LINE = 10_000_000  # characters of a line of .jsonl


class _Row(NamedTuple):
    """A row: where it is, its text, its labels by name, and its split."""

    where: str
    text: str
    label: str | None
    true_label: str | None
    split: str | None
    defect: str | None = None  # what is wrong with the row as a whole

    @property
    def problem(self) -> str | None:
        """Why the row cannot be used; None if it can."""
        return self.defect or ("no text" if not self.text.strip() else "no label" if self.label is None else None)


def read_text_rows(table: Path, text_column: str, label_column: str = "label") -> Source:
    """The texts and their labels as a source; the position of a row among the rows is its index.

    A column `split` tells texts to test on, `true_label` is for scoring only. Rows without a text or a label are
    skipped. Raises InputError, naming the place, if the file is not such a table.
    """
    if text_column == label_column:
        raise InputError(f"{table}: text_column and label_column are both {text_column!r}: name two columns")
    suffix = table.suffix.lower()
    if suffix not in TEXT_FILES:
        raise InputError(f"{table}: text_column is for {', '.join(TEXT_FILES)} files: leave it out")
    reader = {".parquet": _parquet_rows, ".jsonl": _json_rows}.get(suffix, _table_rows)
    columns, found = reader(table, text_column, label_column)
    rows = list(found)
    problems = {i: problem for i, row in enumerate(rows) if (problem := row.problem)}
    if 2 * len(problems) > len(rows) or not rows:
        first = next((f": {rows[i].where}: {problem}" for i, problem in problems.items()), "")
        raise InputError(f"{table}: {len(problems)} of {len(rows)} rows cannot be used, too many to continue{first}")
    used = [i for i in range(len(rows)) if i not in problems]
    tested = [i for i in used if SPLIT in columns and _is_test(rows[i], table)]
    trained = sorted(set(used) - set(tested))
    if not trained:
        raise InputError(f"{table}: no row is for training: the column split must have the value train in some rows")
    truth = [rows[i].true_label for i in trained] if TRUE_LABEL in columns else None
    if truth is not None and None in truth:
        where = rows[trained[truth.index(None)]].where
        raise InputError(
            f"{table}: {where} has no true label: fill in true_label in all training rows, or remove the column"
        )
    source = labelled(
        table.resolve().stem,
        as_texts(rows[i].text for i in trained),
        [str(rows[i].label) for i in trained],
        true_labels=None if truth is None else [str(name) for name in truth],
        where=f"{table}: ",
        rows=_positions(trained),
        num_given=len(rows),
        skipped=tuple(Skipped(rows[i].where, problem) for i, problem in problems.items()),
    )
    if not tested:
        return source
    labels = numbered([str(rows[i].label) for i in tested], source.classes, f"{table}: test labels")
    return dataclasses.replace(source, test_samples=as_texts(rows[i].text for i in tested), test_labels=labels)


def texts_of(path: Path, text_column: str | None) -> list[str]:
    """The texts of a file without labels: the lines of a .txt file, or a column of a table."""
    suffix = path.suffix.lower()
    takes = f"this model takes texts: give .txt, {', '.join(TEXT_FILES[:-1])} or {TEXT_FILES[-1]} files"
    if path.is_dir():
        raise InputError(f"{path} is a folder: {takes}")
    if suffix == ".txt":
        try:
            return _lines(path)
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not a text file in UTF-8: convert it") from error
    if suffix not in TEXT_FILES:
        raise InputError(f"{path}: {takes}")
    if text_column is None:
        raise InputError(f"{path}: name the column that has the texts by text_column")
    reader = {".parquet": _parquet_rows, ".jsonl": _json_rows}.get(suffix, _table_rows)
    rows = list(reader(path, text_column, None)[1])
    for row in rows:
        if row.defect:
            raise InputError(f"{path}: {row.where}: {row.defect}")
    return [row.text for row in rows]


def _lines(path: Path) -> list[str]:
    """The lines of a file in UTF-8. Only line feeds end a line: other separators may be inside a text.

    Raises InputError if it cannot be read, UnicodeDecodeError if it is not UTF-8.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # read_text has made \r\n a line feed
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    return lines[:-1] if lines[-1] == "" else lines


def _positions(rows: list[int]) -> Any:
    import numpy as np

    return np.array(rows, dtype=np.int64)


def _is_test(row: _Row, table: Path) -> bool:
    split = (row.split or "").strip().lower()
    if split in TEST_NAMES:
        return True
    if split in TRAIN_NAMES:
        return False
    raise InputError(f"{table}: {row.where}: split is {row.split!r}: it must be train or test")


def _missing(table: Path, name: str, columns: list[str], flag: str) -> InputError:
    found = ", ".join(repr(column[:50]) for column in columns[:20])
    return InputError(f"{table}: no column {name!r}, it has {found}: name the right one by {flag}")


def _table_rows(table: Path, text_column: str, label_column: str | None) -> tuple[list[str], Iterator[_Row]]:
    """The columns and the rows of a .csv or .tsv file."""
    wanted = {text_column} | ({label_column} if label_column else set())
    found = read_text_table(table, wanted)
    for name, flag in ((text_column, "text_column"), (label_column, "label_column")):
        if name is not None and name not in found.columns:
            raise _missing(table, name, found.columns, flag)
    place = {name: found.columns.index(name) for name in found.columns}

    def rows() -> Iterator[_Row]:
        for record in found.rows():
            if record.is_blank:
                continue
            values = {name: record.value(column) or None for name, column in place.items()}
            row, number = _row(f"line {record.line}", values, text_column, label_column), len(record.fields)
            wanted = len(found.columns)
            yield (
                row
                if number == wanted
                else row._replace(defect=f"{number} fields, the header has {wanted}: put a text with commas in quotes")
            )

    return found.columns, rows()


def _json_rows(table: Path, text_column: str, label_column: str | None) -> tuple[list[str], Iterator[_Row]]:
    """The names and the rows of a .jsonl file: an object in each line."""
    objects = []
    try:
        for number, line in enumerate(_lines(table), start=1):
            if line.strip():
                objects.append((number, _object(line)))
    except (ValueError, RecursionError) as error:
        if isinstance(error.__cause__, OSError):  # the system refused to read it
            raise
        raise InputError(f"{table}: not a file with one JSON object in each line: {error}") from error
    columns = list(dict.fromkeys(name for _, one in objects for name in one))
    for name, flag in ((text_column, "text_column"), (label_column, "label_column")):
        if name is not None and name not in columns:
            raise _missing(table, name, columns, flag)
    return columns, (_row(f"line {number}", one, text_column, label_column) for number, one in objects)


def _object(line: str) -> dict[str, Any]:
    if len(line) > _MAX_LINE:
        raise ValueError("a line is too long")
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("a line is not an object")
    return found


def _parquet_rows(table: Path, text_column: str, label_column: str | None) -> tuple[list[str], Iterator[_Row]]:
    """The columns and the rows of a .parquet file; labels may be numbers of classes that the file names."""
    with open_parquet(table) as file:
        columns = list(file.schema_arrow.names)
        for name, flag in ((text_column, "text_column"), (label_column, "label_column")):
            if name is not None and name not in columns:
                raise _missing(table, name, columns, flag)
        kept = [name for name in (text_column, label_column, TRUE_LABEL, SPLIT) if name in columns]
        cells = file.read(columns=list(dict.fromkeys(kept))).to_pydict()
        metadata = features_of(file.schema_arrow.metadata)
    classes = None if label_column is None else class_names(metadata, label_column, table)
    for name in (label_column, TRUE_LABEL):
        if name in cells:
            cells[name] = [class_name(value, classes) for value in cells[name]]
    number = len(cells[text_column])
    values = ({name: cells[name][i] for name in cells} for i in range(number))
    return columns, (_row(f"row {i}", one, text_column, label_column) for i, one in enumerate(values))


def _row(where: str, values: dict[str, Any], text_column: str, label_column: str | None) -> _Row:
    text, split = values.get(text_column), values.get(SPLIT)
    return _Row(
        where,
        "" if text is None else str(text),
        None if label_column is None else _label(values.get(label_column)),
        _label(values.get(TRUE_LABEL)),
        None if split is None else str(split),
    )


def _label(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict | list) else label_name(str(value))
