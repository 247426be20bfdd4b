"""What a person sees while a run trains: a line for each epoch and, on a terminal, a bar for the epoch under way."""

import time
from collections.abc import Iterable
from contextlib import closing
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dividemix.runs.run import Run

# What a mix epoch takes in warm-up epochs, until one has been measured: about three times the arithmetic.
_MIX_PER_WARMUP = 3.5

console = Console(highlight=False, markup=False, emoji=False)


def watch(run: Run) -> None:
    """Train the run to its end, showing each epoch as it ends; on an interrupt, leave once all is saved."""
    with closing(run.train()) as epochs:
        if not console.is_terminal:
            for row in epochs:
                console.print(epoch_line(run, row), soft_wrap=True)
            return
        with Live(_Bar(run), console=console, refresh_per_second=4, transient=True):
            for row in epochs:
                console.print(epoch_line(run, row))


def epoch_line(run: Run, row: dict[str, Any]) -> str:
    """An epoch in one line: how far, how good, how the samples were split."""
    num_epochs = run.job.config.epochs
    phase = "train" if run.job.method == "cross_entropy" else row["phase"]
    words = [f"epoch {row['epoch']:>{len(str(num_epochs))}}/{num_epochs}", f"{phase:6}"]
    if row["test_acc"] is not None:
        words.append(f"test {row['test_acc']:.2f} %")
    if "num_labeled" in row:
        num_samples = run.job.config.num_divided(len(run.material.train.labels))
        words.append(f"labels kept {' and '.join(map(str, row['num_labeled']))} of {num_samples}")
    if row.get("clean_auc"):
        words.append(f"clean AUC {' '.join(f'{auc:.3f}' for auc in row['clean_auc'])}")
    words.append(f"{row['seconds']:.1f} s")
    left = seconds_left(run)
    if left:
        words.append(f"left {clock(left)}")
    return "  ".join(words)


def seconds_left(run: Run) -> float | None:
    """Seconds that the epochs still to come will take, judged by those of the same phase; None before the first one."""
    config, done = run.job.config, run.state.epoch
    last_warmup = config.epochs if run.job.method == "cross_entropy" else config.warmup_epochs
    left = {"warmup": max(last_warmup - done, 0), "mix": config.epochs - max(done, last_warmup)}
    took = {phase: [row["seconds"] for row in run.rows if row["phase"] == phase] for phase in left}
    if not took["warmup"]:
        return None
    warmup: float = sum(took["warmup"]) / len(took["warmup"])
    mix: float = sum(took["mix"]) / len(took["mix"]) if took["mix"] else _MIX_PER_WARMUP * warmup
    return left["warmup"] * warmup + left["mix"] * mix


def clock(seconds: float) -> str:
    """Seconds as 1:05 or 2:03:04."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def result_table(summaries: Iterable[dict[str, Any]]) -> Table:
    """The runs' figures side by side; with those of the kept epochs where validation samples chose any."""
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
    """The epoch under way, read off the run's progress each time it is drawn."""

    def __init__(self, run: Run):
        self._run = run
        self._started = time.monotonic()

    def __rich__(self) -> Table:
        progress, config = self._run.state.progress, self._run.job.config
        row = Table.grid(padding=(0, 1))
        epoch = min(self._run.state.epoch + 1, config.epochs)
        left = seconds_left(self._run)
        row.add_row(
            Text(f"epoch {epoch}/{config.epochs}", style="bold"),
            Text(f"{progress.doing or 'preparing':10}"),
            ProgressBar(total=progress.num_steps, completed=progress.step, width=32),
            Text(f"{progress.step}/{progress.num_steps}"),
            Text(f"{clock(time.monotonic() - self._started)} elapsed" + (f", {clock(left)} left" if left else "")),
        )
        return row
