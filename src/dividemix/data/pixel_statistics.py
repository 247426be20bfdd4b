"""Mean and standard deviation of each channel, from the counts of its 256 levels."""

import numpy as np
from numpy.typing import NDArray

from dividemix.data.image_files import ImageFiles

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def pixel_statistics(images: NDArray[np.uint8] | ImageFiles) -> Statistics:
    """Mean and standard deviation of each channel over images (N, H, W, channels), for pixels in [0, 1].

    No float copy of the images is made. A constant channel gets a deviation of 1, so it becomes zero.
    """
    if isinstance(images, ImageFiles):
        parts = images.batches(np.split(np.arange(len(images)), range(128, len(images), 128)))
        return mean_and_std(sum((level_counts(part) for part in parts), np.zeros((images.shape[-1], 256), np.int64)))
    return mean_and_std(level_counts(images))


def level_counts(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Counts (channels, 256) of each level in images (..., channels)."""
    channels = range(images.shape[-1])
    return np.stack([np.bincount(images[..., channel].ravel(), minlength=256) for channel in channels])


def mean_and_std(counts: NDArray[np.int64]) -> Statistics:
    """Mean and standard deviation of each channel, for pixels in [0, 1], from counts (channels, 256) of its levels."""
    levels = np.arange(256) / 255
    shares = [count / count.sum() for count in counts]
    means = tuple(float(share @ levels) for share in shares)
    stds = (float(np.sqrt(share @ (levels - mean) ** 2)) for share, mean in zip(shares, means, strict=True))
    return means, tuple(std or 1.0 for std in stds)
