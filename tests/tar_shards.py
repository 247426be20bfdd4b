"""Small .tar shards for the tests of the readers."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from pictures import encoded, pixels


def write_tar(path: Path, files: Iterable[tuple[str, bytes]], **options: int) -> Path:
    """An archive of these files, by Python's tarfile; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", **options) as archive:  # type: ignore[call-overload]
        for name, content in files:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


def sample(number: int, label: str | None, *, folder: str = "") -> list[tuple[str, bytes]]:
    """The two files of a sample: an image of 8 x 8 pixels, and its label."""
    key = f"{folder}{number:04d}"
    files = [(f"{key}.png", encoded(pixels(number)))]
    return files if label is None else [*files, (f"{key}.cls", label.encode())]


def write_shards(folder: Path, num_images: int, num_shards: int, name: str = "shard-{:03d}.tar") -> Path:
    """Shards of the images 0, 1, ..., labelled 0, 1, 2 in turn."""
    for shard in range(num_shards):
        numbers = range(shard * num_images // num_shards, (shard + 1) * num_images // num_shards)
        write_tar(folder / name.format(shard), (one for number in numbers for one in sample(number, str(number % 3))))
    return folder
