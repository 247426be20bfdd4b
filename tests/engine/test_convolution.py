"""Convolutions and the gradients of their weights: the oracle is torch's own, in double precision."""

import copy
import os
import shlex
import shutil
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dividemix.engine import convolution as module
from dividemix.engine.acceleration import compile_net
from dividemix.engine.convolution import OwnConv2d, accelerate_convolutions, convolution, weight_gradient
from dividemix.errors import CompilationWarning
from dividemix.nets.preact_resnet import PreActResNet

needs_compiler = pytest.mark.skipif(
    shutil.which(shlex.split(os.environ.get("CXX") or "g++")[0]) is None or not sys.platform.startswith("linux"),
    reason="there is no C++ compiler, or no Linux",
)


@pytest.fixture
def avx2(monkeypatch):
    """Whatever processor the tests run on: the sums are right on all of them."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")


def expected(x, dy):
    weight = torch.zeros(dy.shape[1], x.shape[1], 3, 3, dtype=torch.float64, requires_grad=True)
    F.conv2d(x.double(), weight, padding=1).backward(dy.double())
    return weight.grad


def drawn(num_images, num_in, num_out, height, width):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(num_images, channels, height, width, generator=generator) for channels in (num_in, num_out)]


SHAPES = [
    (1, 16, 16, 1, 1),  # a tile of which one pixel is the image
    (1, 16, 32, 2, 2),  # one tile
    (5, 32, 16, 4, 4),  # tiles that all touch an edge, and a block that is not full
    (3, 48, 32, 9, 7),  # odd sizes
    (2, 16, 48, 33, 20),  # tiles inside the image, several blocks
    (70, 64, 16, 3, 5),  # blocks of several images
]


@needs_compiler
@pytest.mark.parametrize(("num_images", "num_in", "num_out", "height", "width"), SHAPES)
def test_a_gradient_is_torchs(num_images, num_in, num_out, height, width):
    x, dy = drawn(num_images, num_in, num_out, height, width)
    gradient, oracle = weight_gradient(x, dy), expected(x, dy)
    assert gradient.dtype == torch.float32
    assert gradient.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(gradient.double(), oracle, rtol=0, atol=2e-6 * float(oracle.abs().max()))


@needs_compiler
@pytest.mark.parametrize(("num_images", "side"), [(33, 8), (3, 33)])
def test_a_gradient_has_the_same_bits_each_time_and_is_torchs_with_any_number_of_threads(num_images, side):
    x, dy = drawn(num_images, 16, 32, side, side)
    before, oracle = torch.get_num_threads(), expected(x, dy)
    try:
        for num_threads in (1, 2, 3, 64):  # also more than are worth it
            torch.set_num_threads(num_threads)
            first, second = weight_gradient(x, dy), weight_gradient(x, dy)
            assert torch.equal(first, second)
            torch.testing.assert_close(first.double(), oracle, rtol=0, atol=2e-6 * float(oracle.abs().max()))
    finally:
        torch.set_num_threads(before)


@needs_compiler
def test_long_sums_stay_exact():
    """Sums of 131,072 positive numbers, as a layer of CIFAR's size has: added one by one they would drift by 1e-4."""
    x, dy = (tensor.abs() for tensor in drawn(128, 16, 16, 32, 32))
    torch.testing.assert_close(weight_gradient(x, dy).double(), expected(x, dy), rtol=5e-6, atol=0)


@needs_compiler
def test_no_images_give_no_gradient():
    assert torch.equal(weight_gradient(*drawn(0, 16, 16, 4, 4)), torch.zeros(16, 16, 3, 3))


