"""Making a net's forward fast on its device: compilation, and shorter floating-point types.

Both replace `net.forward` on the instance, so that parameter names, and with them checkpoints, stay as they are.
"""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from dividemix.engine.convolution import accelerate_convolutions
from dividemix.engine.memory import is_out_of_memory
from dividemix.errors import CompilationWarning

# Arithmetic from which on a compiled forward earns back the minute that compiling takes: on two CPU cores some ten
# minutes of training, on a GPU about as long.
_WORTHWHILE_FLOPS = {"cpu": 1e14, "cuda": 1e16}


def worth_compiling(net: nn.Module, image_shape: tuple[int, ...], num_rows: float, device: torch.device) -> bool:
    """Whether compiling pays for a training that forwards num_rows images of (H, W, channels), or vectors of (D,).

    Judged by the arithmetic, not by a clock, so that a resumed run decides as the first one did.
    """
    if device.type not in _WORTHWHILE_FLOPS:
        return False
    *size, channels = image_shape
    was_training = net.training
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net.eval()(torch.zeros(2, channels, *size, device=device))
    net.train(was_training)
    flops: int = counter.get_total_flops()
    return flops / 2 * num_rows >= _WORTHWHILE_FLOPS[device.type]


def compile_net(net: nn.Module) -> None:
    """Compile net's forward, for each shape it meets; where that fails it goes on as it was, with one warning.

    On some CPUs its convolutions become our own, too (convolution.py).
    """
    eager: Callable[[Tensor], Tensor] = net.forward
    accelerated: list[nn.Conv2d] = []
    try:
        accelerated = accelerate_convolutions(net)
    except FileNotFoundError:
        pass  # no C++ compiler: if torch needs one, too, it fails below and is heard there
    except OSError as error:
        _warn("convolutions stay torch's own", error)
    compiled = torch.compile(eager, dynamic=False)

    def forward(images: Tensor) -> Tensor:
        try:
            return compiled(images)
        except Exception as error:  # a missing C++ compiler, an operation it does not know: anything
            if is_out_of_memory(error):
                raise
            net.forward = eager
            for conv in accelerated:
                conv.__class__ = nn.Conv2d
            _warn("compilation failed, training goes on without it", error)
            return eager(images)

    net.forward = forward


def _warn(what: str, error: Exception) -> None:
    first_line = (str(error).splitlines() or [""])[0]
    warnings.warn(f"{what} ({type(error).__name__}: {first_line})", CompilationWarning, stacklevel=3)


def autocast_net(net: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Let net's forward compute in a shorter floating-point type where that is safe; its logits are float32 again."""
    plain: Callable[[Tensor], Tensor] = net.forward

    def forward(images: Tensor) -> Tensor:
        with torch.autocast(device.type, dtype=dtype):
            return plain(images).float()

    net.forward = forward
