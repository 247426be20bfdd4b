"""A map of samples that are vectors: their two main directions, for a picture of the classes and the suspects.

Shapes: N samples, D numbers of a vector, n points of the map.
"""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

_MAX_POINTS = 1500
_MAX_SUSPECTS = 500  # of the points, so that most of the map is the data as it is


class DataMap(TypedDict):
    """The points: positions in [0, 1], the sample of each, and how many samples there are in all."""

    points: list[list[float]]  # (n, 2)
    samples: list[int]  # (n,): indices among the N samples
    share: float  # of the variance that the two directions have


def data_map(vectors: NDArray[np.float32], is_issue: NDArray[np.bool_]) -> DataMap:
    """The map of vectors (N, D) by their first two principal components: a sample of them, suspects among it."""
    rng = np.random.default_rng(0)
    suspects = rng.permutation(np.flatnonzero(is_issue))[:_MAX_SUSPECTS]
    others = rng.permutation(np.flatnonzero(~is_issue))[: _MAX_POINTS - len(suspects)]
    chosen = np.sort(np.concatenate([suspects, others]))
    centred = vectors[chosen] - vectors[chosen].mean(axis=0)
    _, scales, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2][np.arange(len(axes[:2])), np.abs(axes[:2]).argmax(axis=1)])[:, None]
    flat = np.zeros((len(chosen), 2))
    flat[:, : len(axes)] = centred @ axes.T
    low, high = flat.min(axis=0), flat.max(axis=0)
    points = np.round((flat - low) / np.where(high > low, high - low, 1), 3)
    share = float((scales[:2] ** 2).sum() / max((scales**2).sum(), 1e-12))
    return {"points": points.tolist(), "samples": chosen.tolist(), "share": share}
