"""How long torch's kernels and our own take for a net's convolutions on this CPU."""

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.engine.kernels.convolution import convolve, suits
from dividemix.engine.trial import try_forward

Layer = tuple[torch.Size, torch.Size]  # weight (O, I, 3, 3); one image of its input (I, H, W)

# The least work of a thread in a layer from which the time of a whole batch follows. With less, the cost of a call or
# of transforming the weights counts too much.
_MIN_FLOPS = 5e8
_MIN_PIXELS = 576
_REPEATS = 3


@dataclass(frozen=True)
class KernelSeconds:
    """Seconds of one batch, forward and backward, through the convolutions that suit our own kernels."""

    torch: float
    own: float


def suitable_layers(net: nn.Module, image_shape: tuple[int, ...]) -> list[Layer]:
    """The calls of one forward that our own kernels can take over, which they cannot under autocast."""
    layers: list[Layer] = []

    def record(conv: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if not torch.is_autocast_enabled("cpu"):
            assert isinstance(conv, nn.Conv2d)
            layers.append((conv.weight.shape, inputs[0].shape[1:]))

    hooks = [module.register_forward_pre_hook(record) for module in net.modules() if suits(module)]
    try:
        if hooks:
            try_forward(net, image_shape)
    finally:
        for hook in hooks:
            hook.remove()
    return layers


def time_kernels(layers: list[Layer], batch_size: int) -> KernelSeconds:
    """Measure both kernels in turn, on each distinct layer; medians, with as many threads as torch is set to use.

    Large layers are measured on a part of the batch, so that all of it takes less than a second. No random number is
    drawn: a training has the same bits, measured or not.
    """
    totals = {"torch": 0.0, "own": 0.0}
    for (weight_shape, image_shape), count in Counter(layers).items():
        num_pixels = image_shape[1:].numel()
        num_flops = 6 * weight_shape.numel() * num_pixels  # of an image: the output and both gradients
        enough = torch.get_num_threads() * max(_MIN_FLOPS / num_flops, _MIN_PIXELS / num_pixels)
        num_rows = min(math.ceil(enough), batch_size)
        x, weight = (
            torch.ones(shape).to(memory_format=torch.channels_last).requires_grad_()
            for shape in ((num_rows, *image_shape), weight_shape)
        )
        works = {"torch": lambda x, weight: F.conv2d(x, weight, padding=1), "own": convolve}
        rounds = [{name: _seconds(work, x, weight) for name, work in works.items()} for _ in range(1 + _REPEATS)]
        for name in totals:  # the first round does not count: memory is allocated there
            totals[name] += count * batch_size / num_rows * median(seconds[name] for seconds in rounds[1:])
    return KernelSeconds(**totals)


def _seconds(work: Callable[[Tensor, Tensor], Tensor], x: Tensor, weight: Tensor) -> float:
    began = time.perf_counter()
    with torch.enable_grad():
        y = work(x, weight)
    torch.autograd.grad(y, (x, weight), torch.ones_like(y))
    return time.perf_counter() - began
