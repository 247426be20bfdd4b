"""One training on a cluster: a command that goes back to the queue when its time is over. submitit loads this."""

import os
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

_PAUSE = 0.2  # seconds between two looks at the command
_GRACE = 10.0  # seconds in which a command ends by itself: the cluster sends its signal to all processes of a job
_PATIENCE = 50.0  # seconds to wait then for a command that saves
_TRIES = 3  # starts without a finished epoch after which the command does not go back to the queue


@dataclass
class ClusterTask:
    """Runs a command that can be repeated, such as `dividemix train --resume`, and appends its output to a log.

    `metrics` is the file that the command extends after each epoch.
    """

    command: list[str]
    log: str
    metrics: str
    num_in_vain: int = 0  # how many times in a row the command was stopped before it had finished an epoch
    _size: int = field(default=0, compare=False)  # of the metrics when the command began
    _process: "subprocess.Popen[bytes] | None" = field(default=None, compare=False)

    def __call__(self) -> None:
        """Run the command to its end. Raises RuntimeError if it fails, so that the cluster counts the job as failed."""
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONIOENCODING": "utf-8"}
        self._size = self._metrics_size()
        with open(self.log, "ab") as log:  # noqa: PTH123
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
            while (code := self._process.poll()) is None:  # not wait: `checkpoint` interrupts this and waits, too
                time.sleep(_PAUSE)
        if code:
            raise RuntimeError(f"ended with exit code {code}: see {self.log}")

    def checkpoint(self) -> Any:
        """Stop the command, which saves. Returns what submitit puts back into the queue, or None to give up."""
        import submitit

        if self._process is not None and not self._has_ended(_GRACE):
            self._process.terminate()
            self._has_ended(_PATIENCE)
        num_in_vain = 0 if self._metrics_size() > self._size else self.num_in_vain + 1
        if num_in_vain == _TRIES:
            with open(self.log, "a", encoding="utf-8") as log:  # noqa: PTH123
                log.write(f"dividemix: error: {_TRIES} times no epoch was finished in time: give more --minutes\n")
            return None
        return submitit.helpers.DelayedSubmission(replace(self, num_in_vain=num_in_vain, _size=0, _process=None))

    def _has_ended(self, seconds: float) -> bool:
        """Wait for the end of the command, at most so long; whether it came."""
        assert self._process is not None
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return self._process.poll() is not None

    def _metrics_size(self) -> int:
        try:
            return Path(self.metrics).stat().st_size
        except OSError:
            return 0
