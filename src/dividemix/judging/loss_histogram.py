"""How one division saw the losses: a histogram and, over it, the two components of the mixture."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix.algorithm.divide import Division

_NUM_BINS = 50


def loss_histogram(division: Division, is_wrong: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Counts of the normalised losses in equal bins, expected counts of both components, and of wrong labels if known.

    `is_wrong` (N,) is of all samples, divided or not.
    The curves sum those of all the division's mixtures, of which there is one for each class with per_class.
    """
    assert division.values is not None
    values = division.values.numpy()
    low, high = float(values.min()), float(values.max())
    if low == high:
        high = low + 1.0
    counts, edges = np.histogram(values, _NUM_BINS, (low, high))
    centres = torch.from_numpy((edges[:-1] + edges[1:]) / 2)
    curves = torch.zeros(2, _NUM_BINS, dtype=torch.float64)
    for share, mixture in division.mixtures:
        curves += share * mixture.densities(centres)
    curves *= len(values) * (high - low) / _NUM_BINS
    histogram: dict[str, Any] = {
        "low": low,
        "high": high,
        "counts": counts.tolist(),
        "clean_curve": [round(value, 2) for value in curves[0].tolist()],
        "wrong_curve": [round(value, 2) for value in curves[1].tolist()],
    }
    if is_wrong is not None:
        histogram["wrong_counts"] = np.histogram(values[is_wrong[division.divided.numpy()]], _NUM_BINS, (low, high))[
            0
        ].tolist()
    return histogram
