"""A .csv or .tsv file with a path and a label in each row."""

from collections.abc import Iterator
from pathlib import Path

from dividemix.data.assemble import Listing
from dividemix.data.classes import label_name
from dividemix.data.readers.rows import Row, list_rows
from dividemix.data.table_text import cut_header, cut_lines, read_table_text
from dividemix.errors import InputError

TRUE_LABEL, SPLIT = "true_label", "split"


def list_table(
    table: Path, *, path_column: str = "path", label_column: str = "label"
) -> tuple[Listing, Listing | None]:
    """The images to train on and, with a column `split` that says so, those to test on.

    The first line names the columns. Paths are relative to the table's folder and may not leave it. A column
    `true_label` is for scoring only.

    Raises:
        InputError: naming the line, for what is no such table.
    """
    text = read_table_text(table)
    needed = {path_column, label_column}
    delimiter, header = cut_header(text, needed, table)
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


def _rows(
    text: str, delimiter: str, header: list[str], path_column: str, label_column: str, table: Path
) -> Iterator[Row]:
    """The rows below the header; lines that are empty, without even a delimiter, are no rows."""
    seen_header = False
    for line, fields in cut_lines(text, delimiter, table):
        is_blank = not any(field.strip() for field in fields)
        if is_blank and (len(fields) < 2 or not seen_header):
            continue
        if not seen_header:
            seen_header = True
            continue
        values = dict(zip(header, (field.strip() or None for field in fields), strict=False))
        yield Row(
            position=f"line {line}",
            path=values.get(path_column),
            label=label_name(values.get(label_column)),
            true_label=label_name(values.get(TRUE_LABEL)),
            split=values.get(SPLIT),
            problem=None if len(fields) == len(header) else f"{len(fields)} fields, the header has {len(header)}",
            is_blank=is_blank,
        )
