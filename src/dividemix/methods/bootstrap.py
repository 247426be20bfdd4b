"""Bootstrap (Reed, Lee, Anguelov, Szegedy, Erhan, Rabinovich, 2015): labels mixed with the net's own predictions.

    soft: L = -sum_k [beta y + (1 - beta) p]_k log p_k = beta CE + (1 - beta) H(p)
    hard: the same with the most probable class in place of p inside the bracket

beta weighs the given label. The soft target is not detached: detached, its gradient is beta times that of
cross-entropy, and the method does nothing. The paper has one phase. The published rows of noisy CIFAR have an ordinary
phase of about 0.35 of the epochs before it, which warmup_share sets; 0 is the paper. There is no official code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dividemix.lazy import F
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.engine.state import State

_BETAS = {"soft": 0.95, "hard": 0.8}


@dataclass(frozen=True, kw_only=True)
class BootstrapSettings(MethodSettings):
    """The settings of bootstrap."""

    variant: Literal["soft", "hard"] = setting(
        "soft", "what a label is mixed with; soft: the predicted probabilities; hard: the most probable class"
    )
    beta: float | None = setting(
        None, "beta: weight of the given label; none: 0.95 for soft, 0.8 for hard", low=0, high=1
    )
    warmup_share: float = setting(0.35, "share of the epochs that train with the given labels first", low=0, high=1)

    @property
    def label_weight(self) -> float:
        """beta, as set or as the variant has it."""
        return _BETAS[self.variant] if self.beta is None else self.beta

    @property
    def num_warmup(self) -> int:
        """How many epochs train with the given labels."""
        return round(self.warmup_share * self.epochs)


class Bootstrap(Method):
    """Ordinary training, then with targets that the net helps to make."""

    settings = BootstrapSettings

    def phases(self, s: BootstrapSettings) -> tuple[Phase, ...]:
        """Warm-up, then bootstrap."""
        return Phase("warmup", s.num_warmup, selects=False), Phase("bootstrap", s.epochs - s.num_warmup)

    def epoch(self, state: State, sets: TrainingSets, s: BootstrapSettings) -> EpochReport:
        """An ordinary epoch with the loss of its phase."""
        from dividemix.algorithm.warm_up import warm_up

        def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
            return bootstrap_loss(logits, labels, s.variant, s.label_weight)

        warms_up = state.epoch < s.num_warmup
        terms = warm_up(state, 0, sets.train, s, F.cross_entropy if warms_up else loss_of)
        return EpochReport({"loss": [terms["loss"].item()]})


def bootstrap_loss(logits: Tensor, labels: Tensor, variant: str, beta: float) -> Tensor:
    """The loss of logits (R, C) with given labels (R,); the gradient passes through the soft target."""
    from dividemix.algorithm.losses import negative_entropy

    own = F.cross_entropy(logits, logits.argmax(dim=1)) if variant == "hard" else -negative_entropy(logits)
    return beta * F.cross_entropy(logits, labels) + (1 - beta) * own


# 0.95 is read in four re-implementations, 0.8 in two. The warm-up of 105 of 300 epochs and the rate are those of the
# code of Arazo et al., 2019, from which the published rows seem to come. Nothing is published for the other sets.
_CIFAR: Mapping[str, Any] = {
    "variant": "soft",
    "beta": 0.95,
    "warmup_share": 0.35,
    "epochs": 300,
    "lr": 0.1,
    "lr_drop_epoch": 100,
    "lr_second_drop": 250,
    "weight_decay": 1e-4,
}
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": _CIFAR, "cifar100": _CIFAR}
METHOD = Bootstrap()
