"""More epochs for a finished run.

The rule: finished epochs stay as they are, and the added ones follow the schedule of the longer training. So a run of
2 epochs that gets 2 more equals a run of 4 if the first 2 epochs of both are the same: with the schedule `step` and
phases whose lengths are numbers of epochs. The schedule `cosine` raises the rate again. A method whose phases are
shares of the epochs is extended only if the added epochs are all of its last phase.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dividemix.errors import InputError, shown
from dividemix.methods import find_method
from dividemix.methods.loop import phase_at
from dividemix.planning.job import Job


def longer_job(job: Job, num_trained: int, num_epochs: int) -> Job:
    """The job of a run with so many epochs more. Raises InputError if it is not finished or cannot be extended."""
    if type(num_epochs) is not int or num_epochs < 1:
        raise InputError(f"extend is {shown(num_epochs)}: it must be an integer >= 1")
    end = job.settings.epochs
    if num_trained < end:
        raise InputError(f"the run has {num_trained} of {end} epochs: resume it to its end before you extend it")
    s = replace(job.settings, epochs=end + num_epochs)
    method = find_method(job.method)
    last, phases = phase_at(method.phases(job.settings), end - 1).name, method.phases(s)
    if {phase_at(phases, epoch).name for epoch in range(end - 1, s.epochs)} != {last}:
        raise InputError(
            f"method {job.method} cannot be extended by {num_epochs} epochs: its phases are shares of the epochs, and"
            f" it would leave the phase {last}; add fewer, or train again with epochs {s.epochs}"
        )
    return replace(job, settings=s)


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
