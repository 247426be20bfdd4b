"""Mean and standard deviation of each channel, from how often each of the 256 levels occurs in it."""

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import ImageFiles

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def pixel_statistics(images: NDArray[np.uint8] | ImageFiles) -> Statistics:
    """Mean and standard deviation of each channel over images (N, H, W, channels), for pixels in [0, 1].

    No float copy of the images is made. A constant channel gets a deviation of 1, which leaves it at zero.
    """
    if isinstance(images, ImageFiles):
        num_images = len(images)
        parts = images.batches(np.arange(num_images)[start : start + 128] for start in range(0, num_images, 128))
        return mean_and_std(sum((level_counts(part) for part in parts), np.zeros((images.shape[-1], 256), np.int64)))
    return mean_and_std(level_counts(images))


def level_counts(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Counts (channels, 256) of each level in images (..., channels)."""
    channels = range(images.shape[-1])
    return np.stack([np.bincount(images[..., channel].ravel(), minlength=256) for channel in channels])


def mean_and_std(counts: NDArray[np.int64]) -> Statistics:
    """Mean and standard deviation of each channel, for pixels in [0, 1], from counts (channels, 256) of its levels."""
    levels = np.arange(256) / 255
    means, stds = [], []
    for count in counts:
        share = count / count.sum()
        mean = float(share @ levels)
        std = float(np.sqrt(share @ (levels - mean) ** 2))
        means.append(mean)
        stds.append(std or 1.0)
    return tuple(means), tuple(stds)
