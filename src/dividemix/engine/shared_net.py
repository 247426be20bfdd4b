"""A net whose work several processes share: each computes its rows of a batch, and all get all rows.

Every process holds the same weights and the whole batch, and computes the same loss from all rows. So a method needs to
know nothing of processes: selection, mixing and weighting within a batch see the whole batch. torch's
DistributedDataParallel would give each process the loss of its own rows only.

Two rules of differentiation make it exact. The gradient of gathered rows is the process's own rows. The gradient of a
weight is the sum over the processes. Both hold for second derivatives and for forward-mode derivatives, too.

Shapes: R rows in a batch, r of them in this process.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import Function

from dividemix.engine import processes

_is_sharing = False  # whether a net computes the rows of this process now


def synchronise_batchnorm(net: nn.Module) -> None:
    """Let BatchNorm take its statistics over the rows of all processes, in the same way for any number of them."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.__class__ = SyncedBatchNorm2d
        elif isinstance(module, nn.BatchNorm1d):
            module.__class__ = SyncedBatchNorm1d


def share_net(net: nn.Module, *, sync_batchnorm: bool) -> None:
    """Let the processes share the work of net's forwards and backwards.

    BatchNorm takes its statistics over the rows of each process, and the running statistics are their mean; with
    `sync_batchnorm` it takes them over all rows. A batch with fewer than two rows a process is computed by each.
    """
    local: Callable[[Tensor], Tensor] = net.forward
    if sync_batchnorm:
        synchronise_batchnorm(net)

    def forward(x: Tensor) -> Tensor:
        global _is_sharing
        if _is_sharing or processes.count() == 1 or len(x) < 2 * processes.count():
            return local(x)
        _is_sharing = True
        try:
            parameters = _linked_parameters(net)
            # The call comes back to this function, which then computes the process's own rows.
            y: Tensor = torch.func.functional_call(net, parameters, (own_rows(x),))
        finally:
            _is_sharing = False
        if net.training and not sync_batchnorm:
            _average_statistics(net)
        gathered: Tensor = _Gather.apply(y, len(x))  # type: ignore[no-untyped-call]
        return gathered

    net.forward = forward


def own_rows(x: Tensor) -> Tensor:
    """The rows of this process: shares differ by at most one row."""
    return x.tensor_split(processes.count())[processes.own_number()]


def linked(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The same tensors. Inside a shared forward, their gradients are summed over the processes."""
    if not (_is_sharing and torch.is_grad_enabled()):
        return tensors
    result: tuple[Tensor, ...] = _Link.apply(*tensors)  # type: ignore[no-untyped-call]
    return result


def _linked_parameters(net: nn.Module) -> dict[str, Tensor]:
    """The parameters that need gradients, linked."""
    trained = {name: value for name, value in net.named_parameters() if value.requires_grad}
    return dict(zip(trained, linked(*trained.values()), strict=True)) if trained else {}


class _Gather(Function):
    """The rows (R, ...) of all processes from those of each (r, ...)."""

    @staticmethod
    def forward(local: Tensor, num_rows: int) -> Tensor:
        return _all_rows(local, num_rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.num_rows = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _OwnRows.apply(gradient, ctx.num_rows), None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return _all_rows(tangent, ctx.num_rows)


class _OwnRows(Function):
    """The rows of this process, from all: the opposite of `_Gather`."""

    @staticmethod
    def forward(rows: Tensor, num_rows: int) -> Tensor:
        return own_rows(rows).clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.num_rows = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Gather.apply(gradient, ctx.num_rows), None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return own_rows(tangent).clone()


class _Link(Function):
    """Tensors that are the same in all processes; each process adds its share to their gradients."""

    @staticmethod
    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return _where_given(_Sum, gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(tangent.view_as(tangent) for tangent in tangents)


class _Sum(Function):
    """Sums over the processes of what each has: the opposite of `_Link`."""

    @staticmethod
    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        return _summed(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return _where_given(_Link, gradients)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> tuple[Tensor, ...]:
        return _summed(tangents)


class _Total(Function):
    """A sum over the processes whose result each uses for its own rows, so that its gradient is a sum, too."""

    @staticmethod
    def forward(tensor: Tensor) -> Tensor:
        return _summed((tensor,))[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total: Tensor = _Total.apply(gradient)  # type: ignore[no-untyped-call]
        return total

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:
        return _summed((tangent,))[0]


def _where_given(function: type[Function], gradients: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """The function of those gradients that are not None, each in its place."""
    given = [gradient for gradient in gradients if gradient is not None]
    results = iter(function.apply(*given) if given else ())
    return tuple(None if gradient is None else next(results) for gradient in gradients)


def _summed(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Sums over the processes, by one collective for all tensors of one type."""
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    dist.all_reduce(flat)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _all_rows(local: Tensor, num_rows: int) -> Tensor:
    """All rows (R, ...), in order, from the rows (r, ...) of each process."""
    num_processes = processes.count()
    longest, sizes = -(-num_rows // num_processes), [num_rows // num_processes] * num_processes
    for i in range(num_rows % num_processes):
        sizes[i] += 1
    padded = local.detach().new_zeros(longest, *local.shape[1:])
    padded[: len(local)] = local.detach()
    parts = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(parts, padded)
    return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])


@torch.no_grad()
def _average_statistics(net: nn.Module) -> None:
    """Make the running statistics of BatchNorm the mean over the processes."""
    statistics = tuple(buffer for buffer in net.buffers() if buffer.is_floating_point())
    if statistics:
        for buffer, total in zip(statistics, _summed(statistics), strict=True):
            # .data: autograd must not see the change, or it refuses the backward of this forward, which needs no means.
            buffer.data.copy_(total / processes.count())


class _Synced(nn.modules.batchnorm._BatchNorm):
    """BatchNorm over the rows of all processes, by one sum over them, which does not depend on their number.

    On a CPU the sum is one of float64: its order then does not show. torch's own statistics of float32 in channels_last
    err by 2e-5, so one process has to compute as several do.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        across = [dimension for dimension in range(x.ndim) if dimension != 1]
        shape = [1, -1] + [1] * (x.ndim - 2)
        wide = torch.float64 if x.device.type == "cpu" else torch.float32
        number = x.new_tensor([x.numel() / x.shape[1]], dtype=wide)
        sums = torch.cat([x.sum(across, dtype=wide), x.square().sum(across, dtype=wide), number])
        if _is_sharing:
            sums = _Total.apply(sums)  # type: ignore[no-untyped-call]
        first, second, number = sums.split([x.shape[1], x.shape[1], 1])
        mean = first / number
        var = (second / number - mean.square()).clamp(min=0)
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            with torch.no_grad():
                assert self.num_batches_tracked is not None
                self.num_batches_tracked.add_(1)
                share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
                self.running_mean.lerp_(mean.detach().to(self.running_mean), share)
                unbiased = var.detach() * number / (number - 1).clamp(min=1)
                self.running_var.lerp_(unbiased.to(self.running_var), share)
        scale = torch.rsqrt(var + self.eps).to(x.dtype)
        out: Tensor = (x - mean.to(x.dtype).view(shape)) * scale.view(shape)
        if self.affine:
            out = out * self.weight.view(shape) + self.bias.view(shape)
        return out


class SyncedBatchNorm1d(_Synced, nn.BatchNorm1d):
    """For vectors."""


class SyncedBatchNorm2d(_Synced, nn.BatchNorm2d):
    """For images."""
