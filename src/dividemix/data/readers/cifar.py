"""CIFAR-10 and CIFAR-100 from the official archives: packed or unpacked, as pickles or as binary files.

Archives are read as streams to their end, so that gzip's checksum covers every byte. Nothing is written to disk. The
class names are fixed, so the lists of names in the archives are not read.
"""

import gzip
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.cifar_classes import CIFAR10_CLASSES, CIFAR10_SIMILAR, CIFAR100_CLASSES, CIFAR100_SIMILAR
from dividemix.data.readers.plain_pickle import read_plain_pickle
from dividemix.data.source import Images, Labels, Source, as_labels
from dividemix.errors import InputError

_PIXELS = 3 * 32 * 32
_LARGEST_FILE = 2**28  # bytes; the largest file, CIFAR-100's training pickle, has 156 million

Batch = tuple[NDArray[np.uint8], NDArray[Any]]  # rows (N, 3072), labels, not yet checked


class AbsentError(InputError):
    """There is no file of the data set at the root."""


@dataclass(frozen=True)
class Layout:
    """One of the official formats of a data set."""

    archive: str
    folder: str  # The folder inside the archive
    train: tuple[str, ...]
    test: tuple[str, ...]
    parse: Callable[[bytes, str], Batch]

    @property
    def files(self) -> tuple[str, ...]:
        """All files that the reader needs."""
        return self.train + self.test


@dataclass(frozen=True)
class Cifar:
    """What the reader knows of a data set."""

    name: str
    classes: tuple[str, ...]
    similar: dict[int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    layouts: tuple[Layout, ...]

    @property
    def expected(self) -> str:
        """What the root may be, in words."""
        *others, last = (name for layout in self.layouts for name in (layout.archive, layout.folder))
        fetch = f"dividemix data fetch {self.name} --root DIR"
        return f"{', '.join(others)} or {last}, or a folder that has one of them; {fetch} downloads it"


def _read(cifar: Cifar, root: Path | None) -> Source:
    """The data set, 32 x 32 x 3, from its official files in or at `root`; InputError if one is missing or bad."""
    if root is None:
        raise InputError(f"{cifar.name} needs root: {cifar.expected}")
    place, layout, files = open_files(cifar, root)
    if missing := [name for name in layout.files if name not in files]:
        raise InputError(f"{place}: {', '.join(missing)} missing: {layout.folder} must have {', '.join(layout.files)}")

    def read(names: tuple[str, ...]) -> tuple[Images, Labels]:
        batches = [read_batch(layout, files.pop(name), f"{place / name}", len(cifar.classes)) for name in names]
        images, labels = zip(*batches, strict=True)
        return np.concatenate(images), np.concatenate(labels)

    (train_images, train_labels), (test_images, test_labels) = read(layout.train), read(layout.test)
    return Source(
        name=cifar.name,
        classes=cifar.classes,
        train_samples=train_images,
        train_labels=train_labels,
        true_labels=train_labels,
        test_samples=test_images,
        test_labels=test_labels,
        similar=cifar.similar,
        mean=cifar.mean,
        std=cifar.std,
    )


def read_batch(layout: Layout, content: bytes, where: str, num_classes: int) -> tuple[Images, Labels]:
    """Images (N, 32, 32, 3) and labels (N,) of one file."""
    rows, labels = layout.parse(content, where)
    if len(rows) == 0:
        raise InputError(f"{where} has no images")
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), as_labels(labels, f"{where}: labels", len(rows), num_classes)


