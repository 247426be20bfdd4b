"""Line 2 of Algorithm 1: an epoch of ordinary training on all samples with their given labels."""

from collections.abc import Callable

import torch
from torch import Tensor

from dividemix.data.draw import epoch_batches
from dividemix.data.training_data import TrainingData
from dividemix.engine.settings import ScheduleSettings
from dividemix.engine.state import State


def warm_up(
    state: State, k: int, data: TrainingData, s: ScheduleSettings, loss_of: Callable[[Tensor, Tensor], Tensor]
) -> dict[str, Tensor]:
    """Train net k for one epoch; `loss_of` takes logits (2 B, C) and given labels (2 B,). Returns the mean loss."""
    learner = state.learners[k]
    net = learner.net.train()
    batches = epoch_batches(data.labels, s.balanced_batches, 2 * s.batch_size, state.draws)
    total = torch.zeros((), device=data.labels.device)
    images = data.augmented(batches, state.views)
    for index, x in state.progress.watch(f"warm-up {k + 1}", zip(batches, images, strict=True), len(batches)):
        loss = loss_of(net(x), data.labels[index])
        learner.descend(loss)
        total += loss.detach()
        state.progress.lap("forward_backward")
    return {"loss": total / len(batches)}
