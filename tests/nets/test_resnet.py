"""ResNet-50. Oracles: torchvision's naming scheme and published size, and the net re-stated with functions."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dividemix.nets.resnet import ResNet50

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # inner channels and blocks


@pytest.fixture(scope="module")
def net() -> ResNet50:
    """One net for all tests, its BatchNorms as if it had been trained."""
    torch.manual_seed(0)
    net = ResNet50(num_classes=5)
    for name, tensor in net.state_dict().items():
        if tensor.ndim == 1 and tensor.is_floating_point() and not name.startswith("fc."):
            tensor.copy_(torch.rand(tensor.shape) + 0.5)
    return net.eval()


def torchvision_tensors(num_classes: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor's name and shape, in torchvision's order."""

    def norm(name: str, channels: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        for tensor in ("weight", "bias", "running_mean", "running_var"):
            yield f"{name}.{tensor}", (channels,)
        yield f"{name}.num_batches_tracked", ()

    yield "conv1.weight", (64, 3, 7, 7)
    yield from norm("bn1", 64)
    num_in = 64
    for stage, (inner, num_blocks) in enumerate(STAGES, start=1):
        for block in range(num_blocks):
            name = f"layer{stage}.{block}"
            yield f"{name}.conv1.weight", (inner, num_in, 1, 1)
            yield from norm(f"{name}.bn1", inner)
            yield f"{name}.conv2.weight", (inner, inner, 3, 3)
            yield from norm(f"{name}.bn2", inner)
            yield f"{name}.conv3.weight", (4 * inner, inner, 1, 1)
            yield from norm(f"{name}.bn3", 4 * inner)
            if block == 0:
                yield f"{name}.downsample.0.weight", (4 * inner, num_in, 1, 1)
                yield from norm(f"{name}.downsample.1", 4 * inner)
            num_in = 4 * inner
    yield "fc.weight", (num_classes, 2048)
    yield "fc.bias", (num_classes,)


def test_names_shapes_and_size_are_torchvisions() -> None:
    """25,557,032 parameters with 1,000 classes; 320 tensors."""
    with torch.device("meta"):
        net = ResNet50(num_classes=1000)
    found = [(name, tuple(tensor.shape)) for name, tensor in net.state_dict().items()]
    assert found == list(torchvision_tensors(1000))
    assert len(found) == 320
    assert sum(parameter.numel() for parameter in net.parameters()) == 25_557_032


def test_other_channels_and_classes_change_the_ends_alone() -> None:
    with torch.device("meta"):
        net = ResNet50(num_classes=14, in_channels=1)
    found = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
    assert found == dict(torchvision_tensors(14)) | {"conv1.weight": (64, 1, 7, 7)}


def restated(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The logits, computed with functions; every tensor is taken out of weights as it is used."""

    def conv_norm(conv: str, norm: str, h: Tensor, stride: int = 1, padding: int = 0) -> Tensor:
        h = F.conv2d(h, weights.pop(f"{conv}.weight"), stride=stride, padding=padding)
        mean, variance = weights.pop(f"{norm}.running_mean"), weights.pop(f"{norm}.running_var")
        return F.batch_norm(h, mean, variance, weights.pop(f"{norm}.weight"), weights.pop(f"{norm}.bias"), eps=1e-5)

    h = F.max_pool2d(conv_norm("conv1", "bn1", x, 2, 3).clamp(min=0), 3, stride=2, padding=1)
    for stage, (_, num_blocks) in enumerate(STAGES, start=1):
        for block in range(num_blocks):
            name = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            shortcut = conv_norm(f"{name}.downsample.0", f"{name}.downsample.1", h, stride) if block == 0 else h
            h = conv_norm(f"{name}.conv1", f"{name}.bn1", h).clamp(min=0)
            h = conv_norm(f"{name}.conv2", f"{name}.bn2", h, stride, 1).clamp(min=0)
            h = (conv_norm(f"{name}.conv3", f"{name}.bn3", h) + shortcut).clamp(min=0)
    return h.mean(dim=(2, 3)) @ weights.pop("fc.weight").T + weights.pop("fc.bias")


def test_net_is_its_functional_restatement(net: ResNet50) -> None:
    x = torch.randn(2, 3, 48, 40)
    weights = {name: tensor for name, tensor in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    with torch.no_grad():
        torch.testing.assert_close(net(x), restated(weights, x), rtol=1e-4, atol=1e-4)
    assert not weights


def test_channels_last_computes_the_same_and_gradients_reach_every_parameter(net: ResNet50) -> None:
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        expected = net(images)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    logits = net(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    F.cross_entropy(logits, torch.tensor([1, 3])).backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_weights_start_as_torchvisions() -> None:
    """Convolutions normal with variance 2 / (kernel area x output channels); every BatchNorm at one and zero."""
    torch.manual_seed(0)
    for name, parameter in ResNet50(num_classes=5).named_parameters():
        if parameter.ndim == 4:
            fan_out = parameter.shape[0] * parameter.shape[2] * parameter.shape[3]
            assert parameter.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.05)
        elif parameter.ndim == 1 and not name.startswith("fc."):
            assert (parameter == (1 if name.endswith("weight") else 0)).all()