@needs_compiler
@pytest.mark.parametrize(
    ("x", "dy"),
    [
        (torch.ones(2, 16, 4, 4).double(), torch.ones(2, 16, 4, 4).double()),
        (torch.ones(2, 18, 4, 4), torch.ones(2, 16, 4, 4)),
        (torch.ones(2, 16, 4, 4), torch.ones(2, 24, 4, 4)),
        (torch.ones(2, 16, 4, 4), torch.ones(2, 16, 5, 4)),
        (torch.ones(2, 16, 4, 4), torch.ones(3, 16, 4, 4)),
    ],
)
def test_a_gradient_that_it_cannot_compute_is_an_error_and_not_a_read_past_the_end(x, dy):
    with pytest.raises(ValueError, match=r"multiple of 16|no convolution"):
        weight_gradient(x, dy)


@needs_compiler
def test_a_gradient_is_an_operation_that_torch_can_compile_around():
    x, dy = (each.to(memory_format=torch.channels_last) for each in drawn(3, 16, 16, 8, 8))
    torch.library.opcheck(torch.ops.dividemix.weight_gradient.default, (x, dy))


@needs_compiler
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("num_images", "num_in", "num_out", "height", "width"), [*SHAPES, (0, 16, 16, 4, 4)])
def test_a_convolution_is_torchs(num_images, num_in, num_out, height, width, transposed):
    """Transposed, it is that of a gradient back to the input."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_images, num_in, height, width, generator=generator)
    weight = torch.randn((num_in, num_out, 3, 3) if transposed else (num_out, num_in, 3, 3), generator=generator)
    oracle = (F.conv_transpose2d if transposed else F.conv2d)(x.double(), weight.double(), padding=1)
    y = convolution(x, weight, transposed)
    assert y.dtype == torch.float32
    assert y.shape == oracle.shape
    assert y.is_contiguous(memory_format=torch.channels_last)
    scale = float(oracle.abs().max()) if num_images else 1.0
    torch.testing.assert_close(y.double(), oracle, rtol=0, atol=2e-6 * scale)


@needs_compiler
@pytest.mark.parametrize("num_channels", [16, 128])
def test_a_convolution_rounds_as_well_as_float32_can(num_channels):
    """In the mean 2e-7 and 4e-7 of a number, where torch's have 2e-7 and 5e-7 (LOG.md)."""
    x, _ = drawn(8, num_channels, num_channels, 16, 16)
    weight, _ = drawn(num_channels, num_channels, num_channels, 3, 3)
    oracle = F.conv2d(x.double(), weight.double(), padding=1)
    error = convolution(x, weight, False).double() - oracle
    assert (error.square().mean() / oracle.square().mean()).sqrt() < 5e-7


@needs_compiler
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_spreads_as_far_as_torchs(value):
    """So that a diverged training is noticed; that it may become NaN where torch's is infinite does not matter."""
    x, _ = drawn(2, 16, 16, 9, 9)
    weight, _ = drawn(16, 16, 16, 3, 3)
    x[1, 3, 4, 5] = value
    assert torch.equal(convolution(x, weight, False).isfinite(), F.conv2d(x, weight, padding=1).isfinite())


@needs_compiler
def test_a_convolution_has_the_same_bits_with_any_number_of_threads():
    x, weight = torch.randn(7, 32, 9, 9), torch.randn(16, 32, 3, 3)
    before, results = torch.get_num_threads(), []
    try:
        for num_threads in (1, 2, 3, 64, 300):  # also more than there are tiles
            torch.set_num_threads(num_threads)
            results.append(convolution(x, weight, False))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


@needs_compiler
@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (torch.ones(2, 16, 4, 4).double(), torch.ones(16, 16, 3, 3).double()),
        (torch.ones(2, 24, 4, 4), torch.ones(16, 24, 3, 3)),
        (torch.ones(2, 16, 4, 4), torch.ones(24, 16, 3, 3)),
        (torch.ones(2, 16, 4, 4), torch.ones(16, 32, 3, 3)),
        (torch.ones(2, 16, 4, 4), torch.ones(16, 16, 1, 1)),
    ],
)
def test_a_convolution_that_it_cannot_compute_is_an_error_and_not_a_read_past_the_end(x, weight):
    with pytest.raises(ValueError, match=r"multiple of 16|do not go with"):
        convolution(x, weight, False)


