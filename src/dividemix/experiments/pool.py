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
from collections.abc import Generator, Sequence
from pathlib import Path

from dividemix.engine.processor import num_cores
from dividemix.experiments.followed import Event, Followed, training_command
from dividemix.experiments.plans import PlannedRun

_PAUSE = 0.1  # seconds between two checks of the runs
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1  # prctl's option for the signal that a process gets when its parent ends


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
                    yield Event("ended", training.run, error=training.error(code))
    finally:
        for training in active:
            training.process.terminate()
        for training in active:
            training.process.wait()


class _Training(Followed):
    """A run's process. Its output goes to NAME.log."""

    def __init__(self, run: PlannedRun, folder: Path, num_threads: int):
        super().__init__(run, folder)
        self.log.unlink(missing_ok=True)  # if it is a link, what it leads to must not change
        with self.log.open("xb") as file:
            self.process = subprocess.Popen(
                training_command([sys.executable], run, folder),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=_environment(num_threads),
                preexec_fn=functools.partial(_end_with, os.getpid()) if sys.platform == "linux" else None,
            )


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
