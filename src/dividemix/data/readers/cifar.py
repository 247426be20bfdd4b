"""CIFAR-10 and CIFAR-100 from the official archives: packed or unpacked, as pickles or as binary files.

Archives are read as streams to their end, so that gzip's check sum covers every byte; nothing is written to disk.
The class names are fixed, so the archives' lists of names are not read.
"""

import gzip
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dividemix.data.readers.cifar_classes import (
    CIFAR10_CLASSES,
    CIFAR10_SIMILAR,
    CIFAR100_CLASSES,
    CIFAR100_SIMILAR,
)
from dividemix.data.readers.plain_pickle import read_plain_pickle
from dividemix.data.source import Images, Labels, Source, as_labels
from dividemix.errors import InputError

_PIXELS = 3 * 32 * 32
_LARGEST_FILE = 2**28  # bytes; CIFAR-100's training pickle, the largest, has 156 million

Batch = tuple[NDArray[np.uint8], NDArray[Any]]  # rows (N, 3072), labels, not yet checked


class AbsentError(InputError):
    """Nothing of the data set is at the root."""


@dataclass(frozen=True)
class Layout:
    """One of the official forms of a data set."""

    archive: str
    folder: str
    """The folder inside the archive."""
    train: tuple[str, ...]
    test: tuple[str, ...]
    parse: Callable[[bytes, str], Batch]

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are read."""
        return self.train + self.test


@dataclass(frozen=True)
class Cifar:
    """What is known of a data set before it is read."""

    name: str
    classes: tuple[str, ...]
    similar: dict[int, int]
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    layouts: tuple[Layout, ...]

    @property
    def expected(self) -> str:
        """What a root may be, in words."""
        archives = " or ".join(layout.archive for layout in self.layouts)
        folders = " or ".join(layout.folder for layout in self.layouts)
        fetch = f"dividemix data fetch {self.name} --root DIR"
        return f"{archives}, a folder that holds it, or the unpacked {folders} ({fetch} downloads it)"


def read_cifar10(root: Path | None) -> Source:
    """CIFAR-10 (10 classes, 32 x 32 x 3) from its official files in or at `root`."""
    return _read(_CIFAR10, root)


def read_cifar100(root: Path | None) -> Source:
    """CIFAR-100 (100 fine classes, 32 x 32 x 3) from its official files in or at `root`."""
    return _read(_CIFAR100, root)


def _read(cifar: Cifar, root: Path | None) -> Source:
    """The source at root.

    Raises:
        InputError: naming the file: missing, truncated, corrupted, of another layout, or with code in it.
    """
    if root is None:
        raise InputError(f"{cifar.name} needs --root DIR: {cifar.expected}")
    place, layout, files = open_files(cifar, root)
    if missing := [name for name in layout.files if name not in files]:
        raise InputError(
            f"{place}: {', '.join(missing)} missing: {layout.folder} should hold {', '.join(layout.files)}"
        )
    splits = {}
    for split, names in (("train", layout.train), ("test", layout.test)):
        batches = [read_batch(layout, files.pop(name), f"{place / name}", len(cifar.classes)) for name in names]
        splits[split] = tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))
    (train_images, train_labels), (test_images, test_labels) = splits["train"], splits["test"]
    return Source(
        name=cifar.name,
        classes=cifar.classes,
        train_images=train_images,
        train_labels=train_labels,
        true_labels=train_labels,
        test_images=test_images,
        test_labels=test_labels,
        similar=cifar.similar,
        mean=cifar.mean,
        std=cifar.std,
    )


def read_batch(layout: Layout, content: bytes, where: str, num_classes: int) -> tuple[Images, Labels]:
    """Images (N, 32, 32, 3) and labels (N,) of one file."""
    rows, labels = layout.parse(content, where)
    if len(rows) == 0:
        raise InputError(f"{where} holds no images")
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), as_labels(labels, f"{where}: labels", len(rows), num_classes)


def open_files(cifar: Cifar, root: Path) -> tuple[Path, Layout, dict[str, bytes]]:
    """Where the data was found, its layout, and name -> content of those of its files that are there.

    Raises:
        AbsentError: if there are none.
        InputError: naming the file, for one that cannot be read.
    """
    if not root.exists():
        raise AbsentError(f"{root}: no such file or folder; --root should be {cifar.expected}")
    if root.is_file():
        return root, *_open_archive(cifar, root)
    for layout in cifar.layouts:
        folder = root / layout.folder if (root / layout.folder).is_dir() else root
        if names := [name for name in layout.files if (folder / name).is_file()]:
            return folder, layout, {name: _read_file(folder / name) for name in names}
    for layout in cifar.layouts:
        if (root / layout.archive).is_file():
            return root / layout.archive, *_open_archive(cifar, root / layout.archive)
    raise AbsentError(f"{root}: no {cifar.name} here; --root should be {cifar.expected}")


def _read_file(path: Path) -> bytes:
    """The file's content."""
    try:
        with path.open("rb") as file:
            return _read_all(file, path.stat().st_size, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_all(file: IO[bytes], size: int, where: str) -> bytes:
    """What is left in the file, if its size is one that CIFAR's files can have."""
    if size > _LARGEST_FILE:
        raise InputError(f"{where} has {size} bytes: no file of CIFAR is as large")
    return file.read()


def _open_archive(cifar: Cifar, path: Path) -> tuple[Layout, dict[str, bytes]]:
    """The layout that the archive holds, and name -> content of its files."""
    found: dict[str, dict[str, bytes]] = {}
    for folder, name, content in _members(cifar, path):
        found.setdefault(folder, {})[name] = content
    for layout in cifar.layouts:
        if layout.folder in found:
            return layout, found[layout.folder]
    raise InputError(f"{path}: no {cifar.name} in this archive; --root should be {cifar.expected}")


def _members(cifar: Cifar, path: Path) -> Iterator[tuple[str, str, bytes]]:
    """(folder, name, content) of the files in a .tar.gz that belong to a layout."""
    wanted = {(layout.folder, name) for layout in cifar.layouts for name in layout.files}
    try:
        with gzip.open(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                inside = PurePosixPath(member.name)
                if member.isfile() and (inside.parent.name, inside.name) in wanted:
                    file = archive.extractfile(member)
                    assert file is not None  # it is, for a regular file
                    yield inside.parent.name, inside.name, _read_all(file, member.size, f"{path}: {member.name}")
            while unpacked.read(2**20):  # gzip compares its check sum at the very end
                pass
    except InputError:
        raise
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InputError(f"{path}: truncated, corrupted, or not a .tar.gz ({error}): fetch it again") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def _parse_pickle(content: bytes, where: str, label_key: str) -> Batch:
    """Rows and labels of a pickled batch."""
    batch = read_plain_pickle(content, where)
    if missing := [key for key in ("data", label_key) if key not in batch]:
        raise InputError(f"{where}: not a CIFAR batch: no {' and no '.join(missing)} in it")
    rows, labels = batch["data"], batch[label_key]
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.uint8 and rows.ndim == 2 and rows.shape[1] == _PIXELS):
        shape = f"{rows.dtype} {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise InputError(f"{where}: data is {shape}: uint8 (N, {_PIXELS}) is needed")
    if not isinstance(labels, np.ndarray):
        if not (isinstance(labels, list) and all(type(label) is int and abs(label) < 2**31 for label in labels)):
            raise InputError(f"{where}: {label_key} is not a list of whole numbers")
        labels = np.array(labels, dtype=np.int64)
    return rows, labels


def _parse_binary(content: bytes, where: str, num_label_bytes: int) -> Batch:
    """Rows and labels of a binary batch: before each row of pixels its label bytes, the finest last."""
    size = num_label_bytes + _PIXELS
    if len(content) % size:
        raise InputError(f"{where} has {len(content)} bytes, no multiple of {size}: truncated, or not a CIFAR batch")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, size)
    return records[:, num_label_bytes:], records[:, num_label_bytes - 1]


