"""Faster forwards: compilation, and shorter floating-point types.

Both replace `net.forward` on the instance, so parameter names do not change, and checkpoints stay valid.
"""

import warnings
from collections.abc import Callable
from copy import copy, deepcopy

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from dividemix.engine.compile_cache import use_private_cache
from dividemix.engine.kernels.choice import use_torch_kernels
from dividemix.engine.memory import is_out_of_memory
from dividemix.engine.trial import try_forward
from dividemix.errors import CompilationWarning

# The operations of a training from which compiling, which takes a minute, saves time: about ten minutes of training on
# two CPU cores or on a GPU.
_WORTHWHILE_FLOPS = {"cpu": 1e14, "cuda": 1e16}
_AUTOCAST = "_dividemix_autocast"  # an attribute of a net: the device and the type that autocast_net gave it


def worth_compiling(net: nn.Module, image_shape: tuple[int, ...], num_rows: float, device: torch.device) -> bool:
    """Whether compiling saves time in a training that forwards num_rows images of (H, W, channels), or vectors of (D,).

    The number of operations decides, not a clock, so that a resumed run decides as it did at first.
    """
    if device.type not in _WORTHWHILE_FLOPS:
        return False
    with FlopCounterMode(display=False) as counter:
        try_forward(net, image_shape)
    flops: int = counter.get_total_flops()
    return flops / 2 * num_rows >= _WORTHWHILE_FLOPS[device.type]


def compile_net(net: nn.Module) -> None:
    """Compile net's forward, for each shape it meets.

    If that fails, one warning says so, and net continues uncompiled with torch's kernels.
    """
    use_private_cache()
    eager: Callable[[Tensor], Tensor] = net.forward
    compiled = torch.compile(eager, dynamic=False)

    def forward(images: Tensor) -> Tensor:
        try:
            return compiled(images)
        except Exception as error:  # anything, such as a missing C++ compiler or an unknown operation
            if is_out_of_memory(error):
                raise
            net.forward = eager
            use_torch_kernels(net)
            reason = str(error).partition("\n")[0]
            message = f"compilation failed, training continues without it ({type(error).__name__}: {reason})"
            warnings.warn(message, CompilationWarning, stacklevel=2)
            return eager(images)

    net.forward = forward


def autocast_net(net: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Let net's forward compute in a shorter floating-point type where that is safe; the logits stay float32."""
    net.forward = _autocast(net.forward, device, dtype)
    vars(net)[_AUTOCAST] = device, dtype


def in_type_of(net: nn.Module, part: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The part of a net, to be called by itself; it computes in the floating-point type that net's forward has."""
    return _autocast(part, *vars(net)[_AUTOCAST]) if _AUTOCAST in vars(net) else part


def _autocast(
    plain: Callable[[Tensor], Tensor], device: torch.device, dtype: torch.dtype
) -> Callable[[Tensor], Tensor]:
    def forward(x: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=dtype):
            return plain(x).float()

    return forward


def in_float32(net: nn.Module) -> nn.Module:
    """The same net with the same weights, whose forward is uncompiled and computes in float32."""
    same = copy(net)
    vars(same).pop("forward", None)
    return same


def copied(net: nn.Module) -> nn.Module:
    """A copy of net with weights of its own, which computes in the same floating-point type, but uncompiled."""
    other = deepcopy(net)
    vars(other).pop("forward", None)  # one that was replaced computes with the weights of the original
    if _AUTOCAST in vars(net):
        autocast_net(other, *vars(net)[_AUTOCAST])
    return other
