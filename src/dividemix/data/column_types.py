"""Which columns of a table train, and whether each is numeric or categorical: inferred, unless the user says so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.table_rows import as_category, as_number, as_rows
from dividemix.errors import InputError, shown

_MOST_CATEGORIES = 0.5  # share of the rows: a column with more different texts names its rows, and predicts nothing
_FEW_CATEGORIES = 20  # as many are never too many
_NEARLY_NUMERIC = 0.9


@dataclass(frozen=True, kw_only=True)
class RowColumns:
    """The columns of a table whose rows are the samples, as a user names them."""

    target: str  # the labels
    key: str | None = None  # the names of the rows
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, target: str | None, *, key: str | None, numeric: str | None, categorical: str | None, drop: str | None
    ) -> "RowColumns | None":
        """From lists as a,b,c; None without a target. Raises InputError if they contradict each other."""
        lists = {"numeric": numeric, "categorical": categorical, "drop_columns": drop}
        if target is None:
            for name, value in {**lists, "key": key}.items():
                if value is not None:
                    raise InputError(
                        f"{name} {shown(value)} has no meaning without target: name the column of labels by it"
                    )
            return None
        if key == target:
            raise InputError(f"key and target are both {key!r}: name two columns")
        names = {name: _names(value) for name, value in lists.items()}
        seen: dict[str, str] = {}
        for name, columns in names.items():
            for column in columns:
                if seen.setdefault(column, name) != name:
                    raise InputError(f"column {column!r} is in both {seen[column]} and {name}: leave it out of one")
        return cls(target=target, key=key, **{name.removesuffix("_columns"): value for name, value in names.items()})

    def check(self, columns: Sequence[str], where: str) -> None:
        """Raise InputError, starting with `where`, for a column that is not there, or has another meaning."""
        lists = {"numeric": self.numeric, "categorical": self.categorical, "drop_columns": self.drop}
        named = {"target": (self.target,), "key": () if self.key is None else (self.key,), **lists}
        for flag, names in named.items():
            for name in names:
                if name not in columns:
                    found = ", ".join(repr(column[:50]) for column in columns[:20])
                    raise InputError(f"{where}: no column {name!r}, it has {found}: name the right one by {flag}")
                if flag in lists and name in (self.target, self.key):
                    other = "target" if name == self.target else "key"
                    raise InputError(f"{where}: column {name!r} of {flag} is the {other}, too: leave it out of one")


def typed_rows(
    columns: Mapping[str, Sequence[Any]], choice: RowColumns, where: str, place: Callable[[int], str]
) -> tuple[NDArray[Any], list[str]]:
    """The rows (N,) of the columns that train, and notes on those that were left out or may be wrong.

    `place` names the place of a row. Raises InputError, starting with `where`, if none is left, or a numeric column
    has a value that is not a number.
    """
    found: dict[str, Any] = {}
    notes = []
    for name, cells in columns.items():
        if name in choice.drop:
            continue
        if name in choice.numeric:
            found[name] = numbers(cells, name, where, place)
        elif name in choice.categorical:
            found[name] = [as_category(cell) for cell in cells]
        else:
            values, note = _inferred(name, cells)
            if values is not None:
                found[name] = values
            if note:
                notes.append(note)
    if not found:
        raise InputError(f"{where}: no column is left to train on: " + ("; ".join(notes) or "it has only the target"))
    return as_rows(found), notes


def numbers(cells: Sequence[Any], name: str, where: str, place: Callable[[int], str]) -> NDArray[np.float64]:
    """The numbers (N,) in the cells of a numeric column. Raises InputError, naming the place, for other values."""
    values = [as_number(cell) for cell in cells]
    if None in values:
        i = values.index(None)
        raise InputError(
            f"{where}: {place(i)}: column {name!r} is numeric, but has {str(cells[i])[:50]!r}: correct it, or leave it"
            " empty if it is missing"
        )
    return np.array(values, dtype=np.float64)


def _inferred(name: str, cells: Sequence[Any]) -> tuple[Any, str | None]:
    """The values of a column, None if it cannot train; and a note, None if there is nothing to say."""
    parsed = [None if isinstance(cell, bool) else as_number(cell) for cell in cells]
    if None not in parsed:
        values = np.array(parsed, dtype=np.float64)
        known = values[~np.isnan(values)]
        if not len(known):
            return None, f"column {name!r} is empty: it is not used"
        if len(known) == len(cells) > _FEW_CATEGORIES and _counts_rows(known):
            return None, f"column {name!r} numbers the rows: it is not used (name it in numeric to use it)"
        return values, None
    texts = [as_category(cell) for cell in cells]
    known_texts = [text for text in texts if text is not None]
    num_different = len(set(known_texts))
    if num_different > max(_FEW_CATEGORIES, _MOST_CATEGORIES * len(known_texts)):
        return None, f"column {name!r} has {num_different:,} different texts: it is not used (categorical uses it)"
    others = [text for text in known_texts if as_number(text) is None]
    if len(others) < (1 - _NEARLY_NUMERIC) * len(known_texts):
        return texts, (
            f"column {name!r} is taken for categories, since {len(others)} of {len(known_texts)} values are not"
            f" numbers, such as {others[0][:50]!r}"
        )
    return texts, None


def _counts_rows(values: NDArray[np.float64]) -> bool:
    """Whether the values are consecutive integers in ascending order, as the number of a row is."""
    return bool((np.diff(values) == 1).all()) and float(values[0]).is_integer()


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in (listed or "").split(",") if name.strip()))
