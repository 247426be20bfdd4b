"""A call in a forked child with limits: what it printed, returned or raised, its memory and its time.

The parent has imported everything, so that a call costs hundredths of a second; and what happens to the child, even a
kill, does not happen to the parent.
"""

import ctypes
import io
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injected import Fault, injected

MEMORY_MB = 2000  # that a call may take on top of what the parent has
SECONDS = 60.0
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Outcome:
    """How a call ended. `code` is its exit code, or None if a signal or an unexpected exception ended it."""

    code: int | None
    out: str
    err: str
    error: str  # the traceback of an unexpected exception
    signal: int
    seconds: float
    megabytes: float  # of memory above what the parent has
    num_operations: int  # that the fault counted

    @property
    def line(self) -> str:
        """The last line on standard error."""
        return (self.err.strip().splitlines() or [""])[-1]

    @property
    def complaint(self) -> str:
        """What is wrong with the way in which it ended, whatever it was to do; "" if nothing is."""
        if self.seconds >= SECONDS:
            return f"still running after {SECONDS:.0f} s"
        if self.error or self.code is None:
            return f"ended by signal {self.signal}" if self.signal else f"a traceback: {self.error[-1500:]}"
        if "Traceback" in self.err:
            return f"a traceback: {self.err[-1500:]}"
        if self.code == 2 and not self.line.startswith("dividemix: error: "):
            return f"exit code 2 without a line that says why: {self.line!r}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        if self.megabytes > MEMORY_MB:
            return f"took {self.megabytes:.0f} MB"
        return ""


def adopt_orphans() -> None:
    """Let children of children that are killed become children of this process, so that it can wait for them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def attempt(call: Callable[[], int | None], folder: Path, fault: Fault | None = None) -> Outcome:
    """Make the call in a child, in the folder, with the fault in its file operations."""
    files = [os.memfd_create(name) for name in ("out", "err", "result")]
    before, started = _resident(), time.monotonic()
    child = os.fork()
    if child == 0:
        _be_child(call, folder, fault, *files)
    watched = os.pidfd_open(child)
    if not select.select([watched], [], [], SECONDS)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(watched)
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - started
    _wait_for_orphans()
    out, err, result = map(_content, files)
    told: dict[str, Any] = json.loads(result) if result else {"code": None, "error": "", "seen": 0}
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    grown = usage.ru_maxrss / 1024 - before
    return Outcome(told["code"], out, err, told["error"], number, seconds, grown, told["seen"])


def _be_child(
    call: Callable[[], int | None], folder: Path, fault: Fault | None, out: int, err: int, result: int
) -> None:
    """Make the call and end the process."""
    told: dict[str, Any] = {"code": None, "error": "", "seen": 0}
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w"), line_buffering=True) for number in (1, 2))
        os.chdir(folder)
        limit = (_virtual() + 2 * MEMORY_MB) << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if fault is not None:
            fault.process = os.getpid()
        try:
            with nullcontext() if fault is None else injected(fault):
                told["code"] = call() or 0
        except SystemExit as end:
            told["code"] = end.code if isinstance(end.code, int) else 2
        except BaseException:
            told["error"] = traceback.format_exc()
        told["seen"] = 0 if fault is None else fault.num_seen
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os.write(result, json.dumps(told).encode())
    finally:
        os._exit(0)


def _wait_for_orphans() -> None:
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _content(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, size, 0).decode("utf-8", "backslashreplace")
    os.close(descriptor)
    return text


def _resident() -> float:
    return _status("VmRSS") / 1024


def _virtual() -> int:
    return _status("VmSize") // 1024


def _status(name: str) -> int:
    """A line of the kernel's description of this process, in KB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def quietly(call: Callable[[], int | None], folder: Path) -> int | None:
    """Make the call in this process, in the folder, without its output."""
    with chdir(folder), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return call()
