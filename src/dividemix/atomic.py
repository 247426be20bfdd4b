"""Write a file completely or not at all, even if the process or the machine stops in between."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file next to path. On leaving, flush it to the disk and rename it to path.

    If path is a link, its target is replaced. A terminal or a pipe is written to directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.tmp")  # a fixed name, so that the rest of a killed process is reused
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the error of a failed write has no path
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write content to path, completely or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Write text to path as UTF-8, as `write_bytes` does."""
    write_bytes(path, content.encode())


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut, where folders can be opened (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
