"""A running mean of a net's weights, which predicts in the net's place."""

import math

import torch

from dividemix.engine.acceleration import copied
from dividemix.engine.state import Learner


def start_average(learner: Learner) -> None:
    """Give the learner a running mean, which is the net itself before the first step."""
    learner.average = copied(learner.net).requires_grad_(False)


def follow(learner: Learner, num_steps: float) -> None:
    """Move the running mean towards the net after a step, such that about `num_steps` steps are averaged.

    BatchNorm's statistics are averaged, too.
    """
    assert learner.average is not None
    share = 1 - math.exp(-1 / num_steps) if num_steps else 1.0
    with torch.no_grad():
        named = learner.net.state_dict()
        for name, mean in learner.average.state_dict().items():
            if mean.is_floating_point():
                mean.lerp_(named[name], share)
            else:
                mean.copy_(named[name])
