"""The noise matrix T[c, j] = P(given label j | true label c), read off the samples whose predictions are surest.

Where classes overlap, predictions contradict many right labels. They do so least where they are surest: labels that are
contradicted there are wrong. So the share of wrong labels is that among the surest samples of all classes together. The
own share of a class, and what its samples are taken for, are believed as far as there are samples.

All probabilities of classes are out of sample: nothing that predicts a sample was trained on its label.

Shapes: N samples, C classes.
"""

import torch
from torch import Tensor

SURE = 0.2  # of the samples: the surest
_FEWEST = 20  # surest samples, if there are so many
_OVERLAP = 0.25  # of the contradictions that all samples have beyond the surest: those that right labels have there
_WRONG, _RIGHT = 1, 9  # labels, before any is seen
_BORROWED = 200.0  # samples that a class borrows from all, for its share of wrong labels
_DIRECTED = 5.0  # wrong labels that a class borrows from all, for what its samples are taken for
_MOST_NOISE = 0.9


def surest_matrix(log_probs: Tensor, labels: Tensor) -> Tensor:
    """T (C, C) from predictions (N, C) of the *given* labels (N,)."""
    sure, predicted = log_probs.max(dim=1)
    order = sure.argsort(descending=True, stable=True)
    predicted, labels = predicted[order], labels[order]
    noise = _share_of_wrong(predicted != labels)
    num_classes = log_probs.shape[1]
    off_diagonal = 1 - torch.eye(num_classes, dtype=log_probs.dtype, device=log_probs.device)
    is_sure = _among_surest(predicted, num_classes)
    counts = _pairs(predicted[is_sure], labels[is_sure], num_classes).to(log_probs.dtype)
    rest = _pairs(predicted[~is_sure], labels[~is_sure], num_classes).to(log_probs.dtype)
    wrong, beyond = counts * off_diagonal, rest * off_diagonal
    seen = wrong.sum(dim=1) / counts.sum(dim=1).clamp(min=1)
    in_all = (wrong + beyond).sum(dim=1) / (counts + rest).sum(dim=1).clamp(min=1)
    own = (seen - _OVERLAP * (in_all - seen).clamp(min=0)).clamp(min=0) * counts.sum(dim=1)
    own = ((own + _BORROWED * noise) / (counts.sum(dim=1) + _BORROWED)).clamp(max=_MOST_NOISE)[:, None]
    direction = _rows_to_one(wrong + _DIRECTED * _rows_to_one((wrong.sum(dim=0) + 1) * off_diagonal))
    return (1 - own) * (1 - off_diagonal) + own * direction


def _share_of_wrong(contradicted: Tensor) -> float:
    """The share of wrong labels by the surest samples. `contradicted` (N,) has these first.

    The fewer they are, the more it is what is usual.
    """
    surest = contradicted[: max(_FEWEST, round(SURE * len(contradicted)))]
    number = len(surest) + _WRONG + _RIGHT
    seen = (surest.sum().item() + _WRONG) / number
    beyond = max(contradicted.double().mean().item() - seen, 0.0)
    return max(seen - _OVERLAP * beyond, _WRONG / number)


def _among_surest(predicted: Tensor, num_classes: int) -> Tensor:
    """Which samples (N,) are among the surest of their predicted class. They are in their order, surest first."""
    by_class, counts = predicted.argsort(stable=True), predicted.bincount(minlength=num_classes)
    first = (counts.cumsum(0) - counts).repeat_interleave(counts)
    rank = torch.empty_like(predicted)
    rank[by_class] = torch.arange(len(predicted), device=rank.device) - first
    return rank < SURE * counts[predicted]


def _pairs(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """How many samples of each predicted class (rows) have each given label (columns)."""
    return torch.bincount(predicted * num_classes + labels, minlength=num_classes**2).view(num_classes, -1)


def _rows_to_one(counts: Tensor) -> Tensor:
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1e-12)
