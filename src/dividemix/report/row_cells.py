"""What the page shows of the rows of a table: their values, and which are unusual for the given label. No torch import.

A number is unusual if it is among the highest or lowest few percent of the rows with the same given label. A missing
value is if few of these rows have one, and a category if it is also much rarer among them than categories are on
average. Classes with few rows have nothing unusual.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.table_rows import is_numeric
from dividemix.report.shown import Shown, row

_SHARE = 0.025  # of the rows of a class, at either end
_RARE = 0.25  # part of the mean frequency of a category
_FEWEST = 40  # rows of a class that tell what is unusual
_LENGTH = 200  # characters of a value
_MOST_COLUMNS = 200


@dataclass(frozen=True, eq=False)
class RowCells:
    """Rows (N,) and, for each cell (N, columns), whether it is unusual."""

    rows: NDArray[Any]
    is_unusual: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: NDArray[Any], labels: NDArray[np.int64]) -> "RowCells":
        """The cells of rows (N,) with given labels (N,)."""
        names = rows.dtype.names or ()
        found = np.zeros((len(rows), len(names)), dtype=np.bool_)
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            if len(members) >= _FEWEST:
                for p, name in enumerate(names):
                    found[members, p] = _unusual(rows[name][members], is_numeric(rows, name))
        return cls(rows, found)

    def shown(self, i: int) -> Shown:
        """What a card shows of row i."""
        names = (self.rows.dtype.names or ())[:_MOST_COLUMNS]
        flags = self.is_unusual[i].tolist()
        return row([(name, _words(self.rows[name][i]), flag) for name, flag in zip(names, flags, strict=False)])


def _unusual(values: NDArray[Any], numeric: bool) -> NDArray[np.bool_]:
    """Which values (n,) of one class are unusual."""
    if numeric:
        is_missing = np.isnan(values)
        known = values[~is_missing]
        low, high = np.quantile(known, [_SHARE, 1 - _SHARE]) if len(known) else (0.0, 0.0)
        is_rarely_missing = is_missing & (is_missing.mean() < _SHARE)
        return np.asarray((values < low) | (values > high) | is_rarely_missing)
    counts = Counter(values.tolist())
    least = min(_SHARE, _RARE / len(counts)) * len(values)
    return np.array([counts[value] < least for value in values.tolist()], dtype=np.bool_)


def _words(value: Any) -> str:
    """A value as the page shows it; empty if it is missing."""
    if value is None or value != value:
        return ""
    return value[:_LENGTH] if isinstance(value, str) else f"{float(value):.6g}"
