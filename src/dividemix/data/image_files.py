"""Images that stay in their files, for data sets that do not fit in memory once decoded.

They are read like an array (N, H, W, K); each read decodes them again.
"""

import copy
import hashlib
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike, UnreadableImage, read_image
from dividemix.data.threads import map_ahead, num_threads
from dividemix.errors import DamagedImageWarning, InputError


class MadeWhenRead(Sequence[ImageLike]):
    """N images, or paths of images, each made when it is read, because a million of them need much memory."""

    def __init__(self, num_images: int, make: Callable[[int], ImageLike]):
        self._num_images, self._make = num_images, make

    def __len__(self) -> int:
        return self._num_images

    def __getitem__(self, row: Any) -> Any:
        return self._make(row)


_Part = tuple[NDArray[np.uint8], list[tuple[int, int]]]  # a batch, and some of its files: row and place in the batch
_MOST_AT_ONCE = 16  # images that a thread decodes before it takes other work


class _Kept:
    """Images of files that were decoded before. Memory is taken as they come."""

    def __init__(self, num_files: int, image_shape: tuple[int, int, int]):
        self.images = np.empty((num_files, *image_shape), dtype=np.uint8)
        self.known = np.zeros(num_files, dtype=np.bool_)


class ImageFiles:
    """N images that threads decode when they are read.

    Image i is files[rows[i]]: a path, the content of a file, or a Pillow image. digests[i], 16 bytes, identifies it.
    If `checked`, all images were decoded once, and the digest is `image_digest`. Otherwise they were not, and a damaged
    image becomes black, with a warning. If they are to `keep`, an image stays in memory once it was decoded.
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
        keep: bool = False,
    ):
        self._files, self._image_shape = files, image_shape
        self._rows, self.digests, self._checked = rows, digests, checked
        self._kept = _Kept(len(files), image_shape) if keep else None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, H, W, K)."""
        return (len(self), *self._image_shape)

    @property
    def nbytes(self) -> int:
        """The memory that images take once all are read."""
        return 0 if self._kept is None else self._kept.images.nbytes

    def __getitem__(self, index: Any) -> NDArray[np.uint8]:
        """The images that an array index selects: numbers, a mask or a slice; one number gives one image."""
        wanted = np.asarray(np.arange(len(self))[index])
        (images,) = self.batches([wanted.reshape(-1)])
        return images.reshape(*wanted.shape, *self._image_shape)

    def subset(self, index: NDArray[np.int64]) -> "ImageFiles":
        """The images of index (n,), still in their files."""
        part = copy.copy(self)
        part._rows, part.digests = self._rows[index], self.digests[index]
        return part

    def batches(self, batches: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.uint8]]:
        """For each index batch (R,) its images (R, H, W, K), decoded ahead; InputError if a file became unreadable."""
        waits = bool(getattr(self._files, "waits", False))
        ready: deque[tuple[NDArray[np.uint8], NDArray[np.int64]]] = deque()  # images, and where each is among them

        def parts() -> Iterator[list[_Part]]:
            for index in batches:
                rows, first, place = np.unique(self._rows[index], return_index=True, return_inverse=True)
                images = np.empty((len(index), *self._image_shape), dtype=np.uint8)
                ready.append((images, first[place]))
                size = 1 if waits else min(_MOST_AT_ONCE, -(-len(rows) // num_threads()))
                each = list(zip(rows.tolist(), first.tolist(), strict=True))
                yield [(images, each[start : start + size]) for start in range(0, len(each), max(size, 1))]

        for _ in map_ahead(self._fill, parts(), waits=waits):
            images, place = ready.popleft()
            if (again := np.flatnonzero(place != np.arange(len(place)))).size:
                images[again] = images[place[again]]
            yield images

    def _fill(self, part: "_Part") -> None:
        """Write the images of some files to their places."""
        images, files = part
        for row, place in files:
            kept = self._kept
            if kept is not None and kept.known[row]:
                images[place] = kept.images[row]
                continue
            images[place] = self._read(row)
            if kept is not None:
                kept.images[row], kept.known[row] = images[place], True

    def _read(self, row: int) -> NDArray[np.uint8]:
        file: ImageLike | None = None
        try:
            file = self._files[row]
            return read_image(file, *self._image_shape)
        except UnreadableImage as error:
            name = str(file) if isinstance(file, Path) else getattr(self._files, "name_of", "image {}".format)(row)
            exists = not isinstance(file, Path) or file.is_file()
            if not self._checked and exists:  # only its content is wrong
                warnings.warn(f"{name}: {error}; used as a black image", DamagedImageWarning, stacklevel=2)
                return np.zeros(self._image_shape, dtype=np.uint8)
            before = "readable" if self._checked else "present"
            raise InputError(f"{name}: {error}, but it was {before} at the start: leave the data unchanged") from error


def image_digest(image: NDArray[np.uint8]) -> bytes:
    """16 bytes that identify an image by its pixels."""
    return hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=16).digest()


def fingerprint(images: NDArray[np.uint8] | ImageFiles) -> bytes:
    """32 bytes that identify images (N, H, W, K) by their pixels: the same in memory and in files, in any folder."""
    whole = hashlib.blake2b(repr(images.shape).encode(), digest_size=32)
    digests: Iterable[Any] = images.digests if isinstance(images, ImageFiles) else map(image_digest, images)
    for digest in digests:
        whole.update(digest)
    return whole.digest()
