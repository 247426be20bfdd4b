"""An epoch in which two nets see the same batches, and the exchange of samples with small losses.

Shapes: R samples in a batch, C classes.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State

# From both nets' logits, (R, C) each, and the given labels (R,) to both nets' losses; None: the net makes no step.
LossesOf = Callable[[list[Tensor], Tensor], Sequence[Tensor | None]]


def train_both(state: State, data: TrainingData, batches: Tensor, losses_of: LossesOf) -> dict[str, list[float]]:
    """Train both nets on the same views of the batches (number, R). Returns the mean loss of each.

    Both losses are computed before either net moves.
    """
    nets = [net.train() for net in state.nets]
    totals = torch.zeros(len(nets), device=data.labels.device)
    images = data.augmented(batches, state.views)
    for index, x in state.progress.watch("both nets", zip(batches, images, strict=True), len(batches)):
        losses = losses_of([net(x) for net in nets], data.labels[index])
        for k, loss in enumerate(losses):
            if loss is not None:
                state.learners[k].descend(loss)
                totals[k] += loss.detach()
        state.progress.lap("forward_backward")
    return {"loss": (totals / len(batches)).tolist()}


def exchanged_losses(logits: Sequence[Tensor], labels: Tensor, num_kept: int) -> list[Tensor]:
    """Each net's mean loss on the `num_kept` samples whose losses by the *other* net are smallest (Co-teaching)."""
    chosen = [smallest(F.cross_entropy(own.detach(), labels, reduction="none"), num_kept) for own in logits]
    return [F.cross_entropy(own[i], labels[i]) for own, i in zip(logits, reversed(chosen), strict=True)]


def smallest(losses: Tensor, number: int) -> Tensor:
    """The indices of so many smallest losses (R,), ascending."""
    return losses.topk(number, largest=False).indices.sort().values


def count(share: float, total: int) -> int:
    """That share of a total, rounded down, and at least 1: a rounding error of the share loses nothing."""
    return max(1, math.floor(share * total + 1e-9))


def disagree(logits: Sequence[Tensor]) -> Tensor:
    """(R,): for which samples the two nets predict different classes."""
    first, second = (own.argmax(dim=1) for own in logits)
    return first != second
