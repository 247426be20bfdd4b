"""One process at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dividemix.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nothing guards the folder
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive(folder: Path, busy: str = "another process is training this run") -> Iterator[None]:
    """Hold the folder while inside; the lock ends with the process, however that ends, and leaves no file.

    Raises:
        InputError: saying `busy`, if another process holds it.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder}: {busy}") from error
        yield
    finally:
        os.close(descriptor)
