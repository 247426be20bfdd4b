"""A call in a forked child with limits: what it printed, returned or raised, its memory and its time.

The parent has imported everything, so that a call costs hundredths of a second; and what happens to the child, even a
kill, does not happen to the parent.
"""

import ctypes
import io
import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injected import Fault, injected

Call = Callable[[], int | None]
MEMORY_MB = 2000  # that a call may take on top of what the parent has
SECONDS = 60.0  # of the processor, that a call may take; other work on the machine does not count
_PATIENCE = 10  # times as long by the clock, until a call is killed that waits for something
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Outcome:
    """How a call ended. `code` is its exit code, or None if a signal or an unexpected exception ended it."""

    code: int | None
    out: str
    err: str
    error: str  # the traceback of an unexpected exception
    signal: int
    seconds: float  # of the processor; infinite if it had to be killed
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
            return f"took {self.seconds:.0f} s of the processor, or did not end"
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


def attempt(call: Call, folder: Path, fault: Fault | None = None) -> Outcome:
    """Make the call in a child, in the folder, with the fault in its file operations."""
    child = _Child(call, folder, fault)
    outcome = child.outcome(SECONDS)
    _wait_for_orphans()
    return outcome


def attempt_together(calls: Sequence[Call], folder: Path) -> list[Outcome]:
    """Make the calls at a time, each in a child, in one folder."""
    ready, start = os.pipe()
    children = [_Child(call, folder, None, gate=(ready, start)) for call in calls]
    os.close(ready)
    os.close(start)  # the children begin when nobody holds this end
    outcomes = [child.outcome(SECONDS * len(calls)) for child in children]
    _wait_for_orphans()
    return outcomes


def attempt_in_turn(calls: Sequence[Call], folder: Path) -> list[Outcome]:
    """Make the calls one after the other in one child, which is faster; if it does not end well, each in its own."""
    results: list[dict[str, Any]] = []
    told = os.memfd_create("results")

    def all_of_them() -> int:
        for call in calls:
            results.append(_one_of_many(call))
        os.write(told, json.dumps(results).encode())
        return 0

    outcome = attempt(all_of_them, folder)
    content = _content(told)
    if outcome.complaint or not content:
        return [attempt(call, folder) for call in calls]
    return [Outcome(**one, signal=0, megabytes=outcome.megabytes, num_operations=0) for one in json.loads(content)]


def _one_of_many(call: Call) -> dict[str, Any]:
    """Make the call in this process, and return what it printed and how it ended."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
    code, error, started, here = None, "", time.process_time(), Path.cwd()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = call() or 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 2
        except BaseException:
            error = traceback.format_exc()
        os.chdir(here)
        out.flush()
        err.flush()
    texts = {"out": out.buffer.getvalue().decode()[-2000:], "err": err.buffer.getvalue().decode()}
    return {"code": code, "error": error, "seconds": time.process_time() - started, **texts}


class _Child:
    """A forked process that makes a call; with a gate, as soon as the parent has closed its ends."""

    def __init__(self, call: Call, folder: Path, fault: Fault | None, gate: tuple[int, int] | None = None):
        self._files = [os.memfd_create(name) for name in ("out", "err", "result")]
        self._before = _resident()
        self._child = os.fork()
        if self._child == 0:
            if gate is not None:
                os.close(gate[1])
                os.read(gate[0], 1)
            _be_child(call, folder, fault, *self._files)

    def outcome(self, seconds: float) -> Outcome:
        """How it ended; it is killed if it has not ended by then."""
        watched = os.pidfd_open(self._child)
        is_late = not select.select([watched], [], [], _PATIENCE * seconds)[0]
        if is_late:
            os.kill(self._child, signal.SIGKILL)
        os.close(watched)
        _, status, usage = os.wait4(self._child, 0)
        took = math.inf if is_late else usage.ru_utime + usage.ru_stime
        out, err, result = map(_content, self._files)
        told: dict[str, Any] = json.loads(result) if result else {"code": None, "error": "", "seen": 0}
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        grown = usage.ru_maxrss / 1024 - self._before
        return Outcome(told["code"], out, err, told["error"], number, took, grown, told["seen"])


def _be_child(call: Call, folder: Path, fault: Fault | None, out: int, err: int, result: int) -> None:
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


def quietly(call: Call, folder: Path) -> int | None:
    """Make the call in this process, in the folder, without its output."""
    with chdir(folder), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return call()
