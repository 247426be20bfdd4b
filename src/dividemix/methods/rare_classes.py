"""Classes with too few samples: what is trained without a sample knows too little of its class to speak against it.

Shapes: N samples, C classes.
"""

import torch
from torch import Tensor

FEW = 20  # samples of a class: of fewer, a model may have learned nothing
FEWEST = 5  # samples of a class: of fewer, all is chance


def seen_elsewhere(labels: Tensor, folds: Tensor, num_folds: int, is_copy: Tensor) -> Tensor:
    """How many samples with the same label (N,) are in other folds: what judges a sample was trained on them.

    Samples that are copies of others (N,) are not counted: they tell nothing new of the class.
    """
    counts = torch.zeros(int(labels.max()) + 1, num_folds, dtype=torch.int64, device=labels.device)
    counts.index_put_((labels, folds), (~is_copy).long(), accumulate=True)
    return counts.sum(dim=1)[labels] - counts[labels, folds]


def can_be_judged(labels: Tensor, probs: Tensor, num_seen: Tensor) -> Tensor:
    """Which labels (N,) can be judged by predictions (N, C) of the given labels; `num_seen` (N,) trained them.

    A label cannot if too few samples with the same label were seen. Nor can those of a class with few samples if fewer
    than half of its labels are predicted: then the class was not learned, and says nothing of its labels.
    """
    counts = labels.bincount(minlength=probs.shape[1])
    predicted = labels[probs.argmax(dim=1) == labels].bincount(minlength=probs.shape[1])
    is_learned = (counts >= FEW) | (2 * predicted >= counts)
    return (num_seen >= FEWEST) & is_learned[labels]
