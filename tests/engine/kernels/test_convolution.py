"""Convolutions and the gradients of their weights: the oracle is torch's own, in double precision."""

import copy
import warnings

import pytest
import torch
from convnets import assert_close, gradients, needs_compiler, own_convolutions, resnet
from torch import nn
from torch.nn import functional as F

from dividemix.engine.acceleration import compile_net
from dividemix.engine.kernels.choice import use_own_kernels, use_torch_kernels
from dividemix.engine.kernels.convolution import convolution, weight_gradient
from dividemix.errors import CompilationWarning


def expected(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    weight = torch.zeros(dy.shape[1], x.shape[1], 3, 3, dtype=torch.float64, requires_grad=True)
    F.conv2d(x.double(), weight, padding=1).backward(dy.double())
    assert weight.grad is not None
    return weight.grad


def drawn(num_images: int, num_in: int, num_out: int, height: int, width: int) -> list[torch.Tensor]:
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
def test_a_gradient_is_torchs(num_images: int, num_in: int, num_out: int, height: int, width: int) -> None:
    x, dy = drawn(num_images, num_in, num_out, height, width)
    gradient, oracle = weight_gradient(x, dy), expected(x, dy)
    assert gradient.dtype == torch.float32
    assert gradient.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(gradient.double(), oracle, rtol=0, atol=2e-6 * float(oracle.abs().max()))


@needs_compiler
@pytest.mark.parametrize(("num_images", "side"), [(33, 8), (3, 33)])
def test_a_gradient_has_the_same_bits_each_time_and_is_torchs_with_any_number_of_threads(
    num_images: int, side: int
) -> None:
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
def test_long_sums_stay_exact() -> None:
    """Sums of 131,072 positive numbers, as a layer of CIFAR's size has: added one by one they would drift by 1e-4."""
    x, dy = (tensor.abs() for tensor in drawn(128, 16, 16, 32, 32))
    torch.testing.assert_close(weight_gradient(x, dy).double(), expected(x, dy), rtol=5e-6, atol=0)


@needs_compiler
def test_no_images_give_no_gradient() -> None:
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
def test_a_gradient_that_it_cannot_compute_is_an_error_and_not_a_read_past_the_end(
    x: torch.Tensor, dy: torch.Tensor
) -> None:
    with pytest.raises(ValueError, match=r"multiple of 16|no convolution"):
        weight_gradient(x, dy)


@needs_compiler
def test_a_gradient_is_an_operation_that_torch_can_compile_around() -> None:
    x, dy = (each.to(memory_format=torch.channels_last) for each in drawn(3, 16, 16, 8, 8))
    torch.library.opcheck(torch.ops.dividemix.weight_gradient.default, (x, dy))


@needs_compiler
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("num_images", "num_in", "num_out", "height", "width"), [*SHAPES, (0, 16, 16, 4, 4)])
def test_a_convolution_is_torchs(
    num_images: int, num_in: int, num_out: int, height: int, width: int, transposed: bool
) -> None:
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
def test_a_convolution_rounds_as_well_as_float32_can(num_channels: int) -> None:
    """In the mean 2e-7 and 4e-7 of a number, where torch's have 2e-7 and 5e-7 (LOG.md)."""
    x, _ = drawn(8, num_channels, num_channels, 16, 16)
    weight, _ = drawn(num_channels, num_channels, num_channels, 3, 3)
    oracle = F.conv2d(x.double(), weight.double(), padding=1)
    error = convolution(x, weight, False).double() - oracle
    assert (error.square().mean() / oracle.square().mean()).sqrt() < 5e-7


@needs_compiler
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_spreads_as_far_as_torchs(value: float) -> None:
    """So that a diverged training is noticed; that it may become NaN where torch's is infinite does not matter."""
    x, _ = drawn(2, 16, 16, 9, 9)
    weight, _ = drawn(16, 16, 16, 3, 3)
    x[1, 3, 4, 5] = value
    assert torch.equal(convolution(x, weight, False).isfinite(), F.conv2d(x, weight, padding=1).isfinite())


@needs_compiler
def test_a_convolution_has_the_same_bits_with_any_number_of_threads() -> None:
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
def test_a_convolution_that_it_cannot_compute_is_an_error_and_not_a_read_past_the_end(
    x: torch.Tensor, weight: torch.Tensor
) -> None:
    with pytest.raises(ValueError, match=r"multiple of 16|do not fit"):
        convolution(x, weight, False)


