"""The interface of a method: what the loop, the planner, the judge and the page know about it. No torch import.

A method is one object with the members of `Method`. Inherit from `Method` to get its defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dividemix.data.settings import ViewSettings
from dividemix.engine.settings import MachineSettings, ScheduleSettings
from dividemix.nets.settings import NetSettings

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.algorithm.divide import Division
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class MethodSettings(MachineSettings, ViewSettings, ScheduleSettings, NetSettings):
    """The settings that every method has. A method adds its own in a class that inherits from this one."""


@dataclass(frozen=True)
class Phase:
    """A part of the training: epochs of one kind, one after the other."""

    name: str
    num_epochs: int
    selects: bool = True  # whether one of these epochs may be the one to keep
    cost: float = 1.0  # an epoch's time compared with an ordinary epoch's, until it is measured
    prepares: int = 0  # how many of its last epochs do work that the next phase needs


def keeps_phase(before: Sequence[Phase], after: Sequence[Phase], num_trained: int) -> bool:
    """Whether with other lengths the last of `num_trained` epochs is of the same phase, and its work for the next fits.

    The end of a phase that prepares the next one stays if it is over, or if another end needs work that was not done.
    """
    old, new = _Begun.after(before, num_trained), _Begun.after(after, num_trained)
    if old.phase.name != new.phase.name:
        return False
    if old.end == new.end or not (old.phase.prepares or new.phase.prepares):
        return True
    return num_trained < min(old.end, new.end) and (new.prepares_from >= min(old.prepares_from, num_trained))


class _Begun(NamedTuple):
    """A phase that has begun, and the epochs before it is over and before those that prepare the next one."""

    phase: Phase
    end: int
    prepares_from: int

    @classmethod
    def after(cls, phases: Sequence[Phase], num_trained: int) -> _Begun:
        """The phase of the last of `num_trained` epochs."""
        end = 0
        for phase in phases:
            begin, end = end, end + phase.num_epochs
            if num_trained <= end and phase.num_epochs:
                return cls(phase, end, max(begin, end - phase.prepares))
        raise ValueError(f"the phases have {end} epochs, and {num_trained} are finished")


@dataclass(frozen=True)
class TrainingSets:
    """The samples with given labels and, where a method needs them, samples whose labels are trusted."""

    train: TrainingData
    trusted: TrainingData | None = None


@dataclass(frozen=True)
class EpochReport:
    """What one epoch did. The loop fills in epoch, phase and seconds."""

    losses: Mapping[str, list[float]]  # the mean of each loss term, for each net
    divisions: list[Division] = field(default_factory=list)  # divisions[k] trained net k
    sample_losses: Tensor | None = None  # (K, n): the losses that were divided
    figures: Mapping[str, float] = field(default_factory=dict)  # anything else worth a curve, by name
    epoch: int = 0
    phase: str = ""
    selects: bool = True
    seconds: Mapping[str, float] = field(default_factory=dict)  # of the epoch's parts (the paper's Table 9)


@dataclass(frozen=True)
class Judgement:
    """A method's opinion of every given label, on the CPU. Shapes: K nets, N samples, C classes."""

    pred_probs: Tensor  # (N, C) float32: what the nets predict together
    losses: Tensor  # (K, N) float64: cross-entropy of the given label by each net
    clean_prob: Tensor  # (K, N) float64: probability that the given label is right, by each net
    sample_probs: Tensor | None = None  # (N, C): predictions that do not use the given labels; they allow a calibration
    is_out_of_sample: bool = False  # whether each row of sample_probs is by nets that were not trained on its label
    is_judged: Tensor | None = None  # (N,) bool: not where the nets know too little of the label's class; None: all
    matrix: Tensor | None = None  # (C, C): P(given | true) by which pred_probs use the labels; replaces sample_probs


class Method(Protocol):
    """A way to train. `s` is always an instance of its `settings`."""

    settings: type[MethodSettings] = MethodSettings
    needs_trusted: bool = False  # whether it trains only with TrainingSets.trusted
    uses_trusted: Mapping[str, Any] | None = None  # its settings with which it uses TrainingSets.trusted; None: never
    needs_vectors: bool = False  # whether it trains only on samples that are vectors
    steps_tell_time: bool = True  # whether steps on a few samples tell how long it trains
    double_backward: bool = False  # whether it differentiates gradients: no compilation, torch's kernels

    def num_nets(self, s: Any) -> int:
        """K: how many nets are trained."""
        return 1

    def phases(self, s: Any) -> tuple[Phase, ...]:
        """The parts of the training in order; together they have s.epochs epochs."""
        return (Phase("train", s.epochs),)

    def start(self, state: State, sets: TrainingSets, s: Any) -> None:
        """Add to a new state what the method needs: values per sample, running means, optimisers."""
        return

    def epoch(self, state: State, sets: TrainingSets, s: Any) -> EpochReport:
        """Train for one epoch, after `state.epoch` epochs."""
        ...

    def judge(self, state: State, data: TrainingData, s: Any) -> Judgement:
        """The method's opinion of every given label of the data: by a mixture over each net's losses."""
        from dividemix.methods.evaluation import judge_by_loss

        return judge_by_loss(state, data)
