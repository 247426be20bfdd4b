"""D2L (Ma et al., ICML 2018): blend labels with predictions once the features' dimensionality begins to rise.

The local intrinsic dimensionality (LID) of the features before the last layer falls while a net learns and rises when
it begins to memorise. Before epoch e, with r_1 <= ... <= r_k the distances of a sample to its k nearest neighbours
among 128 random training images:

    LID_e = mean over samples of -k / sum_j log(r_j / r_k + 1e-8)
    turn:   e >= first + w  and  LID_e - mean(LID_e-w..LID_e-1) > 2 std(LID_e-w..LID_e-1)

Until the turn the loss is cross-entropy. At the turn the net goes back one epoch. From then on, with T epochs in all:

    alpha_e = exp(-(e / T) LID_e / min_j<=e LID_j)
    loss    = CE(z, alpha_e y + (1 - alpha_e) onehot(argmax z))

Differences from the public code: cross-entropy before the turn, as published, not the symmetric cross-entropy that the
repository has now; going back really loads the weights that LID_e-1 was measured on, where the code reloads the
weights that it has, and forgets the momentum; samples without a finite LID do not count, and without any the last LID
is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dividemix.lazy import F, torch
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from dividemix.data.training_data import TrainingData
    from dividemix.engine.state import State

LIDS, TURN = "lids", "turn"  # State.buffers: (epochs,) float64, and (1,) int64: the turning epoch, -1 before it
_BEFORE = "before."  # State.buffers: the weights before the last epoch, until the turn
_NUM_BATCHES, _BATCH_SIZE = 10, 128  # of images that the LID is measured on


@dataclass(frozen=True, kw_only=True)
class D2LSettings(MethodSettings):
    """When labels are blended."""

    first_share: float = setting(
        1 / 3, "share of the epochs, at the start, whose dimensionality (LID) is not compared", low=0, high=1
    )
    lid_window: int = setting(5, "w: epochs whose LIDs the newest one is compared with", low=2)
    lid_neighbours: int = setting(20, "k: neighbours from which the LID is estimated", low=2, high=_BATCH_SIZE - 1)
    rollback: bool = setting(True, "go back one epoch at the turn")


class D2L(Method):
    """Ordinary training until the LID rises, then training on blended labels."""

    settings = D2LSettings

    def start(self, state: State, sets: TrainingSets, s: D2LSettings) -> None:
        """Make room for the LIDs and the turning epoch."""
        state.buffers[LIDS] = torch.zeros(0, dtype=torch.float64)
        state.buffers[TURN] = torch.tensor([-1])

    def epoch(self, state: State, sets: TrainingSets, s: D2LSettings) -> EpochReport:
        """Measure the LID, decide about the turn, and train."""
        from dividemix.algorithm.warm_up import warm_up

        lids = with_newest(state.buffers[LIDS], measured_lid(state, sets.train, s))
        state.buffers[LIDS] = lids
        state.progress.lap("lid")
        if state.buffers[TURN] < 0:
            if turns(lids, state.epoch, s):
                state.buffers[TURN].fill_(state.epoch)
                _go_back(state)
            elif s.rollback:
                _keep_weights(state)
        alpha = label_weight(lids, state.epoch, s) if state.buffers[TURN] >= 0 else 1.0
        terms = warm_up(state, 0, sets.train, s, lambda logits, labels: blended_loss(logits, labels, alpha))
        return EpochReport({"loss": [terms["loss"].item()]}, figures={"lid": float(lids[-1]), "alpha": alpha})


def measured_lid(state: State, data: TrainingData, s: D2LSettings) -> float:
    """The mean LID of random training images; NaN if no image has one. Leaves the net in evaluation mode."""
    from dividemix.methods.last_layer import features

    num_samples, net = len(data.labels), state.nets[0].eval()
    batches = [torch.randperm(num_samples, generator=state.draws)[:_BATCH_SIZE] for _ in range(_NUM_BATCHES)]
    lids = torch.cat([local_dimensions(features(net, x).double().cpu(), s.lid_neighbours) for x in data.plain(batches)])
    return float(lids[lids.isfinite()].mean())


def local_dimensions(features: Tensor, num_neighbours: int) -> Tensor:
    """The LID (n,) of each sample from features (n, D); at most n - 1 neighbours count, itself not among them."""
    n = len(features)
    distances = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(torch.inf)
    return dimensions(distances.topk(min(num_neighbours, n - 1), largest=False).values)


def dimensions(distances: Tensor) -> Tensor:
    """The LID (n,) of samples with these distances (n, k), ascending, to their neighbours; not finite if all equal."""
    if distances.shape[1] < 2:
        return torch.full_like(distances[:, :0].sum(dim=1), torch.nan)
    ratios = distances[:, :-1] / distances[:, -1:]  # the last one is 1, and its logarithm 0
    return -distances.shape[1] / torch.log(ratios + 1e-8).clamp(max=0).sum(dim=1)


def with_newest(lids: Tensor, newest: float) -> Tensor:
    """The LIDs (e,) and a new one: the last one again, or 1 without any, if it is not finite."""
    if not math.isfinite(newest) or newest <= 0:
        newest = float(lids[-1]) if len(lids) else 1.0
    return torch.cat([lids, lids.new_tensor([newest])])


def turns(lids: Tensor, epoch: int, s: D2LSettings) -> bool:
    """Whether the last of the LIDs, measured after `epoch` epochs, is far above those before it."""
    before = lids[-1 - s.lid_window : -1]
    if epoch < round(s.first_share * s.epochs) + s.lid_window or len(before) < s.lid_window:
        return False
    return bool(lids[-1] - before.mean() > 2 * before.std(correction=0))


def label_weight(lids: Tensor, epoch: int, s: D2LSettings) -> float:
    """alpha_e: how much the given label counts."""
    return math.exp(-epoch / s.epochs * float(lids[-1] / lids.min()))


def blended_loss(logits: Tensor, labels: Tensor, alpha: float) -> Tensor:
    """Cross-entropy with the given labels, weighed by alpha, and with the net's own predictions."""
    loss = F.cross_entropy(logits, labels)
    return loss if alpha == 1 else alpha * loss + (1 - alpha) * F.cross_entropy(logits, logits.argmax(dim=1))


def _keep_weights(state: State) -> None:
    """Keep the net as it is before this epoch, for the next one."""
    state.buffers |= {_BEFORE + name: tensor.clone() for name, tensor in state.nets[0].state_dict().items()}


def _go_back(state: State) -> None:
    """Give the net its weights before the last epoch, if they were kept, and forget them."""
    from dividemix.engine.state import under

    if before := under(_BEFORE, state.buffers):
        state.nets[0].load_state_dict(before)
        state.learners[0].optimizer.state.clear()
        state.buffers = {name: tensor for name, tensor in state.buffers.items() if not name.startswith(_BEFORE)}


METHOD = D2L()

# The public code (read): first 40 of 120 and 60 of 200 epochs, w 5, k 20, and the rate. Its third drop on CIFAR-100,
# after 160 epochs, is skipped. No setting for Clothing1M and WebVision is published.
PUBLISHED: dict[str, Mapping[str, Any]] = {
    "cifar10": {
        **{"first_share": 1 / 3, "lid_window": 5, "lid_neighbours": 20},
        **{"epochs": 120, "lr": 0.1, "lr_drop_epoch": 40, "lr_second_drop": 80},
    },
    "cifar100": {
        **{"first_share": 0.3, "lid_window": 5, "lid_neighbours": 20},
        **{"epochs": 200, "lr": 0.1, "lr_drop_epoch": 80, "lr_second_drop": 120},
    },
}
