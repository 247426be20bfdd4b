"""Noise that depends on the sample itself: Xia et al. 2020, Algorithm 2 (part-dependent label noise).

Each sample has its own flip rate. The class it is mistaken for depends on what the sample looks like: a random linear
map, one for each true class, scores the other classes.

Shapes: N samples of D numbers each, C classes.
"""

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_SPREAD = 0.1  # standard deviation of the flip rates, as in the paper
_AT_ONCE = 2**23  # numbers in memory as float64


class Samples(Protocol):
    """Images (N, H, W, channels) or vectors (N, D), in memory or read from files when they are indexed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """N first."""

    def __getitem__(self, index: Any, /) -> Any:
        """The samples of an index (n,)."""


def mistaken_labels(
    true_labels: NDArray[np.int64], samples: Samples, rate: float, num_classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Labels (N,) of which about the share `rate` is wrong, by what the samples look like.

    Every number of a sample is standardised over all samples first, so that the mean sample decides nothing.
    """
    flip_rates, draws = _flip_rates(rate, len(true_labels), rng), rng.random(len(true_labels))
    flips = rng.random(len(true_labels)) < flip_rates
    mean, std = _statistics(samples, len(true_labels))
    labels = true_labels.copy()
    for true_class in range(num_classes):
        weights = rng.standard_normal((len(mean), num_classes))
        for index, rows in _blocks(samples, np.flatnonzero(flips & (true_labels == true_class))):
            scores = ((rows - mean) / std) @ weights
            scores[:, true_class] = -np.inf
            labels[index] = _drawn(scores, draws[index])
    return labels


def _flip_rates(rate: float, num_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A flip rate (N,) for each sample: normal around `rate`, truncated to [0, 1].

    Near 0 and 1 the spread is smaller than the paper's: else the truncation would move the mean away from `rate`.
    """
    spread = min(_SPREAD, rate / 2, (1 - rate) / 2)
    rates = rng.normal(rate, spread, num_samples)
    while (outside := (rates < 0) | (rates > 1)).any():
        rates[outside] = rng.normal(rate, spread, int(outside.sum()))
    return rates


def _drawn(scores: NDArray[np.float64], draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """A class (n,) for each row of scores (n, C), with their softmax's probabilities, from draws (n,) in [0, 1)."""
    cumulative = np.exp(scores - scores.max(axis=1, keepdims=True)).cumsum(axis=1)
    chosen: NDArray[np.int64] = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=1)
    return chosen


def _statistics(samples: Samples, num_samples: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (D,) of each number over the samples; a deviation of 1 if it is constant."""
    everyone = np.arange(num_samples)
    mean = sum(rows.sum(axis=0) for _, rows in _blocks(samples, everyone)) / num_samples
    variance = sum(((rows - mean) ** 2).sum(axis=0) for _, rows in _blocks(samples, everyone)) / num_samples
    return mean, np.where(variance > 0, np.sqrt(variance), 1.0)


def _blocks(samples: Samples, index: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Parts of `index` with their samples as rows (n, D)."""
    size = max(1, _AT_ONCE // math.prod(samples.shape[1:]))
    for first in range(0, len(index), size):
        part = index[first : first + size]
        yield part, np.asarray(samples[part], dtype=np.float64).reshape(len(part), -1)
