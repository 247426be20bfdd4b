"""dividemix reproduce: what the runs of a plan will cost, the runs themselves, and the table or figure they make."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from dividemix import atomic
from dividemix.engine.interrupts import Interrupted, Interrupts
from dividemix.engine.lock import exclusive
from dividemix.errors import InputError
from dividemix.experiments import FIGURES, table_display, tables
from dividemix.experiments.cost import kind_of, makespan
from dividemix.experiments.finished import is_finished, read_epochs, what_was_left_out
from dividemix.experiments.machine import machines_of, num_threads_each
from dividemix.experiments.plans import Plan, PlannedRun
from dividemix.experiments.pool import measure_pace, train_all
from dividemix.experiments.progress import RunsDisplay
from dividemix.experiments.setups import describe

if TYPE_CHECKING:
    from dividemix.data.source import Source


def reproduce(plan: Plan, out: Path, *, num_workers: int, command: str, console: Console) -> int:
    """Train what is not trained yet in out/runs, and write the plan's table or figure to out.

    Returns the exit code: 1 if a run failed (what the others gave is written all the same), or that of a signal.

    Raises:
        InputError: before anything is trained, for data, weights or packages that are missing, and for damaged runs.
    """
    refuse_missing_data(plan)
    draw = _drawing(plan)  # before hours are spent on what it could not draw
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder, "another reproduction is at work here: wait for it, or use another --out"):
        return _reproduce(plan, folder, draw, num_workers=num_workers, command=command, console=console)


def _reproduce(
    plan: Plan, folder: Path, draw: "_Draw | None", *, num_workers: int, command: str, console: Console
) -> int:
    finished = [run for run in plan.runs if is_finished(run, folder)]
    for run in finished:
        read_epochs(run, folder)
        what_was_left_out(run, folder)
    todo = [run for run in plan.runs if run not in finished]
    # By the runs of the plan, not by those left: gone on with as before, a run has as many threads and the same bits.
    num_workers = min(num_workers, len(plan.runs))
    num_threads = num_threads_each(num_workers)
    console.print(f"{plan.name}, {plan.scale} scale: {_runs(len(plan.runs))}, {len(finished)} finished")
    failed: dict[str, str] = {}
    try:
        with Interrupts():
            if todo:
                announce_cost(todo, folder, num_workers=num_workers, num_threads=num_threads, console=console)
            events = train_all(todo, folder, num_workers=num_workers, num_threads=num_threads)
            with RunsDisplay(console, len(todo)) as display, closing(events):
                for event in events:
                    display.show(event)
                    if event.error:
                        failed[event.run.name] = event.error
    except Interrupted as interrupt:
        num_finished = sum(is_finished(run, folder) for run in plan.runs)
        console.print(
            f"stopped by {interrupt}: {num_finished} of {_runs(len(plan.runs))} finished. Go on with the same command.",
            soft_wrap=True,
        )
        return 128 + interrupt.number
    if draw is None:
        written = _write_table(plan, folder, command, console)
    else:
        written = [] if failed else draw(plan, folder, folder.parent)
    for path in written:
        console.print(f"written: {path}", soft_wrap=True)
    for name, error in failed.items():
        console.print(f"failed: {name}: {error}", soft_wrap=True)
    return 1 if failed else 0


def refuse_missing_data(plan: Plan) -> None:
    """Raise InputError for data, or weights to start from, that are not named, cannot be read or do not fit."""
    from dividemix.data.readers import READERS
    from dividemix.data.readers.cifar import CIFARS
    from dividemix.data.readers.clothing1m import list_clothing1m
    from dividemix.data.readers.webvision import list_webvision
    from dividemix.nets.build import build_net
    from dividemix.nets.weights import load_weights

    for job in (run.job for run in plan.runs):
        if job.data != "fashion" and job.root is None:
            raise InputError(f"{plan.name} at {plan.scale} scale needs {job.data}: say where it lies with --root DIR")
        if job.data == "clothing1m" and job.weights is None:
            raise InputError(f"{plan.name} starts from ImageNet's weights of ResNet-50: give them as --weights FILE")
    starts = {(run.job.weights, run.job.config.net): run.job.config for run in plan.runs if run.job.weights}
    for (path, _), config in starts.items():  # the head is new in any case, and the size of images does not matter
        load_weights(build_net(config, num_classes=2, image_shape=(64, 64, 3), seed=0), Path(str(path)))
    for data, root in dict.fromkeys((run.job.data, run.job.root) for run in plan.runs):
        if root is None:
            continue
        if data in CIFARS:
            _refuse_subset(READERS[data](Path(root)), root, plan)
        else:
            {"clothing1m": list_clothing1m, "webvision": list_webvision}[data](Path(root))


def _refuse_subset(cifar: "Source", root: str, plan: Plan) -> None:
    """Raise InputError if a part of a CIFAR set stands for the whole at paper scale."""
    sizes = len(cifar.train_labels), len(cifar.test_labels if cifar.test_labels is not None else ())
    if plan.scale == "paper" and sizes != (50_000, 10_000):
        raise InputError(
            f"{root}: has {sizes[0]:,} training and {sizes[1]:,} test images of {cifar.name}, where the paper's scale"
            f" needs 50,000 and 10,000; dividemix data check {cifar.name} --root {root} shows which files are cut"
        )


def announce_cost(
    runs: Sequence[PlannedRun], folder: Path, *, num_workers: int, num_threads: int, console: Console
) -> None:
    """Measure a few steps of each kind of run and say what all will take."""
    console.print("measuring a few steps of each kind of run ...")
    paces = {}
    for run in runs:
        if kind_of(run.job) not in paces:
            paces[kind_of(run.job)] = measure_pace(run.job, folder, num_threads=num_threads)
    seconds = [_share_left(run, folder) * paces[kind_of(run.job)].seconds(run.job) for run in runs]
    counts: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for run, cost in zip(runs, seconds, strict=True):
        kind = f"{run.job.method}, {describe(run.job)}"
        counts[kind] += 1
        totals[kind] += round(cost)
    for kind, count in counts.items():
        console.print(f"  {count} x {kind}: about {_duration(totals[kind] / count)} each", soft_wrap=True)
    cores = "1 core" if num_threads == 1 else f"{num_threads} cores"
    console.print(
        f"in all about {_duration(makespan(seconds, num_workers))} with {num_workers} at a time on {cores} each",
        soft_wrap=True,
    )


def _share_left(run: PlannedRun, folder: Path) -> float:
    """The share of the run's epochs that are still to be trained."""
    metrics = folder / run.name / "metrics.jsonl"
    num_done = len(metrics.read_bytes().splitlines()) if metrics.is_file() else 0
    return max(0.0, 1 - num_done / run.job.config.epochs)


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_Draw = Callable[[Plan, Path, Path], list[Path]]  # from the runs in one folder to files in another