_CIFAR10 = Cifar(
    name="cifar10",
    classes=CIFAR10_CLASSES,
    similar=CIFAR10_SIMILAR,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
    layouts=(
        Layout(
            archive="cifar-10-python.tar.gz",
            folder="cifar-10-batches-py",
            train=tuple(f"data_batch_{number}" for number in range(1, 6)),
            test=("test_batch",),
            parse=partial(_parse_pickle, label_key="labels"),
        ),
        Layout(
            archive="cifar-10-binary.tar.gz",
            folder="cifar-10-batches-bin",
            train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
            test=("test_batch.bin",),
            parse=partial(_parse_binary, num_label_bytes=1),
        ),
    ),
)
_CIFAR100 = Cifar(
    name="cifar100",
    classes=CIFAR100_CLASSES,
    similar=CIFAR100_SIMILAR,
    mean=(0.507, 0.487, 0.441),
    std=(0.267, 0.256, 0.276),
    layouts=(
        Layout(
            archive="cifar-100-python.tar.gz",
            folder="cifar-100-python",
            train=("train",),
            test=("test",),
            parse=partial(_parse_pickle, label_key="fine_labels"),
        ),
        Layout(
            archive="cifar-100-binary.tar.gz",
            folder="cifar-100-binary",
            train=("train.bin",),
            test=("test.bin",),
            parse=partial(_parse_binary, num_label_bytes=2),
        ),
    ),
)
CIFARS = {cifar.name: cifar for cifar in (_CIFAR10, _CIFAR100)}
