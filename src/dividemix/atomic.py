"""Write a file completely or not at all, even if the process or the machine stops in between."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_UMASK = os.umask(0o077)  # read once, when no other thread can write a file meanwhile
os.umask(_UMASK)


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
    temporary = None
    try:
        # A new file under a name that nobody can foresee: no link or file of another process is written to.
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
        temporary = Path(name)
        with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor has no path)
            os.fchmod(descriptor, _mode_of(target))
            yield file
            flush(file)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the error of a failed write has no path
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write content to path, completely or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: Path, content: str) -> None:
    """Write text to path as UTF-8, as `write_bytes` does."""
    write_bytes(path, content.encode())


def flush(file: BinaryIO) -> None:
    """Bring to the disk what was written to a file, or find out that there is no space."""
    file.flush()
    os.fsync(file.fileno())


def remove_strays(folder: Path) -> None:
    """Remove the temporary files that a process left in the folder when it died during a write."""
    for stray in folder.glob(".*.????????.tmp"):
        stray.unlink(missing_ok=True)


def _mode_of(target: Path) -> int:
    """The permissions of the file that is replaced; for a new file, what the process gives to its files."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o777
    return 0o666 & ~_UMASK


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut, where folders can be opened (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
