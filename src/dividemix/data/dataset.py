"""Images held in memory as uint8, on the device that trains, with the labels they were given."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.augment import crop_and_flip, to_input


class ArrayData:
    """N images (N, H, W, channels) uint8 and given labels (N,), streamed in index batches.

    `mean` and `std` are per channel, for pixels in [0, 1].
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        labels: NDArray[np.int64],
        *,
        num_classes: int,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        crop_padding: int = 0,
        flip: bool = False,
        device: torch.device | str = "cpu",
    ):
        self.images = torch.from_numpy(np.ascontiguousarray(images)).to(device)
        self.labels = torch.from_numpy(labels).to(device)
        self.num_classes = num_classes
        self._mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self._std = torch.tensor(std, dtype=torch.float32, device=device)
        self._crop_padding = crop_padding
        self._flip = flip

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W), every row cropped and flipped on its own."""
        for index in batches:
            images = crop_and_flip(
                self.images[index.to(self.images.device)],
                padding=self._crop_padding,
                flip=self._flip,
                generator=generator,
            )
            yield to_input(images, self._mean, self._std)

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W) as they are."""
        for index in batches:
            yield to_input(self.images[index.to(self.images.device)], self._mean, self._std)


def pixel_statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel over images (N, H, W, channels), for pixels in [0, 1].

    Computed from the 256 counts of each channel, so no float copy of the images is made. A constant channel gets a
    deviation of 1, which leaves it at zero.
    """
    levels = np.arange(256) / 255
    means, stds = [], []
    for channel in range(images.shape[-1]):
        share = np.bincount(images[..., channel].ravel(), minlength=256) / images[..., channel].size
        mean = float(share @ levels)
        std = float(np.sqrt(share @ (levels - mean) ** 2))
        means.append(mean)
        stds.append(std or 1.0)
    return tuple(means), tuple(stds)
