"""How fast a job trains on this machine, from a few steps of each phase; no torch import before it is measured."""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dividemix.errors import DegenerateDivisionWarning
from dividemix.planning.job import Job

if TYPE_CHECKING:
    from dividemix.data.source import Source

_NUM_STEPS = 4


@dataclass(frozen=True)
class Pace:
    """Seconds that a sample takes, for all nets together, and how many samples train and are tested each epoch.

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
        # Twice, since a step of warm-up has as many samples as the two kinds of a later one have together.
        num_warmup_samples = 2 * config.balanced_batches * config.batch_size or self.num_train
        mix_epoch = config.num_divided(self.num_train) * (self.divide + self.mix * _share_labeled(job))
        test = self.num_test * self.divide * config.epochs
        at_the_end = self.num_train * self.divide  # every label is judged once more
        training = num_warmup * num_warmup_samples * self.warmup + (config.epochs - num_warmup) * mix_epoch
        return training + test + at_the_end


def measure(job: Job, source: "Source | None" = None) -> Pace:
    """The job's pace, uncompiled, on its first samples; data that is there already comes as `source`.

    Raises:
        InputError: for whatever is wrong with the job or its data.
    """
    import numpy as np

    from dividemix.engine.device import choose_device
    from dividemix.methods import find_method
    from dividemix.planning.material import gather
    from dividemix.planning.prepare import start

    config = replace(job.config, epochs=3, warmup_epochs=2, balanced_batches=0, compile="never")
    method = find_method(job.method)
    device = choose_device(config.device)
    material = gather(job, device, source)
    num_train, tested = len(material.train.labels), (*material.tests.values(), material.holdout)
    num_samples = min(num_train, _NUM_STEPS * 2 * config.batch_size)
    state = start(
        config,
        job.method,
        num_classes=len(material.classes),
        image_shape=material.image_shape,
        num_samples=num_samples,
        device=device,
        may_compile=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDivisionWarning)  # a few steps do not tell labels apart
        # The first warm-up epoch is not counted: kernels are chosen and memory is taken there.
        _, warmup, mix = method.fit(state, material.train.subset(np.arange(num_samples)), config)
    # One pass of all nets over a sample: a division's in a mix epoch, a third of a training step where there is none.
    divide = mix.seconds.get("co_divide", sum(warmup.seconds.values()) / 3) / num_samples
    num_labeled = max(sum(len(division.labeled) for division in mix.divisions), 1) / max(len(mix.divisions), 1)
    return Pace(
        warmup=sum(warmup.seconds.values()) / num_samples,
        divide=divide,
        mix=(mix.seconds.get("mixmatch", 0.0) + mix.seconds["forward_backward"]) / num_labeled,
        num_train=num_train,
        num_test=sum(len(images.labels) for images in tested if images is not None),
    )


def _share_labeled(job: Job) -> float:
    """The share of samples that will keep their label, judged by the noise rate; a guess where nobody knows it."""
    _, _, rate = job.noise.partition(":")
    try:
        return 1 - float(rate)
    except ValueError:
        return 0.85 if job.config.keep_plausible else 2 / 3
