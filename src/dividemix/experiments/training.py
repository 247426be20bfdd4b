"""Train many runs and show them: here or on a cluster, with an estimate of the time."""

import signal
import statistics
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from dividemix.engine.interrupts import Interrupted, Interrupts
from dividemix.experiments.cluster import Cluster, train_on_cluster
from dividemix.experiments.cost import kind_of, makespan, measure_pace
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.pool import num_threads_each, train_all
from dividemix.experiments.progress import RunsDisplay
from dividemix.experiments.setups import describe


def train_shown(
    runs: Sequence[PlannedRun], folder: Path, *, num_workers: int, console: Console, cluster: Cluster | None = None
) -> tuple[dict[str, str], int]:
    """Train the runs, each in its directory in the folder, at most num_workers at a time, and show what happens.

    Returns why runs failed, by name, and the exit code of a signal that stopped everything, otherwise 0. Runs on this
    machine stop with it; runs on a cluster stay in its queue.
    """
    num_threads, failed = num_threads_each(num_workers), dict[str, str]()
    try:
        with Interrupts():
            if runs and cluster is None:
                announce_cost(runs, folder, num_workers=num_workers, num_threads=num_threads, console=console)
            events = (
                train_all(runs, folder, num_workers=num_workers, num_threads=num_threads)
                if cluster is None
                else train_on_cluster(runs, folder, cluster, num_workers=num_workers)
            )
            with RunsDisplay(console, len(runs)) as display, closing(events):
                for event in events:
                    display.show(event)
                    if event.error:
                        failed[event.run.name] = event.error
    except Interrupted as interrupt:
        return failed, 128 + interrupt.number
    return failed, 0


def announce_cost(
    runs: Sequence[PlannedRun], folder: Path, *, num_workers: int, num_threads: int, console: Console
) -> None:
    """Measure a few steps of each kind of run and print how long all will take."""
    console.print("measuring a few steps of each kind of run ...")
    jobs = {kind_of(run.job): run.job for run in runs}
    paces = {kind: measure_pace(job, num_threads=num_threads) for kind, job in jobs.items()}
    seconds = [_share_left(run, folder) * paces[kind_of(run.job)].seconds(run.job) for run in runs]
    costs: dict[str, list[float]] = {}
    for run, cost in zip(runs, seconds, strict=True):
        costs.setdefault(f"{run.job.method}, {describe(run.job)}", []).append(cost)
    for words, each in costs.items():
        console.print(f"  {len(each)} x {words}: about {_duration(statistics.fmean(each))} each", soft_wrap=True)
    cores = "1 core" if num_threads == 1 else f"{num_threads} cores"
    console.print(
        f"in all about {_duration(makespan(seconds, num_workers))} with {num_workers} at a time on {cores} each;"
        " Ctrl-C stops, the same command continues",
        soft_wrap=True,
    )


def _share_left(run: PlannedRun, folder: Path) -> float:
    """The share of the run's epochs that are not trained yet."""
    metrics = folder / run.name / "metrics.jsonl"
    num_done = len(metrics.read_bytes().splitlines()) if metrics.is_file() else 0
    return max(0.0, 1 - num_done / run.job.settings.epochs)


def num_runs(number: int) -> str:
    """The number in words."""
    return "1 run" if number == 1 else f"{number} runs"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def stopped_words(code: int, cluster: Cluster | None) -> str:
    """What stopped everything, from the exit code that `train_shown` returned, and what becomes of the runs."""
    queue = " (the runs stay in the queue; scancel ends them)" if cluster else ""
    return f"stopped by {signal.Signals(code - 128).name}{queue}"
