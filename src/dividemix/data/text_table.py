"""The one reader of .csv and .tsv files: records that know their line, their text and their fields.

Unchanged records are written back byte for byte.
"""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from dividemix.errors import InputError

# Byte order mark -> encoding of the text after it.
_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"": "utf-8",
}


@dataclass(kw_only=True, slots=True)
class Record:
    """A record: its first line, counted from 1, its text with the line end, and its fields."""

    line: int
    text: str
    fields: list[str]

    @property
    def is_blank(self) -> bool:
        """Whether all fields are empty."""
        return not any(map(str.strip, self.fields))

    def value(self, column: int) -> str:
        """The field in a column, without spaces around it; empty if the record has too few fields."""
        return self.fields[column].strip() if column < len(self.fields) else ""

    def replace(self, column: int, value: str, delimiter: str) -> None:
        """Put another value into a column. If the first field was quoted, quote all fields."""
        self.fields[column] = value
        end = self.text[len(self.text.rstrip("\r\n")) :]
        quoting: Literal[0, 1] = csv.QUOTE_ALL if self.text.startswith('"') else csv.QUOTE_MINIMAL
        written = io.StringIO()
        csv.writer(written, delimiter=delimiter, lineterminator="\r\n", quoting=quoting).writerow(self.fields)
        self.text = written.getvalue().removesuffix("\r\n") + end


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table as text, cut at a delimiter."""

    path: Path
    lines: Sequence[str]  # With their line ends
    mark: bytes  # The byte order mark that the file begins with, or nothing
    delimiter: str

    @cached_property
    def columns(self) -> list[str]:
        """The fields of the first record that is not blank; none if its quotes are invalid with this delimiter."""
        try:
            return next(([field.strip() for field in one.fields] for one in self.records() if not one.is_blank), [])
        except InputError:
            return []

    def column(self, name: str, remedy: str) -> int:
        """The number of a column; InputError, ending with the remedy, if there is no such column."""
        if name not in self.columns:
            found = ", ".join(repr(column[:50]) for column in self.columns[:20]) or "none"
            raise InputError(f"{self.path}: no column {name!r} in its first line, which has {found}: {remedy}")
        return self.columns.index(name)

    def records(self) -> Iterator[Record]:
        """All records, with the header and blank ones; InputError for invalid quotes, or fields that are too long."""
        reader, start = csv.reader(self.lines, delimiter=self.delimiter, strict=True), 0
        try:
            for fields in reader:
                yield Record(line=start + 1, text="".join(self.lines[start : reader.line_num]), fields=fields)
                start = reader.line_num
        except csv.Error as error:
            raise InputError(f"{self.path}: damaged at line {reader.line_num}: {error}") from error

    def rows(self) -> Iterator[Record]:
        """The records below the header. A blank record is a row only if it has delimiters, so an empty line is not."""
        records = self.records()
        next((record for record in records if not record.is_blank), None)  # the header
        return (record for record in records if len(record.fields) > 1 or not record.is_blank)

    def content(self, changed: Iterable[Record]) -> bytes:
        """The file's bytes, with the changed records in place of those on the same lines."""
        by_line = {record.line: record for record in changed}
        text = "".join(by_line.get(record.line, record).text for record in self.records())
        return self.mark + text.encode(_ENCODINGS[self.mark])


def read_text_table(path: Path, needed: Set[str]) -> TextTable:
    """The table in a file in UTF-8, or in UTF-16 with a byte order mark.

    The delimiter is a tab in a .tsv file, else a comma, a semicolon or a tab: the one that gives the header the needed
    columns, or else most columns. Raises InputError, naming the line, if the file is not text, or is empty.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    mark = next(mark for mark in _ENCODINGS if content.startswith(mark))
    content = content.removeprefix(mark)
    try:
        text = content.decode(_ENCODINGS[mark])
    except UnicodeDecodeError as error:
        line, encoding = content.count(b"\n", 0, error.start) + 1, _ENCODINGS[mark].upper()
        raise InputError(f"{path}: line {line} is not {encoding}: save the table as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{path}: NUL character in line {line}: not a table, or not in UTF-8: save it as UTF-8")
    if not text.strip():
        raise InputError(f"{path}: empty: its first line must name the columns")
    lines = io.StringIO(text, newline="").readlines()
    delimiters = "\t" if path.suffix.lower() == ".tsv" else ",;\t"
    tables = [TextTable(path=path, lines=lines, mark=mark, delimiter=delimiter) for delimiter in delimiters]
    return max(tables, key=lambda table: (needed <= set(table.columns), len(table.columns)))
