"""The reviewer's corrections: read the file that the report writes, write it, match it with the rows of the data."""

import csv
import io
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from dividemix.data.spreadsheet import as_field, from_field
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError

COLUMNS = ("index", "path", "given_label", "new_label", "action")
ACTIONS = ("keep", "accept", "choose", "skip", "delete", "ambiguous")
FOREIGN = "the corrections are for other data, or have been applied already"


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """One line: a sample, its given label, its new label, and what the reviewer did.

    The new label is empty if the reviewer skipped or deleted the sample, or called it ambiguous.
    """

    where: str  # File and line, for error messages
    index: int
    path: str
    given_label: str
    new_label: str
    action: str  # one of ACTIONS

    @property
    def deletes(self) -> bool:
        """Whether the sample is not to be in the corrected data."""
        return self.action == "delete"

    @property
    def changes(self) -> bool:
        """Whether the new label differs from the given one."""
        return self.new_label not in ("", self.given_label)


def read_corrections(file: Path) -> list[Correction]:
    """The corrections in the order of the file; InputError, naming the line, if the report page did not write it."""
    table = read_text_table(file, set(COLUMNS))
    if not set(COLUMNS) <= set(table.columns):
        found = ", ".join(repr(name[:50]) for name in table.columns[:20])
        raise InputError(
            f"{file}: not a list of corrections: its columns are {found}: give the corrections.csv of the report"
            f" (its columns: {', '.join(COLUMNS)}), or a table with a column corrected_label"
        )
    columns = {name: table.columns.index(name) for name in COLUMNS}
    corrections: dict[int, Correction] = {}
    for record in (record for record in table.rows() if not record.is_blank):
        where, num_fields = f"{file}: line {record.line}", len(record.fields)
        if num_fields != len(table.columns):
            raise InputError(f"{where} has {num_fields} fields, the header has {len(table.columns)}: download it again")
        one = _correction({name: from_field(record.value(column)) for name, column in columns.items()}, where)
        if one.index in corrections:
            raise InputError(f"{one.where}: sample {one.index} occurs twice: remove one of its lines")
        corrections[one.index] = one
    return list(corrections.values())


def corrections_csv(corrections: Sequence[Correction]) -> str:
    """The text of a file of corrections, in their order."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for one in corrections:
        texts = (one.path, one.given_label, one.new_label, one.action)
        writer.writerow((one.index, *map(as_field, texts)))
    return text.getvalue()


def _correction(values: Mapping[str, str], where: str) -> Correction:
    index, action, given = values["index"], values["action"], values["given_label"]
    if not (index.isascii() and index.isdigit() and len(index) < 19):
        raise InputError(f"{where}: index is {index[:50]!r}: must be an integer >= 0")
    if action not in ACTIONS:
        raise InputError(f"{where}: action is {action[:50]!r}: must be one of {', '.join(ACTIONS)}")
    new_label = {"keep": given, "accept": values["new_label"], "choose": values["new_label"]}.get(action, "")
    if action in ("keep", "accept", "choose") and not new_label:
        raise InputError(f"{where}: action is {action}, but there is no label: name the class, or skip the sample")
    return Correction(
        where=where, index=int(index), path=values["path"], given_label=given, new_label=new_label, action=action
    )


def by_path(
    corrections: Sequence[Correction],
    rows: Mapping[int, tuple[str, str | None]],
    data: Path,
    own_images: Set[int] = frozenset(),
) -> dict[int, Correction]:
    """Row -> its correction, for the rows (path, label) that change or go: all rows with the path of a correction.

    Rows in `own_images` contain their image, and their path is only a name. If several rows have that name, the index
    of the correction selects the row. Raises InputError if no row has the path, if a row's label is not the given label
    of the correction, or if two corrections of a row disagree.
    """
    found: dict[str, list[int]] = {}
    for row, (path, _) in rows.items():
        found.setdefault(os.path.normpath(path), []).append(row)
    decided: dict[int, Correction] = {}
    for one in corrections:
        same = found.get(os.path.normpath(one.path), []) if one.path else []
        if not same:
            raise InputError(f"{one.where}: {data} has no path {one.path[:200]!r}: {FOREIGN}")
        if len(same) > 1:
            is_named = one.index in own_images and one.index in same
            same = [one.index] if is_named else [row for row in same if row not in own_images]
        if not same:
            raise InputError(
                f"{one.where}: {data} has several images called {one.path[:200]!r}, none of them in row {one.index}: "
                f"{FOREIGN}"
            )
        for row in same:
            check_given(one, rows[row][1], f"{data} has {one.path[:200]!r}")
            check_agreement(decided.setdefault(row, one), one)
    return {row: one for row, one in decided.items() if one.changes or one.deletes}


def check_agreement(first: Correction, second: Correction) -> None:
    """Raise InputError unless both corrections of a sample have the same result."""
    results = [(one.new_label, "" if one.new_label else one.action) for one in (first, second)]
    if results[0] != results[1]:
        decisions = [
            f"{one.action} {one.new_label[:100]!r}" if one.new_label else one.action for one in (first, second)
        ]
        raise InputError(
            f"{second.where}: {second.path[:200]!r} has two decisions, "
            f"{decisions[0]} ({first.where}) and {decisions[1]}: keep one of them"
        )


def check_given(correction: Correction, label: str | None, place: str) -> None:
    """Raise InputError, starting with the line of the correction, unless its given label is the label in the data."""
    if (label or "").strip() != correction.given_label:
        raise InputError(
            f"{correction.where}: given_label is {correction.given_label[:100]!r}, "
            f"but {place} as {(label or '')[:100]!r}: {FOREIGN}"
        )


def class_number(correction: Correction, classes: Sequence[str], data: Path) -> int:
    """The class number of the new label, for data whose labels are numbers; InputError if it is not a class."""
    if correction.new_label not in classes:
        raise InputError(
            f"{correction.where}: new_label {correction.new_label[:100]!r} is not a class of {data}, "
            f"whose labels are numbers: choose one of its {len(classes)} classes"
        )
    return list(classes).index(correction.new_label)
