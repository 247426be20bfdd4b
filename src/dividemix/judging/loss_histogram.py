"""The losses of one division: a histogram and the two components of the mixture."""

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix.algorithm.divide import Division
from dividemix.judging.records import LossHistogram

_NUM_BINS = 50


def loss_histogram(division: Division, is_wrong: NDArray[np.bool_] | None) -> LossHistogram:
    """Counts of the normalised losses in equal bins, expected counts of both components, and of wrong labels if known.

    `is_wrong` (N,) is of all samples, divided or not. With one mixture for each class, the curves are their sums.
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
    histogram: LossHistogram = {
        "low": low,
        "high": high,
        "counts": counts.tolist(),
        "clean_curve": [round(value, 2) for value in curves[0].tolist()],
        "wrong_curve": [round(value, 2) for value in curves[1].tolist()],
    }
    if is_wrong is not None:
        wrong = values[is_wrong[division.divided.numpy()]]
        histogram["wrong_counts"] = np.histogram(wrong, _NUM_BINS, (low, high))[0].tolist()
    return histogram
