"""Choosing between torch's kernels and our own, and using the chosen ones.

`auto` measures, and two measurements can disagree. To repeat a training, store the word that was chosen and pass that
word later. Our own kernels have no second derivatives: a method that needs them must use torch's.
"""

import sys
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from dividemix.engine.kernels.convolution import SUITABLE, OwnConv2d, suits
from dividemix.engine.kernels.library import load_library
from dividemix.engine.kernels.timing import KernelSeconds, suitable_layers, time_kernels
from dividemix.errors import CompilationWarning, InputError

_MARGIN = 0.9  # `auto` takes our own kernels if they need at most this share of torch's time


@dataclass(frozen=True)
class KernelChoice:
    """The kernels to use, and the measurement that decided; None if none was needed."""

    kernels: Literal["torch", "own"]
    seconds: KernelSeconds | None = None


def choose_kernels(
    word: str, net: nn.Module, image_shape: tuple[int, ...], batch_size: int, *, worth_measuring: bool = True
) -> KernelChoice:
    """The kernels that `auto`, `torch` or `own` means for a net on images (H, W, channels); net stays as it was.

    `auto` is `own` if that is measured to be faster on this CPU by a tenth, and `torch` if not `worth_measuring`.
    Raises InputError if the word is `own` and they cannot be used, or it is unknown.
    """
    if word not in ("auto", "torch", "own"):
        raise InputError(f"kernels is {word!r}: it must be auto, torch or own")
    if word == "torch" or (word == "auto" and not worth_measuring):
        return KernelChoice("torch")
    is_supported = sys.platform == "linux" and torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    layers = suitable_layers(net, image_shape) if is_supported else []
    if not layers:
        if word == "auto":
            return KernelChoice("torch")
        needed = f"a net with {SUITABLE}" if is_supported else "Linux and an x86 CPU with AVX2 or AVX-512"
        raise InputError(f"kernels is own, which needs {needed}: use torch")
    try:
        load_library()
    except OSError as error:
        reason = str(error).partition("\n")[0]
        if word == "own":
            remedy = "install g++, or name a C++ compiler in the environment variable CXX, or use torch"
            raise InputError(f"kernels is own, which cannot be compiled ({reason}): {remedy}") from error
        if not isinstance(error, FileNotFoundError):  # a machine without a compiler is no surprise
            message = f"our own kernels cannot be compiled, torch's are used ({reason})"
            warnings.warn(message, CompilationWarning, stacklevel=2)
        return KernelChoice("torch")
    if word == "own":
        return KernelChoice("own")
    seconds = time_kernels(layers, batch_size)
    return KernelChoice("own" if seconds.own <= _MARGIN * seconds.torch else "torch", seconds)


def use_own_kernels(net: nn.Module) -> list[nn.Conv2d]:
    """Let our own kernels compute the convolutions that suit them, compiled or not; returns these.

    They become `OwnConv2d`s. Their class changes, and not the `forward` of each, because two nets share a compiled
    forward only if their modules have the same classes. Raises OSError, and leaves net as it was, if the kernels cannot
    be compiled.
    """
    convolutions = [module for module in net.modules() if suits(module)]
    if convolutions:
        load_library()
    for conv in convolutions:
        conv.__class__ = OwnConv2d
    return convolutions


def use_torch_kernels(net: nn.Module) -> None:
    """Let torch compute all convolutions again."""
    convolutions: list[nn.Module] = [module for module in net.modules() if isinstance(module, OwnConv2d)]
    for conv in convolutions:
        conv.__class__ = nn.Conv2d
