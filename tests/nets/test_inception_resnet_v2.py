"""Inception-ResNet v2. Oracles: names, shapes and size of the common public port; the net re-stated with functions."""

import hashlib

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dividemix.nets.inception_resnet_v2 import InceptionResNetV2

# Of the port's state_dict with 1,000 classes: its lines "name (shape)", sorted.
PORT_DIGEST = "605fc46d1aebe414"


@pytest.fixture(scope="module")
def net() -> InceptionResNetV2:
    """One net for all tests, its BatchNorms as if it had been trained."""
    torch.manual_seed(0)
    net = InceptionResNetV2(num_classes=5)
    for name, tensor in net.state_dict().items():
        if ".bn." in name and tensor.is_floating_point():
            tensor.copy_(torch.rand(tensor.shape) * 0.5 + 0.75)
    return net.eval()


def test_names_shapes_and_size_are_the_ports() -> None:
    """55.8 M parameters with 1,000 classes, 54.3 M without the head."""
    with torch.device("meta"):
        net = InceptionResNetV2(num_classes=1000)
    lines = sorted(f"{name} {tuple(tensor.shape)}" for name, tensor in net.state_dict().items())
    assert len(lines) == 1306
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] == PORT_DIGEST
    num_parameters = sum(parameter.numel() for parameter in net.parameters())
    assert num_parameters == 55_843_464
    assert num_parameters - (1536 * 1000 + 1000) == 54_306_464


def test_other_channels_and_classes_change_the_ends_alone() -> None:
    with torch.device("meta"):
        usual, other = (InceptionResNetV2(c, i).state_dict() for c, i in ((1000, 3), (50, 1)))
    changed = {name: tuple(other[name].shape) for name in usual if usual[name].shape != other[name].shape}
    assert changed == {
        "conv2d_1a.conv.weight": (32, 1, 3, 3),
        "last_linear.weight": (50, 1536),
        "last_linear.bias": (50,),
    }


def restated(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The logits, computed with functions; every tensor is taken out of weights as it is used."""

    def conv(name: str, h: Tensor, stride: int = 1, padding: int | tuple[int, int] = 0) -> Tensor:
        h = F.conv2d(h, weights.pop(f"{name}.conv.weight"), stride=stride, padding=padding)
        mean, variance = weights.pop(f"{name}.bn.running_mean"), weights.pop(f"{name}.bn.running_var")
        scale, shift = weights.pop(f"{name}.bn.weight"), weights.pop(f"{name}.bn.bias")
        return F.batch_norm(h, mean, variance, scale, shift, eps=1e-3).clamp(min=0)

    def add(name: str, h: Tensor, branches: list[Tensor], scale: float) -> Tensor:
        weight, bias = weights.pop(f"{name}.conv2d.weight"), weights.pop(f"{name}.conv2d.bias")
        return h + scale * F.conv2d(torch.cat(branches, dim=1), weight, bias)

    def block8(name: str, h: Tensor, scale: float) -> Tensor:
        right = conv(f"{name}.branch1.1", conv(f"{name}.branch1.0", h), padding=(0, 1))
        return add(name, h, [conv(f"{name}.branch0", h), conv(f"{name}.branch1.2", right, padding=(1, 0))], scale)

    h = conv("conv2d_2b", conv("conv2d_2a", conv("conv2d_1a", x, 2)), padding=1)
    h = conv("conv2d_4a", conv("conv2d_3b", F.max_pool2d(h, 3, 2)))
    h = F.max_pool2d(h, 3, 2)
    near = F.avg_pool2d(h, 3, 1, padding=1, count_include_pad=False)
    branches = [
        conv("mixed_5b.branch0", h),
        conv("mixed_5b.branch1.1", conv("mixed_5b.branch1.0", h), padding=2),
        conv("mixed_5b.branch2.2", conv("mixed_5b.branch2.1", conv("mixed_5b.branch2.0", h), padding=1), padding=1),
        conv("mixed_5b.branch3.1", near),
    ]
    h = torch.cat(branches, dim=1)
    for i in range(10):
        name = f"repeat.{i}"
        middle = conv(f"{name}.branch1.1", conv(f"{name}.branch1.0", h), padding=1)
        right = conv(f"{name}.branch2.1", conv(f"{name}.branch2.0", h), padding=1)
        right = conv(f"{name}.branch2.2", right, padding=1)
        h = add(name, h, [conv(f"{name}.branch0", h), middle, right], 0.17).clamp(min=0)
    middle = conv("mixed_6a.branch1.1", conv("mixed_6a.branch1.0", h), padding=1)
    branches = [conv("mixed_6a.branch0", h, 2), conv("mixed_6a.branch1.2", middle, 2), F.max_pool2d(h, 3, 2)]
    h = torch.cat(branches, dim=1)
    for i in range(20):
        name = f"repeat_1.{i}"
        right = conv(f"{name}.branch1.1", conv(f"{name}.branch1.0", h), padding=(0, 3))
        right = conv(f"{name}.branch1.2", right, padding=(3, 0))
        h = add(name, h, [conv(f"{name}.branch0", h), right], 0.1).clamp(min=0)
    branches = [conv(f"mixed_7a.branch{i}.1", conv(f"mixed_7a.branch{i}.0", h), 2) for i in range(2)]
    right = conv("mixed_7a.branch2.1", conv("mixed_7a.branch2.0", h), padding=1)
    h = torch.cat([*branches, conv("mixed_7a.branch2.2", right, 2), F.max_pool2d(h, 3, 2)], dim=1)
    for i in range(9):
        h = block8(f"repeat_2.{i}", h, 0.2).clamp(min=0)
    h = conv("conv2d_7b", block8("block8", h, 1.0))
    return h.mean(dim=(2, 3)) @ weights.pop("last_linear.weight").T + weights.pop("last_linear.bias")


def test_net_is_its_functional_restatement(net: InceptionResNetV2) -> None:
    x = torch.randn(2, 3, 110, 96)
    weights = {name: tensor for name, tensor in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    with torch.no_grad():
        torch.testing.assert_close(net(x), restated(weights, x), rtol=1e-4, atol=1e-5)
    assert not weights


def test_75_pixels_are_the_fewest_it_takes(net: InceptionResNetV2) -> None:
    with torch.no_grad():
        assert net(torch.zeros(2, 3, 75, 75)).shape == (2, 5)
        with pytest.raises(RuntimeError):
            net(torch.zeros(2, 3, 74, 75))


@pytest.mark.slow
def test_channels_last_computes_the_same_and_gradients_reach_every_parameter(net: InceptionResNetV2) -> None:
    images = torch.randn(2, 3, 96, 96)
    with torch.no_grad():
        expected = net(images)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    logits = net(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-5)
    F.cross_entropy(logits, torch.tensor([1, 3])).backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
