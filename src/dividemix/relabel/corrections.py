"""The reviewer's corrections: read as the page's download writes them, and matched with the rows they are about."""

import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from dividemix.errors import InputError
from dividemix.relabel.csv_records import read_csv

COLUMNS = ("index", "path", "given_label", "new_label", "action")
ACTIONS = ("keep", "accept", "choose", "skip")
FOREIGN = "the corrections belong to other data, or were applied already"


@dataclass(frozen=True, kw_only=True, slots=True)
class Correction:
    """One line: which sample, the label it was given, and the one it gets; empty for a sample that was skipped."""

    where: str
    """File and line, as errors name it."""
    index: int
    path: str
    given_label: str
    new_label: str

    @property
    def changes(self) -> bool:
        """Whether the label becomes another one."""
        return self.new_label not in ("", self.given_label)


def read_corrections(file: Path) -> list[Correction]:
    """The corrections in the file's order.

    Raises:
        InputError: naming the line, for what the page cannot have written.
    """
    table = read_csv(file, COLUMNS)
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            f"{file}: no column {missing[0]!r}: corrections, as the page gives them, have {', '.join(COLUMNS)}"
        )
    corrections: dict[int, Correction] = {}
    for record in table.rows():
        values = dict(zip(table.columns, (field.strip() for field in record.fields), strict=True))
        one = _correction(values, f"{file}: line {record.line}")
        if one.index in corrections:
            raise InputError(f"{one.where}: sample {one.index} is there twice: leave one of its lines out")
        corrections[one.index] = one
    return list(corrections.values())


def _correction(values: Mapping[str, str], where: str) -> Correction:
    index, action = values["index"], values["action"]
    if not (index.isascii() and index.isdigit() and len(index) < 19):
        raise InputError(f"{where}: index is {index[:50]!r}: a whole number from 0 is needed")
    if action not in ACTIONS:
        raise InputError(f"{where}: action is {action[:50]!r}: {', '.join(ACTIONS)} are allowed")
    new_label = {"keep": values["given_label"], "skip": ""}.get(action, values["new_label"])
    if action != "skip" and not new_label:
        raise InputError(f"{where}: action is {action}, but there is no label: name the class, or skip the sample")
    return Correction(
        where=where, index=int(index), path=values["path"], given_label=values["given_label"], new_label=new_label
    )


def by_path(
    corrections: Sequence[Correction],
    rows: Mapping[int, tuple[str, str | None]],
    data: Path,
    own_images: Set[int] = frozenset(),
) -> dict[int, Correction]:
    """Row -> its correction, for the rows (path, label) whose label changes: all that name the file of a correction.

    Rows in `own_images` hold an image of their own, whose path is just a name: where several have it, the correction's
    index says which row is meant.

    Raises:
        InputError: if no row has the path, or one has another label than the sample was given.
    """
    found: dict[str, list[int]] = {}
    for row, (path, _) in rows.items():
        found.setdefault(os.path.normpath(path), []).append(row)
    changes: dict[int, Correction] = {}
    for one in corrections:
        same = found.get(os.path.normpath(one.path), []) if one.path else []
        if not same:
            raise InputError(f"{one.where}: {data} has no path {one.path[:200]!r}: {FOREIGN}")
        if len(same) > 1:
            is_told = one.index in own_images and one.index in same
            same = [one.index] if is_told else [row for row in same if row not in own_images]
        if not same:
            raise InputError(
                f"{one.where}: {data} has several images called {one.path[:200]!r}, none of them in row {one.index}: "
                f"{FOREIGN}"
            )
        for row in same:
            check_given(one, rows[row][1], f"{data} has {one.path[:200]!r}")
            if one.changes:
                changes[row] = one
    return changes


def check_given(correction: Correction, label: str | None, place: str) -> None:
    """Nothing, if that is the label in the data; InputError, opening with the line of the correction, if not."""
    if (label or "").strip() != correction.given_label:
        raise InputError(
            f"{correction.where}: given_label is {correction.given_label[:100]!r}, "
            f"but {place} as {(label or '')[:100]!r}: {FOREIGN}"
        )


def class_number(correction: Correction, classes: Sequence[str], data: Path) -> int:
    """The number of the new label's class, for data that know their classes by number.

    Raises:
        InputError: if it is none of them.
    """
    if correction.new_label not in classes:
        raise InputError(
            f"{correction.where}: new_label {correction.new_label[:100]!r} is no class of {data}, "
            f"whose labels are numbers: choose one of its {len(classes)} classes"
        )
    return list(classes).index(correction.new_label)
