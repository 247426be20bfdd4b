"""What a person sees while a run trains: a line for each epoch and, on a terminal, a bar for the whole run."""

import textwrap
from collections.abc import Iterable
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dividemix.judging.records import EpochRow, RunSummary, main_loss
from dividemix.methods import find_method
from dividemix.report.of_run import page_seconds, write_report
from dividemix.runs.run import Run
from dividemix.runs.tracking import tracked
from dividemix.time_left import Stopwatch, seconds_left, share_done, span

_LARGE_CHANGE = 0.1  # of the planned number of epochs: a smaller one is not printed
_DAYS = 4 * 86_400  # seconds from which hours and minutes are noise
console = Console(highlight=False, markup=False, emoji=False)


def say(text: str) -> None:
    """Print a line. A terminal shows a long one broken between words, never inside a word."""
    if console.is_terminal:
        indent = 2 * (len(text) - len(text.lstrip())) * " "  # of the lines after the first
        wrapper = textwrap.TextWrapper(
            console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        text = wrapper.fill(text)
    console.print(text, soft_wrap=True)


def say_command(text: str, command: str) -> None:
    """Print `text: command`. On a terminal a command is never broken: if there is no room, it gets its own line."""
    if console.is_terminal and len(text) + len(command) + 2 > console.width:
        say(f"{text}:")
        console.print(command, soft_wrap=True)
    else:
        console.print(f"{text}: {command}", soft_wrap=True)


def watch(run: Run, log: tuple[str, ...] = ()) -> None:
    """Train the run to its end, show each epoch, and write the report. An interrupt ends it after all is saved.

    A run that keeps no files gets no report. `log` names trackers (runs/tracking.py) that log the epochs, too.
    """
    if run.budget is not None and run.keeps_files:
        run.page_seconds = page_seconds(run)
    bar = Live(_Bar(run), console=console, refresh_per_second=4, transient=True)
    with tracked(run, log) as epochs, bar if console.is_terminal else nullcontext():
        num_epochs = run.job.settings.epochs
        for row in epochs:
            say(epoch_line(run, row))
            if abs(run.job.settings.epochs - num_epochs) >= max(_LARGE_CHANGE * num_epochs, 1):
                say(f"planned again: {run.job.settings.epochs} epochs, not {num_epochs}, fit the time")
                num_epochs = run.job.settings.epochs
    if not run.keeps_files:
        return
    with console.status("writing report.html") if console.is_terminal else nullcontext():
        write_report(run)  # a thumbnail of each of a thousand photographs takes a while


def epoch_line(run: Run, row: EpochRow) -> str:
    """An epoch in one line: its number, its accuracy, and how the samples were divided."""
    num_epochs = run.job.settings.epochs
    longest = max(len(phase.name) for phase in find_method(run.job.method).phases(run.job.settings))
    words = [f"epoch {row['epoch']:>{len(str(num_epochs))}}/{num_epochs}", f"{row['phase']:{longest}}"]
    if row["test_acc"] is not None:
        words.append(f"test {row['test_acc']:.2f} %")
    elif "val_acc" not in row and (loss := main_loss(row)) is not None:  # one number tells how good the network is
        words.append(f"loss {loss:.3f}")
    if "val_acc" in row:
        words.append(
            f"validation {row['val_acc']:.2f} %" if row.get("val_is_clean") else agreement_words(row["val_acc"])
        )
    if "num_labeled" in row:
        words.append(f"labels kept {' and '.join(map(str, row['num_labeled']))} of {row['num_divided']}")
    if aucs := row.get("clean_auc"):
        words.append(f"clean AUC {' '.join(f'{auc:.3f}' for auc in aucs)}")
    words.append(f"{row['seconds']:.1f} s")
    if left := seconds_left(run):
        words.append(f"left {clock(left)}")
    return "  ".join(words)


def agreement_words(percent: float) -> str:
    """How many of the held-out labels, some of which are wrong, the networks predict."""
    return f"agrees with {percent:.1f} % of held-out labels"


def clock(seconds: float) -> str:
    """Seconds as 1:05 or 2:03:04, and more than four days in words."""
    if seconds >= _DAYS:
        return span(seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def result_table(summaries: Iterable[RunSummary]) -> Table:
    """A table of the runs' results, with those of the kept epoch if validation samples chose it in any run."""
    summaries = list(summaries)
    num_last = min(10, max(summary["epochs"] for summary in summaries))
    columns = {"final": "final_acc", "best": "best_acc"}
    if num_last > 1:
        columns[f"mean of last {num_last}"] = "last_acc"
    if any("kept_val_acc" in summary for summary in summaries):
        columns = {"kept": "kept_acc"} | columns
    columns = {heading: name for heading, name in columns.items() if any(s.get(name) is not None for s in summaries)}
    table = Table("method", title="Test accuracy in percent", title_justify="left")
    has_auc = any(summary["clean_auc"] is not None for summary in summaries)
    for heading in (*columns, *(["clean AUC"] if has_auc else []), "time"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        accuracies = [summary.get(name) for name in columns.values()]
        auc = summary["clean_auc"]
        table.add_row(
            summary["method"],
            *("-" if value is None else f"{value:.2f}" for value in accuracies),
            *(["-" if auc is None else f"{auc:.3f}"] if has_auc else []),
            clock(summary["seconds"]),
        )
    return table


def _left_words(left: float | None) -> str:
    """The time that is left; an epoch that takes longer than foreseen may leave none."""
    if left is None:
        return ""
    return f", {clock(left)} left" if left >= 1 else ", nearly done"


class _Bar:
    """The whole run as one bar, read from the run each time it is drawn; before it, what the run does now."""

    def __init__(self, run: Run):
        self._run = run
        self._watch = Stopwatch(run)

    def __rich__(self) -> Table:
        progress, num_epochs = self._run.state.progress, self._run.job.settings.epochs
        in_epoch = self._watch.in_epoch
        done, left = share_done(self._run, in_epoch), seconds_left(self._run, in_epoch)
        if done is None:  # nothing is measured yet
            done = len(self._run.rows) / num_epochs
        epoch = min(self._run.state.epoch + 1, num_epochs)
        row = Table.grid(padding=(0, 1))
        row.add_row(
            Text(f"epoch {epoch}/{num_epochs}", style="bold"),
            Text(f"{progress.doing or 'preparing'} {progress.step}/{progress.num_steps}"),
            ProgressBar(total=1.0, completed=done, width=max(8, min(32, console.width - 64))),
            Text(f"{min(100 * done, 99):.0f} %"),  # the bar goes when the run ends
            Text(f"{clock(self._watch.elapsed)} elapsed" + _left_words(left)),
        )
        return row
