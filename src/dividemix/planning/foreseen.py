"""How long the epochs of a training take, from those that are measured. No torch import."""

from collections.abc import Sequence

from dividemix.methods.method import Phase

_RECENT = 3  # epochs of a phase from which the next ones are foreseen


def foreseen(phases: Sequence[Phase], took: Sequence[float], estimate: float | None) -> list[float] | None:
    """The seconds of each epoch: those that finished ones took, and for the others what can be foreseen.

    An epoch takes what the last ones of its phase took. For a phase without any, the phase before and the costs that
    the method states are used; before the first epoch, the estimate of the whole run. None without anything.
    """
    seconds: list[float] = []
    total_cost = sum(phase.num_epochs * phase.cost for phase in phases)
    unit = None if estimate is None or not total_cost else estimate / total_cost  # of an epoch of cost 1
    for phase in phases:
        measured = list(took[len(seconds) : len(seconds) + phase.num_epochs])
        if measured:
            recent = measured[-_RECENT:]
            unit = sum(recent) / len(recent) / phase.cost
        if unit is None:
            return None
        seconds += measured + [unit * phase.cost] * (phase.num_epochs - len(measured))
    return seconds
