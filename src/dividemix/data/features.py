"""Samples that are vectors of numbers, such as the rows of a table, with their given labels.

Shapes: N samples, D features, R rows in a batch.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Values farther from the mean than this many deviations are clipped; else an absurd value would overflow float32.
_FARTHEST = 1e6


class FeatureData:
    """N feature vectors (N, D) and given labels (N,), streamed in index batches; float32 on the training device.

    `mean` and `std` are per feature, (D,). A view of a sample is the standardised vector plus Gaussian noise of
    deviation `noise_std`.
    """

    at_once = 512  # samples in an evaluation batch

    def __init__(
        self,
        features: NDArray[np.floating],
        labels: NDArray[np.int64],
        *,
        mean: NDArray[np.float64],
        std: NDArray[np.float64],
        noise_std: float = 0.0,
        device: torch.device | str = "cpu",
    ):
        standardised = ((features - mean) / std).clip(-_FARTHEST, _FARTHEST)
        self.features = torch.from_numpy(standardised.astype(np.float32)).to(device)
        self.labels = torch.from_numpy(labels).to(device)
        self._noise_std = noise_std

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D), with independent noise on every number."""
        for features in self.plain(batches):
            noise = torch.randn(features.shape, generator=generator).to(features.device)
            yield features + self._noise_std * noise

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D) without noise."""
        for index in batches:
            yield self.features[index.to(self.features.device)]


def feature_statistics(features: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (D,) of each feature over (N, D), in float64; a deviation of 1 if it is constant."""
    mean = features.mean(axis=0, dtype=np.float64)
    std = features.std(axis=0, dtype=np.float64)
    # Rounding can make the computed deviation of equal numbers slightly more than zero, so std == 0 is not enough.
    is_constant = (features == features[0]).all(axis=0) | (std == 0)
    return mean, np.where(is_constant, 1.0, std)
