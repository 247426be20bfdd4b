"""Tables with the labels of several annotators: a column for each annotator, or a row for each vote."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dividemix.data.readers.rows import Row
from dividemix.data.votes import Votes, consensus
from dividemix.errors import InputError


@dataclass(frozen=True)
class VoteColumns:
    """Where the votes are."""

    annotators: tuple[str, ...] = ()  # A column for each annotator
    annotator: str | None = None  # Or the column that names the annotator; each row is a vote, in the label column

    @classmethod
    def of(cls, annotators: str | None, annotator_column: str | None) -> "VoteColumns | None":
        """The columns that two settings name; None without either. Raises InputError if both are given."""
        if annotators is None:
            return None if annotator_column is None else cls(annotator=annotator_column)
        if annotator_column is not None:
            raise InputError(
                "annotators and annotator_column are both given: the first is for a column for each annotator, the"
                " second for a row for each vote; leave one out"
            )
        names = tuple(name.strip() for name in annotators.split(","))
        if len(set(names)) < len(names) or len(names) < 2 or not all(names):
            raise InputError(f"annotators is {annotators[:200]!r}: must be at least two different columns, as in a,b,c")
        return cls(names)

    def needed(self, label_column: str) -> tuple[str, ...]:
        """The columns with labels, and that of the annotator."""
        return self.annotators or (label_column, self.annotator or "")

    def of_row(self, value: Callable[[str], str | None], label_column: str) -> dict[str, str]:
        """The votes of a row, annotator -> class, from a function that gives the value in a column."""
        if self.annotators:
            return {name: vote for name in self.annotators if (vote := value(name)) is not None}
        who, vote = value(self.annotator or ""), value(label_column)
        return {} if who is None or vote is None else {who: vote}

    def decided(self, rows: Sequence[Row]) -> tuple[list[Row], Votes]:
        """The rows, one for each image, with the consensus of their votes as their labels.

        If an annotator voted on an image several times, the last vote counts.
        """
        merged = list(rows) if self.annotators else _merged(rows)
        labels, votes = consensus([row.votes or {} for row in merged], self.annotators or None)
        return [replace(row, label=label) for row, label in zip(merged, labels, strict=True)], votes


def _merged(rows: Sequence[Row]) -> list[Row]:
    """One row for each image, with all its votes, where its first vote was."""
    found: dict[str, Row] = {}
    for row in rows:
        key = f"\0{row.position}" if row.path is None or row.problem else os.path.normpath(row.path)
        first = found.setdefault(key, row)
        if first is not row:
            found[key] = replace(first, votes={**(first.votes or {}), **(row.votes or {})})
    return list(found.values())
