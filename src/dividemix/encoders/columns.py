"""Vectors of the rows of a table: numbers in their own scale, a 0 or 1 for each category, a 1 where one is missing.

It is fitted on the training rows. A missing number becomes the median of its column. Categories that are rare in the
training, or new, have zeros only. A row first becomes numbers (N, P), one for each column: a category is its position
in the list of categories, -1 if it is not there; a missing value is NaN. All else is a module that can be exported.
Shapes: N rows, P columns, D numbers of a vector.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.table_rows import is_numeric
from dividemix.encoders.encoder import Sample

NAME = "columns"
_MOST_CATEGORIES = 100  # of a column
_LEAST_ROWS = 5  # with a category


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: its categories, None if it is numeric; and whether the training rows have missing values in it."""

    name: str
    categories: tuple[str, ...] | None
    has_missing: bool

    @property
    def num_features(self) -> int:
        """Numbers of a vector that come from it."""
        return (1 if self.categories is None else len(self.categories)) + self.has_missing

    def describe(self) -> dict[str, Any]:
        """The column in JSON's types."""
        categories = {} if self.categories is None else {"categories": list(self.categories)}
        kind = "numeric" if self.categories is None else "categorical"
        return {"name": self.name, "type": kind, **categories, "has_missing": self.has_missing}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Column":
        """The column that `describe` described. Raises ValueError, KeyError or TypeError if that is wrong."""
        kind, name, has_missing = values["type"], values["name"], values["has_missing"]
        if kind not in ("numeric", "categorical") or not isinstance(name, str) or type(has_missing) is not bool:
            raise ValueError(f"column {str(name)[:50]!r} must be numeric or categorical")
        categories = None if kind == "numeric" else tuple(values["categories"])
        if categories is not None and not all(isinstance(one, str) for one in categories):
            raise ValueError(f"categories of column {name[:50]!r} must be texts")
        return cls(name=name, categories=categories, has_missing=has_missing)


class ColumnsEncoder(nn.Module):
    """A fitted encoder: the columns, and for each the number that fills in, the centre and the scale."""

    takes: ClassVar[Sample] = "rows"
    # For each number of a vector: its column, its category or -1, and whether it says that a value is missing.
    source: Tensor
    category: Tensor
    flags_missing: Tensor

    def __init__(self, columns: Sequence[Column]):
        super().__init__()
        self.columns = tuple(columns)
        parts = [(p, *part) for p, column in enumerate(self.columns) for part in _parts(column)]
        for name, values in zip(("source", "category", "flags_missing"), zip(*parts, strict=True), strict=True):
            self.register_buffer(name, torch.tensor(values), persistent=False)
        self.centre = nn.Buffer(torch.zeros(len(self.columns), dtype=torch.float64))
        self.scale = nn.Buffer(torch.ones(len(self.columns), dtype=torch.float64))

    @classmethod
    def fitted(cls, rows: NDArray[Any]) -> "ColumnsEncoder":
        """The encoder for these training rows (N,)."""
        encoder = cls([_column(rows, name) for name in rows.dtype.names or ()])
        for p, column in enumerate(encoder.columns):
            if column.categories is None:
                encoder.centre[p], encoder.scale[p] = _centre_and_scale(rows[column.name])
        return encoder

    @property
    def dtype(self) -> np.dtype[Any]:
        """The names and types of the columns, as rows have them."""
        return np.dtype([(one.name, np.float64 if one.categories is None else np.object_) for one in self.columns])

    def numbers(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The rows (N,) as numbers (N, P), one for each column."""
        numbers = np.empty((len(rows), len(self.columns)))
        for p, column in enumerate(self.columns):
            if column.categories is None:
                numbers[:, p] = rows[column.name]
                continue
            place: dict[str | None, float] = {category: i for i, category in enumerate(column.categories)}
            place[None] = np.nan
            numbers[:, p] = [place.get(value, -1.0) for value in rows[column.name].tolist()]
        return numbers

    def forward(self, numbers: Tensor) -> Tensor:
        """Vectors (N, D), float32, of numbers (N, P) in float64."""
        is_missing = numbers.isnan()
        scaled = (torch.where(is_missing, self.centre, numbers) - self.centre) / self.scale
        known = torch.where(is_missing, -1.0, numbers)
        is_category = (known[:, self.source] == self.category).to(numbers.dtype)
        flags = torch.where(self.flags_missing, is_missing.to(numbers.dtype)[:, self.source], is_category)
        is_number = (self.category < 0) & ~self.flags_missing
        return torch.where(is_number, scaled[:, self.source], flags).clamp(-1e30, 1e30).float()

    def encode(self, batch: Any) -> Tensor:
        """As `Encoder.encode`."""
        numbers = torch.from_numpy(self.numbers(batch)).to(self.centre.device)
        vectors: Tensor = self(numbers)
        return vectors.cpu()

    def describe(self) -> dict[str, Any]:
        """As `Encoder.describe`: the rows that it was fitted on decide the rest."""
        return {"name": NAME, "weights": None, "columns": [column.describe() for column in self.columns]}


def _parts(column: Column) -> list[tuple[int, bool]]:
    """The category, or -1, and whether it flags missing values, of each number that comes from a column."""
    own = [(-1, False)] if column.categories is None else [(i, False) for i in range(len(column.categories))]
    return own + ([(-1, True)] if column.has_missing else [])


def _column(rows: NDArray[Any], name: str) -> Column:
    values = rows[name]
    if is_numeric(rows, name):
        return Column(name=name, categories=None, has_missing=bool(np.isnan(values).any()))
    counts = Counter(value for value in values.tolist() if value is not None)
    least = min(_LEAST_ROWS, max(1, len(values) // 20))
    frequent = [value for value, number in counts.most_common(_MOST_CATEGORIES) if number >= least]
    has_missing = any(value is None for value in values.tolist())
    return Column(name=name, categories=tuple(sorted(frequent)), has_missing=has_missing or not frequent)


def _centre_and_scale(values: NDArray[np.float64]) -> tuple[float, float]:
    """The median, and the mean distance from it, 1 if that is zero."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0
    centre = float(np.median(known))
    distances = np.abs(known / 2 - centre / 2)  # halves: a difference of the largest numbers is too large
    farthest = float(distances.max())
    scale = 2 * farthest * float((distances / farthest).mean()) if farthest > 0 else 1.0
    return centre, scale if 0 < scale < np.inf else 1.0
