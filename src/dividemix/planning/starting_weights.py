"""The weights that the nets of a new run start from, if not random ones: from a file, or from a package."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from dividemix.nets.packages import packaged_weights
from dividemix.nets.weights import WeightsReport, load_weights, take_weights
from dividemix.planning.job import Job


class StartingWeights:
    """Puts the job's weights into nets when it is called; `report` says what matched, None if they stay random."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.report: WeightsReport | None = None

    def __call__(self, nets: Sequence[nn.Module], shape: tuple[int, ...]) -> None:
        """Change nets that take samples of that shape. Raises InputError if the weights are missing, or do not fit."""
        job = self._job
        if job.weights:
            self.report, *_ = [load_weights(net, Path(job.weights)) for net in nets]
        elif job.pretrained:
            stored = packaged_weights(job.settings.net, shape[-1])
            self.report, *_ = [take_weights(net, stored, Path(job.settings.net)) for net in nets]
