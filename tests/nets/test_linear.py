"""Nets with one trained layer. Oracles: the layer re-stated, and the Gaussian kernels that random waves approximate."""

import torch

from dividemix.methods.robust_vectors import RobustVectorsSettings
from dividemix.nets.build import build_net
from dividemix.nets.linear import Fourier, Linear


def test_linear_is_one_layer_on_the_vectors() -> None:
    net = build_net(RobustVectorsSettings(net="linear"), num_classes=4, image_shape=(7,), seed=1)
    assert type(net) is Linear
    x = torch.randn(3, 7)
    torch.testing.assert_close(net(x), x @ net.head.weight.T + net.head.bias)
    assert sum(parameter.numel() for parameter in net.parameters()) == 32


def test_waves_multiply_to_the_mean_of_two_gaussian_kernels() -> None:
    net = build_net(RobustVectorsSettings(net="fourier", net_width=40_000), num_classes=2, image_shape=(5,), seed=1)
    assert type(net) is Fourier
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0))
    features = net.features(x)
    assert torch.equal(features[:, :5], x)
    waves = features[:, 5:]
    squared = torch.cdist(x, x) ** 2
    kernel = (torch.exp(-squared / (2 * 5 / 2)) + torch.exp(-squared / (2 * 5 / 8))) / 2
    torch.testing.assert_close(waves @ waves.T / 40_000, kernel, atol=0.03, rtol=0)
    torch.testing.assert_close(net(x), features @ net.head.weight.T + net.head.bias)


def test_equal_seeds_draw_equal_waves_and_they_are_saved_with_the_net() -> None:
    s = RobustVectorsSettings(net="fourier", net_width=8)
    one, same, other = (build_net(s, num_classes=2, image_shape=(5,), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.state_dict()["directions"], same.state_dict()["directions"])
    assert not torch.equal(one.state_dict()["directions"], other.state_dict()["directions"])
