"""Predictions of many samples that do not use their given labels, recovered from those that do: one array, not two.

    with the label j:    p'(c) = p(c) T[c, j] / sum_k p(k) T[k, j]        without it:    p(c) ~ p'(c) / T[c, j]

Shapes: N samples, C classes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class BeforeLabels:
    """Predictions (N, C), computed for the rows that are asked for."""

    def __init__(self, after: NDArray[np.float32], labels: NDArray[np.int64], matrix: NDArray[np.float32]):
        """From predictions (N, C) that use the labels (N,) through a noise matrix T (C, C) without zeros."""
        self._after, self._labels, self._columns = after, labels, matrix.T
        self.shape = after.shape

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """The predictions (n, C) of a slice, of indices, or of a mask."""
        probs = self._after[rows] / self._columns[self._labels[rows]]
        return np.asarray(probs / probs.sum(axis=1, keepdims=True))


Predictions = NDArray[np.float32] | BeforeLabels
