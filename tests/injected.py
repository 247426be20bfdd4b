"""Faults put into the file operations of a block, at a chosen one: a process that dies there, or a refusal.

Operations are seen through Python's audit events, so it does not matter by which function they are asked for. The only
one without an event is os.fsync; there a fault also tears the file, as a write that was cut short does.
"""

import errno
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# An "open" is one for writing; one for reading is a "read".
GROWING = frozenset({"open", "os.fsync", "os.mkdir"})
EVERY = GROWING | {"os.rename", "os.remove", "os.rmdir"}  # that changes what is on disk
CHANGING = EVERY | {"os.chmod", "os.truncate", "os.link", "os.symlink"}
OPENING = frozenset({"open", "read", "os.listdir", "os.scandir"})
ANY = CHANGING | OPENING


class Died(BaseException):
    """Stands for the end of the process: no handler of the code under test may take it for an error."""


@dataclass
class Fault:
    """From operation `at` (from 0) on, or only there with `once`, operations of these kinds fail in this process."""

    folder: Path
    at: int
    kinds: frozenset[str]
    error: Callable[[object], BaseException]
    once: bool = False
    num_seen: int = 0
    where: str = ""  # the operation that failed first
    process: int = field(default_factory=os.getpid)

    @property
    def happened(self) -> bool:
        """Whether the block came as far as the fault."""
        return self.num_seen > self.at

    def meet(self, kind: str, path: object = None) -> None:
        """Count an operation, and let it fail if it is time; as in real errors, only that of a write has no path."""
        if kind in self.kinds and os.getpid() == self.process:
            self.num_seen += 1
            if self.num_seen == self.at + 1 or (self.happened and not self.once):
                self.where = self.where or f"{kind} {path}"
                raise self.error(path)

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event."""
        if event not in ANY:
            return
        path, last = arguments[0], arguments[-1]
        if event == "open" and not isinstance(path, int) and not last & (os.O_WRONLY | os.O_RDWR):
            event = "read"
        if path is None or isinstance(path, int):  # os.scandir and os.chmod take an open file, too
            return
        in_open_directory = event in ("os.remove", "os.rmdir", "os.mkdir", "os.rename") and last != -1  # rmtree
        if in_open_directory or Path(os.fsdecode(path)).absolute().is_relative_to(self.folder):
            self.meet(event, path)


_active: list[Fault] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    for fault in _active:
        fault.on_event(event, arguments)


sys.addaudithook(_hook)


def _tear(descriptor: int) -> None:
    """Cut the last bytes of an open file off."""
    os.ftruncate(descriptor, max(os.fstat(descriptor).st_size - 3, 0))


@contextmanager
def injected(fault: Fault) -> Iterator[Fault]:
    """While inside, the operations of this process meet the fault."""
    fsync = os.fsync

    def torn_fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):  # a folder has no content of its own to be cut short
            return fsync(descriptor)
        if fault.error is _killed and fault.num_seen == fault.at:
            _tear(descriptor)
        try:
            fault.meet("os.fsync")
        except BaseException:
            _tear(descriptor)
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
    with injected(Fault(folder, at, EVERY, Died)) as fault, suppress(Died):
        yield fault


def _killed(path: object) -> BaseException:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


def killing(folder: Path, at: int) -> Fault:
    """The system kills the process at file operation `at` that changes something below the folder."""
    return Fault(folder, at, CHANGING, _killed)


def refusing(folder: Path, at: int, number: int, kinds: frozenset[str], *, once: bool = False) -> Fault:
    """The system refuses operations of these kinds with this errno."""

    def error(path: object) -> OSError:
        return OSError(number, os.strerror(number), *([] if path is None else [path]))

    return Fault(folder, at, kinds, error, once)


@contextmanager
def full_disk(folder: Path, at: int) -> Iterator[Fault]:
    """From operation `at` on, what needs space below the folder fails; renaming and removing work."""
    with injected(refusing(folder, at, errno.ENOSPC, GROWING)) as fault:
        yield fault
