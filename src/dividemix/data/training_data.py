"""How the algorithm sees its data: images by index and given labels. True labels have no name here."""

from collections.abc import Iterable, Iterator
from typing import Protocol

import torch
from torch import Tensor


class TrainingData(Protocol):
    """N samples with the labels they were given.

    Images come as streams over index batches, so that an implementation may read ahead.
    """

    @property
    def labels(self) -> Tensor:
        """Given labels (N,), int64, on the device that trains."""

    @property
    def at_once(self) -> int:
        """How many samples to evaluate in a batch, at most."""

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W), each row augmented on its own: Augment(x)."""

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W) as they are."""
