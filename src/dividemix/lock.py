"""A lock that lets one process at a time use a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dividemix.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing guards the folder there
    fcntl = None  # type: ignore[assignment]


@contextmanager
def exclusive(
    folder: Path, busy: str = "another process is training this run", *, wait: bool = False
) -> Iterator[None]:
    """Hold the folder while inside. The lock ends with the process, even if that is killed, and leaves no file.

    Raises:
        InputError: with the text `busy`, if another process holds the folder and this one does not `wait` for it.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder}: {busy}") from error
        yield
    finally:
        os.close(descriptor)
