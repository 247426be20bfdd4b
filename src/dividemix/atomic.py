"""Writing a file so that it is there whole or not at all, whatever stops the process or the machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of path on leaving: a neighbour, flushed to the disk, then renamed.

    A link stays one, and the file it leads to is replaced. A terminal or a pipe is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.tmp")  # always the same: what a killed process left is taken up
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # a failed write does not say where
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write content to path, whole or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Write text to path as UTF-8, as `write_bytes` does."""
    write_bytes(path, content.encode())


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder last through a power cut, where folders can be opened (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
