"""DivideMix (Li, Socher, Hoi, ICLR 2020): Algorithm 1, with the released code's differences as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dividemix.algorithm.settings import PaperSettings
from dividemix.methods.method import EpochReport, Judgement, Method, MethodSettings, Phase, TrainingSets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from dividemix.algorithm.divide import Division
    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class DivideMixSettings(PaperSettings, MethodSettings):
    """All settings of the method, flat."""


class DivideMix(Method):
    """Warm up, then each epoch divide the samples and train both nets on each other's division."""

    settings = DivideMixSettings

    def num_nets(self, s: DivideMixSettings) -> int:
        """K: two, or one without co-training."""
        return s.num_nets

    def phases(self, s: DivideMixSettings) -> tuple[Phase, ...]:
        """Warm-up, then semi-supervised training."""
        mix = Phase("mix", s.epochs - s.warmup_epochs, cost=3.5)
        return Phase("warmup", s.warmup_epochs, selects=False), mix

    def start(self, state: State, sets: TrainingSets, s: DivideMixSettings) -> None:
        """Make room for the losses of the last divisions."""
        from dividemix.algorithm import dividemix

        dividemix.start(state, sets.train, s)

    def epoch(self, state: State, sets: TrainingSets, s: DivideMixSettings) -> EpochReport:
        """An epoch of Algorithm 1."""
        from dividemix.algorithm import dividemix

        if state.epoch < s.warmup_epochs:  # line 2
            return EpochReport(by_term(dividemix.warm_up_epoch(state, sets.train, s)))
        losses, divisions = dividemix.co_divide(state, sets.train, s)  # lines 4 to 8
        # Lines 9 to 27.
        terms = [dividemix.train_epoch(state, k, division, sets.train, s) for k, division in enumerate(divisions)]
        return EpochReport(by_term(terms), divisions, losses, {"lambda_u": mean_lambda_u(state.epoch, divisions, s)})

    def judge(self, state: State, data: TrainingData, s: DivideMixSettings) -> Judgement:
        """Each net's opinion of every given label, by the mixture that divides."""
        from dividemix.methods.evaluation import judge_by_loss

        return judge_by_loss(state, data, s.mixture)


def mean_lambda_u(epoch: int, divisions: Sequence[Division], s: DivideMixSettings) -> float:
    """The weight of L_U in force in the epoch after `epoch` epochs: its mean over the steps of all nets."""
    from dividemix.algorithm.dividemix import num_steps
    from dividemix.algorithm.losses import ramp_up

    counts = [num_steps(division, s) for division in divisions]
    times = [epoch + step / count for count in counts for step in range(count)]
    return s.lambda_u * sum(ramp_up(time, s.warmup_epochs, s.rampup_epochs) for time in times) / len(times)


def by_term(terms: Sequence[dict[str, Tensor]]) -> dict[str, list[float]]:
    """Each loss term with its value for each net, read off the device once an epoch."""
    return {name: [net_terms[name].item() for net_terms in terms] for name in terms[0]}


METHOD = DivideMix()
