"""The epoch on which the chart of losses opens: the one that shows two groups best."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def opening_epoch(divisions: Sequence[Mapping[str, Any]]) -> int | None:
    """The epoch with the clearest second group in its histograms; the first one if none has one, None without any.

    Early losses are one broad heap. Late losses are one bar at zero, and the few others cannot be seen next to it.
    """
    clearness: dict[int, list[float]] = {}
    for division in divisions:
        clearness.setdefault(int(division["epoch"]), []).append(_second_peak(np.array(division["counts"], float)))
    if not clearness:
        return None
    return max(sorted(clearness), key=lambda epoch: np.mean(clearness[epoch]))


def _second_peak(counts: NDArray[np.float64]) -> float:
    """How far the lower of two peaks rises above the valley between them, as a share of the higher one."""
    smooth = np.convolve(np.pad(counts, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    if len(smooth) < 3 or smooth.max() <= 0:
        return 0.0
    left, right = np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1]
    return float((np.minimum(left, right) - smooth).max() / smooth.max())
