"""Abstention, DAC (Thulasidasan et al., ICML 2019): a net that may abstain finds the samples to leave out.

Stage 1 trains one more output, "abstain". With z the C + 1 logits, q the probability of abstaining and h the
cross-entropy over the C classes:

    learn:    CE over all C + 1 outputs
    abstain:  (1 - q) h - alpha log(1 - q),    log(1 - q) = logsumexp(z_1..z_C) - logsumexp(z_1..z_C+1)

t is a running mean, 0.05 new and 0.95 old, of (1 - q) h over all steps of stage 1. alpha begins at t / 64 and grows by
the same amount each epoch, to alpha_final in the last one. Stage 2 begins again, with the first weights, and trains by
cross-entropy without the samples whose given label the net of stage 1 did not predict.

Differences from the public code: the samples to leave out are found at the epoch of stage 1 with the best accuracy on
a tenth of the samples, which stage 1 does not train on and whose labels are as noisy as all, not on clean ones; they
are scored in evaluation mode; the momentum is kept between epochs; each stage has the whole learning rate schedule in
its share of the epochs.

The output "abstain" is one more row of the net's last linear layer. It exists only in training mode and is no part of
the net's own weights: predictions and the saved model have C outputs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.errors import DegenerateDivisionWarning, InputError
from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

HELD_OUT, DROPPED = "held_out", "dropped"  # State.samples: (N,) bool, of stage 1, and for stage 2
WEIGHT, BIAS = "abstain_weight", "abstain_bias"  # State.buffers: (1, D) and (1,), the row of the output "abstain"
MEAN_COST, FIRST_ALPHA, BEST = "mean_cost", "first_alpha", "best_accuracy"  # State.buffers: (1,), -1 before the first
_SHARE_HELD_OUT = 0.1


@dataclass(frozen=True, kw_only=True)
class AbstentionSettings(MethodSettings):
    """The lengths of the stages and the price of abstention."""

    first_share: float = setting(0.5, "share of the epochs of stage 1, which finds the samples to drop", low=0, high=1)
    learn_share: float = setting(0.1, "share of stage 1 before the net may abstain; 1 epoch or more", low=0, high=1)
    alpha_final: float = setting(1.0, "alpha in the last epoch of stage 1: the price of abstention", low=0)
    alpha_divisor: float = setting(64.0, "what the mean loss is divided by to get the first alpha", above=0)

    @property
    def first_epochs(self) -> int:
        """Epochs of stage 1."""
        return round(self.first_share * self.epochs)

    @property
    def learn_epochs(self) -> int:
        """L: epochs of stage 1 before the net may abstain."""
        return min(self.first_epochs, max(1, round(self.learn_share * self.first_epochs)))

    def alpha(self, first: Tensor, epoch: int) -> Tensor:
        """The price of abstention after `epoch` epochs, from the first one."""
        num_steps = self.first_epochs - 1 - self.learn_epochs
        return first + (self.alpha_final - first) * (epoch - self.learn_epochs) / max(num_steps, 1)


class Abstention(Method):
    """Learn to abstain, drop samples, and train again on the rest."""

    settings = AbstentionSettings

    def phases(self, s: AbstentionSettings) -> tuple[Phase, ...]:
        """Two phases of stage 1, then stage 2."""
        abstain = s.first_epochs - s.learn_epochs
        return (
            Phase("learn", s.learn_epochs, selects=False),
            Phase("abstain", abstain, selects=False, cost=1.3),
            Phase("retrain", s.epochs - s.first_epochs),
        )

    def start(self, state: State, sets: TrainingSets, s: AbstentionSettings) -> None:
        """Add the output "abstain", draw the samples that are held out, and make room for those that are dropped."""
        from dividemix.methods.last_layer import add_output, last_linear

        layer, num_samples = last_linear(state.nets[0]), len(sets.train.labels)
        bound = layer.in_features**-0.5  # as torch draws the other rows
        for name, shape in ((WEIGHT, (1, layer.in_features)), (BIAS, (1,))):
            drawn = bound * (2 * torch.rand(shape, generator=state.draws) - 1)
            state.buffers[name] = drawn.to(layer.weight).requires_grad_()
        state.learners[0].optimizer.add_param_group({"params": [state.buffers[WEIGHT], state.buffers[BIAS]]})
        add_output(layer, state.buffers[WEIGHT], state.buffers[BIAS])
        for name in (MEAN_COST, FIRST_ALPHA):
            state.buffers[name] = torch.full((1,), -1.0, device=layer.weight.device)
        state.buffers[BEST] = torch.full((1,), -1.0, dtype=torch.float64)
        order = torch.randperm(num_samples, generator=state.draws)
        state.samples[HELD_OUT] = order < int(_SHARE_HELD_OUT * num_samples)
        state.samples[DROPPED] = torch.zeros(num_samples, dtype=torch.bool)

    def epoch(self, state: State, sets: TrainingSets, s: AbstentionSettings) -> EpochReport:
        """An epoch of stage 1 or 2."""
        from dividemix.algorithm.warm_up import warm_up
        from dividemix.methods.part import Part
        from dividemix.methods.restart import keep_first_weights, restart, set_rate

        keep_first_weights(state)
        data, figures = sets.train, {}
        if state.epoch < s.first_epochs:
            set_rate(state, s, state.epoch, s.first_epochs)
            part = Part(data, (~state.samples[HELD_OUT]).nonzero().squeeze(1))
            loss_of = abstention_loss(state, s)
        else:
            if state.epoch == s.first_epochs:
                restart(state)
            set_rate(state, s, state.epoch - s.first_epochs, s.epochs - s.first_epochs)
            part = Part(data, _kept(state.samples[DROPPED]))

            def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
                return F.cross_entropy(logits[:, :-1], labels)  # without the output "abstain"

        terms = warm_up(state, 0, part, s, loss_of)
        if s.learn_epochs <= state.epoch < s.first_epochs:
            drop_wrong(state, data)
            figures["alpha"] = float(s.alpha(state.buffers[FIRST_ALPHA], state.epoch))
        figures["dropped"] = float(state.samples[DROPPED].float().mean())
        return EpochReport({"loss": [terms["loss"].item()]}, figures=figures)


def abstention_loss(state: State, s: AbstentionSettings) -> Callable[[Tensor, Tensor], Tensor]:
    """The loss of an epoch of stage 1, from logits (R, C + 1) and labels (R,). It updates t and the first alpha."""
    from dividemix.methods.last_layer import last_linear

    mean_cost, first_alpha = state.buffers[MEAN_COST], state.buffers[FIRST_ALPHA]
    begins, num_outputs = state.epoch == s.learn_epochs, last_linear(state.nets[0]).out_features + 1

    def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
        nonlocal begins
        if logits.shape[1] != num_outputs:
            raise InputError("the method adds an output to the last nn.Linear of the net, which must give its logits")
        cost, log_kept = abstention_terms(logits, labels)
        newest = cost.detach().mean()
        mean_cost.copy_(torch.where(mean_cost < 0, newest, 0.05 * newest + 0.95 * mean_cost))
        if state.epoch < s.learn_epochs:
            return F.cross_entropy(logits, labels)
        if begins:
            first_alpha.copy_(mean_cost / s.alpha_divisor)
            begins = False
        return (cost - s.alpha(first_alpha, state.epoch) * log_kept).mean()

    return loss_of


def abstention_terms(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """(1 - q) h and log(1 - q), (R,) each, from logits (R, C + 1)."""
    log_kept = logits[:, :-1].logsumexp(dim=1) - logits.logsumexp(dim=1)
    return log_kept.exp() * F.cross_entropy(logits[:, :-1], labels, reduction="none"), log_kept


def drop_wrong(state: State, data: TrainingData) -> None:
    """Drop the samples whose label the net does not predict, if it is the best net so far on those held out."""
    from dividemix.methods.evaluation import evaluate

    held_out, accuracy = state.samples[HELD_OUT].nonzero().squeeze(1), 0.0
    if len(held_out):
        seen = evaluate(state, data, held_out)
        accuracy = float((seen.losses <= seen.rival_losses).double().mean())
    if accuracy >= float(state.buffers[BEST]):
        state.buffers[BEST].fill_(accuracy)
        seen = evaluate(state, data, torch.arange(len(data.labels)))
        state.samples[DROPPED] = seen.rival_losses[0] < seen.losses[0]
    state.progress.lap("drop")


def _kept(dropped: Tensor) -> Tensor:
    """The indices of the samples that stage 2 trains on: all, if every one was dropped."""
    if dropped.all():
        warnings.warn("no given label was predicted: all samples are kept", DegenerateDivisionWarning, stacklevel=2)
        dropped = torch.zeros_like(dropped)
    return (~dropped).nonzero().squeeze(1)


METHOD = Abstention()

# The public code and its README (read): 20 of 200 epochs to learn, final alpha 1, divisor 64. The split of the epochs
# into two stages is ours: there both have the full length. No setting for Clothing1M and WebVision is published.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    name: {"learn_share": 0.1, "alpha_final": 1.0, "alpha_divisor": 64.0} for name in ("cifar10", "cifar100")
}
