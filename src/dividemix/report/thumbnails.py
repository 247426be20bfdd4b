"""Small and large pictures for the page, as WebP files."""

import io

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike, read_whole

SMALL, LARGE = 256, 1600  # pixels of the longest side
_TINY = 48  # up to this side the file is lossless: it is small enough, and the page enlarges it pixel by pixel
_QUALITY = 60  # of small pictures; a thousand of them fit into the page


def encode(image: NDArray[np.uint8], longest: int = SMALL) -> bytes:
    """A WebP file of a uint8 image (H, W, K) with 1 or 3 channels, its longest side at most `longest` pixels.

    An image without pixels gives no bytes: the sample has no picture.
    """
    if not image.size:
        return b""
    from PIL import Image

    picture = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).convert("RGB")
    picture.thumbnail((longest, longest))
    file = io.BytesIO()
    picture.save(file, "WEBP", lossless=max(picture.size) <= _TINY, quality=_QUALITY if longest <= SMALL else 85)
    return file.getvalue()


def encode_file(file: ImageLike, longest: int = SMALL) -> bytes:
    """A WebP file of a whole image, upright and not cropped. Raises UnreadableImage if it cannot be read."""
    return encode(read_whole(file, longest), longest)
