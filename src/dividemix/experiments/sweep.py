"""dividemix sweep: one job with every combination of some settings, for several seeds, and a table of the results."""

import csv
import io
import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.experiments.cluster import Cluster, require_cluster
from dividemix.experiments.finished import is_finished
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.training import num_runs, stopped_words, train_shown
from dividemix.judging.records import RunSummary
from dividemix.lock import exclusive
from dividemix.planning.plan import make_plan
from dividemix.runs.directory import RunDirectory

_MOST = 1000  # runs of one sweep
_COLUMNS = {
    "kept": "kept_acc",  # of the epoch that is kept
    "final": "final_acc",
    "best": "best_acc",
    "clean AUC": "clean_auc",
    "estimated noise": "noise_rate",
    "seconds": "seconds",
}


@dataclass(frozen=True)
class Combination:
    """The values of the settings that vary, and a run for each seed."""

    values: Mapping[str, Any]
    runs: tuple[PlannedRun, ...]


def make_sweep(
    given: Mapping[str, Any], varied: Mapping[str, Sequence[Any]], seeds: Sequence[int]
) -> list[Combination]:
    """All combinations of the varied settings over the settings given. Raises InputError if one is wrong."""
    number = len(seeds)
    for values in varied.values():
        number *= len(values)
    if number > _MOST:
        raise InputError(f"these are {number} runs: a sweep has at most {_MOST}; vary fewer settings")
    combinations = []
    for values in itertools.product(*varied.values()):
        own = dict(zip(varied, values, strict=True))
        words = "-".join(f"{name}-{value}" for name, value in own.items())
        runs = []
        for seed in seeds:
            job = make_plan({**given, **own, "seed": seed}).job
            name = re.sub(r"[^\w.-]+", "-", f"{words}-seed{seed}".lstrip("-"))
            runs.append(PlannedRun(name, job))
        combinations.append(Combination(own, tuple(runs)))
    names = [run.name for combination in combinations for run in combination.runs]
    if len(set(names)) < len(names):
        raise InputError("two combinations have the same name: give each value once")
    return combinations


def run_sweep(
    sweep: Sequence[Combination], out: Path, *, num_workers: int, console: Console, cluster: Cluster | None = None
) -> int:
    """Train what is not finished in out/runs; write sweep.md and sweep.csv. Returns the exit code, as `reproduce`."""
    if cluster is not None:
        require_cluster()
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    runs = [run for combination in sweep for run in combination.runs]
    with exclusive(folder, "another sweep is running here: wait for it, or use another --out"):
        todo = [run for run in runs if not is_finished(run, folder)]
        console.print(f"{num_runs(len(runs))}, {len(runs) - len(todo)} finished")
        workers = min(num_workers, len(runs))
        failed, stopped = train_shown(todo, folder, num_workers=workers, console=console, cluster=cluster)
        if stopped:
            console.print(f"{stopped_words(stopped, cluster)}. Continue with the same command.")
            return stopped
        head, *body = grid(sweep, folder)
    table = Table(*head, title="Means over the seeds; accuracies in percent", title_justify="left")
    for line in body:
        table.add_row(*line)
    console.print(table)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *body])
    lines = ["| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *body)]
    atomic.write_text(out / "sweep.csv", text.getvalue())
    atomic.write_text(out / "sweep.md", "\n".join(lines) + "\n")
    console.print(f"written: {out / 'sweep.md'}, {out / 'sweep.csv'}", soft_wrap=True)
    for name, error in failed.items():
        console.print(f"failed: {name}: {error}", soft_wrap=True)
    return 1 if failed else 0


def grid(sweep: Sequence[Combination], folder: Path) -> Iterator[list[str]]:
    """The head and a line for each combination: its values, the means over its finished seeds, their number."""
    yield [*sweep[0].values, *_COLUMNS, "seeds"]
    for combination in sweep:
        finished = [run for run in combination.runs if is_finished(run, folder)]
        summaries = [RunDirectory(folder / run.name).read_summary() for run in finished]
        figures = [_mean(name, summaries) for name in _COLUMNS.values()]
        yield [*map(str, combination.values.values()), *figures, str(len(finished))]


def _mean(name: str, summaries: Sequence[RunSummary]) -> str:
    values = [float(value) for summary in summaries if isinstance(value := summary.get(name), int | float)]
    if not values:
        return "-"
    digits = 3 if name in ("clean_auc", "noise_rate") else 0 if name == "seconds" else 2
    return f"{statistics.fmean(values):.{digits}f}"
