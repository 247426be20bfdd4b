"""The batches of an ordinary epoch, and an epoch of one net whose loss knows which samples a step has."""

from collections.abc import Callable

import torch
from torch import Tensor

from dividemix.data.draw import epoch_batches
from dividemix.data.training_data import TrainingData
from dividemix.engine.settings import ScheduleSettings
from dividemix.engine.state import State
from dividemix.methods.method import EpochReport


def ordinary_batches(state: State, data: TrainingData, s: ScheduleSettings) -> Tensor:
    """The batches (number, 2 B) of an ordinary epoch, all full: the same draws as those of `warm_up`."""
    return epoch_batches(data.labels, s.balanced_batches, 2 * s.batch_size, state.draws)


def ordinary_epoch(
    state: State,
    data: TrainingData,
    s: ScheduleSettings,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    figures: Callable[[], dict[str, float]] = dict,
) -> EpochReport:
    """Train the first net with the batches and views of ordinary training, and report the mean loss.

    `loss_of` takes the samples (2 B,) of a step and their views (2 B, ...). `figures` is asked after the last step.
    """
    learner, batches = state.learners[0], ordinary_batches(state, data, s)
    learner.net.train()
    total = torch.zeros((), device=data.labels.device)
    images = data.augmented(batches, state.views)
    for index, x in state.progress.watch("net 1", zip(batches, images, strict=True), len(batches)):
        loss = loss_of(index, x)
        learner.descend(loss)
        total += loss.detach()
        state.progress.lap("forward_backward")
    return EpochReport({"loss": [(total / len(batches)).item()]}, figures=figures())
