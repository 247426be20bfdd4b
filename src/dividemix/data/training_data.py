"""The data as the algorithm sees it: images by index, and given labels. True labels are not part of it."""

from collections.abc import Iterable, Iterator
from typing import Protocol

import torch
from torch import Tensor


class TrainingData(Protocol):
    """N samples with their given labels.

    Images come as streams over index batches, so that an implementation may read ahead.
    """

    @property
    def labels(self) -> Tensor:
        """Given labels (N,), int64, on the training device."""

    @property
    def at_once(self) -> int:
        """The most samples to evaluate in a batch."""

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W), each row augmented independently: Augment(x)."""

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W) without augmentation."""