@needs_compiler
@pytest.mark.parametrize("transposed", [False, True])
def test_a_convolution_is_an_operation_that_torch_can_compile_around(transposed: bool) -> None:
    x, weight = (torch.randn(*shape).to(memory_format=torch.channels_last) for shape in ((3, 16, 8, 8), (16, 16, 3, 3)))
    torch.library.opcheck(torch.ops.dividemix.convolution.default, (x, weight, transposed))


@needs_compiler
def test_a_net_has_the_gradients_that_it_had() -> None:
    """Every layer's, so also what flows back through the convolutions; also if weights are frozen, and in a copy."""
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    changed = use_own_kernels(net)
    assert [conv.in_channels for conv in changed] == [16] * 4 + [32] * 3 + [64] * 3 + [128] * 3  # all of stride 1
    assert own_convolutions(net) == changed
    assert net.state_dict().keys() == other.state_dict().keys()
    torch.testing.assert_close(net(images), other(images))
    assert_close(gradients(net, images), gradients(other, images))
    with torch.inference_mode():
        torch.testing.assert_close(net(images), other(images))
    twin = copy.deepcopy(net)
    assert_close(gradients(twin, images), gradients(other, images))
    for each in (net, other):
        each.get_submodule("blocks.0").requires_grad_(False)
    assert_close(gradients(net, images), gradients(other, images))


@needs_compiler
@pytest.mark.slow
def test_a_compiled_net_has_the_gradients_that_it_had() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(4))
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images, other = torch.randn(4, 16, 8, 8).to(memory_format=torch.channels_last), copy.deepcopy(net)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompilationWarning)
        use_own_kernels(net)
        compile_net(net)
        assert_close(gradients(net, images), gradients(other, images))
    assert own_convolutions(net) == [net[0]]


@needs_compiler
def test_layers_that_do_not_suit_stay_torchs() -> None:
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
    assert use_own_kernels(nn.Sequential(*layers)) == []
    assert not own_convolutions(nn.Sequential(*layers))


@needs_compiler
def test_a_forward_that_somebody_replaced_stays() -> None:
    conv = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    conv.forward = abs  # type: ignore[method-assign, assignment]
    assert use_own_kernels(conv) == []
    assert conv.forward is abs


@needs_compiler
def test_a_net_of_another_type_later_has_torchs_gradients() -> None:
    net, images = resnet(), torch.randn(4, 3, 16, 16).double()
    other = copy.deepcopy(net).double()
    use_own_kernels(net)
    net.double()
    for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
        assert torch.equal(ours, theirs)


@needs_compiler
def test_a_net_that_is_moved_later_is_torchs() -> None:
    net = resnet()
    use_own_kernels(net)
    assert net.to("meta")(torch.zeros(4, 3, 16, 16, device="meta")).shape == (4, 5)


@needs_compiler
def test_a_gradient_of_another_memory_format_is_the_same() -> None:
    """Such as that of a mean, which is one number at all places."""
    net = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    other, images = copy.deepcopy(net), torch.randn(4, 16, 8, 8)
    use_own_kernels(net)
    for each in (net, other):
        each(images).mean().backward()
    torch.testing.assert_close(net.weight.grad, other.weight.grad)


@needs_compiler
def test_a_shorter_type_has_torchs_gradients() -> None:
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    use_own_kernels(net)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
            assert torch.equal(ours, theirs)


@needs_compiler
def test_torchs_kernels_come_back() -> None:
    net, images = resnet(), torch.randn(4, 3, 16, 16)
    other = copy.deepcopy(net)
    use_own_kernels(net)
    use_torch_kernels(net)
    assert not own_convolutions(net)
    for ours, theirs in zip(gradients(net, images), gradients(other, images), strict=True):
        assert torch.equal(ours, theirs)


@needs_compiler
def test_a_second_derivative_is_an_error_and_not_a_wrong_number() -> None:
    net, images = nn.Conv2d(16, 16, 3, padding=1, bias=False), torch.randn(2, 16, 4, 4, requires_grad=True)
    use_own_kernels(net)
    (gradient,) = torch.autograd.grad(net(images).square().sum(), images, create_graph=True)
    with pytest.raises(RuntimeError, match="dividemix"):
        gradient.sum().backward()
