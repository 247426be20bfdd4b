"""The cost of a plan's runs: which runs cost the same, how fast each kind is, how long all of them take together."""

from collections.abc import Sequence
from typing import Any

from dividemix.planning.job import Job
from dividemix.planning.pace import Pace, measure

# Settings that determine the cost of a step: runs with the same values are of one kind, and one of them is measured.
_KIND = (
    *("data", "root", "limit_train", "limit_test", "imbalance", "image_size", "method", "device", "precision"),
    *("net", "net_width", "final_norm", "batch_size", "num_views", "co_training", "labeled_only"),
    *("correction", "curriculum", "rounds", "second_order"),
)


def kind_of(job: Job) -> tuple[Any, ...]:
    """The values that runs of the same kind share."""
    values = job.values()
    return tuple(values.get(name) for name in _KIND)


def measure_pace(job: Job, *, num_threads: int) -> Pace:
    """The pace of runs of the job's kind with so many threads, measured here; InputError if job or data is wrong."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        return measure(job)
    finally:
        torch.set_num_threads(before)
        torch.cuda.empty_cache()  # the runs need the device's memory


def makespan(seconds: Sequence[float], num_workers: int) -> float:
    """The time for runs in this order, if each worker starts the next run as soon as it is free."""
    free = [0.0] * num_workers
    for run in seconds:
        free.sort()
        free[0] += run
    return max(free)
