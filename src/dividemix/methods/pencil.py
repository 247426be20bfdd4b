"""P-correction (PENCIL; Yi and Wu, CVPR 2019): labels that are learned together with the net.

    d = softmax(v), one v for each sample, at first 10 for its given label y and 0 for others
    given:   L = CE(f(x), y)
    correct: L = L_c / C + alpha L_o + beta L_e / C;   v <- v - lambda dL/dv
    final:   L = L_c / C, v fixed
    L_c = KL(p || d),  L_o = CE of softmax(d) with y,  L_e = H(p), each the mean over a step

Differences from the public code: the rate of the final stage is divided by 10 exactly, where the code rounds it down
to 0. v is changed in place, where the code sets samples that an epoch skips to 0. alpha is 1 / C by default: from
2 / C on, no label can flip, and the code's 0.4 is beyond that. As in the code, and unlike in the paper as recalled, L_o
takes the softmax of d once more: without it no label flips at 1 / C.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F
from dividemix.methods.method import EpochReport, Judgement, Method, Phase, TrainingSets
from dividemix.methods.three_stages import StagedSettings, three_phases
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

_LOGITS = "label_logits"  # State.samples: v (N, C) float32, once labels are corrected
_FIRST = 10.0  # v of the given label at first
_WHOLE_WAY = 40.0  # the sum of lambda / (B C) over a sample's visits: between 20 and 60 in most published settings


@dataclass(frozen=True, kw_only=True)
class PencilSettings(StagedSettings):
    """The settings of P-correction."""

    compatibility_weight: float | None = setting(
        None, "alpha: weight of the loss that keeps a label near the given one; none: 1 / classes", low=0
    )
    entropy_weight: float = setting(0.8, "beta: weight of the predictions' entropy", low=0)
    label_lr: float | None = setting(
        None, "lambda: learning rate of the labels; none: one at which most labels can flip in these epochs", low=0
    )


class Pencil(Method):
    """One net, and a label distribution for each sample that gradient descent corrects."""

    settings = PencilSettings

    def phases(self, s: PencilSettings) -> tuple[Phase, ...]:
        """The three stages."""
        return three_phases(s)

    def epoch(self, state: State, sets: TrainingSets, s: PencilSettings) -> EpochReport:
        """An epoch of one of the stages."""
        from dividemix.methods.ordinary_epoch import ordinary_epoch
        from dividemix.methods.soft_labels import share_changed

        net, given = state.nets[0], sets.train.labels
        corrects = s.num_before <= state.epoch < s.final_epoch

        def loss_of(index: Tensor, x: Tensor) -> Tensor:
            logits, labels = net(x), given[index]
            if state.epoch < s.num_before:
                return F.cross_entropy(logits, labels)
            num_classes = logits.shape[1]
            v = label_logits(state, given, num_classes)
            at_first = v[index].to(logits.dtype)
            if corrects:
                alpha = 1 / num_classes if s.compatibility_weight is None else s.compatibility_weight
                slope = label_gradient(logits.detach(), at_first, labels, alpha)
                rate = label_rate(s, len(given), num_classes)
                v.index_add_(0, index.to(v.device), slope.to(v.dtype), alpha=-rate)  # a sample may be there twice
            return pencil_loss(logits, at_first, s.entropy_weight if corrects else 0.0)

        def figures() -> dict[str, float]:
            return {"noise_rate": share_changed(state.samples[_LOGITS], given)} if corrects else {}

        return ordinary_epoch(state, sets.train, s, loss_of, figures)

    def judge(self, state: State, data: TrainingData, s: PencilSettings) -> Judgement:
        """The share of the given label in d."""
        from dividemix.methods.soft_labels import judge_by_soft_labels

        v = state.samples.get(_LOGITS)
        return judge_by_soft_labels(state, data, None if v is None else v.double().softmax(dim=1))


def label_logits(state: State, labels: Tensor, num_classes: int) -> Tensor:
    """The v (N, C) of all samples, on the device of the given labels (N,); made of them if there is none yet."""
    if _LOGITS not in state.samples:
        state.samples[_LOGITS] = _FIRST * F.one_hot(labels, num_classes).float()
    state.samples[_LOGITS] = state.samples[_LOGITS].to(labels.device)
    return state.samples[_LOGITS]


def label_rate(s: PencilSettings, num_samples: int, num_classes: int) -> float:
    """lambda: as set, or such that the steps of v have the usual length in all, however many epochs there are."""
    if s.label_lr is not None:
        return s.label_lr
    batch_size = 2 * s.batch_size
    visits = min(s.balanced_batches * batch_size / num_samples, 1.0) or 1.0  # of a sample in an epoch
    return _WHOLE_WAY * batch_size * num_classes / ((s.final_epoch - s.num_before) * visits)


def pencil_loss(logits: Tensor, v: Tensor, entropy_weight: float) -> Tensor:
    """(L_c + beta L_e) / C, what the net is trained with: logits and v (R, C)."""
    log_p, log_d = F.log_softmax(logits, dim=1), F.log_softmax(v, dim=1)
    p = log_p.exp()
    divergence, entropy = (p * (log_p - log_d)).sum(dim=1).mean(), -(p * log_p).sum(dim=1).mean()
    return (divergence + entropy_weight * entropy) / logits.shape[1]


def label_gradient(logits: Tensor, v: Tensor, labels: Tensor, alpha: float) -> Tensor:
    """dL/dv (R, C) for a step with logits and v (R, C) and given labels (R,)."""
    rows, num_classes = logits.shape
    d = v.softmax(dim=1)
    pull = d.softmax(dim=1) - F.one_hot(labels, num_classes)
    to_given = d * (pull - (d * pull).sum(dim=1, keepdim=True))
    return ((d - logits.softmax(dim=1)) / num_classes + alpha * to_given) / rows


# CIFAR-10: 30 % symmetric noise, read in a re-implementation; there lambda is 10,000 lr, and both grow with the noise.
# CIFAR-100: the same source; its alpha of 0.1 lets no label flip, so the default stays. Clothing1M: read in two
# re-implementations, which lower lr and lambda on the way: here their means. Nothing is published for WebVision.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "cifar10": {
        **{"epochs": 320, "lr": 0.03, "final_lr": 0.2, "weight_decay": 1e-4},
        **{"compatibility_weight": 0.1, "entropy_weight": 0.8, "label_lr": 300.0},
    },
    "cifar100": {
        **{"epochs": 320, "lr": 0.35, "final_lr": 0.2, "weight_decay": 1e-4},
        **{"entropy_weight": 0.4, "label_lr": 1000.0},
    },
    "clothing1m": {
        **{"epochs": 25, "batch_size": 16, "lr": 1.2e-3, "final_lr": 5e-4, "weight_decay": 1e-3},
        **{"correct_from": 0.2, "final_from": 0.6, "balanced_batches": 0},  # every sample once in an epoch
        **{"compatibility_weight": 0.08, "entropy_weight": 0.8, "label_lr": 1750.0},
    },
}
METHOD = Pencil()
