"""BatchNorm's running statistics when several forwards are made as one."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


@contextmanager
def counted_as(net: nn.Module, num_forwards: int) -> Iterator[None]:
    """Within the block, one forward of net moves its running statistics as far as num_forwards equal ones would.

    The released code makes one forward for each view, so four of the five updates in a step come from unmixed images.
    With a single update, mixup's low-contrast images would weigh as much as unmixed ones: a net evaluated with such
    statistics lost two points (LOG.md).
    """
    momenta = {module: module.momentum for module in net.modules() if isinstance(module, _BATCH_NORMS)}
    try:
        for norm, momentum in momenta.items():
            if momentum is not None:  # None means a plain average over all forwards
                norm.momentum = 1 - (1 - momentum) ** num_forwards
        yield
    finally:
        for norm, momentum in momenta.items():
            norm.momentum = momentum
