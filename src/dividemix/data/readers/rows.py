"""Rows of a table, each an image and its label, as lists of images to train on and to test on.

Of a path that occurs twice with one label the second row is left out; with different labels both are, for nothing
tells which is meant. So no image is in training and test at once.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dividemix.data.assemble import Listing
from dividemix.data.images import ImageLike
from dividemix.data.inside import Inside
from dividemix.data.source import Skipped
from dividemix.errors import InputError

# What a split is called. All that is not for training is for testing.
TRAIN_NAMES = ("train", "training")
TEST_NAMES = ("test", "testing", "val", "valid", "validation", "eval", "dev")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row as it stands in the file; None for what is empty."""

    position: str
    """Where it is, as the user finds it: line 7."""
    path: str | None
    """The image's file, relative to the table's folder; just a name if there is `content`."""
    content: bytes | None = None
    """The image itself, where the table holds it."""
    label: str | None
    true_label: str | None = None
    split: str | None = None
    problem: str | None = None
    """Why the row cannot be used, if the reader knows already."""
    is_blank: bool = False
    """Whether all its fields are empty: such a row counts, and is passed over."""


def list_rows(
    rows: Iterable[Row], table: Path, *, has_truth: bool, has_splits: bool, classes: Sequence[str] | None = None
) -> tuple[Listing, Listing | None]:
    """The images to train on and, if the rows have splits and any is not for training, those to test on.

    Rows without an image or a label, and those whose path leaves the table's folder, are left out and listed.

    Raises:
        InputError: for a split of another name, and for a training image without its true label where others have one.
    """
    listed = list(rows)
    files, problems = _files(listed, table.parent)
    parts: dict[bool, list[int]] = {True: [], False: []}
    for number, row in enumerate(listed):
        if not row.is_blank:
            parts[not has_splits or _is_train(row, table)].append(number)

    def listing(part: list[int], truth: bool) -> Listing:
        used = [number for number in part if number not in problems]
        for row in (listed[number] for number in used):
            if truth and row.true_label is None:
                raise InputError(
                    f"{table}: {row.position} has no true label: give all of them, or leave out the column"
                )
        return Listing(
            where=str(table),
            files=[files[number] for number in used],
            paths=[_name(listed[number]) for number in used],
            labels=[listed[number].label or "" for number in used],
            true_labels=[listed[number].true_label or "" for number in used] if truth else None,
            classes=classes,
            rows=used,
            num_given=len(listed),
            skipped=[
                Skipped(_name(listed[number]), f"{listed[number].position}: {problems[number]}")
                for number in part
                if number in problems
            ],
        )

    return listing(parts[True], has_truth), listing(parts[False], False) if parts[False] else None


def _files(rows: Sequence[Row], folder: Path) -> tuple[dict[int, ImageLike], dict[int, str]]:
    """The image of each row that has one, by the row's number, and what is wrong with the others."""
    files: dict[int, ImageLike] = {}
    problems: dict[int, str] = {}
    inside = Inside(folder)
    first: dict[str, int] = {}  # path -> the row that names it first
    for number, row in enumerate(rows):
        if row.problem:
            problems[number] = row.problem
        elif row.label is None:
            problems[number] = "no label"
        elif row.content is not None:
            files[number] = row.content
        elif row.path is None:
            problems[number] = "no image"
        elif "\0" in row.path:
            problems[number] = "path with a NUL character"
        elif Path(row.path).is_absolute():
            problems[number] = "absolute path: paths are relative to the table's folder"
        else:
            relative = os.path.normpath(row.path)
            if Path(relative).parts[:1] == ("..",) or folder / relative not in inside:
                problems[number] = "path leaves the table's folder"
                continue
            earlier = first.setdefault(relative, number)
            if earlier == number:
                files[number] = folder / relative
            elif rows[earlier].label == row.label:
                problems[number] = f"same image as {rows[earlier].position}"
            else:
                problems[number] = f"same image as {rows[earlier].position} with another label"
                problems.setdefault(earlier, f"same image as {row.position} with another label")
    return files, problems


def _is_train(row: Row, table: Path) -> bool:
    """Whether the row's split is one for training; everything else is for testing."""
    split = (row.split or "").lower()
    if split not in TRAIN_NAMES + TEST_NAMES and not row.problem:
        raise InputError(
            f"{table}: {row.position} has split {row.split!r}: {', '.join(TRAIN_NAMES + TEST_NAMES)} are allowed"
        )
    return split not in TEST_NAMES


def _name(row: Row) -> str:
    """The image's name as the user knows it: its path, else its place in the table."""
    return row.path or row.position
