"""A net whose convolutions our own kernels can compute, and its gradients."""

import os
import shlex
import shutil
import sys

import pytest
import torch
from torch import Tensor, nn

from dividemix.engine.kernels.convolution import OwnConv2d
from dividemix.nets.preact_resnet import PreActResNet

needs_compiler = pytest.mark.skipif(
    shutil.which(shlex.split(os.environ.get("CXX") or "g++")[0]) is None or not sys.platform.startswith("linux"),
    reason="there is no C++ compiler, or no Linux",
)


def resnet() -> nn.Module:
    """13 of its convolutions suit, those of stride 1 behind the first one."""
    torch.manual_seed(0)
    net = PreActResNet(num_classes=5, in_channels=3, width=16, final_norm=True)
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def own_convolutions(net: nn.Module) -> list[nn.Module]:
    """Those that our own kernels compute."""
    return [layer for layer in net.modules() if isinstance(layer, OwnConv2d)]


def gradients(net: nn.Module, images: Tensor) -> list[Tensor]:
    """Of all parameters that want one, and of the images."""
    images = images.clone().requires_grad_()
    net.zero_grad()
    net(images).square().sum().backward()
    found = []
    for each in (*net.parameters(), images):
        if each.requires_grad:
            assert each.grad is not None
            found.append(each.grad.clone())
    return found


def assert_close(ours: list[Tensor], theirs: list[Tensor]) -> None:
    """Some are zero except for rounding: those must be as small as that, relative to the largest of all."""
    largest = max(float(other.abs().max()) for other in theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()) + 1e-6 * largest)
