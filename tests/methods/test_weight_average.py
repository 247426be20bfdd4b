"""The running mean of the weights. Oracle: the weighted sum over all steps, written out."""

import math

import torch
from tiny import TinyNet, weights_of

from dividemix.engine.settings import ScheduleSettings
from dividemix.engine.state import Learner
from dividemix.methods.weight_average import follow, start_average


def test_the_mean_weighs_each_step_by_its_age_and_is_the_net_before_the_first() -> None:
    learner = Learner.start(TinyNet(seed=1), ScheduleSettings())
    start_average(learner)
    assert learner.average is not None
    steps = [weights_of(learner.net)]
    generator = torch.Generator().manual_seed(0)
    for _ in range(5):
        with torch.no_grad():
            for tensor in learner.net.state_dict().values():
                tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=torch.float64) + 3)
        steps.append(weights_of(learner.net))
        follow(learner, 3.0)
    keep = math.exp(-1 / 3)
    for name, mean in learner.average.state_dict().items():
        if mean.is_floating_point():  # BatchNorm's statistics, too
            expected = keep**5 * steps[0][name]
            for age, weights in enumerate(reversed(steps[1:])):
                expected = expected + (1 - keep) * keep**age * weights[name]
            torch.testing.assert_close(mean, expected)
        else:
            assert torch.equal(mean, steps[-1][name])


def test_a_mean_over_no_steps_is_the_net() -> None:
    learner = Learner.start(TinyNet(seed=1), ScheduleSettings())
    start_average(learner)
    assert learner.average is not None
    with torch.no_grad():
        for parameter in learner.net.parameters():
            parameter.add_(1)
    follow(learner, 0.0)
    for name, mean in learner.average.state_dict().items():
        assert torch.equal(mean, learner.net.state_dict()[name])
