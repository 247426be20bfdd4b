"""How fast a job trains on this machine, from a few steps of each phase. No torch import before it is measured."""

import math
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dividemix.errors import DegenerateDivisionWarning
from dividemix.methods import find_method
from dividemix.planning.job import Job

if TYPE_CHECKING:
    from dividemix.data.source import Source
    from dividemix.planning.material import Material

_NUM_STEPS = 4
_SHARE_LABELED = 0.85  # of samples that keep their label: a guess for unknown noise


@dataclass(frozen=True)
class PhasePace:
    """Seconds that a sample takes in an epoch of a phase, for all nets together.

    `kept` is for each sample that keeps its label; the others are trained together with it.
    """

    each: float
    kept: float = 0.0


@dataclass(frozen=True)
class Pace:
    """The pace of each phase, seconds that a sample takes to be evaluated, and how many samples there are.

    `num_held_out` samples are evaluated after every epoch, and the `num_test` ones too, or at the end only.
    """

    phases: Mapping[str, PhasePace]
    evaluate: float
    num_train: int
    num_test: int
    num_held_out: int = 0

    def seconds(self, job: Job) -> float:
        """How long the job takes from its first epoch to its last."""
        s = job.settings
        # An ordinary step has 2 B samples, a step with divisions B that keep their label.
        num_ordinary = 2 * s.balanced_batches * s.batch_size or self.num_train
        num_divided = s.num_divided(self.num_train)
        training = 0.0
        for phase in find_method(job.method).phases(s):
            if not phase.num_epochs:
                continue
            pace = self.phases[phase.name]
            an_epoch = pace.each * (num_divided if pace.kept else num_ordinary)
            training += phase.num_epochs * (an_epoch + num_divided * pace.kept * _share_labeled(job))
        num_evaluated = s.epochs * (self.num_held_out + self.num_test * job.test_epochs)
        num_evaluated += self.num_train + self.num_test  # at the end: every label is judged, the kept model tested
        return training + num_evaluated * self.evaluate


def measure(job: Job, source: "Source | None" = None, *, limit: float = math.inf) -> Pace:
    """The job's pace on some of its samples, or of those of `source`, as `measure_on`.

    Raises InputError if the job is wrong.
    """
    from dividemix.engine.device import choose_device
    from dividemix.planning.material import gather

    return measure_on(job, gather(job, choose_device(job.settings.device), source), limit=limit)


def measure_on(job: Job, material: "Material", *, num_steps: int = _NUM_STEPS, limit: float = math.inf) -> Pace:
    """The job's pace, from training new networks, uncompiled, for so many steps of each phase.

    After `limit` seconds nothing more is measured: the other phases follow from the costs that the method states.
    """
    import numpy as np

    from dividemix.methods.loop import train_one
    from dividemix.planning.prepare import start

    method = find_method(job.method)
    s = replace(job.settings, balanced_batches=0, compile="never")
    num_train, num_test = len(material.train.labels), sum(len(test.labels) for test in material.tests.values())
    num_samples = min(num_train, num_steps * 2 * s.batch_size)
    samples = np.linspace(0, num_train - 1, num_samples).astype(int)  # from all classes, in whichever order
    sets = replace(material.sets, train=material.train.subset(samples))
    device = material.train.labels.device
    state = start(job.method, s, sets, num_classes=len(material.classes), shape=material.shape, device=device)
    paces: dict[str, PhasePace] = {}
    evaluate = unit = 0.0
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDivisionWarning)  # expected after a few steps
        begin = 0
        for phase in method.phases(s):
            if phase.num_epochs and time.perf_counter() - began > limit and paces:
                paces[phase.name] = PhasePace(unit * phase.cost)
            elif phase.num_epochs:
                state.epoch = begin
                report = train_one(method, state, sets, s)  # chooses kernels, allocates memory: counts only if slow
                if time.perf_counter() - began <= limit:
                    state.epoch = begin
                    report = train_one(method, state, sets, s)
                divide = report.seconds.get("co_divide", 0.0) / num_samples
                rest = sum(report.seconds.values()) - divide * num_samples
                num_kept = sum(len(division.labeled) for division in report.divisions) / max(len(report.divisions), 1)
                num_kept = math.ceil(num_kept / s.batch_size) * s.batch_size  # batches are full
                paces[phase.name] = PhasePace(divide, rest / num_kept) if num_kept else PhasePace(rest / num_samples)
                if unit * phase.cost * num_samples > divide * num_samples + rest:
                    # After a few steps nearly every label is kept: a real epoch of this phase costs more.
                    paces[phase.name] = PhasePace(unit * phase.cost)
                # Without a division to measure it, an evaluation takes a third of a training step.
                evaluate = divide or paces[phase.name].each / 3
                unit = max(unit, sum(report.seconds.values()) / num_samples / phase.cost)
            begin += phase.num_epochs
    # A phase without epochs here may have some in a training of another length.
    paces = {phase.name: PhasePace(unit * phase.cost) for phase in method.phases(s)} | paces
    return Pace(paces, evaluate, num_train, num_test, 0 if material.holdout is None else len(material.holdout.labels))


def _share_labeled(job: Job) -> float:
    """The share of samples that will keep their label, from the noise rate if that is known."""
    _, _, rate = job.noise.partition(":")
    try:
        return 1 - float(rate)
    except ValueError:
        return _SHARE_LABELED
