"""One training on a cluster: a command that goes back to the queue when its time is over. submitit loads this."""

import os
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

_PAUSE = 0.2  # seconds between two looks at the command
_PATIENCE = 60.0  # seconds to wait for a command that saves


@dataclass
class ClusterTask:
    """Runs a command that can be repeated, such as `dividemix train --resume`, and appends its output to a log."""

    command: list[str]
    log: str
    _process: "subprocess.Popen[bytes] | None" = field(default=None, compare=False)

    def __call__(self) -> None:
        """Run the command to its end. Raises RuntimeError if it fails, so that the cluster counts the job as failed."""
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONIOENCODING": "utf-8"}
        with open(self.log, "ab") as log:  # noqa: PTH123
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
            while (code := self._process.poll()) is None:  # not wait: `checkpoint` interrupts this and waits, too
                time.sleep(_PAUSE)
        if code:
            raise RuntimeError(f"ended with exit code {code}: see {self.log}")

    def checkpoint(self) -> Any:
        """Stop the command, which saves, and return what submitit puts back into the queue."""
        import submitit

        if self._process is not None:
            self._process.terminate()
            deadline = time.monotonic() + _PATIENCE
            while self._process.poll() is None and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        return submitit.helpers.DelayedSubmission(ClusterTask(self.command, self.log))
