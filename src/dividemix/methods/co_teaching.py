"""Co-teaching (Han et al., NeurIPS 2018): two nets choose samples with small losses for each other.

In every batch each net ranks the samples by its cross-entropy with the given labels. The k of smallest loss train the
*other* net; the rest is dropped. With tau the noise rate, e the epochs done and E_k the length of the ramp:

    R(e) = 1 - tau min(e / E_k, 1),    k = max(1, floor(R(e) R)) of R samples

Differences from the public code: the mean loss is not divided by k a second time, which under SGD would shrink the
learning rate; SGD with the schedule of all methods replaces Adam; tau is estimated at the start of each epoch of the
ramp and after it, unless it is given; the nets predict together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

NOISE_RATE = "noise_rate"  # State.buffers: (1,) float32, the estimate


@dataclass(frozen=True, kw_only=True)
class CoTeachingSettings(MethodSettings):
    """The noise rate and how fast it takes effect."""

    noise_rate: float | None = setting(None, "tau: share of wrong labels; estimated if it is not set", low=0, high=1)
    ramp_share: float = setting(
        0.05,
        "share of the epochs over which the dropped share grows from 0 to noise_rate; 2 epochs or more",
        low=0,
        high=1,
    )

    @property
    def ramp_epochs(self) -> int:
        """E_k."""
        return max(2, round(self.ramp_share * self.epochs))


class CoTeaching(Method):
    """Each net learns from the samples that the other one finds easy."""

    settings = CoTeachingSettings

    def num_nets(self, s: CoTeachingSettings) -> int:
        """Two."""
        return 2

    def phases(self, s: CoTeachingSettings) -> tuple[Phase, ...]:
        """The ramp, then training with the full share dropped."""
        ramp = min(s.ramp_epochs, s.epochs)
        return Phase("ramp", ramp, selects=False, cost=2.0), Phase("train", s.epochs - ramp, cost=2.0)

    def start(self, state: State, sets: TrainingSets, s: CoTeachingSettings) -> None:
        """Make room for the estimate of the noise rate."""
        if s.noise_rate is None:
            state.buffers[NOISE_RATE] = torch.zeros(1)

    def epoch(self, state: State, sets: TrainingSets, s: CoTeachingSettings) -> EpochReport:
        """Both nets on the same batches, each with the other's choice."""
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.two_nets import count, exchanged_losses, train_both

        kept = 1 - dropped_share(state, sets.train, s)

        def losses_of(logits: list[Tensor], labels: Tensor) -> list[Tensor]:
            return exchanged_losses(logits, labels, count(kept, len(labels)))

        losses = train_both(state, sets.train, ordinary_batches(state, sets.train, s), losses_of)
        return EpochReport(losses, figures={"noise_rate": noise_rate(state, s), "kept": kept})


def dropped_share(state: State, data: TrainingData, s: CoTeachingSettings) -> float:
    """1 - R(e). The estimate of the noise rate is made anew until the ramp ends."""
    from dividemix.methods.noise_estimate import estimated_noise_rate

    if s.noise_rate is None and 0 < state.epoch <= s.ramp_epochs:
        state.buffers[NOISE_RATE].fill_(estimated_noise_rate(state, data))
        state.progress.lap("noise_rate")
    return noise_rate(state, s) * min(state.epoch / s.ramp_epochs, 1.0)


def noise_rate(state: State, s: CoTeachingSettings) -> float:
    """tau: as given, or the last estimate."""
    return float(state.buffers[NOISE_RATE]) if s.noise_rate is None else s.noise_rate


METHOD = CoTeaching()

# The official code: 10 of 200 epochs (read). Its net, Adam and views differ from the paper's common setting, and tau is
# the true noise rate, which is estimated here. No setting is published for Clothing1M and WebVision.
PUBLISHED: dict[str, Mapping[str, Any]] = {name: {"ramp_share": 0.05} for name in ("cifar10", "cifar100")}
