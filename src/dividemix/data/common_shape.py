"""The one shape that all images of a data set get, chosen by nearly all of them, and told where a few differ."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dividemix.errors import InputError, shown

LARGE = 224  # large images get this size, for which the networks for large images are made
_SMALL = 96  # images with sides of at most this many pixels keep their size
_NEARLY_ALL = 0.99  # so large a share of the images decides for all of them


def common_channels(is_grey: Sequence[bool]) -> tuple[int, list[str]]:
    """One channel if nearly all images are grey, else three; and a line for the user if they are mixed."""
    num_images, num_grey = len(is_grey), sum(is_grey)
    if num_grey in (0, num_images):
        return (3 if num_grey == 0 else 1), []
    if num_grey >= _NEARLY_ALL * num_images:
        others = _counted(num_images - num_grey, "colour image is", "colour images are")
        return 1, [f"grey images: {num_grey:,} of {num_images:,} are; {others} converted to grey"]
    others = _counted(num_grey, "grey image is", "grey images are")
    return 3, [f"colour images: {num_images - num_grey:,} of {num_images:,} are; {others} converted to colour"]


def common_size(sizes: NDArray[np.int64], image_size: int | None, large_size: int) -> tuple[tuple[int, int], list[str]]:
    """The height and width for all images, from their own sizes (N, 2); and a line for the user if a few differ.

    With `image_size` it is a square of that size. Else, if nearly all images have the same size, and no side of it is
    longer than 96, it is that size. Else it is a square: of the median shorter side, rounded to a multiple of 8 and at
    least 16, or of `large_size` if that median is more than 96.
    """
    check_image_size(image_size)
    if image_size is not None:
        return (image_size, image_size), []
    known, counts = np.unique(sizes, axis=0, return_counts=True)
    height, width = known[counts.argmax()].tolist()
    number = int(counts.max())
    if number >= _NEARLY_ALL * len(sizes) and max(height, width) <= _SMALL:
        if number == len(sizes):
            return (height, width), []
        others = _counted(len(sizes) - number, "other is", "others are")
        return (height, width), [f"{height} x {width} pixels: {number:,} of {len(sizes):,} images; {others} resized"]
    shorter = float(np.median(sizes.min(axis=1)))
    side = max(16, 8 * round(shorter / 8)) if shorter <= _SMALL else large_size
    if len(known) == 1:
        return (side, side), []
    lows, highs = sizes.min(axis=0), sizes.max(axis=0)
    between = f"from {lows[0]} x {lows[1]} to {highs[0]} x {highs[1]} pixels"
    return (side, side), [f"all images are resized to {side} x {side} pixels: they have {len(known):,} sizes {between}"]


def check_image_size(image_size: int | None) -> None:
    """Raise InputError unless images can be resized to this size."""
    if image_size is not None and not (isinstance(image_size, int) and 8 <= image_size <= 1024):
        raise InputError(f"image_size is {shown(image_size)}: must be from 8 to 1024 pixels")


def _counted(number: int, one: str, many: str) -> str:
    """A number with its noun and verb."""
    return f"{number:,} {one if number == 1 else many}"
