"""How several processes share a forward, and the differentiable exchanges between them.

Every process holds the same weights and the whole batch. It computes its rows of the batch, in one block or in several,
one after the other. Two rules of differentiation make that exact. The gradient of gathered rows is the process's own
rows. The gradient of a weight is the sum over blocks and processes. Both hold for second derivatives and for
forward-mode derivatives, too.

Sums of floating-point numbers depend on their order. They are taken pair by pair over the blocks, and then over the
processes: ((1 + 2) + (3 + 4)) for four blocks, whoever computed them.

Shapes: R rows in a batch, r of them in this process; b blocks in this process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function


@dataclass(frozen=True)
class Sharing:
    """Who computes which rows of a batch."""

    num_processes: int
    own_number: int  # of this process, from 0
    num_blocks: int = 1  # of each process: b
    in_order: bool = False  # whether sums over the processes are taken pair by pair, too

    def shares(self, num_rows: int) -> list[int]:
        """The number of rows of each process. Blocks differ by at most one row, the larger ones come first."""
        total, b = self.num_processes * self.num_blocks, self.num_blocks
        blocks = [num_rows // total + (i < num_rows % total) for i in range(total)]
        return [sum(blocks[first : first + b]) for first in range(0, total, b)]

    def own_rows(self, x: Tensor) -> Tensor:
        """The rows of this process."""
        own: Tensor = x.split(self.shares(len(x)))[self.own_number]
        return own

    def gather(self, rows: Tensor, num_rows: int, statistics: Sequence[Tensor] = ()) -> tuple[Tensor, list[Tensor]]:
        """All rows (R, ...) from those of each process (r, ...), and the means over the processes of statistics."""
        if self.num_processes == 1:
            return rows, list(statistics)
        gathered, *means = _Gather.apply(self, num_rows, rows, *statistics)  # type: ignore[no-untyped-call]
        return gathered, means

    def link(self, *tensors: Tensor) -> list[tuple[Tensor, ...]]:
        """Of each tensor one copy for each block of this process. Its gradient is the sum over all blocks."""
        copies: tuple[Tensor, ...] = _Link.apply(self, *tensors)  # type: ignore[no-untyped-call]
        return [copies[i : i + self.num_blocks] for i in range(0, len(copies), self.num_blocks)]

    def total(self, sums: Tensor) -> Tensor:
        """The sum of all blocks of all processes in every row, from the row (b, ...) of each block."""
        total: Tensor = _Total.apply(self, sums)  # type: ignore[no-untyped-call]
        return total

    def summed(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Sums over the processes, by one collective for all tensors of one type."""
        flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        if self.in_order and self.num_processes > 2:  # the sum of two does not depend on their order
            parts = [torch.empty_like(flat) for _ in range(self.num_processes)]
            dist.all_gather(parts, flat)
            flat = sum_in_pairs(parts)
        else:
            dist.all_reduce(flat)
        sums = flat.split([tensor.numel() for tensor in tensors])
        return tuple(part.view(tensor.shape) for part, tensor in zip(sums, tensors, strict=True))


