"""A run that another process trains, followed from here by its log and its metrics.jsonl."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dividemix.errors import InputError
from dividemix.experiments.plans import PlannedRun
from dividemix.judging.records import EpochRow
from dividemix.runs.directory import RunDirectory


@dataclass(frozen=True)
class Event:
    """A run began, printed a `line`, finished an epoch (`row`), or ended (`error`: why it failed)."""

    kind: str
    run: PlannedRun
    line: str | None = None
    row: EpochRow | None = None
    error: str | None = None


def training_command(python: Sequence[str], run: PlannedRun, folder: Path) -> list[str]:
    """The command that trains or resumes the run in its directory in the folder."""
    # -P: Python files in the working directory are not imported.
    return [*python, "-P", "-m", "dividemix", "train", *run.job.flags(), "--resume", f"--out={folder / run.name}"]


class Followed:
    """What a run in the folder has printed to NAME.log, and the epochs that it has finished."""

    def __init__(self, run: PlannedRun, folder: Path):
        self.run = run
        self.log = folder / f"{run.name}.log"
        self._directory = RunDirectory(folder / run.name)
        self._size = 0  # of metrics.jsonl when it was last read
        self._num_rows = len(self._rows())
        self._position, self._rest, self._last_line = 0, b"", ""
        # Lines that a person must read: warnings, skipped files, and what was taken from the file of weights.
        self._relayed = (
            "dividemix: warning: ",
            "warning: skipped ",
            *([f"{run.job.weights}: "] if run.job.weights else []),
        )

    def news(self) -> Iterator[Event]:
        """The lines that the run has printed and the epochs that it has finished since the last call."""
        *lines, self._rest = (self._rest + self._printed()).split(b"\n")
        for line in (line.decode("utf-8", "replace").strip() for line in lines):
            self._last_line = line or self._last_line
            if line.startswith(self._relayed):
                yield Event("printed", self.run, line=line.removeprefix("dividemix: "))
        rows = self._rows()
        for row in rows[self._num_rows :]:
            yield Event("epoch", self.run, row=row)
        self._num_rows = max(self._num_rows, len(rows))

    def _printed(self) -> bytes:
        """What was added to the log since the last call; nothing if there is no log yet."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return b""
        self._position += len(added)
        return added

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
