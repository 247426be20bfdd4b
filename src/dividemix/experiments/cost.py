"""What the runs of a plan will cost: which of them cost the same, and how long workers take for them."""

from collections.abc import Sequence
from typing import Any

from dividemix.planning.job import Job

# Settings that decide what a step costs: runs that agree in them are of one kind, and one of them is measured.
_KIND = (
    *("data", "root", "limit_train", "image_size", "method", "device", "precision"),
    *("net", "net_width", "final_norm", "batch_size", "num_views", "co_training", "labeled_only"),
)


def kind_of(job: Job) -> tuple[Any, ...]:
    """What runs of the same kind have in common."""
    values = job.values()
    return tuple(values[name] for name in _KIND)


def makespan(seconds: Sequence[float], num_workers: int) -> float:
    """How long workers take for runs that they start in this order, each when it is free."""
    free = [0.0] * num_workers
    for run in seconds:
        free.sort()
        free[0] += run
    return max(free)
