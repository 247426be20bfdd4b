"""Runs trained side by side, each in a process of its own; no torch import here.

A worker that fails takes no other with it, and ends with its parent however that ends.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dividemix.errors import InputError
from dividemix.experiments.plans import PlannedRun
from dividemix.planning.job import Job
from dividemix.planning.pace import Pace


@dataclass(frozen=True)
class Event:
    """A run began, said something, did an epoch (`row`: its number and test accuracy), or ended (`error`: failed)."""

    kind: str
    run: PlannedRun
    said: str | None = None
    row: dict[str, Any] | None = None
    error: str | None = None


def train_all(
    runs: Sequence[PlannedRun], folder: Path, *, num_workers: int, num_threads: int
) -> Generator[Event, None, None]:
    """Train the runs, each in its directory in the folder and from where it stands; yields what happens.

    Closing the generator stops the workers once they have saved.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting, active = deque(runs), dict[PlannedRun, tuple[_Worker, threading.Thread]]()
    events: queue.Queue[Event] = queue.Queue()
    try:
        while waiting or active:
            while waiting and len(active) < num_workers:
                run = waiting.popleft()
                request = {
                    "task": "train",
                    "job": run.job.values(),
                    "path": str(folder / run.name),
                    "num_workers": min(num_workers, len(runs)),
                }
                worker = _Worker(request, folder / f"{run.name}.log", num_threads)
                follower = threading.Thread(target=_follow, args=(run, worker, events), daemon=True)
                active[run] = worker, follower
                follower.start()
                yield Event("began", run)
            event = events.get()
            if event.kind == "ended":
                active.pop(event.run)[0].close()
            yield event
    finally:
        for worker, _ in active.values():
            worker.process.terminate()
        for worker, follower in active.values():
            follower.join()  # it reads the pipe and the log to their end
            worker.close()


def measure_pace(job: Job, folder: Path, *, num_threads: int) -> Pace:
    """The pace of runs of the job's kind.

    Raises:
        InputError: if its data or settings are wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    worker = _Worker({"task": "measure", "job": job.values()}, folder / "measurement.log", num_threads)
    try:
        for message in worker.messages():
            if "pace" in message:
                return Pace(**message["pace"])
        raise InputError(worker.error or "the measurement ended without a result")
    finally:
        worker.process.terminate()
        worker.close()


def _follow(run: PlannedRun, worker: "_Worker", events: "queue.Queue[Event]") -> None:
    """Pass on what a worker says and, whatever happens, that it ended: for that the others wait."""
    error: str | None
    try:
        for message in worker.messages():
            if "row" in message:
                events.put(Event("epoch", run, row=message["row"]))
            elif "said" in message:
                events.put(Event("said", run, said=message["said"]))
        error = worker.error
    except Exception as exception:
        worker.process.terminate()
        error = f"its worker could not be followed: {exception!r}"
    events.put(Event("ended", run, error=error))


class _Worker:
    """A worker process. Its standard error goes to a log, which is removed if nothing was said."""

    def __init__(self, request: dict[str, Any], log: Path, num_threads: int):
        self._log = log
        self._told: str | None = None
        # Threads that wait must sleep: spinning, they would take the cores of the workers beside them.
        environment = os.environ | {"OMP_NUM_THREADS": str(num_threads), "OMP_WAIT_POLICY": "PASSIVE"}
        with log.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dividemix.experiments.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=environment,
                text=True,
                encoding="utf-8",
            )
        try:
            self._pipe(self.process.stdin).write(json.dumps(request) + "\n")
            self._pipe(self.process.stdin).flush()
        except BrokenPipeError:  # it ended at once: its log says why
            pass

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None  # both were asked for
        return pipe

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the worker says, until it ends; keeps the error that it reports."""
        for line in self._pipe(self.process.stdout):
            if not line.endswith("\n"):  # it was killed while it wrote
                return
            message: dict[str, Any] = json.loads(line)
            self._told = message.get("error", self._told)
            yield message

    @property
    def error(self) -> str | None:
        """Why it failed, once it has ended; None if it did not."""
        code = self.process.wait()
        if code == 0:
            return None
        try:
            said = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except FileNotFoundError:  # someone cleaned up
            said = []
        ending = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return self._told or (f"{ending}: {said[-1]}" if said else ending)

    def close(self) -> None:
        """Wait for its end and let go of its pipes."""
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            self._pipe(pipe).close()
        if self._log.is_file() and self._log.stat().st_size == 0:
            self._log.unlink()
