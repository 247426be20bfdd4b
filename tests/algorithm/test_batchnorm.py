"""One forward counted as several: the oracle is BatchNorm itself, given the same batch several times."""

import contextlib
import copy

import pytest
import torch
from torch import nn

from dividemix.algorithm.batchnorm import counted_as
from dividemix.algorithm.dividemix import make_targets
from dividemix.methods.dividemix import DivideMixSettings


@pytest.mark.parametrize("num_forwards", [1, 2, 4])
def test_statistics_move_as_by_so_many_equal_forwards(num_forwards: int) -> None:
    torch.manual_seed(0)
    once = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.BatchNorm1d(64)).double().train()
    often = copy.deepcopy(once)
    images = torch.randn(8, 3, 6, 6, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(num_forwards):
            often(images)
        with counted_as(once, num_forwards):
            once(images)
    for layer in (1, 3):
        torch.testing.assert_close(once[layer].running_mean, often[layer].running_mean)
        torch.testing.assert_close(once[layer].running_var, often[layer].running_var)


def test_momenta_are_as_before_also_after_an_error_and_a_plain_average_stays_one() -> None:
    net = nn.Sequential(nn.BatchNorm2d(2, momentum=0.3), nn.BatchNorm2d(2, momentum=None))
    inside = []
    with contextlib.suppress(ZeroDivisionError), counted_as(net, 4):
        inside = [norm.momentum for norm in net]
        raise ZeroDivisionError
    assert inside == [pytest.approx(1 - 0.7**4), None]
    assert [norm.momentum for norm in net] == [0.3, None]


@pytest.mark.parametrize(("has_unlabeled", "per_view", "moves"), [(True, True, 6), (False, True, 3), (True, False, 1)])
def test_making_targets_moves_the_own_nets_statistics_once_for_each_view(
    has_unlabeled: bool, per_view: bool, moves: int
) -> None:
    """Released code: one forward per view of the labeled and of the unlabeled samples."""
    torch.manual_seed(0)
    s = DivideMixSettings(batch_size=5, num_views=3, norm_per_view=per_view)
    views = torch.randn((6 if has_unlabeled else 3) * 5, 2, 3, 3)
    net, peer = (nn.Sequential(nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(18, 4)) for _ in range(2))
    often = copy.deepcopy(net).train()
    with torch.no_grad():
        for _ in range(moves):
            often(views)
    make_targets(net.train(), peer.eval(), views, torch.arange(5) % 4, torch.rand(5), s)
    torch.testing.assert_close(net[0].running_mean, often[0].running_mean)
    torch.testing.assert_close(net[0].running_var, often[0].running_var)
