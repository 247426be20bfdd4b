"""What a person sees while runs train: a bar for each run on a terminal, plain lines elsewhere."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from dividemix.experiments.followed import Event
from dividemix.experiments.plans import PlannedRun

_LINES_A_RUN = 5  # between a run's first line and its last, where there is no terminal


class RunsDisplay:
    """While entered, shows the events of num_runs runs."""

    def __init__(self, console: Console, num_runs: int):
        self._console = console
        self._num_runs = num_runs
        self._num_ended = 0
        self._began: dict[PlannedRun, float] = {}
        self._bars: dict[PlannedRun, TaskID] = {}
        self._progress = Progress(  # bars that are not started show nothing
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[score]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._all = self._progress.add_task("all runs", total=num_runs, score="")

    def __enter__(self) -> "RunsDisplay":
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._progress.stop()

    def show(self, event: Event) -> None:
        """Show one event."""
        run, num_epochs = event.run, event.run.job.settings.epochs
        if event.kind == "began":
            self._began[run] = time.monotonic()
            self._bars[run] = self._progress.add_task(run.name, total=num_epochs, score="")
            if not self._console.is_terminal:
                self._print(f"{run.name}: begins")
        elif event.kind == "epoch" and event.row is not None:
            epoch, accuracy = event.row["epoch"], event.row["test_acc"]
            score = "" if accuracy is None else f"test {accuracy:.2f} %"
            self._progress.update(self._bars[run], completed=epoch, score=score)
            is_due = epoch * _LINES_A_RUN // num_epochs > (epoch - 1) * _LINES_A_RUN // num_epochs
            if is_due and not self._console.is_terminal:
                self._print(f"{run.name}: epoch {epoch}/{num_epochs}  {score}")
        elif event.kind == "printed":
            self._print(f"{run.name}: {event.line}")
        elif event.kind == "ended":
            self._num_ended += 1
            self._progress.remove_task(self._bars.pop(run))
            self._progress.update(self._all, completed=self._num_ended)
            took = time.monotonic() - self._began[run]
            result = f"failed: {event.error}" if event.error else f"finished in {took:.0f} s"
            self._print(f"[{self._num_ended}/{self._num_runs}] {run.name}: {result}")

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)
