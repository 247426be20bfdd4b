"""A time limit for a whole run: the number of epochs that fits, planned again after every epoch. No torch import.

A new plan leaves finished epochs as they were, trains every phase of the method at least once, and ends as near to the
limit as whole epochs can.
"""

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from dividemix.errors import InputError
from dividemix.methods import find_method
from dividemix.methods.method import Phase, keeps_phase
from dividemix.planning.foreseen import foreseen
from dividemix.planning.job import Job, known_to
from dividemix.planning.lengths import lengths_for

MAX_EPOCHS = 300
_NEAR = 0.02  # a plan that ends this near to the limit, as a share of it, is kept


@dataclass(frozen=True)
class Budget:
    """Seconds that a run may take in all, and the time at which it began (time.monotonic)."""

    seconds: float
    began: float

    @classmethod
    def of(cls, minutes: float, began: float | None = None) -> "Budget":
        """The budget of so many minutes from now on, or since it began. Raises InputError unless minutes is > 0."""
        if not minutes > 0 or not math.isfinite(minutes):
            raise InputError(f"minutes is {minutes:g}: it must be a number > 0")
        return cls(60 * minutes, time.monotonic() if began is None else began)

    @property
    def minutes(self) -> float:
        """Minutes that the run may take."""
        return self.seconds / 60

    @property
    def left(self) -> float:
        """Seconds that are left; negative after the end."""
        return self.began + self.seconds - time.monotonic()


def plan_again(
    job: Job, took: Sequence[float], left: float, near: float, chosen: Collection[str], on_cpu: bool
) -> dict[str, int] | None:
    """The epochs and lengths with which training ends `left` seconds from now; None if those of the job are near.

    `took` has the seconds of each finished epoch. Lengths that were `chosen` for the user follow the number of epochs.
    """
    plans = {}
    for epochs in range(len(took), max(MAX_EPOCHS, job.settings.epochs) + 1):
        if (plan := _plan(job, epochs, len(took), chosen, on_cpu)) is not None:
            seconds = foreseen(plan[1], took, None)
            assert seconds is not None
            plans[epochs] = abs(left - sum(seconds[len(took) :])), plan[0]
    now = plans.get(job.settings.epochs)
    if not plans or (now is not None and now[0] <= near):
        return None
    best = min(plans, key=lambda epochs: (plans[epochs][0], epochs))
    return None if best == job.settings.epochs else plans[best][1]


def near_enough(budget: Budget) -> float:
    """Seconds by which a plan may miss the limit before it is replaced."""
    return _NEAR * budget.seconds


def _plan(
    job: Job, epochs: int, num_trained: int, chosen: Collection[str], on_cpu: bool
) -> tuple[dict[str, int], tuple[Phase, ...]] | None:
    """The values of a plan with so many epochs, and its phases; None if it would change or skip something.

    If another warm-up would change finished epochs, the present one is kept.
    """
    s, method = job.settings, find_method(job.method)
    before, warmup = method.phases(s), getattr(s, "warmup_epochs", None)
    needed = {phase.name for phase in before if phase.num_epochs}
    for num_warmup in (None, warmup) if "warmup_epochs" in chosen else (warmup,):
        lengths = {one.name: one.value for one in lengths_for(epochs, on_cpu, num_warmup)}
        if num_warmup is not None:
            lengths["warmup_epochs"] = num_warmup
        values = {name: length for name, length in known_to(job.method, lengths).items() if name in chosen}
        values |= {"epochs": epochs} | s.decided(num_trained)
        try:
            phases = method.phases(replace(s, **values))
        except InputError:  # the lengths do not fit
            continue
        is_whole = needed <= {phase.name for phase in phases if phase.num_epochs > 0}
        is_same = _each(phases)[:num_trained] == _each(before)[:num_trained]
        if is_whole and is_same and keeps_phase(before, phases, num_trained):
            return values, phases
    return None


def _each(phases: Sequence[Phase]) -> list[str]:
    """The name of each epoch's phase."""
    return [phase.name for phase in phases for _ in range(phase.num_epochs)]
