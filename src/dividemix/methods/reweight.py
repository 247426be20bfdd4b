"""Reweight, or L2RW (Ren, Zeng, Yang, Urtasun, ICML 2018): samples count as far as their gradients help trusted ones.

In each step, g_v is the gradient of the mean loss of a trusted batch. Sample i gets the weight max(0, <grad l_i, g_v>),
divided by the sum over the batch; all weights are 0 if that sum is. The step descends sum_i w_i l_i. This is the
paper's unrolled step: -dL_v/d epsilon_i at epsilon = 0, where the inner learning rate cancels.

Differences from the released code: the products are one forward-mode derivative along g_v, not a double backward pass;
the trusted loss has no weight decay in it; ordinary training may come first (`warmup_share`, 0 in the paper); all
forwards of a step have the same dropout; without trusted samples there is a stand-in (stand_in.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods import cross_entropy
from dividemix.methods.method import EpochReport, Method, MethodSettings, Phase, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from dividemix.engine.state import State

# The released code for WRN-28-10, 60,000 steps. The paper has 1000 trusted samples, the code 100 by default. Nothing is
# published for the other sets.
_CIFAR: Mapping[str, Any] = {
    "epochs": 120,
    "batch_size": 50,
    "lr": 0.1,
    "lr_drop_epoch": 80,
    "lr_second_drop": 100,
    "weight_decay": 2e-4,
    "warmup_share": 0.0,
}
PUBLISHED: dict[str, Mapping[str, Any]] = {"cifar10": _CIFAR, "cifar100": _CIFAR}


@dataclass(frozen=True, kw_only=True)
class ReweightSettings(MethodSettings):
    """One setting, for the stand-in."""

    warmup_share: float = setting(
        0.1, "share of the epochs of ordinary training first; a stand-in for trusted samples needs some", low=0, high=1
    )


class Reweight(Method):
    """Each step weighs its samples by a batch of trusted ones."""

    settings = ReweightSettings
    uses_trusted: Mapping[str, Any] | None = {}
    double_backward = True  # it differentiates forwards, which compiled nets and our own kernels do not offer

    def phases(self, s: ReweightSettings) -> tuple[Phase, ...]:
        """Ordinary training, for an epoch at least if it has a share, then reweighted training, for one at least."""
        num_warmup = min(max(round(s.warmup_share * s.epochs), int(s.warmup_share > 0)), s.epochs - 1)
        phases = Phase("warmup", num_warmup, selects=False), Phase("reweight", s.epochs - num_warmup, cost=3.0)
        return tuple(phase for phase in phases if phase.num_epochs)

    def epoch(self, state: State, sets: TrainingSets, s: ReweightSettings) -> EpochReport:
        """An ordinary epoch, or one in which every step has its own weights."""
        from dividemix.data.draw import draw
        from dividemix.methods.loop import phase_at
        from dividemix.methods.ordinary_epoch import ordinary_batches
        from dividemix.methods.stand_in import stand_in_figures, trusted_samples

        if phase_at(self.phases(s), state.epoch).name == "warmup":
            return cross_entropy.METHOD.epoch(state, sets, s)
        trusted, trusted_index = trusted_samples(state, sets)
        learner, labels = state.learners[0], sets.train.labels
        net = learner.net.train()
        batches = ordinary_batches(state, sets.train, s)
        trusted_batches = draw(trusted_index, len(batches), 2 * s.batch_size, state.draws)
        views = sets.train.augmented(batches, state.views), trusted.augmented(trusted_batches, state.views)
        steps = zip(batches, trusted_batches, *views, strict=True)
        total = torch.zeros((), device=labels.device)
        for index, trusted_rows, x, trusted_x in state.progress.watch("reweight", steps, len(batches)):
            w = weights(net, x, labels[index], trusted_x, trusted.labels[trusted_rows])
            state.progress.lap("weights")
            loss = (w * F.cross_entropy(net(x), labels[index], reduction="none")).sum()
            learner.descend(loss)
            total += loss.detach()
            state.progress.lap("forward_backward")
        return EpochReport({"loss": [(total / len(batches)).item()]}, figures=stand_in_figures(sets))


def weights(net: nn.Module, x: Tensor, labels: Tensor, trusted_x: Tensor, trusted_labels: Tensor) -> Tensor:
    """The weight (B,) of each sample x (B, ...): at least 0, with sum 1 or all 0. The net stays as it is."""
    from dividemix.engine.acceleration import in_float32

    net = in_float32(net)  # torch cannot differentiate forwards in bfloat16 on a CPU
    parameters = {name: parameter.detach() for name, parameter in net.named_parameters() if parameter.requires_grad}

    def losses(parameters: dict[str, Tensor], x: Tensor, labels: Tensor, reduction: str) -> Tensor:
        # The running statistics of BatchNorm change in copies.
        values = parameters | {name: buffer.clone() for name, buffer in net.named_buffers()}
        # The same dropout in all forwards of a step, and none of them moves the generator.
        with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
            return F.cross_entropy(torch.func.functional_call(net, values, (x,)), labels, reduction=reduction)

    direction = torch.func.grad(lambda p: losses(p, trusted_x, trusted_labels, "mean"))(parameters)
    products: Tensor = torch.func.jvp(lambda p: losses(p, x, labels, "none"), (parameters,), (direction,))[1]
    positive = products.clamp(min=0)
    return positive / positive.sum().clamp(min=torch.finfo(positive.dtype).tiny)


METHOD = Reweight()
