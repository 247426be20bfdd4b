"""Faults put into the file operations of a block, at a chosen one: a process that dies there, or a full disk.

Operations are seen through Python's audit events, so it does not matter by which function they are asked for. The only
one without an event is os.fsync; there a fault also tears the file, as a write that was cut short does.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROWING = frozenset({"open", "os.fsync", "os.mkdir"})
EVERY = GROWING | {"os.rename", "os.remove", "os.rmdir"}


class Died(BaseException):
    """Stands for the end of the process: no handler of the code under test may take it for an error."""


@dataclass
class Fault:
    """From operation `at` (from 0) on, operations of these kinds fail."""

    folder: Path
    at: int
    kinds: frozenset[str]
    error: Callable[[object], BaseException]
    num_seen: int = 0

    @property
    def happened(self) -> bool:
        """Whether the block came as far as the fault."""
        return self.num_seen > self.at

    def meet(self, kind: str, path: object = None) -> None:
        """Count an operation, and let it fail if it is time; as in real errors, only that of a write has no path."""
        if kind in self.kinds:
            self.num_seen += 1
            if self.happened:
                raise self.error(path)

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event."""
        if event not in EVERY:
            return
        path, *_, last = arguments
        if event == "open" and (isinstance(path, int) or not last & (os.O_WRONLY | os.O_RDWR)):
            return
        in_open_directory = event != "open" and last != -1  # how a tree is removed
        if in_open_directory or Path(os.fsdecode(path)).absolute().is_relative_to(self.folder):
            self.meet(event, path)


_active: list[Fault] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for fault in _active:
        fault.on_event(event, arguments)


sys.addaudithook(_hook)


@contextmanager
def _injected(fault: Fault) -> Iterator[Fault]:
    fsync = os.fsync

    def torn_fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # a folder has no content of its own to be cut short
            return fsync(descriptor)
        try:
            fault.meet("os.fsync")
        except BaseException:
            os.ftruncate(descriptor, max(os.fstat(descriptor).st_size - 3, 0))
            raise
        return fsync(descriptor)

    os.fsync = torn_fsync  # type: ignore[assignment]
    _active.append(fault)
    try:
        yield fault
    finally:
        _active.remove(fault)
        os.fsync = fsync


@contextmanager
def dying(folder: Path, at: int) -> Iterator[Fault]:
    """The block ends at file operation `at` below the folder; no later one happens either, clean-up included."""
    with _injected(Fault(folder, at, EVERY, Died)) as fault, suppress(Died):
        yield fault


@contextmanager
def full_disk(folder: Path, at: int) -> Iterator[Fault]:
    """From operation `at` on, what needs space below the folder fails; renaming and removing work."""

    def no_space(path: object) -> OSError:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *([] if path is None else [path]))

    with _injected(Fault(folder, at, GROWING, no_space)) as fault:
        yield fault
