"""What finished runs left: their epochs, the files they skipped, and the machines that trained them."""

from pathlib import Path

from dividemix.errors import InputError, advised
from dividemix.experiments.plans import PlannedRun
from dividemix.experiments.results import Rows
from dividemix.planning.job import read_settings
from dividemix.runs.checkpoints import saved_rows
from dividemix.runs.directory import RunDirectory

_TRAIN_AGAIN = "move {} away, and the run is trained again"


def is_finished(run: PlannedRun, folder: Path) -> bool:
    """Whether the folder has the run, trained to its end; InputError if its directory has another or a damaged run."""
    path = folder / run.name
    if not (path / "config.yaml").is_file():
        return False
    try:
        found, wanted = read_settings(path / "config.yaml", of_run=True), run.job.values()
        is_ours = all(found.get(name) == wanted.get(name) for name in ("net", "method", "encoder"))
        stored = RunDirectory(path).read_job(trust_net=is_ours)  # the code that this command names, and no other
    except InputError as error:
        raise advised(error, _TRAIN_AGAIN.format(path)) from error.__cause__
    difference = run.job.difference(stored)
    if stored.data != run.job.data:
        difference = f"the run there has data {stored.data}, not {run.job.data}"
    if difference:
        raise InputError(f"{path}: {difference}: move it away or use another --out")
    return (path / "summary.json").is_file() and (path / "report.html").is_file()


def read_epochs(run: PlannedRun, folder: Path) -> Rows:
    """Every epoch of a finished run; InputError if one is missing or damaged: figures would be wrong without it."""
    path, num_epochs = folder / run.name, run.job.settings.epochs
    try:
        rows = saved_rows(RunDirectory(path))
    except InputError as error:
        if isinstance(error.__cause__, OSError):  # the system refused to read it, which says nothing of the file
            raise
        rows = []
    if len(rows) != num_epochs:
        raise InputError(
            f"{path}: metrics.jsonl is damaged, {len(rows)} of {num_epochs} epochs can be read:"
            f" {_TRAIN_AGAIN.format('the directory')}"
        )
    return rows


def skipped_words(run: PlannedRun, folder: Path) -> str | None:
    """Which files of its data a finished run skipped, in one line; None if none; InputError if it cannot be read."""
    skipped = RunDirectory(folder / run.name).read_skipped()
    if not skipped:
        return None
    more = f", and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
    return f"Skipped in {run.job.data} (skipped.csv of its runs): {skipped[0].path}: {skipped[0].reason}{more}."


def machines_of(run: PlannedRun, folder: Path) -> list[str]:
    """The machines that trained the run, each in a few words, as env.json has them."""
    machines = []
    for one in RunDirectory(folder / run.name).read_environments():
        name = one.get("processor") if one.get("device") == "cpu" else one.get("device")
        system = str(one.get("platform")).partition("-")[0]
        machines.append(f"{name}, {one.get('num_threads')} of {one.get('num_cores')} cores, {system}")
    return machines
