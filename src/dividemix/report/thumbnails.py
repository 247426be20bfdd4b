"""Small pictures for the page."""

import io

import numpy as np
from numpy.typing import NDArray

LONGEST_SIDE = 96
_TINY = 48  # up to this side the file is lossless: it is small enough, and the page enlarges it pixel by pixel


def encode(image: NDArray[np.uint8]) -> bytes:
    """A WebP file of a uint8 image (H, W, K) with 1 or 3 channels, its longest side at most 96 pixels.

    An image without pixels gives no bytes: the sample has no picture.
    """
    if not image.size:
        return b""
    from PIL import Image

    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).convert("RGB")
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    file = io.BytesIO()
    picture.save(file, "WEBP", lossless=max(picture.size) <= _TINY, quality=75)
    return file.getvalue()
