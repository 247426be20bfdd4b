"""Batches of sample indices: drawn at random to train (lines 11 and 12 of Algorithm 1), in order to evaluate."""

import math

import torch
from torch import Tensor


def draw(index: Tensor, num_batches: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Batches (num_batches, batch_size) from index: one shuffled pass after another, so every batch is full.

    An empty index gives batches of no samples.
    """
    if len(index) == 0:
        return index.new_empty(num_batches, 0)
    passes = math.ceil(num_batches * batch_size / len(index))
    order = torch.cat([torch.randperm(len(index), generator=generator) for _ in range(passes)])
    return index[order[: num_batches * batch_size]].view(num_batches, batch_size)


def sweep(num_samples: int, at_most: int = 512) -> Tensor:
    """Batches (number, size) that go through samples 0 to num_samples - 1 in order, all of one size.

    One size means one shape of everything, which a compiled net wants. The last sample is repeated to fill the last
    batch: what is computed for it beyond num_samples is to be cut off.
    """
    num_batches = math.ceil(num_samples / at_most)
    size = math.ceil(num_samples / num_batches)
    return torch.arange(num_batches * size).clamp(max=num_samples - 1).view(num_batches, size)
