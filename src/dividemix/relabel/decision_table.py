"""Tables with decisions: cleanlab's Datalab issue table out, a .csv or .tsv table with a column corrected_label in.

A row whose corrected_label is empty has no decision. A column `decision` may say delete, ambiguous or skip instead.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dividemix.data.spreadsheet import as_field, from_field
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError
from dividemix.relabel.corrections import Correction
from dividemix.relabel.returned import Decision, correction, one_for_each
from dividemix.relabel.shared import Content, Shared

CORRECTED, OTHER = "corrected_label", "decision"
_COLUMNS = ("index", "path", "given_label", CORRECTED)


def write_datalab(shared: Shared, _image_url: str | None) -> dict[str, Content]:
    """The columns of `Datalab.get_issues("label")` in the order of the data, with index, path and corrected_label."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = ("index", "is_label_issue", "label_score", "given_label", "predicted_label", "path", CORRECTED)
    writer.writerow(names)
    for one in sorted(shared.issues, key=lambda one: one.index):
        texts = [as_field(value) for value in (one.given_label, one.predicted_label, one.path)]
        writer.writerow((one.index, one.is_label_issue, f"{one.label_score:.6g}", *texts, ""))
    return {".csv": text.getvalue().encode()}


def read_decision_table(file: Path) -> list[Correction] | None:
    """The decisions of a .csv or .tsv table; None if it has no column corrected_label.

    Raises:
        InputError: if it has no index, path and given_label, or a row has another form.
    """
    table = read_text_table(file, set(_COLUMNS))
    if CORRECTED not in table.columns:
        return None
    places = {name: table.column(name, "start from the table of dividemix share --to datalab") for name in _COLUMNS}
    places |= {name: table.columns.index(name) for name in ("predicted_label", OTHER) if name in table.columns}
    rows = []
    for record in table.rows():
        where = f"{file}: line {record.line}"
        if record.is_blank:
            continue
        if len(record.fields) != len(table.columns):
            raise InputError(f"{where} has {len(record.fields)} fields, the header has {len(table.columns)}")
        values: dict[str, Any] = {name: from_field(record.value(place)) for name, place in places.items()}
        rows.append((where, values | {"suggested_label": values.get("predicted_label")}))
    return decisions_of_rows(rows)


def decisions_of_rows(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Correction]:
    """The decisions of rows, each with its place for messages; a row without one is undecided."""
    return one_for_each(correction(where, row, _decisions(row)) for where, row in rows)


def _decisions(row: Mapping[str, Any]) -> list[Decision]:
    label, other = row[CORRECTED] or None, row.get(OTHER) or None
    if other == "skip":
        return [Decision()]
    if other:
        return [Decision(other=other)]
    return [Decision(label=label)] if label else []