@needs_compiler
@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolution_is_an_operation_that_torch_can_compile_around(transposed):
    x, weight = (torch.randn(*shape).to(memory_format=torch.channels_last) for shape in ((3, 16, 8, 8), (16, 16, 3, 3)))
    torch.library.opcheck(torch.ops.dividemix.convolution.default, (x, weight, transposed))


def gradients(net, images):
    """Of all parameters that want one, and of the images."""
    images = images.clone().requires_grad_()
    net.zero_grad()
    net(images).square().sum().backward()
    return [each.grad.clone() for each in (*net.parameters(), images) if each.requires_grad]


def assert_close(ours, theirs):
    """Some are zero but for rounding: those have to be as small as that, seen from the largest of all."""
    largest = max(float(other.abs().max()) for other in theirs)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()) + 1e-6 * largest)


def resnet() -> nn.Module:
    torch.manual_seed(0)
    net = PreActResNet(num_classes=5, in_channels=3, width=16, final_norm=True)
    return net.to(memory_format=torch.channels_last)


def accelerated(net):
    return [layer for layer in net.modules() if isinstance(layer, OwnConv2d)]


@needs_compiler
def test_a_net_has_the_gradients_that_it_had(avx2):
    """Every layer's, so also what flows back through the convolutions; also if weights are frozen, and in a copy."""
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    changed = accelerate_convolutions(net)
    assert [conv.in_channels for conv in changed] == [16] * 4 + [32] * 3 + [64] * 3 + [128] * 3  # all of stride 1
    assert accelerated(net) == changed
    assert net.state_dict().keys() == other.state_dict().keys()
    torch.testing.assert_close(net(images), other(images))
    assert_close(gradients(net, images), gradients(other, images))
    with torch.inference_mode():
        torch.testing.assert_close(net(images), other(images))
    twin = copy.deepcopy(net)
    assert_close(gradients(twin, images), gradients(other, images))
    for each in (net, other):
        each.blocks[0].requires_grad_(False)
    assert_close(gradients(net, images), gradients(other, images))


@needs_compiler
@pytest.mark.slow
def test_a_compiled_net_has_the_gradients_that_it_had(avx2):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(4))
    net = net.to(memory_format=torch.channels_last)
    images, other = torch.randn(4, 16, 8, 8).to(memory_format=torch.channels_last), copy.deepcopy(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompilationWarning)
        compile_net(net)
        assert_close(gradients(net, images), gradients(other, images))
    assert accelerated(net) == [net[0]]


@needs_compiler
def test_what_it_was_not_made_for_stays_as_it_was(avx2):
    layers = [
        nn.Conv2d(16, 16, 1, bias=False),
        nn.Conv2d(16, 16, 3, bias=False),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.Conv2d(16, 16, 3, padding=1, groups=2, bias=False),
        nn.Conv2d(16, 16, 3, padding=2, dilation=2, bias=False),
        nn.Conv2d(16, 16, 3, padding=1, padding_mode="reflect", bias=False),
        nn.Conv2d(16, 16, 3, 2, padding=1, bias=False),
        nn.Conv2d(16, 16, 3, (1, 2), padding=1, bias=False),
        nn.Conv2d(16, 16, (3, 1), padding=1, bias=False),
        nn.Conv2d(18, 16, 3, padding=1, bias=False),
        nn.Conv2d(16, 24, 3, padding=1, bias=False),
        nn.Conv2d(16, 16, 3, padding=1, bias=False, dtype=torch.float64),
        nn.Conv2d(16, 16, 3, padding=1, bias=False, device="meta"),
    ]
    assert accelerate_convolutions(nn.Sequential(*layers)) == []
    assert not accelerated(nn.Sequential(*layers))


@needs_compiler
def test_a_forward_of_somebody_elses_stays(avx2):
    conv = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    conv.forward = abs
    assert accelerate_convolutions(conv) == []
    assert conv.forward is abs


