"""Training of several runs at a time, each by `dividemix train` in its own process.

A run that fails does not stop the others. The processes end when this one ends: on Linux always, elsewhere unless this
one is killed.
"""

import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dividemix.engine.processor import num_cores
from dividemix.errors import InputError
from dividemix.experiments.plans import PlannedRun
from dividemix.judging.records import EpochRow
from dividemix.runs.directory import RunDirectory

_PAUSE = 0.1  # seconds between two checks of the runs
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1  # prctl's option for the signal that a process gets when its parent ends


@dataclass(frozen=True)
class Event:
    """A run began, printed a `line`, finished an epoch (`row`), or ended (`error`: why it failed)."""

    kind: str
    run: PlannedRun
    line: str | None = None
    row: EpochRow | None = None
    error: str | None = None


def num_threads_each(num_workers: int) -> int:
    """The number of threads of each run: its share of the cores, or OMP_NUM_THREADS if that is less."""
    share = max(1, num_cores() // num_workers)
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(limit)) if limit.isdecimal() and int(limit) else share


def train_all(
    runs: Sequence[PlannedRun], folder: Path, *, num_workers: int, num_threads: int
) -> Generator[Event, None, None]:
    """Train or resume the runs, each in its own directory in the folder, and yield what happens.

    Closing the generator stops the runs once they have saved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting, active = deque(runs), list[_Training]()
    try:
        while waiting or active:
            while waiting and len(active) < num_workers:
                active.append(_Training(waiting.popleft(), folder, num_threads))
                yield Event("began", active[-1].run)
            time.sleep(_PAUSE)
            for training in tuple(active):
                code = training.process.poll()  # before its files are read: they are complete once it has ended
                yield from training.news()
                if code is not None:
                    active.remove(training)
                    training.log.close()
                    yield Event("ended", training.run, error=training.error(code))
    finally:
        for training in active:
            training.process.terminate()
        for training in active:
            training.process.wait()
            training.log.close()


class _Training:
    """A run's process. Its output goes to NAME.log; its epochs are read from its metrics.jsonl."""

    def __init__(self, run: PlannedRun, folder: Path, num_threads: int):
        self.run = run
        self._directory = RunDirectory(folder / run.name)
        self._size = 0  # of metrics.jsonl when it was last read
        self._num_rows = len(self._rows())
        self._rest, self._last_line = b"", ""
        # Lines that a person must read: warnings, skipped files, and what was taken from the file of weights.
        self._relayed = ("dividemix: warning: ", "skipped ", *([f"{run.job.weights}: "] if run.job.weights else []))
        # -P: Python files in the working directory are not imported.
        command = [sys.executable, "-P", "-m", "dividemix", "train", *run.job.flags(), "--resume"]
        log = folder / f"{run.name}.log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, f"--out={self._directory.path}"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=_environment(num_threads),
                preexec_fn=functools.partial(_end_with, os.getpid()) if sys.platform == "linux" else None,
            )
        self.log = log.open("rb")

    def news(self) -> Iterator[Event]:
        """The lines that the run has printed and the epochs that it has finished since the last call."""
        *lines, self._rest = (self._rest + self.log.read()).split(b"\n")
        for line in (line.decode("utf-8", "replace").strip() for line in lines):
            self._last_line = line or self._last_line
            if line.startswith(self._relayed):
                yield Event("printed", self.run, line=line.removeprefix("dividemix: "))
        rows = self._rows()
        for row in rows[self._num_rows :]:
            yield Event("epoch", self.run, row=row)
        self._num_rows = max(self._num_rows, len(rows))

    def _rows(self) -> list[EpochRow]:
        """The epochs in metrics.jsonl; none if it has not changed or cannot be read: the process reports the latter."""
        try:
            size = (self._directory.path / "metrics.jsonl").stat().st_size
            rows = [] if size == self._size else self._directory.read_rows()
        except (OSError, InputError):
            return []
        self._size = size
        return rows

    def error(self, code: int) -> str | None:
        """Why the process failed, from its exit code and the last line of its log; None if it did not."""
        if code == 0:
            return None
        line = self._rest.decode("utf-8", "replace").strip() or self._last_line
        words = [f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"]
        words += [line.removeprefix("dividemix: error: ")] if line else []
        words += ["run fewer --jobs at a time"] if "out of memory" in line else []
        return ": ".join(words)


def _environment(num_threads: int) -> dict[str, str]:
    """The environment variables of a run's process."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    # Waiting threads must sleep: if they spin, they occupy the cores of the other runs.
    own = {"OMP_NUM_THREADS": str(num_threads), "OMP_WAIT_POLICY": "PASSIVE", "PYTHONIOENCODING": "utf-8"}
    return inherited | own


def _end_with(parent: int) -> None:
    """Make the system end this process when the parent ends. Called in a new process before its program starts."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent's handler would ignore the signal
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:  # it ended before prctl was called
        os._exit(1)
