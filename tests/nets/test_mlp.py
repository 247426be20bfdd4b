"""The net for vectors. Oracles: its size from the layers' shapes, and the net re-stated with functions."""

import pytest
import torch

from dividemix.errors import InputError
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.nets.build import build_net
from dividemix.nets.mlp import MLP


def test_size_is_that_of_three_linear_layers_and_two_norms() -> None:
    net = build_net(DivideMixSettings(net="mlp", net_width=16), num_classes=4, image_shape=(7,), seed=1)
    assert type(net) is MLP
    assert sum(parameter.numel() for parameter in net.parameters()) == (7 * 16 + 2 * 16) + (16 * 16 + 2 * 16) + 68


@pytest.mark.parametrize("training", [False, True])
def test_net_is_its_restatement(training: bool) -> None:
    torch.manual_seed(0)
    net = MLP(num_classes=3, in_features=5, width=6).double().train(training)
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    x = h = torch.randn(8, 5, dtype=torch.float64)
    for linear, norm in ((0, 1), (3, 4)):
        h = h @ weights[f"hidden.{linear}.weight"].T
        mean, variance = (h.mean(dim=0), h.var(dim=0, unbiased=False)) if training else (0.0, torch.ones(6))
        scale, shift = weights[f"hidden.{norm}.weight"], weights[f"hidden.{norm}.bias"]
        h = ((h - mean) / torch.sqrt(variance + 1e-5) * scale + shift).clamp(min=0)
    with torch.no_grad():
        torch.testing.assert_close(net(x), h @ weights["head.weight"].T + weights["head.bias"])


def test_gradients_reach_every_parameter() -> None:
    torch.manual_seed(0)
    net = MLP(num_classes=3, in_features=5, width=6)
    torch.nn.functional.cross_entropy(net(torch.randn(8, 5)), torch.arange(8) % 3).backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in net.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "says"),
    [
        ("mlp", (8, 8, 3), "takes vectors, but the samples are 8 x 8 x 3 images: choose another net"),
        ("small_cnn", (12,), "takes images, but the samples are vectors of 12 features: choose another net"),
        ("resnet50", (12,), "does not fit 3 classes of vectors of 12 features"),
    ],
)
def test_samples_of_the_other_kind_are_refused_in_one_line(name: str, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        build_net(DivideMixSettings(net=name), num_classes=3, image_shape=shape, seed=1)
    assert f"net {name!r} {says}" in str(refusal.value)
    assert "\n" not in str(refusal.value)
