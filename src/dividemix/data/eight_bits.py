"""Grey values of 16 bits or more, or floats, as 8 bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """The values (H, W) as uint8: they keep the range that they seem to have, or are stretched."""
    num_rows = max(1, (1 << 20) // values.shape[1])  # a few at a time: as floats they take four times the memory
    parts = [slice(start, start + num_rows) for start in range(0, len(values), num_rows)]
    ends = [(part.min(), part.max()) for part in (_finite(values[rows]) for rows in parts)]
    low, high = float(min(low for low, _ in ends)), float(max(high for _, high in ends))
    scale = 255 / (high - low or 1.0)
    for top in (1, 255) if values.dtype.kind == "f" else (65535,):
        if low >= 0 and high <= top:
            low, scale = 0.0, 255 / top
            break
    levels = np.empty(values.shape, dtype=np.uint8)
    for rows in parts:
        levels[rows] = np.rint((_finite(values[rows]) - low) * scale)
    return levels


def _finite(values: NDArray[Any]) -> NDArray[np.float64]:
    """The values as floats, 0 for those that are not finite."""
    return np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
