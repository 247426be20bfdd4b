"""The pictures of a run's samples: from their files, whole and upright, or the pixels that were trained on."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from dividemix.data.images import ImageLike, UnreadableImage, read_image
from dividemix.data.originals import Originals
from dividemix.report.thumbnails import LARGE, SMALL, encode, encode_file


@dataclass(frozen=True)
class Pictures:
    """Pictures of samples: `files` by sample index, else `pixels(i)`, which is None for a sample without a picture."""

    files: Mapping[int, ImageLike]
    pixels: Callable[[int], NDArray[np.uint8] | None]

    def small(self, i: int) -> bytes:
        """A thumbnail of sample i as a WebP file; b"" if it has no picture; InputError if its file is refused."""
        return self._encoded(i, SMALL)

    def large(self, i: int) -> bytes:
        """A picture of sample i that fills a screen, as a WebP file; b"" if it has no picture."""
        return self._encoded(i, LARGE)

    def _encoded(self, i: int, longest: int) -> bytes:
        if i in self.files:
            try:
                return encode_file(self.files[i], longest)
            except UnreadableImage:  # damaged or gone since the training
                pass
        pixels = self.pixels(i)
        return b"" if pixels is None else encode(pixels, longest)

    def link(self, i: int, folder: Path) -> str | None:
        """A relative URL that leads from a page in the folder to the file of sample i; None if it has none."""
        file = self.files.get(i)
        if not isinstance(file, Path):
            return None
        try:
            relative = os.path.relpath(file.absolute(), folder.resolve())
        except ValueError:  # another drive
            return file.absolute().as_uri()
        # Quoted so that no name is taken for a scheme, a query or a fragment.
        return f"./{quote(Path(relative).as_posix().encode('utf-8', 'surrogateescape'))}"


def matched(
    originals: Originals | None, rows: NDArray[np.int64], paths: tuple[str, ...] | None
) -> Mapping[int, ImageLike]:
    """The file of each sample i, which is in row rows[i] of the data and has the name paths[i]; none of other names."""
    if originals is None:
        return {}
    names = originals.names
    same = {i: row for i, row in enumerate(rows.tolist()) if row in names and (paths is None or names[row] == paths[i])}
    return _Renamed(originals, same)


class SameImages(Mapping[int, ImageLike]):
    """Files that arrays were made of, for samples i that have the name of a file.

    A file is used only if it gives the very pixels of the sample: a name alone may lead to any image of the disk.
    """

    def __init__(self, paths: Sequence[str], pixels: Callable[[int], NDArray[np.uint8]]):
        self._paths, self._pixels = paths, pixels
        self._found = cache(self._find)

    def _find(self, i: int) -> Path | None:
        try:
            file, pixels = Path(self._paths[i]), self._pixels(i)
            is_same = file.is_file() and np.array_equal(read_image(file, *pixels.shape), pixels)
        except (UnreadableImage, OSError, ValueError):
            return None
        return file if is_same else None

    def __getitem__(self, i: int) -> ImageLike:
        if (file := self._found(i)) is None:
            raise KeyError(i)
        return file

    def __iter__(self) -> Iterator[int]:
        return (i for i in range(len(self._paths)) if self._found(i) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Renamed(Mapping[int, ImageLike]):
    """Files under other keys. A file may be made when it is read, such as a crop, so none is read here."""

    def __init__(self, files: Mapping[int, ImageLike], keys: Mapping[int, int]):
        self._files, self._keys = files, keys

    def __getitem__(self, key: int) -> ImageLike:
        return self._files[self._keys[key]]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