def open_files(cifar: Cifar, root: Path) -> tuple[Path, Layout, dict[str, bytes]]:
    """The place of the data, its layout, and name -> content of the existing files; AbsentError if there are none."""
    if not root.exists():
        raise AbsentError(f"{root}: no such file or folder; root must be {cifar.expected}")
    if root.is_file():
        return root, *_open_archive(cifar, root)
    for layout in cifar.layouts:
        folder = root / layout.folder if (root / layout.folder).is_dir() else root
        if names := [name for name in layout.files if (folder / name).is_file()]:
            return folder, layout, {name: _read_file(folder / name) for name in names}
    for layout in cifar.layouts:
        if (root / layout.archive).is_file():
            return root / layout.archive, *_open_archive(cifar, root / layout.archive)
    raise AbsentError(f"{root}: has no {cifar.name}; root must be {cifar.expected}")


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _read_all(file, path.stat().st_size, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_all(file: IO[bytes], size: int, where: str) -> bytes:
    """The rest of the file; raise InputError if it is larger than any file of CIFAR."""
    if size > _LARGEST_FILE:
        raise InputError(f"{where} has {size} bytes: no file of CIFAR is that large")
    return file.read()


def _open_archive(cifar: Cifar, path: Path) -> tuple[Layout, dict[str, bytes]]:
    """The layout of a .tar.gz, and name -> content of its files."""
    found: dict[Layout, dict[str, bytes]] = {}
    wanted = {(layout.folder, name): layout for layout in cifar.layouts for name in layout.files}
    try:
        with gzip.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                layout = wanted.get((inside.parent.name, inside.name))
                if member.isfile() and layout:
                    file = archive.extractfile(member)
                    assert file is not None  # never None for a regular file
                    content = _read_all(file, member.size, f"{path}: {member.name}")
                    found.setdefault(layout, {})[inside.name] = content
            while unpacked.read(2**20):  # gzip compares its checksum at the very end
                pass
    except InputError:
        raise
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InputError(f"{path}: truncated, corrupted, or not a .tar.gz ({error}): fetch it again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    for layout in cifar.layouts:
        if layout in found:
            return layout, found[layout]
    raise InputError(f"{path}: this archive has no {cifar.name}; root must be {cifar.expected}")


def _parse_pickle(content: bytes, where: str, label_key: str) -> Batch:
    batch = read_plain_pickle(content, where)
    if missing := [key for key in ("data", label_key) if key not in batch]:
        raise InputError(f"{where}: not a CIFAR batch: has no {' and no '.join(missing)}")
    rows, labels = batch["data"], batch[label_key]
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1] == _PIXELS):
        shape = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise InputError(f"{where}: data is {shape}: must be uint8 (N, {_PIXELS})")
    if not isinstance(labels, np.ndarray):
        if not (isinstance(labels, list) and all(type(label) is int and abs(label) < 2**31 for label in labels)):
            raise InputError(f"{where}: {label_key} is not a list of integers")
        labels = np.array(labels, dtype=np.int64)
    return rows, labels


def _parse_binary(content: bytes, where: str, num_label_bytes: int) -> Batch:
    """Rows and labels of a binary batch: each row is its label bytes, the finest label last, then its pixels."""
    size = num_label_bytes + _PIXELS
    if len(content) % size:
        raise InputError(f"{where} has {len(content)} bytes, not a multiple of {size}: truncated, or not a CIFAR batch")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    return records[:, num_label_bytes:], records[:, num_label_bytes - 1]


def _layouts(
    stem: str, folders: tuple[str, str], train: tuple[str, ...], test: str, label_key: str, num_label_bytes: int
) -> tuple[Layout, Layout]:
    """The two formats of a data set: pickles, and binary files with the same names and .bin."""
    binary = tuple(f"{name}.bin" for name in train)
    pickled, packed = (
        partial(_parse_pickle, label_key=label_key),
        partial(_parse_binary, num_label_bytes=num_label_bytes),
    )
    return (
        Layout(f"{stem}-python.tar.gz", folders[0], train, (test,), pickled),
        Layout(f"{stem}-binary.tar.gz", folders[1], binary, (f"{test}.bin",), packed),
    )


_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_CIFAR10 = Cifar(
    name="cifar10",
    classes=CIFAR10_CLASSES,
    similar=CIFAR10_SIMILAR,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
    layouts=_layouts("cifar-10", ("cifar-10-batches-py", "cifar-10-batches-bin"), _BATCHES, "test_batch", "labels", 1),
)
_CIFAR100 = Cifar(
    name="cifar100",
    classes=CIFAR100_CLASSES,
    similar=CIFAR100_SIMILAR,
    mean=(0.507, 0.487, 0.441),
    std=(0.267, 0.256, 0.276),
    layouts=_layouts("cifar-100", ("cifar-100-python", "cifar-100-binary"), ("train",), "test", "fine_labels", 2),
)
CIFARS = {cifar.name: cifar for cifar in (_CIFAR10, _CIFAR100)}
read_cifar10, read_cifar100 = partial(_read, _CIFAR10), partial(_read, _CIFAR100)
