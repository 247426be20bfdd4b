"""Samples that are vectors of numbers, such as embeddings or the rows of a table, with their given labels.

Shapes: N samples, D features, R rows in a batch.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.source import Samples
from dividemix.data.vectors import blocks

# Values farther from the mean than this many deviations are clipped; else an absurd value would overflow float32.
FARTHEST = 1e6


class FeatureData:
    """N feature vectors (N, D) and given labels (N,), streamed in index batches; float32 on the training device.

    `mean` and `std` are per feature, (D,). A view of a sample is the standardised vector plus Gaussian noise of
    deviation `noise_std`. The vectors may be mapped from a file: they are copied once, standardised, block by block.
    """

    at_once = 512  # samples in an evaluation batch

    def __init__(
        self,
        features: NDArray[Any],
        labels: NDArray[np.int64],
        *,
        mean: NDArray[np.float64],
        std: NDArray[np.float64],
        noise_std: float = 0.0,
        device: torch.device | str = "cpu",
    ):
        self._all = torch.empty(features.shape, dtype=torch.float32, device=device)
        for rows in blocks(features):
            self._all[rows] = torch.from_numpy(standardised(features[rows], mean, std)).to(device)
        self.labels = torch.from_numpy(labels).to(device)
        self._index: Tensor | None = None  # (N,): positions of the samples' vectors, if this is a subset
        self._noise_std = noise_std
        self.pictures: Samples | None = None  # images that the vectors were computed from, if they were

    @property
    def features(self) -> Tensor:
        """The standardised vectors (N, D); of a subset, a copy."""
        return self._all if self._index is None else self._all[self._index]

    @property
    def whole(self) -> Tensor:
        """The standardised vectors of all samples that this is a subset of, or of its own if it is none."""
        return self._all

    @property
    def positions(self) -> Tensor:
        """The rows (N,) of `whole` that the samples have."""
        return torch.arange(len(self._all), device=self._all.device) if self._index is None else self._index

    def subset(self, index: NDArray[np.int64]) -> "FeatureData":
        """The samples of index (n,), numbered from 0; the vectors are shared, not copied."""
        rows = torch.from_numpy(index).to(self.labels.device)
        part = copy.copy(self)
        part.labels = self.labels[rows]
        part._index = rows if self._index is None else self._index[rows]
        return part

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D), with independent noise on every number."""
        for features in self.plain(batches):
            noise = torch.randn(features.shape, generator=generator).to(features.device)
            yield features + self._noise_std * noise

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D) without noise."""
        for index in batches:
            rows = index.to(self.labels.device)
            yield self._all[rows if self._index is None else self._index[rows]]

    def pixels(self, index: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The images (R, H, W, channels) that the samples' vectors were computed from; of no pixels without any."""
        if self.pictures is None:
            return np.empty((len(index), 0, 0, 1), dtype=np.uint8)
        return self.pictures[index if self._index is None else self._index.cpu().numpy()[index]]


def standardised(features: NDArray[Any], mean: NDArray[np.float64], std: NDArray[np.float64]) -> NDArray[np.float32]:
    """The features (R, D) as float32 in deviations from their mean; computed in float64, absurd values clipped."""
    far: NDArray[np.float64] = ((features - mean) / std).clip(-FARTHEST, FARTHEST)
    return far.astype(np.float32)


def feature_statistics(features: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (D,) of each feature over (N, D), in float64; a deviation of 1 if it is constant."""
    num_samples, num_features = features.shape
    mean, squares = np.zeros((2, num_features))
    is_constant = np.ones(num_features, dtype=np.bool_)
    for rows in blocks(features):
        part = features[rows]
        mean += part.sum(axis=0, dtype=np.float64) / num_samples
        # Rounding can make the deviation of equal numbers slightly more than zero, so a deviation of 0 is not enough.
        is_constant &= (part == features[0]).all(axis=0)
    for rows in blocks(features):
        squares += ((features[rows] - mean) ** 2).sum(axis=0)
    std = np.sqrt(squares / num_samples)
    return mean, np.where(is_constant | (std == 0), 1.0, std)
