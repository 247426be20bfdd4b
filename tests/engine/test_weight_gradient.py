"""The gradient of convolutions' weights: the oracle is torch's own, in double precision."""

import copy
import shutil
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dividemix.engine import weight_gradient as module
from dividemix.engine.acceleration import compile_net
from dividemix.engine.weight_gradient import accelerate_weight_gradients, weight_gradient
from dividemix.errors import CompilationWarning
from dividemix.nets.preact_resnet import PreActResNet

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


@pytest.fixture
def avx2(monkeypatch):
    """Whatever processor the tests run on: the sums are right on all of them."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")


def expected(x, dy, stride):
    weight = torch.zeros(dy.shape[1], x.shape[1], 3, 3, dtype=torch.float64, requires_grad=True)
    F.conv2d(x.double(), weight, stride=stride, padding=1).backward(dy.double())
    return weight.grad


def drawn(num_images, num_in, num_out, height, width, stride, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_images, num_in, height, width, generator=generator)
    dy = torch.randn(num_images, num_out, (height - 1) // stride + 1, (width - 1) // stride + 1, generator=generator)
    return x, dy


@needs_compiler
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(
    ("num_images", "num_in", "num_out", "height", "width"),
    [
        (1, 16, 16, 1, 1),  # nothing but padding around one pixel
        (5, 16, 32, 4, 4),  # a chunk that is not full
        (37, 64, 16, 4, 4),  # chunks of several images, the last one smaller
        (3, 32, 32, 9, 7),  # odd sizes
        (2, 16, 48, 33, 20),  # chunks that end inside an image
        (2, 18, 16, 2, 300),  # a row that is longer than a chunk
    ],
)
def test_it_is_torchs(num_images, num_in, num_out, height, width, stride):
    x, dy = drawn(num_images, num_in, num_out, height, width, stride)
    gradient = weight_gradient(x, dy, stride)
    oracle = expected(x, dy, stride)
    assert gradient.dtype == torch.float32
    assert gradient.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(gradient.double(), oracle, rtol=0, atol=1e-5 * float(oracle.abs().max()))


@needs_compiler
def test_it_is_the_same_bits_each_time_and_torchs_with_any_number_of_threads():
    x, dy = drawn(33, 16, 32, 8, 8, 1)
    before, oracle = torch.get_num_threads(), expected(x, dy, 1)
    try:
        for num_threads in (1, 2, 3, 64):  # also more than there are images
            torch.set_num_threads(num_threads)
            first, second = weight_gradient(x, dy, 1), weight_gradient(x, dy, 1)
            assert torch.equal(first, second)
            torch.testing.assert_close(first.double(), oracle, rtol=0, atol=1e-5 * float(oracle.abs().max()))
    finally:
        torch.set_num_threads(before)


@needs_compiler
def test_the_operation_is_one_that_torch_can_compile_around():
    torch.library.opcheck(torch.ops.dividemix.weight_gradient.default, (*drawn(3, 16, 16, 8, 8, 2), 2))


def gradients(net, images):
    net.zero_grad()
    net(images).square().sum().backward()
    return [parameter.grad.clone() for parameter in net.parameters()]


def resnet() -> nn.Module:
    torch.manual_seed(0)
    net = PreActResNet(num_classes=5, in_channels=3, width=16, final_norm=True)
    return net.to(memory_format=torch.channels_last)


@needs_compiler
def test_a_net_has_the_gradients_that_it_had(avx2):
    """Every layer's, so also what flows back through the convolutions; the images' own, where they are asked for."""
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    accelerate_weight_gradients(net)
    changed = [m for m in net.modules() if isinstance(m, nn.Conv2d) and "forward" in vars(m)]
    assert [(conv.in_channels, conv.stride) for conv in changed][:5] == [(16, (1, 1))] * 4 + [(16, (2, 2))]
    assert len(changed) == 16  # all but the stem and the three shortcuts
    assert net.state_dict().keys() == other.state_dict().keys()
    assert torch.equal(net(images), other(images))
    for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


@needs_compiler
def test_what_it_was_not_made_for_stays_as_it_was(avx2):
    layers = [
        nn.Conv2d(16, 16, 1, bias=False),
        nn.Conv2d(16, 16, 3, bias=False),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.Conv2d(16, 16, 3, padding=1, groups=2, bias=False),
        nn.Conv2d(16, 16, 3, padding=2, dilation=2, bias=False),
        nn.Conv2d(16, 16, 3, padding=1, padding_mode="reflect", bias=False),
        nn.Conv2d(16, 16, 3, 3, padding=1, bias=False),
        nn.Conv2d(17, 16, 3, padding=1, bias=False),
        nn.Conv2d(16, 24, 3, padding=1, bias=False),
        nn.Conv2d(16, 16, 3, padding=1, bias=False, dtype=torch.float64),
        nn.Conv2d(16, 16, 3, padding=1, bias=False, device="meta"),
    ]
    accelerate_weight_gradients(nn.Sequential(*layers))
    assert not [layer for layer in layers if "forward" in vars(layer)]


@needs_compiler
def test_a_shorter_type_has_torchs_gradients(avx2):
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    accelerate_weight_gradients(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
            assert torch.equal(ours, theirs)


def test_it_is_for_avx2_alone(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    net = resnet()
    accelerate_weight_gradients(net)
    assert not [layer for layer in net.modules() if "forward" in vars(layer)]


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false"])
def test_a_compiler_that_fails_means_one_warning_and_the_net_as_it_was(avx2, monkeypatch, compiler):
    module._library.cache_clear()
    monkeypatch.setenv("CXX", compiler)
    net, images = resnet().eval(), torch.randn(2, 3, 16, 16)
    expected = net(images)
    with pytest.warns(CompilationWarning, match="training goes on without it") as told:
        compile_net(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(net(images), expected)
    assert len(told) == 1
    assert compiler in str(told[0].message)
    assert not [layer for layer in net.modules() if "forward" in vars(layer)]


@needs_compiler
def test_no_second_library_of_threads_is_loaded():
    """Two would spin against each other."""
    script = """
import torch
from dividemix.engine.weight_gradient import weight_gradient
torch.ones(64, 64) @ torch.ones(64, 64)
weight_gradient(torch.ones(2, 16, 8, 8), torch.ones(2, 16, 8, 8), 1)
maps = open("/proc/self/maps").read().splitlines()
print(len({line.split()[-1] for line in maps if "libgomp" in line or "libomp" in line or "libiomp" in line}))
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1"
