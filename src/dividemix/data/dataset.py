"""Images as uint8, in memory on the training device or in their files, with their given labels."""

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dividemix.data.augment import centre_crop, crop_and_flip, cutout, to_input
from dividemix.data.image_files import ImageFiles

_PIXELS_AT_ONCE = 1 << 22  # of a batch to evaluate: 512 images, the most, up to 90 x 90 pixels

Reader = Callable[[Iterable[NDArray[np.int64]]], Iterator[NDArray[np.uint8]]]
Reading = Callable[[Reader, Iterable[NDArray[np.int64]]], Iterator[NDArray[np.uint8]]]


def _read_alone(read: Reader, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.uint8]]:
    return read(batches)


class ArrayData:
    """N images (N, H, W, channels) uint8 and given labels (N,), streamed in index batches.

    An array is moved to the device as a whole. Image files are decoded a few batches ahead. Random numbers are drawn
    when a batch is taken, so both give the same batches. `mean` and `std` are per channel, for pixels in [0, 1]. With
    a `crop_size`, batches contain squares of that size instead of whole images. `reading` gives the images of batches
    by a function that reads some: several processes may divide that work.
    """

    def __init__(
        self,
        images: NDArray[np.uint8] | ImageFiles,
        labels: NDArray[np.int64],
        *,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        crop_padding: int = 0,
        crop_border: Literal["black", "reflected"] = "black",
        crop_size: int = 0,
        flip: bool = False,
        cutout: int = 0,
        device: torch.device | str = "cpu",
        reading: Reading = _read_alone,
    ):
        self.images: Tensor | ImageFiles = (
            images if isinstance(images, ImageFiles) else torch.from_numpy(np.ascontiguousarray(images)).to(device)
        )
        self.labels = torch.from_numpy(labels).to(device)
        self._reading = reading
        self._index: Tensor | None = None  # (N,): positions of the samples' images, if this is a subset
        self._mean, self._std = (torch.tensor(one, dtype=torch.float32, device=device) for one in (mean, std))
        self._mean_pixel = (255 * self._mean).round().to(torch.uint8)
        self._crop_size, self._cutout = crop_size, cutout
        self._cropped = partial(crop_and_flip, padding=crop_padding, border=crop_border, flip=flip, size=crop_size)

    @property
    def at_once(self) -> int:
        """Number of images in an evaluation batch: the larger the images, the fewer."""
        height, width = (self._crop_size,) * 2 if self._crop_size else self.images.shape[1:3]
        return max(1, min(512, _PIXELS_AT_ONCE // (height * width)))

    def subset(self, index: NDArray[np.int64]) -> "ArrayData":
        """The samples of index (n,), numbered from 0; the images are shared, not copied."""
        rows = torch.from_numpy(index)
        part = copy.copy(self)
        part.labels = self.labels[rows.to(self.labels.device)]
        part._index = rows if self._index is None else self._index[rows]
        return part

    def augmented(self, batches: Iterable[Tensor], generator: torch.Generator) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W), each row with its own crop, flip and Cutout."""
        for images in self._pixels(batches):
            cropped = self._cropped(images, generator=generator)
            yield to_input(cutout(cropped, self._cutout, generator, self._mean_pixel), self._mean, self._std)

    def plain(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, channels, H, W) without augmentation; their centres, if cropped."""
        for images in self._pixels(batches):
            yield to_input(centre_crop(images, self._crop_size), self._mean, self._std)

    def pixels(self, index: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The samples' images (R, H, W, channels) as stored, for display."""
        return next(self._pixels([torch.from_numpy(index)])).cpu().numpy()

    def _pixels(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """For each index batch (R,) its images (R, H, W, channels), uint8 on the device."""
        rows = (index.cpu() if self._index is None else self._index[index.cpu()] for index in batches)
        if isinstance(self.images, ImageFiles):
            for images in self._reading(self.images.batches, (row.numpy() for row in rows)):
                yield torch.from_numpy(images).to(self._mean.device)
        else:
            for row in rows:
                yield self.images[row.to(self.images.device)]
