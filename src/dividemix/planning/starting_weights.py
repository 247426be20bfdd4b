"""The weights that the nets of a new run start from, if not random ones: from a file, or from a package."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from dividemix.nets.packages import packaged_weights
from dividemix.nets.weights import WeightsReport, load_weights, take_weights
from dividemix.planning.job import Job


def load_starting_weights(job: Job, nets: Sequence[nn.Module], shape: tuple[int, ...]) -> WeightsReport | None:
    """Put the job's weights into all nets and report what matched; None if they stay random.

    Raises InputError if the weights cannot be had, or do not fit.
    """
    if job.weights:
        first, *_ = [load_weights(net, Path(job.weights)) for net in nets]
        return first
    if job.pretrained:
        stored = packaged_weights(job.settings.net, shape[-1])
        first, *_ = [take_weights(net, stored, Path(job.settings.net)) for net in nets]
        return first
    return None
