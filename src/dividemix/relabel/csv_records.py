"""A .csv file as records that know their own text, so that those nobody changes stay as they are, to the byte."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dividemix.errors import InputError

_ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    b"": "utf-8",
}


@dataclass(kw_only=True, slots=True)
class Record:
    """A record: the line it begins at, counted from 1, its text with the line end, and its fields."""

    line: int
    text: str
    fields: list[str]

    def replace(self, column: int, value: str, delimiter: str) -> None:
        """Put another value into a column; all fields get quotes if the first had them."""
        self.fields[column] = value
        end = self.text[len(self.text.rstrip("\r\n")) :]
        quoting: Literal[0, 1] = csv.QUOTE_ALL if self.text.startswith('"') else csv.QUOTE_MINIMAL
        written = io.StringIO()
        csv.writer(written, delimiter=delimiter, lineterminator="\r\n", quoting=quoting).writerow(self.fields)
        self.text = written.getvalue().removesuffix("\r\n") + end


@dataclass(frozen=True, kw_only=True)
class CsvFile:
    """A file's records, its columns (the fields of the first record that is not blank), and how it is written."""

    records: list[Record]
    columns: list[str]
    delimiter: str
    mark: bytes
    """The byte order mark it begins with, or nothing."""

    def rows(self) -> Iterator[Record]:
        """The records below the header that have a field for each column."""
        full = (record for record in self.records if len(record.fields) == len(self.columns))
        header = next((record for record in self.records if _is_filled(record)), None)
        return (record for record in full if record is not header and _is_filled(record))

    def content(self) -> bytes:
        """The file as bytes, in the encoding it had."""
        return self.mark + "".join(record.text for record in self.records).encode(_ENCODINGS[self.mark])


def read_csv(file: Path, needed: Iterable[str], delimiters: str = ",;\t") -> CsvFile:
    """The file, cut at the delimiter that gives its header the needed columns, else most columns.

    Raises:
        InputError: for what cannot be read as text or as records.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
    mark = next(mark for mark in _ENCODINGS if content.startswith(mark))
    try:
        text = content[len(mark) :].decode(_ENCODINGS[mark])
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not in {_ENCODINGS[mark].upper()}: save it as UTF-8") from error
    columns = {delimiter: _columns(text, delimiter) for delimiter in delimiters}
    best = max(delimiters, key=lambda one: (set(needed) <= set(columns[one]), len(columns[one])))
    try:
        return CsvFile(records=list(_records(text, best)), columns=columns[best], delimiter=best, mark=mark)
    except csv.Error as error:
        raise InputError(f"{file}: damaged, not a table: {error}") from error


def _columns(text: str, delimiter: str) -> list[str]:
    """The fields of the first record that is not blank; none where quotes make no sense with this delimiter."""
    try:
        return next(
            ([field.strip() for field in one.fields] for one in _records(text, delimiter) if _is_filled(one)), []
        )
    except csv.Error:
        return []


def _records(text: str, delimiter: str) -> Iterator[Record]:
    lines = io.StringIO(text, newline="").readlines()
    reader, start = csv.reader(lines, delimiter=delimiter, strict=True), 0
    for fields in reader:
        yield Record(line=start + 1, text="".join(lines[start : reader.line_num]), fields=fields)
        start = reader.line_num


def _is_filled(record: Record) -> bool:
    return any(field.strip() for field in record.fields)