@needs_compiler
def test_a_net_of_another_type_later_has_torchs_gradients(avx2):
    net, images = resnet(), torch.randn(4, 3, 16, 16).double()
    other = copy.deepcopy(net).double()
    accelerate_convolutions(net)
    net.double()
    for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
        assert torch.equal(ours, theirs)


@needs_compiler
def test_a_net_that_is_moved_later_is_torchs(avx2):
    net = resnet()
    accelerate_convolutions(net)
    assert net.to("meta")(torch.zeros(4, 3, 16, 16, device="meta")).shape == (4, 5)


@needs_compiler
def test_a_gradient_that_lies_otherwise_in_memory_is_the_same(avx2):
    """Such as that of a mean, which is one number at all places."""
    net = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    other, images = copy.deepcopy(net), torch.randn(4, 16, 8, 8)
    accelerate_convolutions(net)
    for each in (net, other):
        each(images).mean().backward()
    torch.testing.assert_close(net.weight.grad, other.weight.grad)


@needs_compiler
def test_a_shorter_type_has_torchs_gradients(avx2):
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    accelerate_convolutions(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
            assert torch.equal(ours, theirs)


def test_it_is_for_avx2_alone(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    net = resnet()
    assert accelerate_convolutions(net) == []
    assert not accelerated(net)


@pytest.fixture
def compiled_by(monkeypatch):
    """Lets torch compile or fail as told; the C++ here is compiled by another program."""

    def tell(program, compiled):
        module._library.cache_clear()
        monkeypatch.setenv("CXX", program)
        monkeypatch.setattr(torch, "compile", lambda forward, **_: compiled or forward)

    yield tell
    module._library.cache_clear()


def broken(images):
    raise RuntimeError("no compiler")


def test_a_compiler_that_fails_leaves_torchs_convolutions_and_says_so(avx2, compiled_by):
    compiled_by("false", None)
    net, images = resnet().eval(), torch.randn(2, 3, 16, 16)
    expected = net(images)
    with pytest.warns(CompilationWarning, match=r"stay torch's own \(OSError: false cannot") as told:
        compile_net(net)
    assert torch.equal(net(images), expected)
    assert len(told) == 1
    assert not accelerated(net)


def test_no_compiler_at_all_is_one_warning(avx2, compiled_by):
    compiled_by("no-such-compiler", broken)
    net, images = resnet().eval(), torch.randn(2, 3, 16, 16)
    expected = net(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_net(net)
    with pytest.warns(CompilationWarning, match="goes on without it") as told:
        logits = net(images)
    assert torch.equal(logits, expected)
    assert len(told) == 1


@needs_compiler
def test_a_net_that_torch_cannot_compile_is_as_it_was(avx2, compiled_by):
    compiled_by(os.environ.get("CXX", "g++"), broken)
    net, images = resnet(), torch.randn(2, 3, 16, 16)
    other = copy.deepcopy(net)
    compile_net(net)
    assert len(accelerated(net)) == 13
    with pytest.warns(CompilationWarning, match="goes on without it"):
        ours = gradients(net, images)
    assert not accelerated(net)
    for one, theirs in zip(ours, gradients(other, images), strict=True):
        assert torch.equal(one, theirs)


@needs_compiler
def test_no_second_library_of_threads_is_loaded():
    """Two would spin against each other."""
    script = """
import torch
from dividemix.engine.convolution import weight_gradient
torch.ones(64, 64) @ torch.ones(64, 64)
weight_gradient(torch.ones(2, 16, 8, 8), torch.ones(2, 16, 8, 8))
maps = open("/proc/self/maps").read().splitlines()
print(len({line.split()[-1] for line in maps if "libgomp" in line or "libomp" in line or "libiomp" in line}))
"""
    if not sys.platform.startswith("linux"):
        pytest.skip("reads /proc")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "1"
