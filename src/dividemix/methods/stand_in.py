"""Samples with trusted labels, or a stand-in for them: the training samples that are most likely clean.

The stand-in is ours and is not published: it prefers easy samples, and it shares the mistakes of a whole class. It is
chosen once, by the net as it is when trusted samples are first needed. A report shows it as `trusted_stand_in`.

Shapes: N training samples.
"""

import math

import torch
from torch import Tensor

from dividemix.algorithm.sample_losses import sample_losses
from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.methods.method import TrainingSets

STAND_IN = "stand_in"  # State.samples: (N,) bool
_SHARE = 0.1  # of each class


def trusted_samples(state: State, sets: TrainingSets) -> tuple[TrainingData, Tensor]:
    """The data that has the trusted samples, and their indices in it."""
    if sets.trusted is not None:
        return sets.trusted, torch.arange(len(sets.trusted.labels))
    if STAND_IN not in state.samples:
        losses = sample_losses(state, sets.train, torch.arange(len(sets.train.labels)))
        state.samples[STAND_IN] = likely_clean(losses[0].cpu(), sets.train.labels.cpu())
    return sets.train, state.samples[STAND_IN].nonzero().squeeze(1)


def likely_clean(losses: Tensor, labels: Tensor) -> Tensor:
    """Which samples (N,) have the smallest losses (N,) of their class: a tenth of it, but at least one."""
    chosen = torch.zeros_like(labels, dtype=torch.bool)
    for label in labels.unique():
        members = (labels == label).nonzero().squeeze(1)
        order = losses[members].argsort(stable=True)
        chosen[members[order[: math.ceil(_SHARE * len(members))]]] = True
    return chosen


def stand_in_figures(sets: TrainingSets) -> dict[str, float]:
    """What a report says of the trusted samples."""
    return {} if sets.trusted is not None else {"trusted_stand_in": 1.0}
