"""Draw samples by index: those of an epoch, training batches (lines 11 and 12 of Algorithm 1), evaluation batches."""

import math

import torch
from torch import Tensor


def epoch_samples(labels: Tensor, num_samples: int, generator: torch.Generator) -> Tensor:
    """Indices (n,) of an epoch's samples, ascending, on the CPU: all N, or `num_samples` of them if that is not 0.

    Those are drawn so that the given labels (N,) are balanced: each round takes one random sample of every class that
    has samples left. No sample is drawn twice, so there are at most N.
    """
    if num_samples == 0:
        return torch.arange(len(labels))
    order = torch.randperm(len(labels), generator=generator)
    shuffled = labels.cpu()[order]
    by_class, counts = shuffled.argsort(stable=True), shuffled.bincount()
    starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    in_round = torch.empty_like(order)
    in_round[by_class] = torch.arange(len(order)) - starts
    return order[in_round.argsort(stable=True)[:num_samples]].sort().values


def draw(index: Tensor, num_batches: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Full batches (num_batches, batch_size) from index, one shuffled pass after another; empty if the index is."""
    if len(index) == 0:
        return index.new_empty(num_batches, 0)
    passes = math.ceil(num_batches * batch_size / len(index))
    order = torch.cat([torch.randperm(len(index), generator=generator) for _ in range(passes)])
    return index[order[: num_batches * batch_size]].view(num_batches, batch_size)


def epoch_batches(labels: Tensor, num_balanced: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Full batches (number, batch_size) of an epoch: all samples, or `num_balanced` batches with balanced labels."""
    samples = epoch_samples(labels, num_balanced * batch_size, generator)
    return draw(samples, num_balanced or math.ceil(len(samples) / batch_size), batch_size, generator)


def sweep(num_samples: int, at_most: int) -> Tensor:
    """Batches (number, size) of the samples 0 to num_samples - 1 in order, all of one size.

    One size means one shape of all tensors, which compiled nets need. The last sample is repeated to fill the last
    batch: the caller must cut off results beyond num_samples.
    """
    num_batches = math.ceil(num_samples / at_most)
    size = math.ceil(num_samples / num_batches)
    return torch.arange(num_batches * size).clamp(max=num_samples - 1).view(num_batches, size)
