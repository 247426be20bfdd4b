"""Images that stay in their files: an array (N, H, W, K) to who reads it, decoded anew each time.

For data sets that do not fit in memory once decoded.
"""

import hashlib
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike, UnreadableImage, read_image
from dividemix.data.threads import map_ahead
from dividemix.errors import DamagedImageWarning, InputError


class ImageFiles:
    """N images decoded by threads when they are asked for.

    Image i is files[rows[i]], a path, the content of a file, or a Pillow image; digests[i], 16 bytes, tells the image:
    `image_digest`, for those that were decoded once before and so can be. Not `checked`, they were not, and one that
    is damaged is black, with a warning.
    """

    dtype = np.dtype(np.uint8)

    def __init__(
        self,
        files: Sequence[ImageLike],
        image_shape: tuple[int, int, int],
        rows: NDArray[np.int64],
        digests: NDArray[np.uint8],
        *,
        checked: bool = True,
    ):
        self._files = files
        self._image_shape = image_shape
        self._rows = rows
        self.digests = digests
        self._checked = checked

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, K)."""
        return (len(self), *self._image_shape)

    def __getitem__(self, index: Any) -> NDArray[np.uint8]:
        """The images of whatever selects rows of an array: numbers, a mask, a slice; one number gives one image."""
        wanted = np.asarray(np.arange(len(self))[index])
        (images,) = self.batches([wanted.reshape(-1)])
        return images.reshape(*wanted.shape, *self._image_shape)

    def subset(self, index: NDArray[np.int64]) -> "ImageFiles":
        """The images that index (n,) names, still in their files."""
        rows, digests = self._rows[index], self.digests[index]
        return ImageFiles(self._files, self._image_shape, rows, digests, checked=self._checked)

    def batches(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.uint8]]:
        """For each index batch (R,) its images (R, H, W, K), the next batches decoded while one is in use.

        Raises:
            InputError: naming a file that can no longer be read.
        """
        places: deque[NDArray[np.int64]] = deque()  # where in the batch each of its files goes

        def each_file_once() -> Iterator[list[int]]:
            for index in batches:
                rows, place = np.unique(self._rows[index], return_inverse=True)
                places.append(place)
                yield rows.tolist()

        for images in map_ahead(self._read, each_file_once()):
            place = places.popleft()
            yield np.stack(images)[place] if images else np.empty((0, *self._image_shape), dtype=np.uint8)

    def _read(self, row: int) -> NDArray[np.uint8]:
        """The image of one file."""
        file: ImageLike | None = None
        try:
            file = self._files[row]
            return read_image(file, *self._image_shape)
        except UnreadableImage as error:
            name = str(file) if isinstance(file, Path) else f"image {row}"
            if not self._checked and _is_damaged(file, error):
                warnings.warn(f"{name}: {error}; taken for a black image", DamagedImageWarning, stacklevel=2)
                return np.zeros(self._image_shape, dtype=np.uint8)
            before = "readable" if self._checked else "there"
            raise InputError(f"{name}: {error}, but it was {before} at the start: leave the data as it is") from error


def _is_damaged(file: "ImageLike | None", error: UnreadableImage) -> bool:
    """Whether the file is there and can be read, and only what it holds is wrong."""
    is_there = not isinstance(file, Path) or file.is_file()
    is_readable = getattr(error.__cause__, "errno", None) is None and not isinstance(error.__cause__, MemoryError)
    return is_there and is_readable


def image_digest(image: NDArray[np.uint8]) -> bytes:
    """16 bytes that tell an image by its pixels."""
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16).digest()


def fingerprint(images: NDArray[np.uint8] | ImageFiles) -> bytes:
    """32 bytes that tell images (N, H, W, K) by their pixels: the same in memory or in files, wherever those lie."""
    whole = hashlib.blake2b(repr(images.shape).encode(), digest_size=32)
    if isinstance(images, ImageFiles):
        whole.update(np.ascontiguousarray(images.digests).data)
    else:
        for image in images:
            whole.update(image_digest(image))
    return whole.digest()
