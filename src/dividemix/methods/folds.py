"""The fold of each sample: what judges a sample is trained on the other folds. Samples with equal vectors need care.

They may be copies: one thing, stored several times with one label. A copy must not confirm a wrong label, so copies
share a fold. Or few vectors are possible, as in tables of categories and in short texts. Then each label is that of
another case, and together they tell which one is wrong, so each fold has its share of the cases.

The labels tell which it is. Two of them cannot outvote each other; of three or more that differ, some are outvoted, and
they are not copies of one label. If all agree, few are taken for copies, and many for cases.

Shapes: N samples with D features.
"""

import torch
from torch import Tensor

from dividemix.data.features import FeatureData

MOST_COPIES = 5  # samples with the same vector and the same label that are taken for copies
_NO_MAJORITY = 2  # labels that cannot outvote each other
_AT_ONCE = 2**22  # numbers of one kind in memory, besides the features


def folds_of(data: FeatureData, num_folds: int, seed: int) -> Tensor:
    """The fold of each row of `data.whole`: by its bits and the seed, so that copies share one; cases are split.

    Another machine may compute other bits of the same vector, so store the folds of what is trained on.
    """
    labels = torch.full((len(data.whole),), -1, device=data.whole.device)  # -1: of samples that do not train
    labels[data.positions] = data.labels
    keys = _keys(data.whole, seed)
    folds = ((keys ^ (keys >> 31)) * 0x9E3779B1 >> 29).remainder(num_folds)
    group, is_case = _cases(keys, labels)
    # The cases of a vector go to one fold after the other, in random order. Labels do not matter here: if each fold had
    # its share of each label, wrong labels would be predicted as if they belonged to the vector (LOG.md).
    turn = torch.randperm(len(keys), generator=torch.Generator().manual_seed(seed - 1)).to(keys.device)
    turn = turn[is_case[turn]]
    turn = turn[group[turn].argsort(stable=True)]
    folds[turn] = (folds[turn] + torch.arange(len(turn), device=turn.device)).remainder(num_folds)
    return folds


def repeated(vectors: Tensor, labels: Tensor, seed: int) -> Tensor:
    """Which samples (N,) are copies of an earlier one with the same label: they say nothing new."""
    group, is_case = _cases(_keys(vectors, seed), labels)
    _, own = (group * (labels.max() + 1) + labels).unique(return_inverse=True)
    index = torch.arange(len(own), device=own.device)
    first = torch.full_like(index, len(own)).scatter_reduce(0, own, index, "amin")
    return (first[own] != index) & ~is_case


def _cases(keys: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The number (N,) of each sample's vector, and whether those with the same vector are cases, not copies (N,)."""
    _, group, sizes = keys.unique(return_inverse=True, return_counts=True)
    lowest, highest = (
        torch.zeros_like(sizes).scatter_reduce(0, group, labels, way, include_self=False) for way in ("amin", "amax")
    )
    most = torch.where(lowest == highest, MOST_COPIES, _NO_MAJORITY)
    return group, (sizes > most)[group]


def _keys(vectors: Tensor, seed: int) -> Tensor:
    """A number (N,) for each vector (N, D), by its bits and the seed: the same for the same vector."""
    generator = torch.Generator().manual_seed(seed - 1)  # the default seed keeps the folds that it always had
    factors = torch.randint(2**31, (vectors.shape[1],), generator=generator).to(vectors.device)
    keys = torch.empty(len(vectors), dtype=torch.int64, device=vectors.device)
    size = max(1, _AT_ONCE // vectors.shape[1])
    for first in range(0, len(vectors), size):
        rows = slice(first, first + size)
        bits = (vectors[rows] + 0.0).view(torch.int32).long()  # + 0.0: no negative zero
        keys[rows] = (bits * factors).sum(dim=1)
    return keys
