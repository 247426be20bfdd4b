"""Co-teaching+ (Yu et al., ICML 2019): Co-teaching on the samples about which the two nets disagree.

After E_init epochs of Co-teaching, a step uses only D, the samples of the batch for which the nets predict different
classes: of them k = max(1, floor(R(e) |D|)) are exchanged as in Co-teaching. Without disagreement, no net moves.

Differences from the public code: logits, not probabilities, go into the cross-entropy; the mean loss is not divided by
k a second time; D is a mask, so no sample is lost; an empty D never means the whole batch, and few samples to keep
never mean all of D. The rest is as in co_teaching.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.methods import co_teaching
from dividemix.methods.method import EpochReport, Method, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class CoTeachingPlusSettings(co_teaching.CoTeachingSettings):
    """Those of Co-teaching, and how long that lasts."""

    co_teaching_share: float = setting(
        0.1,
        "share of the epochs of plain Co-teaching, before only disagreement trains; 0, or 1 epoch or more",
        low=0,
        high=1,
    )

    @property
    def co_teaching_epochs(self) -> int:
        """E_init."""
        return max(1, round(self.co_teaching_share * self.epochs)) if self.co_teaching_share else 0


class CoTeachingPlus(Method):
    """Each net learns from samples of disagreement that the other one finds easy."""

    settings = CoTeachingPlusSettings

    def num_nets(self, s: CoTeachingPlusSettings) -> int:
        """Two."""
        return 2

    def phases(self, s: CoTeachingPlusSettings) -> tuple[Phase, ...]:
        """Co-teaching, then disagreement."""
        first = s.co_teaching_epochs
        return Phase("co_teaching", first, selects=False, cost=2.0), Phase("disagreement", s.epochs - first, cost=2.0)

    def start(self, state: State, sets: TrainingSets, s: CoTeachingPlusSettings) -> None:
        """Make room for the estimate of the noise rate."""
        co_teaching.METHOD.start(state, sets, s)

    def epoch(self, state: State, sets: TrainingSets, s: CoTeachingPlusSettings) -> EpochReport:
        """Both nets on the same batches, each with the other's choice among the disagreement."""
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.two_nets import count, disagree, exchanged_losses, train_both

        if state.epoch < s.co_teaching_epochs:
            return co_teaching.METHOD.epoch(state, sets, s)
        kept = 1 - co_teaching.dropped_share(state, sets.train, s)
        batches, num_disagreed = ordinary_batches(state, sets.train, s), 0

        def losses_of(logits: list[Tensor], labels: Tensor) -> list[Tensor | None]:
            nonlocal num_disagreed
            differs = disagree(logits)
            num_disagreed += (number := int(differs.sum()))
            if number == 0:
                return [None, None]
            return [*exchanged_losses([own[differs] for own in logits], labels[differs], count(kept, number))]

        losses = train_both(state, sets.train, batches, losses_of)
        figures = {"noise_rate": co_teaching.noise_rate(state, s), "kept": kept}
        return EpochReport(losses, figures=figures | {"disagreement": num_disagreed / batches.numel()})


METHOD = CoTeachingPlus()

# The official code (read): E_init 20 and 5 of 200 epochs, E_k 10. No setting for Clothing1M and WebVision is published.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "cifar10": {"ramp_share": 0.05, "co_teaching_share": 0.1},
    "cifar100": {"ramp_share": 0.05, "co_teaching_share": 0.025},
}
