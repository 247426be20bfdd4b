"""What a person sees while a run trains: a line for each epoch and, on a terminal, a bar for the current epoch."""

import textwrap
import time
from collections.abc import Iterable
from contextlib import closing, nullcontext

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dividemix.judging.records import EpochRow, RunSummary
from dividemix.methods import find_method
from dividemix.report.of_run import write_report
from dividemix.runs.run import Run

console = Console(highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Print a line. A terminal shows a long one broken between words, never inside a word."""
    if console.is_terminal:
        text = textwrap.fill(text, console.width, break_long_words=False, break_on_hyphens=False)
    console.print(text, soft_wrap=True)


def watch(run: Run) -> None:
    """Train the run to its end, show each epoch, and write the report. An interrupt ends it after all is saved."""
    bar = Live(_Bar(run), console=console, refresh_per_second=4, transient=True)
    with closing(run.train()) as epochs, bar if console.is_terminal else nullcontext():
        for row in epochs:
            say(epoch_line(run, row))
    write_report(run)


def epoch_line(run: Run, row: EpochRow) -> str:
    """An epoch in one line: its number, its accuracy, and how the samples were divided."""
    num_epochs = run.job.settings.epochs
    words = [f"epoch {row['epoch']:>{len(str(num_epochs))}}/{num_epochs}", f"{row['phase']:6}"]
    if row["test_acc"] is not None:
        words.append(f"test {row['test_acc']:.2f} %")
    if "num_labeled" in row:
        words.append(f"labels kept {' and '.join(map(str, row['num_labeled']))} of {row['num_divided']}")
    if aucs := row.get("clean_auc"):
        words.append(f"clean AUC {' '.join(f'{auc:.3f}' for auc in aucs)}")
    words.append(f"{row['seconds']:.1f} s")
    if left := seconds_left(run):
        words.append(f"left {clock(left)}")
    return "  ".join(words)


def seconds_left(run: Run) -> float | None:
    """Seconds that the remaining epochs will take, estimated from those of the same phase; None before the first one.

    For a phase without a measured epoch, the last measured phase and the costs that the method states are used.
    """
    left, begin, unit = 0.0, 0, None  # unit: seconds of an epoch of cost 1
    for phase in find_method(run.job.method).phases(run.job.settings):
        took = [row["seconds"] for row in run.rows[begin : begin + phase.num_epochs]]
        if took:
            unit = sum(took) / len(took) / phase.cost
        if unit is None:
            return None
        left += (phase.num_epochs - len(took)) * phase.cost * unit
        begin += phase.num_epochs
    return left


def clock(seconds: float) -> str:
    """Seconds as 1:05 or 2:03:04."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def result_table(summaries: Iterable[RunSummary]) -> Table:
    """A table of the runs' results, with those of the kept epoch if validation samples chose it in any run."""
    summaries = list(summaries)
    num_last = min(10, max(summary["epochs"] for summary in summaries))
    columns = {"final": "final_acc", "best": "best_acc", f"mean of last {num_last}": "last_acc"}
    if any("kept_val_acc" in summary for summary in summaries):
        columns = {"kept": "kept_acc"} | columns
    table = Table("method", title="Test accuracy in percent", title_justify="left")
    for heading in (*columns, "clean AUC", "time"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        accuracies = [summary.get(name) for name in columns.values()]
        auc = summary["clean_auc"]
        table.add_row(
            summary["method"],
            *("-" if value is None else f"{value:.2f}" for value in accuracies),
            "-" if auc is None else f"{auc:.3f}",
            clock(summary["seconds"]),
        )
    return table


class _Bar:
    """The current epoch, read from the run's progress each time the bar is drawn."""

    def __init__(self, run: Run):
        self._run = run
        self._started = time.monotonic()

    def __rich__(self) -> Table:
        progress, num_epochs = self._run.state.progress, self._run.job.settings.epochs
        epoch, left = min(self._run.state.epoch + 1, num_epochs), seconds_left(self._run)
        row = Table.grid(padding=(0, 1))
        row.add_row(
            Text(f"epoch {epoch}/{num_epochs}", style="bold"),
            Text(f"{progress.doing or 'preparing':10}"),
            ProgressBar(total=progress.num_steps, completed=progress.step, width=32),
            Text(f"{progress.step}/{progress.num_steps}"),
            Text(f"{clock(time.monotonic() - self._started)} elapsed" + (f", {clock(left)} left" if left else "")),
        )
        return row
