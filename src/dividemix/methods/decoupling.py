"""Decoupling (Malach & Shalev-Shwartz, NeurIPS 2017): two nets learn only where they disagree.

Disagreement decides when to update, the ordinary loss decides how. With R samples in a batch and w_i = 1 where the
nets predict different classes (everywhere during warm-up), each net's loss is

    sum_i w_i CE_i / max(0.1 R, sum_i w_i)

so a few samples never make a full step. Without any, no net moves.

Differences from the public code: its weights for two unequal classes are not part of the method, and warm-up counts
epochs, not steps. The variant that collects a full batch of disagreement first is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.engine.state import State

_LEAST = 0.1  # share of a batch by which a sum of losses is divided at least


@dataclass(frozen=True, kw_only=True)
class DecouplingSettings(MethodSettings):
    """How long both nets learn from all samples."""

    warmup_share: float = setting(
        0.1, "share of the epochs of ordinary training, before disagreement; 0, or 1 epoch or more", low=0, high=1
    )

    @property
    def num_warmup(self) -> int:
        """Epochs of ordinary training."""
        return max(1, round(self.warmup_share * self.epochs)) if self.warmup_share else 0


class Decoupling(Method):
    """Both nets learn from the samples about which they disagree."""

    settings = DecouplingSettings

    def num_nets(self, s: DecouplingSettings) -> int:
        """Two."""
        return 2

    def phases(self, s: DecouplingSettings) -> tuple[Phase, ...]:
        """Warm-up, then disagreement."""
        warm_up = Phase("warmup", s.num_warmup, selects=False, cost=2.0)
        return warm_up, Phase("disagreement", s.epochs - s.num_warmup, cost=2.0)

    def epoch(self, state: State, sets: TrainingSets, s: DecouplingSettings) -> EpochReport:
        """Both nets on the same batches, of which they use the disagreement."""
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.two_nets import disagree, train_both

        batches, num_disagreed = ordinary_batches(state, sets.train, s), 0

        def losses_of(logits: list[Tensor], labels: Tensor) -> list[Tensor | None]:
            nonlocal num_disagreed
            differs = disagree(logits)
            num_disagreed += int(differs.sum())
            return disagreement_losses(
                logits, labels, torch.ones_like(differs) if state.epoch < s.num_warmup else differs
            )

        losses = train_both(state, sets.train, batches, losses_of)
        return EpochReport(losses, figures={"disagreement": num_disagreed / batches.numel()})


def disagreement_losses(logits: list[Tensor], labels: Tensor, used: Tensor) -> list[Tensor | None]:
    """Each net's loss from its logits (R, C) on the samples that are used (R,); None without any."""
    number = int(used.sum())
    if number == 0:
        return [None] * len(logits)
    divisor = max(_LEAST * len(labels), number)
    return [F.cross_entropy(own[used], labels[used], reduction="sum") / divisor for own in logits]


METHOD = Decoupling()

# Nothing is published for the four data sets. The paper's warm-up of 5000 of 15000 steps, on another set, is recalled;
# the default of a tenth is our choice.
PUBLISHED: dict[str, Mapping[str, Any]] = {}
