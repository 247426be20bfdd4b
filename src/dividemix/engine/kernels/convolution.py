"""3 x 3 convolutions by our own kernels, as operations that torch can differentiate once and compile around.

They take less than half of the multiplications (winograd.cpp), for the output and for both gradients, and round as well
as torch's (LOG.md). There are no second derivatives.

Shapes: x (N, I, H, W), y (N, O, H, W), weight (O, I, 3, 3), all float32 in channels_last.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from dividemix.engine.kernels.library import load_library

SUITABLE = "3 x 3 convolutions of stride 1 and padding 1, no bias, channels in multiples of 16, float32 on a CPU"


def suits(module: nn.Module) -> TypeGuard[nn.Conv2d]:
    """Whether our own kernels can compute a module: whether it is `SUITABLE`."""
    return (
        type(module) is nn.Conv2d
        and "forward" not in vars(module)  # somebody else replaced it
        and module.kernel_size == (3, 3)
        and module.stride == module.padding == module.dilation == (1, 1)
        and (module.groups, module.padding_mode) == (1, "zeros")
        and module.bias is None
        and module.in_channels % 16 == module.out_channels % 16 == 0
        and (module.weight.device.type, module.weight.dtype) == ("cpu", torch.float32)
    )


class OwnConv2d(nn.Conv2d):
    """A convolution that `suits`; torch computes it again once its type or device has changed, and under autocast."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(N, I, H, W) to (N, O, H, W)."""
        as_made = all(each.device.type == "cpu" and each.dtype == torch.float32 for each in (input, weight))
        if input.ndim != 4 or not as_made or torch.is_autocast_enabled("cpu"):
            y: Tensor = super()._conv_forward(input, weight, bias)
            return y
        return convolve(input, weight)


def convolve(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve x at stride 1 and padding 1; differentiable once."""
    y: Tensor = _Convolution.apply(x, weight)  # type: ignore[no-untyped-call]
    return y


class _Convolution(torch.autograd.Function):
    """A convolution and its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        y: Tensor = convolution(x, weight, transposed=False)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        dx = convolution(dy, weight, transposed=True) if ctx.needs_input_grad[0] else None
        dw = weight_gradient(x, dy) if ctx.needs_input_grad[1] else None
        return dx, dw


@torch.library.custom_op("dividemix::convolution", mutates_args=(), device_types="cpu")
def convolution(x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    """The convolution of x; if `transposed`, x is the gradient of an output and the result that of its input."""
    N, I, H, W = x.shape  # noqa: E741
    num_in, num_out = weight.shape[:2] if transposed else weight.shape[1::-1]
    _require((x, weight), (num_in, num_out))
    if weight.shape[2:] != (3, 3) or num_in != I:
        raise ValueError(f"weights of shape {tuple(weight.shape)} do not fit {tuple(x.shape)}")
    x, weight = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, weight))
    y: Tensor = _like_output(x, weight, transposed)
    _call("convolution", (x, weight, y), (N, H, W, I, num_out, torch.get_num_threads()), int(transposed))
    return y


@convolution.register_fake
def _like_output(x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    shape = (x.shape[0], weight.shape[1 if transposed else 0], *x.shape[2:])
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


@torch.library.custom_op("dividemix::weight_gradient", mutates_args=(), device_types="cpu")
def weight_gradient(x: Tensor, dy: Tensor) -> Tensor:
    """The gradient (O, I, 3, 3) of the weights of a convolution, from its input x and the gradient dy of its output."""
    (N, I, H, W), O = x.shape, dy.shape[1]  # noqa: E741
    _require((x, dy), (I, O))
    if dy.shape != (N, O, H, W):
        raise ValueError(f"no convolution of stride 1 turns {tuple(x.shape)} into {tuple(dy.shape)}")
    x, dy = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, dy))
    dw: Tensor = _like_weights(x, dy)
    _call("weight_gradient", (x, dy, dw), (N, H, W, I, O, torch.get_num_threads()))
    return dw


@weight_gradient.register_fake
def _like_weights(x: Tensor, dy: Tensor) -> Tensor:
    shape = (dy.shape[1], x.shape[1], 3, 3)
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)


def _require(tensors: Sequence[Tensor], channels: Sequence[int]) -> None:
    types = [tensor.dtype for tensor in tensors]
    if any(dtype != torch.float32 for dtype in types) or any(number % 16 for number in channels):
        raise ValueError(f"types {types}, channels {channels}: must be float32 and a multiple of 16")


def _call(name: str, tensors: Sequence[Tensor], sizes: Sequence[int], *flags: int) -> None:
    """Call a function of the library with the working memory that it asks for."""
    numbers = [ctypes.c_int64(number) for number in sizes]
    workspace = tensors[0].new_empty(getattr(load_library(), f"{name}_workspace")(*numbers))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, workspace)]
    getattr(load_library(), name)(*pointers, *numbers, *map(ctypes.c_int64, flags))
