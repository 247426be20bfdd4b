"""Layers that compute the rows of a process block by block, so that the number of processes does not show.

The gradient of a weight is a sum over rows, and so are BatchNorm's statistics. In float32 such sums depend on how the
rows are divided, and training amplifies the difference. So a batch has the same blocks for one, two and four processes,
and each block is computed by itself: the sums then have the same bits. Layers without weights work on each row by
itself, and need no blocks.

Shapes: R rows in a batch; b blocks in this process; C channels.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dividemix.engine.kernels.convolution import OwnConv2d
from dividemix.engine.sharing import Sharing
from dividemix.errors import InputError

Slot: TypeAlias = tuple[dict[str, Any], str]  # where a module holds a tensor: the dictionary and the name

_sharing: Sharing | None = None  # of the forward that is computed now
_copies: dict[int, tuple[Tensor, ...]] = {}  # by the id of a weight's first copy: one copy for each block


def weights_of(net: nn.Module) -> list[Slot]:
    """Where the net's modules hold their weights."""
    return [(module._parameters, name) for module in net.modules() for name in module._parameters]


@contextmanager
def shared_forward(slots: Sequence[Slot], sharing: Sharing) -> Iterator[None]:
    """While inside, layers compute in blocks, and gradients of the weights in the slots are summed.

    torch.func.functional_call would exchange the weights, too, but looks through all modules in every forward.
    """
    global _sharing
    before = [holder[name] for holder, name in slots]
    trained = {id(value): value for value in before if value is not None and value.requires_grad}
    _sharing = sharing
    try:
        if trained and torch.is_grad_enabled():
            copies = dict(zip(trained, sharing.link(*trained.values()), strict=True))
            _copies.update({id(each[0]): each for each in copies.values()})
            for (holder, name), value in zip(slots, before, strict=True):
                if id(value) in copies:
                    holder[name] = copies[id(value)][0]
        yield
    finally:
        for (holder, name), value in zip(slots, before, strict=True):
            holder[name] = value
        _sharing = None
        _copies.clear()


def by_blocks(function: Callable[..., Tensor], x: Tensor, *weights: Tensor | None) -> Tensor:
    """function(x, *weights), computed for each block of rows by itself while a forward is shared."""
    if _sharing is None:
        return function(x, *weights)
    copies = [_of_each_block(weight) for weight in weights]
    blocks = x.tensor_split(_sharing.num_blocks)
    return _joined([function(rows, *own) for rows, *own in zip(blocks, *copies, strict=True)])


def _of_each_block(weight: Tensor | None) -> tuple[Tensor | None, ...]:
    """The weight for each block; one that is not among the net's weights is linked here.

    A weight that a layer makes of others in every forward, as weight_norm does, gets the sum over the blocks of this
    process alone: the net's weights that it is made of get the sum over the processes.
    """
    if _sharing is None:
        return (weight,)
    if weight is None or not (torch.is_grad_enabled() and weight.requires_grad):
        return (weight,) * _sharing.num_blocks
    sharing = _sharing if weight.is_leaf else replace(_sharing, num_processes=1)
    return _copies.get(id(weight)) or sharing.link(weight)[0]


def compute_by_blocks(net: nn.Module) -> None:
    """Let convolutions and linear layers compute in blocks, and BatchNorm take its statistics over all rows.

    Raises InputError for a BatchNorm of another class: its statistics would differ between processes.
    """
    for module in net.modules():
        if type(module) in _BY_BLOCKS:
            module.__class__ = _BY_BLOCKS[type(module)]
        elif isinstance(module, nn.modules.batchnorm._BatchNorm) and not isinstance(module, _BatchNorm):
            raise InputError(
                f"sync_batchnorm is true: the net has a {type(module).__name__}, which cannot be synchronised; leave"
                " sync_batchnorm out"
            )


class _Conv2d(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return by_blocks(self._conv_forward, x, self.weight, self.bias)


class _OwnConv2d(_Conv2d, OwnConv2d):
    pass


class _Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return by_blocks(F.linear, x, self.weight, self.bias)


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """BatchNorm over the rows of all blocks of all processes, by one sum over them.

    On a CPU the sum is one of float64: torch's own statistics of float32 in channels_last err by 2e-5.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        if x.dtype in (torch.bfloat16, torch.float16):  # too short for statistics
            return self.forward(x.float()).to(x.dtype)
        blocks = x.tensor_split(_sharing.num_blocks if _sharing else 1)
        sums = torch.stack([_sums(rows) for rows in blocks])
        totals = _sharing.total(sums) if _sharing else sums
        first, second, number = totals.split([x.shape[1], x.shape[1], 1], dim=1)
        mean = first / number
        var = (second / number - mean.square()).clamp(min=0)
        self._remember(mean[0].detach(), var[0].detach(), number[0].detach())
        scale = torch.rsqrt(var + self.eps)
        moments = (each.to(x.dtype).unbind() for each in (mean, scale))
        weights = (_of_each_block(each) for each in (self.weight, self.bias))
        return _joined([_normalised(*own) for own in zip(blocks, *moments, *weights, strict=True)])

    @torch.no_grad()
    def _remember(self, mean: Tensor, var: Tensor, number: Tensor) -> None:
        """Move the running statistics."""
        if not self.track_running_stats or self.running_mean is None or self.running_var is None:
            return
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        unbiased = var * number / (number - 1).clamp(min=1)
        self.running_var.lerp_(unbiased.to(self.running_var), share)


class _BatchNorm1d(_BatchNorm, nn.BatchNorm1d):
    pass


class _BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    pass


_BY_BLOCKS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Conv2d: _Conv2d,
    OwnConv2d: _OwnConv2d,
    nn.Linear: _Linear,
    nn.BatchNorm1d: _BatchNorm1d,
    nn.BatchNorm2d: _BatchNorm2d,
}


def _sums(x: Tensor) -> Tensor:
    """The sums (2 C + 1,) over rows and pixels of x, of its square, and their number."""
    across = [dimension for dimension in range(x.ndim) if dimension != 1]
    wide = torch.float64 if x.device.type == "cpu" else torch.float32
    number = x.new_tensor([x.numel() / x.shape[1]], dtype=wide)
    return torch.cat([x.sum(across, dtype=wide), x.square().sum(across, dtype=wide), number])


def _normalised(x: Tensor, mean: Tensor, scale: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """(x - mean) * scale * weight + bias, where all but x (R, C, ...) have one number for each channel (C,)."""
    shape = [-1] + [1] * (x.ndim - 2)
    out = (x - mean.view(shape)) * scale.view(shape)
    return out if weight is None or bias is None else out * weight.view(shape) + bias.view(shape)


def _joined(blocks: list[Tensor]) -> Tensor:
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks)
