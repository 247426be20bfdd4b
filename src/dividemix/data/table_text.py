"""A .csv or .tsv file as text, cut into columns and lines."""

import codecs
import csv
import io
from collections.abc import Iterator, Set
from pathlib import Path

from dividemix.errors import InputError


def read_table_text(table: Path) -> str:
    """The file's text, which is UTF-8, or UTF-16 with a byte order mark.

    Raises:
        InputError: naming the line, for what is no text, or is empty.
    """
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
        raise InputError(f"{table}: empty: a first line that names the columns is needed")
    return text


def cut_header(text: str, needed: Set[str], table: Path) -> tuple[str, list[str]]:
    """The delimiter, and the names of the columns: tabs in a .tsv file; in a .csv file commas, semicolons or tabs.

    A header has the needed columns only if it was cut in the right places.
    """
    delimiters = "\t" if table.suffix.lower() == ".tsv" else ",;\t"
    headers = {delimiter: _header(text, delimiter) for delimiter in delimiters}
    best = max(delimiters, key=lambda delimiter: (needed <= set(headers[delimiter]), len(headers[delimiter])))
    return best, headers[best]


def cut_lines(text: str, delimiter: str, table: Path) -> Iterator[tuple[int, list[str]]]:
    """All records, blank ones and the header too: the line at which each begins, counted from 1, and its fields.

    Raises:
        InputError: where quotes make no sense.
    """
    reader, start = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    try:
        for fields in reader:
            yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{table}: damaged at line {reader.line_num}: {error}") from error


def _header(text: str, delimiter: str) -> list[str]:
    """Names of the columns: the first line's fields, if it is cut at this delimiter."""
    try:
        for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if any(field.strip() for field in fields):
                return [field.strip() for field in fields]
    except csv.Error:
        pass  # quotes that make no sense with this delimiter
    return []
