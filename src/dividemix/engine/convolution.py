"""Faster 3 x 3 convolutions on CPUs with AVX2, where they are most of a training step.

They take less than half of the multiplications (winograd.cpp), for the output and for both gradients, and round as well
as torch's (LOG.md). The C++ is compiled when it is first needed, which takes a second.

Shapes: x (N, I, H, W), y (N, O, H, W), weight (O, I, 3, 3), all float32 in channels_last.
"""

import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

_SOURCE = Path(__file__).with_name("winograd.cpp")
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")


def accelerate_convolutions(net: nn.Module) -> list[nn.Conv2d]:
    """Let the net's 3 x 3 convolutions be computed here, which is faster in batches to train on; returns which are.

    They become `OwnConv2d`s: another class, and not another `forward` on each, because a compiled forward is
    shared by two nets of the same classes alone.

    Raises:
        OSError: if there is no C++ compiler, or it fails; the net is as it was.
    """
    if not sys.platform.startswith("linux") or torch.backends.cpu.get_cpu_capability() != "AVX2":
        return []  # where it has not been measured
    convolutions = [module for module in net.modules() if _suits(module)]
    if convolutions:
        _library()
    for conv in convolutions:
        conv.__class__ = OwnConv2d
    return convolutions


def _suits(module: nn.Module) -> TypeGuard[nn.Conv2d]:
    return (
        type(module) is nn.Conv2d
        and "forward" not in vars(module)  # of somebody else's
        and module.kernel_size == (3, 3)
        and module.padding == (1, 1)
        and module.stride == (1, 1)
        and module.dilation == (1, 1)
        and module.groups == 1
        and module.padding_mode == "zeros"
        and module.bias is None
        and module.in_channels % 16 == 0
        and module.out_channels % 16 == 0
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
    )


class OwnConv2d(nn.Conv2d):
    """A convolution that `_suits`; it has no second derivatives."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, I, H, W) to (N, O, H, W)."""
        as_made = all(each.device.type == "cpu" and each.dtype == torch.float32 for each in (input, self.weight))
        if input.ndim != 4 or not as_made or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        output: Tensor = _Convolution.apply(input, self.weight)  # type: ignore[no-untyped-call]
        return output


class _Convolution(torch.autograd.Function):
    """A convolution and its gradients, computed here."""

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
    """The convolution of x at stride 1; `transposed`, of the gradient of an output to that of its input."""
    N, I, H, W = x.shape  # noqa: E741
    num_in, num_out = weight.shape[:2] if transposed else weight.shape[1::-1]
    _require((x, weight), (num_in, num_out))
    if weight.shape[2:] != (3, 3) or num_in != I:
        raise ValueError(f"weights of shape {tuple(weight.shape)} do not go with {tuple(x.shape)}")
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
    """The gradient (O, I, 3, 3) of the weights whose convolution took x to an output with the gradient dy."""
    (N, I, H, W), O = x.shape, dy.shape[1]  # noqa: E741
    _require((x, dy), (I, O))
    if dy.shape != (N, O, H, W):
        raise ValueError(f"no convolution of stride 1 takes {tuple(x.shape)} to {tuple(dy.shape)}")
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
        raise ValueError(f"float32 and channels that are a multiple of 16 are needed, not {types} and {channels}")


def _call(name: str, tensors: Sequence[Tensor], sizes: Sequence[int], *flags: int) -> None:
    """Call a function of the library, with memory to work in."""
    numbers = [ctypes.c_int64(number) for number in sizes]
    workspace = tensors[0].new_empty(getattr(_library(), f"{name}_workspace")(*numbers))
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*tensors, workspace)]
    getattr(_library(), name)(*pointers, *numbers, *map(ctypes.c_int64, flags))


@cache
def _library() -> ctypes.CDLL:
    """The C++ beside this file, compiled for this machine, on the same library of threads as torch."""
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    threads = map(str, (Path(torch.__file__).parent / "lib").glob("libgomp*"))  # before the system's, then not needed
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        library = Path(folder) / "convolution.so"
        command = [*compiler, *_FLAGS, "-Wl,--as-needed", str(_SOURCE), "-o", str(library), *threads]
        result = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
        if result.returncode:
            raise OSError(f"{compiler[0]} cannot compile {_SOURCE.name}: {result.stderr.strip()}")
        loaded = ctypes.CDLL(str(library))
    loaded.convolution_workspace.restype = loaded.weight_gradient_workspace.restype = ctypes.c_int64
    return loaded
