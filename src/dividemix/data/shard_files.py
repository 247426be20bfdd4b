"""Files that are read in parts: on this machine, or in an object store by fsspec (an extra)."""

import os
from collections.abc import Hashable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from dividemix.errors import InputError, refused


class ShardFile(Protocol):
    """A file by its name."""

    name: str  # As messages show it
    waits: bool  # Whether reading mostly waits for a network, so many reads should run at a time

    def stamp(self) -> list[Any]:
        """What changes if the content does: name, size and time, in JSON's types. Raises InputError if it is gone."""

    def num_bytes(self) -> int:
        """Its size. Raises InputError if it is gone."""

    def open(self) -> BinaryIO:
        """The file, to be read from its start. Raises OSError."""

    def read(self, offset: int, size: int) -> bytes:
        """A part of the content. Raises InputError if it cannot be read: no image may be lost by that."""


class LocalShard:
    """A file on this machine."""

    waits = False

    def __init__(self, path: Path):
        self.path, self.name = path, str(path)

    def stamp(self) -> list[Any]:
        """The absolute path, the size and the time of the last change."""
        found = self._stat()
        return [str(self.path.absolute()), found.st_size, found.st_mtime_ns]

    def num_bytes(self) -> int:
        """Its size."""
        return self._stat().st_size

    def _stat(self) -> os.stat_result:
        try:
            return self.path.stat()
        except FileNotFoundError as error:
            raise InputError(f"{self.name}: no such file: a shard is missing; get it, or leave it out") from error
        except (OSError, ValueError) as error:
            raise refused(self.name, error) from error

    @cached_property
    def _version(self) -> Hashable:
        """What tells this file from another that takes its name later."""
        found = self.path.stat()
        return found.st_ino, found.st_size, found.st_mtime_ns

    def open(self) -> BinaryIO:
        """The file, buffered."""
        return self.path.open("rb", buffering=1 << 16)

    def read(self, offset: int, size: int) -> bytes:
        """A part of the content, from a file that stays open; threads may read at the same time."""
        try:
            content = _opened(self.path, self._version).read(offset, size)
        except OSError as error:
            raise refused(self.name, error) from error
        if len(content) < size:
            raise InputError(f"{self.name}: shorter than at the start: leave the data unchanged")
        return content


class _Open:
    """An open file. It is closed when nobody uses it any more, also if another thread has just read from it."""

    def __init__(self, path: Path):
        self._descriptor = os.open(path, os.O_RDONLY)

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, offset)

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


@lru_cache(maxsize=200)  # a process may have about a thousand files open
def _opened(path: Path, version: Hashable) -> _Open:
    del version  # another version is another file
    return _Open(path)
