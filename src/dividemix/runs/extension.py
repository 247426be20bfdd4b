"""More epochs for a finished run.

The rule: finished epochs stay as they are, and the added ones follow the schedule of the longer training. So a run of
2 epochs that gets 2 more equals a run of 4 if the first 2 epochs of both are the same: with the schedule `step` and
phases whose lengths are numbers of epochs. The schedule `cosine` raises the rate again. A method may keep the length of
a phase that is over (`decided`); of any other whose phases are shares of the epochs, the last finished epoch must be of
the same phase in the longer training.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dividemix.errors import InputError, shown
from dividemix.methods import find_method
from dividemix.methods.method import MethodSettings, keeps_phase
from dividemix.planning.job import Job


def longer_job(job: Job, num_trained: int, num_epochs: int) -> Job:
    """The job of a run with so many epochs more. Raises InputError if it is not finished or cannot be extended."""
    if type(num_epochs) is not int or num_epochs < 1:
        raise InputError(f"extend is {shown(num_epochs)}: it must be an integer >= 1")
    end = job.settings.epochs
    if num_trained < end:
        raise InputError(f"the run has {num_trained} of {end} epochs: resume it to its end before you extend it")
    if not _keeps_its_phase(job, end + num_epochs):
        fewer = "add fewer, or " if _keeps_its_phase(job, end + 1) else ""
        raise InputError(
            f"method {job.method} cannot be extended by {num_epochs} epochs: its phases are shares of the epochs, and"
            f" it would return to an earlier phase; {fewer}train again with epochs {end + num_epochs}"
        )
    return replace(job, settings=longer(job.settings, end + num_epochs))


def longer(s: MethodSettings, epochs: int) -> MethodSettings:
    """The settings of a finished training with more epochs: phases that are over keep their lengths."""
    return replace(s, epochs=epochs, **s.decided(s.epochs))  # type: ignore[arg-type]


def _keeps_its_phase(job: Job, epochs: int) -> bool:
    """Whether the last epoch of the job is of the same phase in a training with more epochs."""
    phases = find_method(job.method).phases
    return keeps_phase(phases(job.settings), phases(longer(job.settings, epochs)), job.settings.epochs)


def require_same(job: Job, stored: Job, path: Path) -> None:
    """Raise InputError unless a run's job computes the same; more epochs alone have a command of their own."""
    epochs = stored.settings.epochs
    num_more = job.settings.epochs - epochs
    if num_more > 0 and replace(job, settings=replace(job.settings, epochs=epochs)).difference(stored) is None:
        raise InputError(
            f"{path}: the run there has epochs {epochs}, not {job.settings.epochs}: when it is finished, dividemix"
            f" resume {path} --extend {num_more} adds epochs"
        )
    job.require_same(stored, path)


def extension_words(before: Job, after: Job) -> str:
    """What an extension means, in a sentence."""
    end, epochs = before.settings.epochs, after.settings.epochs
    old, new = before.settings.learning_rate(end - 1), after.settings.learning_rate(end)
    rate = "the learning rate stays" if old == new else f"the learning rate goes from {old:.2g} to {new:.2g}"
    return (
        f"extended from {end} to {epochs} epochs: finished epochs stay; the others follow the longer schedule: {rate}"
    )


def earlier_end(facts: Mapping[str, Any], job: Job) -> int | None:
    """The epochs that a checkpoint's training had in all, if it was finished and the job has more; else None."""
    end = facts["job"].get("epochs")
    return end if end == facts["epoch"] and type(end) is int and end < job.settings.epochs else None
