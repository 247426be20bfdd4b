"""Joint-Optim (Tanaka, Ikami, Yamasaki, Aizawa, CVPR 2018): labels replaced by the net's averaged predictions.

    L   = L_c + alpha L_p + beta L_e
    L_c = -sum_c y_c log p_c              y: the soft label
    L_p = sum_c pi_c log(pi_c / q_c)      q: the mean prediction of the step, pi: uniform
    L_e = -sum_c p_c log p_c

With a high, constant rate the net learns before it memorises: on CIFAR, lr should be 0.03 to 0.1. After each epoch of
the second stage, and the last one of the first, y is the mean of its predictions in the last epochs. They are those of
the training steps. In the final stage the net starts again and learns the labels y, with L_c alone.

Differences from the public code: the mean is over the epochs that a sample has been in, where the code divides by ten
even if there were fewer. It trains on all samples, where the code holds some with true labels out. The final stage
starts from the first weights, not from others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Judgement, Method, Phase, TrainingSets
from dividemix.methods.three_stages import StagedSettings, three_phases
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

_RECENT = "recent_probs"  # State.samples: (N, W, C) float32, a ring of the predictions in the last W epochs
_NUM_SEEN = "num_seen"  # State.samples: (N,), how many epochs with a prediction a sample has been in
_SOFT = "soft_labels"  # State.samples: (N, C) float32, once labels are corrected


@dataclass(frozen=True, kw_only=True)
class JointOptimSettings(StagedSettings):
    """The settings of joint optimisation."""

    prior_weight: float = setting(1.2, "alpha: weight of the loss against predicting few classes", low=0)
    entropy_weight: float = setting(0.8, "beta: weight of the predictions' entropy", low=0)
    window: int = setting(10, "epochs whose predictions are averaged to a label", low=1)


class JointOptim(Method):
    """One net, trained on labels that it corrects, then again on the corrected ones."""

    settings = JointOptimSettings

    def phases(self, s: JointOptimSettings) -> tuple[Phase, ...]:
        """The three stages; the predictions of the first one's last epochs are the first corrected labels."""
        given, *others = three_phases(s)
        return replace(given, prepares=s.window), *others

    def epoch(self, state: State, sets: TrainingSets, s: JointOptimSettings) -> EpochReport:
        """An epoch of one of the stages."""
        from dividemix.methods.restart import keep_first_weights, restart

        keep_first_weights(state)
        if state.epoch < s.final_epoch:
            return _correcting_epoch(state, sets.train, s)
        if state.epoch == s.final_epoch:
            restart(state)
            for name in (_RECENT, _NUM_SEEN):
                state.samples.pop(name, None)
        return _final_epoch(state, sets.train, s)

    def judge(self, state: State, data: TrainingData, s: JointOptimSettings) -> Judgement:
        """The share of the given label in the soft label."""
        from dividemix.methods.soft_labels import judge_by_soft_labels

        return judge_by_soft_labels(state, data, state.samples.get(_SOFT))


def _correcting_epoch(state: State, data: TrainingData, s: JointOptimSettings) -> EpochReport:
    """An epoch with the whole loss, and labels that are corrected after it if it is late enough."""
    from dividemix.algorithm.losses import loss_reg, negative_entropy
    from dividemix.methods.ordinary_epoch import ordinary_epoch
    from dividemix.methods.soft_labels import share_changed

    net, label_loss = state.nets[0], _label_loss(state, data)
    is_recorded = state.epoch + s.window >= s.num_before  # earlier predictions have left the ring by then
    seen: dict[str, Tensor] = {}

    def loss_of(index: Tensor, x: Tensor) -> Tensor:
        logits = net(x)
        if is_recorded:
            if not seen:
                seen["probs"] = logits.new_zeros(len(data.labels), logits.shape[1], dtype=torch.float32)
            seen["probs"][index] = logits.detach().softmax(dim=1).float()
        return (
            label_loss(logits, index) + s.prior_weight * loss_reg(logits) - s.entropy_weight * negative_entropy(logits)
        )

    def figures() -> dict[str, float]:
        if is_recorded:
            record(state.samples, seen["probs"].cpu(), s.window)
        if state.epoch + 1 < s.num_before:
            return {}
        state.samples[_SOFT] = corrected(state.samples, data.labels.cpu())
        return {"noise_rate": share_changed(state.samples[_SOFT], data.labels.cpu())}

    return ordinary_epoch(state, data, s, loss_of, figures)


def _final_epoch(state: State, data: TrainingData, s: JointOptimSettings) -> EpochReport:
    """An ordinary epoch with the corrected labels."""
    from dividemix.methods.ordinary_epoch import ordinary_epoch

    net, label_loss = state.nets[0], _label_loss(state, data)
    return ordinary_epoch(state, data, s, lambda index, x: label_loss(net(x), index))


def _label_loss(state: State, data: TrainingData) -> Callable[[Tensor, Tensor], Tensor]:
    """L_c as a function of logits (R, C) and their samples (R,): with soft labels, or before them the given ones."""
    from dividemix.algorithm.losses import loss_x

    if _SOFT not in state.samples:
        return lambda logits, index: F.cross_entropy(logits, data.labels[index])
    soft = state.samples[_SOFT].to(data.labels.device)
    return lambda logits, index: loss_x(logits, soft[index].to(logits.dtype))


def record(samples: dict[str, Tensor], probs: Tensor, window: int) -> None:
    """Put the predictions (N, C) of an epoch into the ring; a row of zeros is a sample that the epoch did not have."""
    num_samples, num_classes = probs.shape
    if _RECENT not in samples:
        samples[_RECENT] = torch.zeros(num_samples, window, num_classes)
        samples[_NUM_SEEN] = torch.zeros(num_samples, dtype=torch.int64)
    present = probs.any(dim=1).nonzero().squeeze(1)
    samples[_RECENT][present, samples[_NUM_SEEN][present] % window] = probs[present]
    samples[_NUM_SEEN][present] += 1


def corrected(samples: Mapping[str, Tensor], labels: Tensor) -> Tensor:
    """Soft labels (N, C): the mean of each sample's recent predictions; its given label if there are none."""
    recent, num_seen = samples[_RECENT], samples[_NUM_SEEN]
    _, window, num_classes = recent.shape
    mean = recent.double().sum(dim=1) / num_seen.clamp(1, window)[:, None]
    return torch.where(num_seen[:, None] > 0, mean, F.one_hot(labels, num_classes).double()).float()


# CIFAR-10 with 70 % symmetric noise, read in the public README; 40 % asymmetric noise has lr 0.03, alpha 0.8, beta 0.4.
# The values for Clothing1M, 10 + 10 epochs of all images, are recalled, not verified. Nothing is published for
# CIFAR-100 and WebVision.
_WEIGHTS: Mapping[str, Any] = {"prior_weight": 1.2, "entropy_weight": 0.8}
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "cifar10": {**_WEIGHTS, "epochs": 320, "lr": 0.08, "final_lr": 0.2, "weight_decay": 1e-4},
    "clothing1m": {
        **{**_WEIGHTS, "lr": 8e-4, "final_lr": 5e-4, "epochs": 20, "final_from": 0.5},
        "balanced_batches": 0,  # a label changes only when its sample is drawn
    },
}
METHOD = JointOptim()
