"""Mixup (Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018): train on mixed pairs of samples and their labels.

    lambda ~ Beta(alpha, alpha), one for a step; pi a random permutation of its samples
    x' = lambda x + (1 - lambda) x_pi
    L  = lambda CE(f(x'), y) + (1 - lambda) CE(f(x'), y_pi)

Differences from the public code: alpha is 32, the value for noisy labels, where the code's default of 1 is for clean
ones. Unlike in MixMatch, lambda may be below 1/2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dividemix.engine.state import State


@dataclass(frozen=True, kw_only=True)
class MixupSettings(MethodSettings):
    """The settings of mixup."""

    alpha: float = setting(32.0, "alpha: parameter of mixup's Beta distribution; 0: nothing is mixed", low=0)


class Mixup(Method):
    """One net, one phase, every step on mixed samples."""

    settings = MixupSettings

    def epoch(self, state: State, sets: TrainingSets, s: MixupSettings) -> EpochReport:
        """An ordinary epoch on mixed samples."""
        from dividemix.methods.ordinary_epoch import ordinary_epoch

        net, labels = state.nets[0], sets.train.labels

        def loss_of(index: Tensor, x: Tensor) -> Tensor:
            partner, lam = draw_mixing(len(index), s.alpha, state.draws)
            given = labels[index]
            mixed = torch.lerp(x[partner], x, lam)
            return mixed_loss(net(mixed), given, given[partner], lam)

        return ordinary_epoch(state, sets.train, s, loss_of)


def draw_mixing(num_rows: int, alpha: float, generator: Generator) -> tuple[Tensor, float]:
    """Each row's partner (R,), and lambda; with alpha 0 every row is its own partner and nothing is drawn."""
    import numpy as np

    if alpha == 0:
        return torch.arange(num_rows), 1.0
    partner = torch.randperm(num_rows, generator=generator)
    # torch samples Beta from its global generator only: numpy samples it from a seed that ours gives.
    seed = int(torch.randint(2**62, (), generator=generator))
    return partner, float(np.random.default_rng(seed).beta(alpha, alpha))


def mixed_loss(logits: Tensor, labels: Tensor, partner_labels: Tensor, lam: float) -> Tensor:
    """Cross-entropy of logits (R, C) with both labels (R,), weighed by lambda."""
    return lam * F.cross_entropy(logits, labels) + (1 - lam) * F.cross_entropy(logits, partner_labels)


# The public code trains CIFAR for 200 epochs at a rate of 0.1, divided by 10 after 100 and 150, with weight decay 1e-4
# (read there). The noisy-label row uses alpha 32 (read in the code of Arazo et al., 2019). Nothing is published for
# Clothing1M and WebVision.
_CIFAR: Mapping[str, Any] = {
    **{"alpha": 32.0, "epochs": 200, "lr": 0.1, "lr_drop_epoch": 100, "lr_second_drop": 150, "weight_decay": 1e-4}
}
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": _CIFAR, "cifar100": _CIFAR}
METHOD = Mixup()
