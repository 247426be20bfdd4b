"""dividemix reproduce: announce the cost of a plan's runs, train them, and make the table or figure from them."""

from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from rich.console import Console

from dividemix import atomic
from dividemix.data.builtin import BUILT_IN
from dividemix.errors import InputError
from dividemix.experiments import FIGURES, figures, table_display, tables
from dividemix.experiments.cluster import Cluster, require_cluster
from dividemix.experiments.finished import is_finished, machines_of, read_epochs, skipped_words
from dividemix.experiments.plans import Plan
from dividemix.experiments.training import num_runs, stopped_words, train_shown
from dividemix.lock import exclusive

if TYPE_CHECKING:
    from dividemix.data.source import Source


def reproduce(
    plan: Plan, out: Path, *, num_workers: int, command: str, console: Console, cluster: Cluster | None = None
) -> int:
    """Train the runs that are not finished in out/runs, and write the plan's table or figure to out.

    With `cluster` they are trained there, otherwise on this machine. Returns the exit code: 1 if a run failed (a table
    is still written, without it), or that of a signal. Raises InputError, before anything is trained, if data, weights
    or packages are missing, or a run is damaged.
    """
    refuse_missing_data(plan)
    if cluster is not None:
        require_cluster()
    if plan.name in FIGURES:
        figures.require_packages(plan.name)  # before hours are spent on runs that cannot be drawn
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder, "another reproduction is running here: wait for it, or use another --out"):
        return _reproduce(plan, folder, num_workers, command, console, cluster)


def _reproduce(
    plan: Plan, folder: Path, num_workers: int, command: str, console: Console, cluster: Cluster | None
) -> int:
    finished = [run for run in plan.runs if is_finished(run, folder)]
    for run in finished:
        read_epochs(run, folder)
        skipped_words(run, folder)
    todo = [run for run in plan.runs if run not in finished]
    console.print(f"{plan.name}, {plan.scale} scale: {num_runs(len(plan.runs))}, {len(finished)} finished")
    # All runs of the plan count, not only those left: a resumed run has as many threads as before, so the same bits.
    failed, stopped = train_shown(
        todo, folder, num_workers=min(num_workers, len(plan.runs)), console=console, cluster=cluster
    )
    if stopped:
        num_finished = sum(is_finished(run, folder) for run in plan.runs)
        console.print(
            f"{stopped_words(stopped, cluster)}: {num_finished} of {num_runs(len(plan.runs))} finished."
            " Continue with the same command.",
            soft_wrap=True,
        )
        return stopped
    if plan.name not in FIGURES:
        written = _write_table(plan, folder, command, console)
    else:
        written = [] if failed else figures.draw(plan, folder, folder.parent)
    for path in written:
        console.print(f"written: {path}", soft_wrap=True)
    for name, error in failed.items():
        console.print(f"failed: {name}: {error}", soft_wrap=True)
    return 1 if failed else 0


def refuse_missing_data(plan: Plan) -> None:
    """Raise InputError unless the data and the weights that the runs start from are named and can be read."""
    from dividemix.nets.build import build_net
    from dividemix.nets.weights import load_weights

    for job in (run.job for run in plan.runs):
        built_in = BUILT_IN[job.data]
        if built_in.needs_root and job.root is None:
            raise InputError(f"{plan.name} at {plan.scale} scale needs {job.data}: give its folder as --root DIR")
        if built_in.weights and job.weights is None:
            raise InputError(f"{plan.name} starts from {built_in.weights}: give them as --weights FILE")
    starts = {(run.job.weights, run.job.settings.net): run.job.settings for run in plan.runs if run.job.weights}
    for (path, _), s in starts.items():  # the head is always new, and the size of images does not matter
        load_weights(build_net(s, num_classes=2, image_shape=(64, 64, 3), seed=0), Path(str(path)))
    for data, root in dict.fromkeys((run.job.data, run.job.root) for run in plan.runs):
        if root is None:
            continue
        if lister := BUILT_IN[data].lister:  # looking for each of a million files would take too long
            resolve_name(lister)(Path(root))
        else:
            _refuse_subset(resolve_name(BUILT_IN[data].reader)(Path(root)), root, plan)


def _refuse_subset(source: "Source", root: str, plan: Plan) -> None:
    """Raise InputError if the data set is incomplete and the scale is the paper's."""
    name, whole = source.name, BUILT_IN[source.name].num_images
    found = {"train": len(source.train_labels), "test": 0 if source.test_labels is None else len(source.test_labels)}
    if plan.scale == "paper" and found != whole:
        raise InputError(
            f"{root} has {found['train']:,} training and {found['test']:,} test images of {name}: paper scale needs"
            f" {whole['train']:,} and {whole['test']:,}; dividemix data check {name} --root {root} lists damaged files"
        )


def _write_table(plan: Plan, folder: Path, command: str, console: Console) -> list[Path]:
    """Print the table and write it next to the folder of its runs, as Markdown and CSV."""
    finished = [run for run in plan.runs if is_finished(run, folder)]
    cells = tables.fill(plan, {run.name: read_epochs(run, folder) for run in finished})
    remarks = sorted({line for run in finished if (line := skipped_words(run, folder)) is not None})
    remarks += sorted({f"Machine: {machine}" for run in plan.runs for machine in machines_of(run, folder)})
    written = [folder.parent / f"{plan.stem}.{extension}" for extension in ("md", "csv")]
    atomic.write_text(written[0], tables.to_markdown(plan, cells, command=command, remarks=remarks))
    atomic.write_text(written[1], tables.to_csv(plan, cells))
    table_display.show(console, tables.to_grid(plan, cells), tables.heading(plan))
    for remark in (*plan.notes, *remarks):
        console.print(remark, soft_wrap=True)
    return written
