"""Writing a file so that it is there whole or not at all, whatever stops the process or the machine."""

import os
from pathlib import Path


def write_bytes(path: Path, content: bytes) -> None:
    """Write content to path: to a neighbour first, flushed to the disk, then renamed over it."""
    temporary = path.with_name(f".{path.name}.tmp")  # always the same, so that what a killed process left is taken up
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # a failed write does not say where
    finally:
        temporary.unlink(missing_ok=True)


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
