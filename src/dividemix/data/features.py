"""Samples that are vectors of numbers, such as the rows of a table, with the labels they were given.

Shapes: N samples, D features, R rows in a batch.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Deviations from the mean beyond which a value says no more; without a bound, an absurd one overflows float32.
_FARTHEST = 1e6


class FeatureData:
    """N feature vectors (N, D) and given labels (N,), streamed in index batches; float32 on the device that trains.

    `mean` and `std` are per feature, (D,). A view of a sample is the standardised vector plus Gaussian noise of
    deviation `noise_std`.
    """

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

    @property
    def at_once(self) -> int:
        """How many samples to evaluate in a batch."""
        return 512

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D), every number with noise of its own."""
        for features in self.plain(batches):
            noise = torch.randn(features.shape, generator=generator).to(features.device)
            yield features + self._noise_std * noise

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its features (R, D) as they are."""
        for index in batches:
            yield self.features[index.to(self.features.device)]


def feature_statistics(features: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation (D,) of each feature over (N, D), in float64.

    A constant feature gets a deviation of 1, which leaves it at zero.
    """
    mean = features.mean(axis=0, dtype=np.float64)
    std = features.std(axis=0, dtype=np.float64)
    # The mean of equal numbers may be off by a rounding, and their deviation with it: so zero is not enough to ask for.
    is_constant = (features == features[0]).all(axis=0) | (std == 0)
    return mean, np.where(is_constant, 1.0, std)
