"""Change labels in a .csv or .tsv table of texts, drop deleted rows; all other bytes stay."""

from collections.abc import Sequence
from pathlib import Path

from dividemix.data.readers.text_rows import read_text_rows
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError
from dividemix.meant import or_meant_path
from dividemix.relabel.corrections import FOREIGN, Correction, check_given


def kind_of_texts(table: Path) -> str:
    """The extension of a table of texts. Raises InputError if its labels cannot be corrected."""
    if not table.exists():
        raise InputError(f"{table}: no such file or folder: {or_meant_path(table, 'name what was trained on')}")
    kind = table.suffix.lower()
    if kind not in (".csv", ".tsv") or table.is_dir():
        raise InputError(f"{table}: labels of texts are corrected in .csv and .tsv tables only: convert it to .csv")
    return kind


def corrected_texts(table: Path, decided: Sequence[Correction], text_column: str, label_column: str) -> bytes:
    """The table with the corrected labels; a correction's index is the position of its row.

    Raises:
        InputError: if a correction has a path, names no training text, or has another given label.
    """
    source = read_text_rows(table, text_column, label_column)
    given = {row: source.classes[label] for row, label in zip(source.rows.tolist(), source.train_labels, strict=True)}
    text = read_text_table(table, {text_column, label_column})
    label = text.columns.index(label_column)
    records = [record for record in text.rows() if not record.is_blank]  # as read_text_rows counts them
    for one in decided:
        if one.path or one.index not in given:
            named = f" with path {one.path[:200]!r}" if one.path else ""
            raise InputError(f"{one.where}: {table} has no training text {one.index}{named}: {FOREIGN}")
        record = records[one.index]
        check_given(one, given[one.index], f"{table} has line {record.line}")
        if one.deletes:
            record.text = ""
        elif one.changes:
            record.replace(label, one.new_label, text.delimiter)
    return text.content(records)
