"""A net whose work several processes share: each computes its rows of a batch, and all get all rows.

Every process holds the same weights and the whole batch, and computes the same loss from all rows. So a method needs to
know nothing of processes: selection, mixing and weighting within a batch see the whole batch. torch's
DistributedDataParallel would give each process the loss of its own rows only.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dividemix.engine import processes
from dividemix.engine.blocks import compute_by_blocks, is_sharing, shared_forward
from dividemix.engine.sharing import Sharing

_NUM_BLOCKS = 4  # of a batch, if BatchNorm is synchronised: one, two and four processes compute the same bits


def share_net(net: nn.Module, *, sync_batchnorm: bool) -> None:
    """Let the processes share the work of net's forwards and backwards.

    BatchNorm takes its statistics over the rows of each process, and the running statistics are their mean. With
    `sync_batchnorm` it takes them over all rows, and a batch is computed in blocks, also by one process. A batch with
    fewer than two rows a block is computed by each process.
    """
    local: Callable[[Tensor], Tensor] = net.forward
    if sync_batchnorm:
        compute_by_blocks(net)

    def forward(x: Tensor) -> Tensor:
        sharing = _sharing(sync_batchnorm)
        num_blocks = sharing.num_processes * sharing.num_blocks
        if is_sharing() or num_blocks == 1 or len(x) < 2 * num_blocks:
            return local(x)
        with shared_forward(net, sharing) as weights:
            # The call comes back to this function, which then computes the process's own rows.
            y: Tensor = torch.func.functional_call(net, weights, (sharing.own_rows(x),))
        statistics = [] if sync_batchnorm or not net.training else _statistics(net)
        rows, means = sharing.gather(y, len(x), statistics)
        for buffer, mean in zip(statistics, means, strict=True):
            # .data: autograd must not see the change, or it refuses the backward of this forward, which needs no means.
            buffer.data.copy_(mean)
        return rows

    net.forward = forward


def _sharing(sync_batchnorm: bool) -> Sharing:
    """How the processes that compute together now share a batch."""
    count, number = processes.count(), processes.own_number()
    if sync_batchnorm and _NUM_BLOCKS % count == 0:
        return Sharing(count, number, _NUM_BLOCKS // count, in_order=True)
    return Sharing(count, number)


def _statistics(net: nn.Module) -> list[Tensor]:
    """The running statistics of BatchNorm."""
    return [buffer for buffer in net.buffers() if buffer.is_floating_point()]
