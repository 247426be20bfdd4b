"""Read images once for all processes of a training: each reads its share of a batch, and all get the whole batch."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix.engine import processes

Indices = NDArray[np.int64]
Reader = Callable[[Iterable[Indices]], Iterator[NDArray[np.uint8]]]


def divided_reading(read: Reader, batches: Iterable[Indices]) -> Iterator[NDArray[np.uint8]]:
    """What `read` gives for the batches (R,): images (R, ...). The processes that compute together divide each batch.

    All of them must ask for the same batches in the same order, which they do: they make the same steps.
    """
    num_processes, own = processes.count(), processes.own_number()
    if num_processes == 1:
        yield from read(batches)
        return
    import torch.distributed as dist

    lengths: deque[int] = deque()

    def shares() -> Iterator[Indices]:
        for index in batches:
            lengths.append(len(index))
            size = -(-len(index) // num_processes)
            yield index[own * size : (own + 1) * size]

    for images in read(shares()):
        length = lengths.popleft()
        size = -(-length // num_processes)
        share = torch.zeros((size, *images.shape[1:]), dtype=torch.uint8)  # the last shares may be shorter
        share[: len(images)] = torch.from_numpy(images)
        whole = [torch.empty_like(share) for _ in range(num_processes)]
        dist.all_gather(whole, share)
        yield torch.cat(whole)[:length].numpy()
