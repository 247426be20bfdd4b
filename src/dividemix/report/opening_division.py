"""The epoch and the network on which the chart of losses opens: those that show two groups best."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUM_PASSES = 4  # of smoothing: a heap of some hundred samples has ripples, which are no second group


def opening_division(divisions: Sequence[Mapping[str, Any]]) -> tuple[int, int] | None:
    """The epoch and the net of the division with the clearest second group; the first one if none has one.

    Early losses are one broad heap. Late losses are one bar at zero, and the few others cannot be seen next to it.
    None without divisions.
    """
    ordered = sorted(divisions, key=lambda one: (one["epoch"], one["net"]))
    if not ordered:
        return None
    clearest = max(ordered, key=lambda one: _second_peak(np.array(one["counts"], float)))
    return int(clearest["epoch"]), int(clearest["net"])


def _second_peak(counts: NDArray[np.float64]) -> float:
    """How far the lower of two peaks rises above the valley between them, as a share of the higher one."""
    smooth = counts
    for _ in range(_NUM_PASSES):
        smooth = np.convolve(np.pad(smooth, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    if smooth.max() <= 0:
        return 0.0
    left, right = np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1]
    return float((np.minimum(left, right) - smooth).max() / smooth.max())
