"""Runs that are trained to their end: which are, and their epochs; no torch import until epochs are read."""

from pathlib import Path

from dividemix.errors import InputError
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.results import Rows
from dividemix.planning.job import Job, read_settings

_TRAIN_AGAIN = "move {} away, and the run is trained again"


def is_finished(run: PlannedRun, folder: Path) -> bool:
    """Whether the run's directory in the folder holds it, trained to its end.

    Raises:
        InputError: if another run is there, or a damaged one.
    """
    path = folder / run.name
    if not (path / "config.yaml").is_file():
        return False
    try:
        stored = Job.of(read_settings(path / "config.yaml"))
    except InputError as error:
        raise InputError(f"{error}; {_TRAIN_AGAIN.format(path)}") from error
    difference = run.job.difference(stored)
    if stored.data != run.job.data:
        difference = f"the run there has data {stored.data}, not {run.job.data}"
    if difference:
        raise InputError(f"{path}: {difference}: move it away or use another --out")
    return (path / "summary.json").is_file()


def read_epochs(run: PlannedRun, folder: Path) -> Rows:
    """Every epoch of a finished run.

    Raises:
        InputError: if one is missing or damaged, since figures would be wrong without it.
    """
    from dividemix.runs.directory import RunDirectory

    path, num_epochs = folder / run.name, run.job.config.epochs
    try:
        rows = RunDirectory(path).read_rows()
    except InputError:
        rows = []
    if len(rows) != num_epochs:
        raise InputError(
            f"{path}: metrics.jsonl is damaged, {len(rows)} of {num_epochs} epochs can be read:"
            f" {_TRAIN_AGAIN.format('the directory')}"
        )
    return rows


def what_was_left_out(run: PlannedRun, folder: Path) -> str | None:
    """What of its data a finished run could not use, in a line; None if it used all.

    Raises:
        InputError: if that cannot be read.
    """
    from dividemix.runs.directory import RunDirectory

    skipped = RunDirectory(folder / run.name).read_skipped()
    if not skipped:
        return None
    more = f", and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
    return f"Left out of {run.job.data} (skipped.csv of its runs): {skipped[0].path}: {skipped[0].reason}{more}."
