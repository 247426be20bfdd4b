"""Where data comes from: one file per source, and the door to all of them."""

from collections.abc import Callable
from pathlib import Path

from dividemix.data.readers.cifar import read_cifar10, read_cifar100
from dividemix.data.readers.fashion import read_fashion
from dividemix.data.readers.npz import read_npz
from dividemix.data.source import Source
from dividemix.errors import InputError


def read_source(data: str, root: Path | None = None) -> Source:
    """The source of a built-in name (`READERS`), its files in or at `root`, or of a path to an .npz file.

    Raises:
        InputError: naming what is unknown, missing or wrong.
    """
    if data in READERS:
        return READERS[data](root)
    path = Path(data)
    if path.suffix.lower() != ".npz":
        known = f"known are {', '.join(READERS)}, and any path to an .npz file"
        if data and path.exists():
            raise InputError(f"{data}: not an .npz file: {known}")
        raise InputError(f"unknown data set {data!r}: {known}")
    if root is not None:
        raise InputError(f"--root {root} has no meaning for {data}: give the path to the .npz file alone")
    return read_npz(path)


def _embedded(root: Path | None) -> Source:
    """The embedded set, which has no root."""
    if root is not None:
        raise InputError(f"--root {root} has no meaning for fashion, which is part of the package: leave it out")
    return read_fashion()


READERS: dict[str, Callable[[Path | None], Source]] = {
    "fashion": _embedded,
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
}
