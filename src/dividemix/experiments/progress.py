"""What a person sees while runs train: a bar for each on a terminal, plain lines elsewhere."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.pool import Event

_LINES_A_RUN = 5  # between a run's first line and its last, where there is no terminal


class RunsDisplay:
    """While entered, shows the events of num_runs runs."""

    def __init__(self, console: Console, num_runs: int):
        self._console = console
        self._num_runs = num_runs
        self._num_ended = 0
        self._began: dict[PlannedRun, float] = {}
        self._bars: dict[PlannedRun, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "RunsDisplay":
        if self._console.is_terminal:
            self._progress.start()
            self._all = self._progress.add_task("all runs", total=self._num_runs, said="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def show(self, event: Event) -> None:
        """Show one event."""
        run, num_epochs = event.run, event.run.job.config.epochs
        if event.kind == "began":
            self._began[run] = time.monotonic()
            if self._console.is_terminal:
                self._bars[run] = self._progress.add_task(run.name, total=num_epochs, said="")
            else:
                self._say(f"{run.name}: begins")
        elif event.kind == "epoch" and event.row is not None:
            epoch, accuracy = event.row["epoch"], event.row["test_acc"]
            said = "" if accuracy is None else f"test {accuracy:.2f} %"
            if self._console.is_terminal:
                self._progress.update(self._bars[run], completed=epoch, said=said)
            elif epoch * _LINES_A_RUN // num_epochs > (epoch - 1) * _LINES_A_RUN // num_epochs:
                self._say(f"{run.name}: epoch {epoch}/{num_epochs}  {said}")
        elif event.kind == "said":
            self._say(f"{run.name}: {event.said}")
        elif event.kind == "ended":
            self._end(event)

    def _end(self, event: Event) -> None:
        self._num_ended += 1
        if self._console.is_terminal:
            self._progress.remove_task(self._bars.pop(event.run))
            self._progress.update(self._all, completed=self._num_ended)
        took = time.monotonic() - self._began[event.run]
        ending = f"failed: {event.error}" if event.error else f"finished in {took:.0f} s"
        self._say(f"[{self._num_ended}/{self._num_runs}] {event.run.name}: {ending}")

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)