def sum_in_pairs(parts: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one shape: neighbours are added, then their sums, and so on."""
    while len(parts) > 1:
        parts = [sum(parts[i + 1 : i + 2], start=parts[i]) for i in range(0, len(parts), 2)]
    return parts[0]


class _Gather(Function):
    """The rows (R, ...) of all processes from those of each (r, ...), and the means of their statistics."""

    @staticmethod
    def forward(sharing: Sharing, num_rows: int, rows: Tensor, *statistics: Tensor) -> tuple[Tensor, ...]:
        return _all_rows(sharing, num_rows, rows, *statistics)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.sharing, ctx.num_rows = inputs[:2]
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *of_means: None) -> tuple[Tensor | None, ...]:
        own: Tensor = _OwnRows.apply(ctx.sharing, gradient)  # type: ignore[no-untyped-call]
        return None, None, own, *of_means

    @staticmethod
    def jvp(ctx: Any, _: None, __: None, tangent: Tensor, *of_statistics: Tensor | None) -> tuple[Tensor | None, ...]:
        return _all_rows(ctx.sharing, ctx.num_rows, tangent)[0], *(None for _ in of_statistics)


class _OwnRows(Function):
    """The rows of this process, from all: the opposite of `_Gather`."""

    @staticmethod
    def forward(sharing: Sharing, rows: Tensor) -> Tensor:
        return sharing.own_rows(rows).clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.sharing, ctx.num_rows = inputs[0], len(inputs[1])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, ctx.sharing.gather(gradient, ctx.num_rows)[0]

    @staticmethod
    def jvp(ctx: Any, _: None, tangent: Tensor) -> Tensor:
        rows: Tensor = ctx.sharing.own_rows(tangent)
        return rows.clone()


class _OfSeveral(Function):
    """A function of a sharing and several tensors. A tensor without a gradient has None, not zeros."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.sharing = inputs[0]
        ctx.set_materialize_grads(False)


class _Link(_OfSeveral):
    """Copies, b of each, of tensors that are the same in all processes; each copy adds its share to the gradient."""

    @staticmethod
    def forward(sharing: Sharing, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.view_as(tensor) for tensor in tensors for _ in range(sharing.num_blocks))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        sharing, b = ctx.sharing, ctx.sharing.num_blocks
        sums: list[Tensor | None] = []
        for i in range(0, len(gradients), b):
            given = [gradient for gradient in gradients[i : i + b] if gradient is not None]
            sums.append(sum_in_pairs(given) if given else None)
        return None, *(sums if sharing.num_processes == 1 else _where_given(_Sum, sharing, sums))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(tangent.view_as(tangent) for tangent in tangents for _ in range(ctx.sharing.num_blocks))


class _Sum(_OfSeveral):
    """Sums over the processes of what each has: the opposite of `_Link`."""

    @staticmethod
    def forward(sharing: Sharing, *tensors: Tensor) -> tuple[Tensor, ...]:
        return sharing.summed(tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        return None, *_where_given(_Link, replace(ctx.sharing, num_blocks=1), gradients)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(ctx.sharing.summed(tangents))


class _Total(Function):
    """The sum of all blocks of all processes, which each block uses for its own rows: its gradient is a sum, too."""

    @staticmethod
    def forward(sharing: Sharing, sums: Tensor) -> Tensor:
        return _total(sharing, sums)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.sharing = inputs[0]

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[None, Tensor]:
        return None, ctx.sharing.total(gradients)

    @staticmethod
    def jvp(ctx: Any, _: None, tangents: Tensor) -> Tensor:
        return _total(ctx.sharing, tangents)


def _where_given(
    function: type[Function], sharing: Sharing, gradients: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """The function of those gradients that are not None, each in its place."""
    given = [gradient for gradient in gradients if gradient is not None]
    results = iter(function.apply(sharing, *given) if given else ())
    return tuple(None if gradient is None else next(results) for gradient in gradients)


def _total(sharing: Sharing, sums: Tensor) -> Tensor:
    """The sum (b, ...) of all blocks of all processes, from that of each block (b, ...)."""
    total = sum_in_pairs(sums.detach().unbind())
    if sharing.num_processes > 1:
        (total,) = sharing.summed((total,))
    return total.expand_as(sums).clone()


def _all_rows(sharing: Sharing, num_rows: int, local: Tensor, *statistics: Tensor) -> tuple[Tensor, ...]:
    """All rows (R, ...), in order, from the rows (r, ...) of each process, and means of statistics, by one message."""
    shares = sharing.shares(num_rows)
    padded = local.detach().new_zeros(max(shares), *local.shape[1:])
    padded[: len(local)] = local.detach()
    message = torch.cat([tensor.detach().reshape(-1) for tensor in (padded, *statistics)])
    parts = message.new_empty(len(shares), len(message))
    dist.all_gather(list(parts), message)
    own = (part[: padded.numel()].view_as(padded)[:share] for part, share in zip(parts, shares, strict=True))
    rows = torch.cat(list(own)).to(local.dtype)
    if not statistics:
        return (rows,)
    means = parts[:, padded.numel() :].mean(dim=0).split([tensor.numel() for tensor in statistics])
    return rows, *(mean.view_as(like).to(like) for mean, like in zip(means, statistics, strict=True))