def _drawing(plan: Plan) -> _Draw | None:
    """What draws the plan's figure, None for a table; raises InputError at once if its packages are missing."""
    if plan.name not in FIGURES:
        return None
    from dividemix.experiments import figures

    figures.require_packages(plan.name)
    return figures.draw


def _write_table(plan: Plan, folder: Path, command: str, console: Console) -> list[Path]:
    """Print the table and write it beside the folder of its runs, as Markdown and CSV."""
    finished = [run for run in plan.runs if is_finished(run, folder)]
    cells = tables.fill(plan, {run.name: read_epochs(run, folder) for run in finished})
    remarks = sorted({line for run in finished if (line := what_was_left_out(run, folder)) is not None})
    remarks += sorted({f"Machine: {machine}" for run in plan.runs for machine in machines_of(folder / run.name)})
    contents = {
        folder.parent / f"{plan.stem}.md": tables.to_markdown(plan, cells, command=command, remarks=remarks),
        folder.parent / f"{plan.stem}.csv": tables.to_csv(plan, cells),
    }
    for path, content in contents.items():
        atomic.write_text(path, content)
    table_display.show(console, tables.to_grid(plan, cells), tables.heading(plan))
    for remark in (*plan.notes, *remarks):
        console.print(remark, soft_wrap=True)
    return list(contents)
