"""A net whose work several processes share: each computes its rows of a batch, and all get all rows.

Every process holds the same weights and the whole batch, and computes the same loss from all rows. So a method needs to
know nothing of processes: selection, mixing and weighting within a batch see the whole batch. torch's
DistributedDataParallel would give each process the loss of its own rows only.
"""

from collections.abc import Callable

from torch import Tensor, nn

from dividemix.engine import processes
from dividemix.engine.blocks import compute_by_blocks, shared_forward, weights_of
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
    weights = weights_of(net)  # found once: in a small net, the time to look through all modules shows
    buffers = [(module._buffers, name) for module in net.modules() for name in module._buffers]

    def forward(x: Tensor) -> Tensor:
        sharing = _sharing(sync_batchnorm)
        num_blocks = sharing.num_processes * sharing.num_blocks
        if num_blocks == 1 or len(x) < 2 * num_blocks:
            return local(x)
        with shared_forward(weights, sharing):
            y = local(sharing.own_rows(x))
        values = [holder[name] for holder, name in buffers if net.training and not sync_batchnorm]
        statistics = [value for value in values if value is not None and value.is_floating_point()]
        rows, means = sharing.gather(y, len(x), statistics)
        for statistic, mean in zip(statistics, means, strict=True):
            # .data: autograd must not see the change, or it refuses the backward of this forward, which needs no means.
            statistic.data.copy_(mean)
        return rows

    net.forward = forward


def _sharing(sync_batchnorm: bool) -> Sharing:
    """How the processes that compute together now share a batch."""
    count, number = processes.count(), processes.own_number()
    if sync_batchnorm and _NUM_BLOCKS % count == 0:
        return Sharing(count, number, _NUM_BLOCKS // count, in_order=True)
    return Sharing(count, number)
