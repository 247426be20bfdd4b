"""The input of a model that was trained on the rows of a table: they become vectors, which are standardised.

`forward` takes numbers (N, P), one for each column, in the order of `columns` in config.json: a category is its
position in `categories`, -1 for one that is not there; a missing value is NaN. Shapes: N rows, P columns.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.readers.frame_columns import columns_of
from dividemix.data.readers.row_table import rows_like
from dividemix.data.source import Kind
from dividemix.data.table_rows import is_rows
from dividemix.encoders.columns import Column, ColumnsEncoder
from dividemix.errors import InputError
from dividemix.model.inputs import VectorInput


class RowInput(nn.Module):
    """Rows of a table."""

    kind: ClassVar[Kind] = "rows"
    raw_type: ClassVar[torch.dtype] = torch.float64

    def __init__(self, columns: ColumnsEncoder, vectors: VectorInput):
        super().__init__()
        self.columns, self.vectors = columns, vectors
        self.shape: tuple[int, ...] = (len(columns.columns),)
        self.net_shape = vectors.net_shape

    def forward(self, numbers: Tensor) -> Tensor:
        """The nets' input (N, D) of numbers (N, P)."""
        return self.vectors(self.columns(numbers))  # type: ignore[no-any-return]

    def describe(self) -> dict[str, Any]:
        """The part `preprocessing` of config.json."""
        return {"columns": [column.describe() for column in self.columns.columns], **self.vectors.describe()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "RowInput":
        """The input that `describe` described. Raises ValueError, KeyError or TypeError if that is wrong."""
        columns = [Column.of(column) for column in values["columns"]]
        if not columns or len({column.name for column in columns}) < len(columns):
            raise ValueError("columns must be a list of columns with different names")
        vectors = VectorInput.of(values)
        if sum(column.num_features for column in columns) != vectors.shape[0]:
            raise ValueError("num_features must be that of the columns")
        return cls(ColumnsEncoder(columns), vectors)

    def checked(self, rows: Any) -> NDArray[np.float64]:
        """Numbers (N, P) of rows: a table of pandas or polars, a dict of columns, a list of dicts, or numbers (N, P).

        Raises InputError if a column is missing, or has a value of another type.
        """
        if isinstance(rows, np.ndarray) and not is_rows(rows):
            if rows.ndim != 2 or rows.shape[1] != self.shape[0] or rows.dtype.kind not in "iuf":
                raise InputError(f"rows have shape {rows.shape}: give a table with the columns of the training")
            return rows.astype(np.float64)
        if not is_rows(rows):
            rows = rows_like(self.columns.dtype, columns_of(rows, "rows"), "rows")
        return self.columns.numbers(rows)

    def examples(self) -> NDArray[Any]:
        """Five rows of numbers (5, P) to compare programs with: some values are missing or unknown."""
        drawn: NDArray[np.float64] = np.random.default_rng(0).normal(size=(5, *self.shape))
        numbers: NDArray[np.float64] = drawn * self.columns.scale.cpu().numpy() + self.columns.centre.cpu().numpy()
        for p, column in enumerate(self.columns.columns):
            if column.categories is not None:
                numbers[:, p] = np.arange(5) % (len(column.categories) + 1) - 1
        numbers[1, ::2] = np.nan
        return numbers
