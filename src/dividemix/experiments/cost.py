"""What runs will cost on this machine, from a few steps of each kind."""

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dividemix.runs.job import Job

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from dividemix.algorithm.training_data import TrainingData

_NUM_STEPS = 4
# Settings that decide what a step costs: runs that agree in them are of one kind, and one of them is measured.
_KIND = (
    *("data", "root", "limit_train", "image_size", "method", "device", "precision"),
    *("net", "net_width", "final_norm", "batch_size", "num_views", "co_training", "labeled_only"),
)


@dataclass(frozen=True)
class Pace:
    """Seconds that a sample takes, for all nets together, and how many samples the data set has.

    `mix` counts for each sample that keeps its label; the others come along with it.
    """

    warmup: float
    divide: float
    mix: float
    num_train: int
    num_test: int

    def seconds(self, job: Job) -> float:
        """What the job will take from its first epoch to its last."""
        config = job.config
        num_warmup = config.epochs if job.method == "cross_entropy" else config.warmup_epochs
        mix_epoch = self.num_train * (self.divide + self.mix * _share_labeled(job.noise))
        test = self.num_test * self.divide * config.epochs
        return num_warmup * self.num_train * self.warmup + (config.epochs - num_warmup) * mix_epoch + test


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


def measure(job: Job) -> dict[str, float]:
    """The fields of the job's Pace, from an epoch of a few steps in each phase."""
    from dividemix.algorithm.state import State
    from dividemix.methods import METHODS
    from dividemix.runs.run import Run

    config = dataclasses.replace(job.config, epochs=3, warmup_epochs=2, compile="never")
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", dataclasses.replace(job, config=config))
    num_train = len(run.material.train.labels)
    data = _First(run.material.train, min(num_train, _NUM_STEPS * 2 * config.batch_size))
    num_samples = len(data.labels)
    state = State.start(run.state.nets, num_samples, config)
    # The first warm-up epoch is not counted: kernels are chosen and memory is taken there.
    _, warmup, mix = METHODS[job.method].fit(state, data, config)
    # One pass of all nets over a sample: a division's in a mix epoch, a third of a training step where there is none.
    divide = mix.seconds.get("co_divide", sum(warmup.seconds.values()) / 3) / num_samples
    num_labeled = max(sum(len(division.labeled) for division in mix.divisions), 1) / max(len(mix.divisions), 1)
    return {
        "warmup": sum(warmup.seconds.values()) / num_samples,
        "divide": divide,
        "mix": (mix.seconds.get("mixmatch", 0.0) + mix.seconds["forward_backward"]) / num_labeled,
        "num_train": num_train,
        "num_test": 0 if run.material.test is None else len(run.material.test.labels),
    }


class _First:
    """The first samples of a data set."""

    def __init__(self, data: "TrainingData", num_samples: int):
        self._data = data
        self.labels = data.labels[:num_samples]
        self.num_classes = data.num_classes

    def augmented(self, batches: "Iterable[Tensor]", generator: "torch.Generator") -> "Iterator[Tensor]":
        return self._data.augmented(batches, generator)

    def plain(self, batches: "Iterable[Tensor]") -> "Iterator[Tensor]":
        return self._data.plain(batches)


def _share_labeled(noise: str) -> float:
    """The share of samples that will keep their label, judged by the noise rate; two thirds where nobody knows it."""
    _, _, rate = noise.partition(":")
    try:
        return 1 - float(rate)
    except ValueError:
        return 2 / 3
