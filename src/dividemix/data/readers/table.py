"""A .csv or .tsv file with a path and a label in each row."""

import codecs
import csv
import io
from collections.abc import Iterator
from pathlib import Path

from dividemix.data.assemble import Listing
from dividemix.data.classes import label_name
from dividemix.data.readers.rows import Row, list_rows
from dividemix.errors import InputError

TRUE_LABEL, SPLIT = "true_label", "split"


def list_table(
    table: Path, *, path_column: str = "path", label_column: str = "label"
) -> tuple[Listing, Listing | None]:
    """The images to train on and, with a column `split` that says so, those to test on.

    The first line names the columns. Paths are relative to the table's folder and may not leave it. A column
    `true_label` is for scoring only. A .tsv file has tabs between its fields; a .csv file commas, semicolons or tabs.
    The text is UTF-8, or UTF-16 with a byte order mark.

    Raises:
        InputError: naming the line, for what is no such table.
    """
    text = _text(table)
    delimiters = "\t" if table.suffix.lower() == ".tsv" else ",;\t"
    headers = {delimiter: _header(text, delimiter) for delimiter in delimiters}
    needed = {path_column, label_column}
    # A header has the needed columns only if it was cut in the right places.
    delimiter = max(delimiters, key=lambda delimiter: (needed <= set(headers[delimiter]), len(headers[delimiter])))
    header = headers[delimiter]
    if path_column == label_column:
        raise InputError(f"{table}: path and label are both column {path_column!r}: name two columns")
    for name, option in ((path_column, "--path_column"), (label_column, "--label_column")):
        if name not in header:
            there = ", ".join(repr(column[:50]) for column in header[:20]) or "nothing that can be read"
            raise InputError(f"{table}: no column {name!r} in its first line, which has {there}: name it by {option}")
    for name in (*needed, TRUE_LABEL, SPLIT):
        if header.count(name) > 1:
            raise InputError(f"{table}: column {name!r} is there {header.count(name)} times")
    rows = _rows(text, delimiter, header, path_column, label_column, table)
    return list_rows(rows, table, has_truth=TRUE_LABEL in header, has_splits=SPLIT in header)


def _text(table: Path) -> str:
    """The file's text."""
    try:
        content = table.read_bytes()
    except OSError as error:
        raise InputError(f"{table}: cannot be read: {error.strerror or error}") from error
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        name = "UTF-16" if is_utf16 else "UTF-8"
        raise InputError(f"{table}: line {line} is not {name}: save the table as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{table}: NUL character in line {line}: not a table, or not in UTF-8: save it as UTF-8")
    if not text.strip():
        raise InputError(f"{table}: empty: a first line with the columns path and label is needed")
    return text


def _header(text: str, delimiter: str) -> list[str]:
    """Names of the columns: the first line's fields, if it is cut at this delimiter."""
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if any(field.strip() for field in fields):
                return [field.strip() for field in fields]
    except csv.Error:
        pass  # quotes that make no sense with this delimiter
    return []


def _rows(
    text: str, delimiter: str, header: list[str], path_column: str, label_column: str, table: Path
) -> Iterator[Row]:
    """The rows below the header; lines that are empty, without even a delimiter, are no rows."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start, seen_header = 1, False
    try:
        for fields in reader:
            position, start = f"line {start}", reader.line_num + 1
            is_blank = not any(field.strip() for field in fields)
            if is_blank and (len(fields) < 2 or not seen_header):
                continue
            if not seen_header:
                seen_header = True
                continue
            values = dict(zip(header, (field.strip() or None for field in fields), strict=False))
            yield Row(
                position=position,
                path=values.get(path_column),
                label=label_name(values.get(label_column)),
                true_label=label_name(values.get(TRUE_LABEL)),
                split=values.get(SPLIT),
                problem=None if len(fields) == len(header) else f"{len(fields)} fields, the header has {len(header)}",
                is_blank=is_blank,
            )
    except csv.Error as error:
        raise InputError(f"{table}: damaged at line {reader.line_num}: {error}") from error
