"""The rows and columns of a table that a user asks for by name. No torch import."""

from collections.abc import Sequence

from dividemix.errors import InputError
from dividemix.experiments.published import PUBLISHED
from dividemix.experiments.systems import ADDED, BETTER_OF, ROWS


def rows_of(name: str) -> tuple[str, ...]:
    """The rows of a table: those of the paper, then those that we add."""
    return PUBLISHED[name].methods + ADDED.get(name, ())


def chosen_rows(name: str, asked: Sequence[str]) -> tuple[str, ...]:
    """The rows with these names, in the table's order; all without any. InputError if a name is no row's.

    A row that is the better one of two variants brings both.
    """
    allowed = tuple(row for row in rows_of(name) if row in ROWS or row in BETTER_OF)
    if not asked:
        return rows_of(name)
    wanted = set[str]()
    for text in asked:
        found = [row for row in allowed if row.casefold() == text.strip().casefold()]
        if not found:
            raise InputError(f"--row {text!r}: {name} has no such row; its rows are: {'; '.join(allowed)}")
        wanted |= {*found, *BETTER_OF.get(found[0], ())}
    return tuple(row for row in allowed if row in wanted)


def chosen_columns(name: str, allowed: Sequence[str], asked: Sequence[str]) -> tuple[str, ...]:
    """The columns that contain one of these texts, in the table's order; all without any. InputError if none does."""
    for text in asked:
        if not any(text.strip().casefold() in column.casefold() for column in allowed):
            raise InputError(f"--column {text!r}: {name} has no such column; its columns are: {'; '.join(allowed)}")
    texts = [text.strip().casefold() for text in asked] or [""]
    return tuple(column for column in allowed if any(text in column.casefold() for text in texts))
