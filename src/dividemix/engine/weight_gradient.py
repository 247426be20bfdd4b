"""A faster gradient of 3 x 3 convolutions' weights on CPUs with AVX2, the slowest part of a training step there.

torch's own runs at half of what these processors can do (LOG.md). The sums are the same, in another order. The C++
beside this file is compiled when it is first needed, which takes a second.

Shapes: x (N, I, H, W), dy (N, O, H', W'), weight (O, I, 3, 3), all float32 in channels_last.
"""

import ctypes
import os
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SOURCE = Path(__file__).with_suffix(".cpp")
# Reusing numbers of x from one pixel for the next costs more moves than it saves loads: a third of the speed.
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fno-predictive-commoning", "-fopenmp", "-shared", "-fPIC")


def accelerate_weight_gradients(net: nn.Module) -> None:
    """Let the net's 3 x 3 convolutions compute their weights' gradient here, where that is faster.

    Raises:
        OSError: if there is no C++ compiler, or it fails; the net is as it was.
    """
    if torch.backends.cpu.get_cpu_capability() != "AVX2":  # what it was measured on
        return
    convolutions = [module for module in net.modules() if _suits(module)]
    if convolutions:
        _library()
    for conv in convolutions:
        conv.forward = partial(_forward, conv)  # type: ignore[method-assign]


def _suits(module: nn.Module) -> TypeGuard[nn.Conv2d]:
    return (
        type(module) is nn.Conv2d
        and module.kernel_size == (3, 3)
        and module.padding == (1, 1)
        and module.stride in ((1, 1), (2, 2))
        and module.dilation == (1, 1)
        and module.groups == 1
        and module.padding_mode == "zeros"
        and module.bias is None
        and module.in_channels % 2 == 0
        and module.in_channels >= 16
        and module.out_channels % 16 == 0
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
    )


def _forward(conv: nn.Conv2d, x: Tensor) -> Tensor:
    if torch.is_autocast_enabled(x.device.type):
        return F.conv2d(x, conv.weight, stride=conv.stride, padding=1)
    output: Tensor = _Convolution.apply(x, conv.weight, conv.stride)  # type: ignore[no-untyped-call]
    return output


class _Convolution(torch.autograd.Function):
    """A convolution whose weights' gradient is computed here, all else by torch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: tuple[int, int]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        return F.conv2d(x, weight, stride=stride, padding=1)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        dx = dw = None
        if ctx.needs_input_grad[0]:
            fixed = (None, ctx.stride, (1, 1), (1, 1), False, (0, 0), 1)  # no bias, padding and dilation 1, one group
            dx = torch.ops.aten.convolution_backward(dy, x, weight, *fixed, output_mask=(True, False, False))[0]
        if ctx.needs_input_grad[1]:
            dw = weight_gradient(x, dy, ctx.stride[0])
        return dx, dw, None


@torch.library.custom_op("dividemix::weight_gradient", mutates_args=(), device_types="cpu")
def weight_gradient(x: Tensor, dy: Tensor, stride: int) -> Tensor:
    """The gradient (O, I, 3, 3) of the weights whose convolution took x to an output with the gradient dy."""
    x, dy = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (x, dy))
    dw: Tensor = _like_weights(x, dy, stride)
    N, I, H, W = x.shape  # noqa: E741
    shape = [ctypes.c_long(size) for size in (N, H, W, I, dy.shape[1], stride, torch.get_num_threads())]
    workspace = torch.empty(_library().workspace_size(*shape))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, dy, dw, workspace)]
    _library().weight_gradient(*pointers, *shape)
    return dw


@weight_gradient.register_fake
def _like_weights(x: Tensor, dy: Tensor, stride: int) -> Tensor:
    return x.new_empty(dy.shape[1], x.shape[1], 3, 3).contiguous(memory_format=torch.channels_last)


@cache
def _library() -> ctypes.CDLL:
    """The C++ beside this file, compiled for this machine."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "weight_gradient.so"
        compiler = os.environ.get("CXX", "g++")
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(library)]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode:
            raise OSError(f"{compiler} cannot compile {_SOURCE.name}: {result.stderr.strip()}")
        loaded = ctypes.CDLL(str(library))
    loaded.workspace_size.restype = ctypes.c_long
    return loaded
