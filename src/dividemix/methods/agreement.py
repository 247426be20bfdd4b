"""The noise from how often nets predict the given labels of samples that they were not trained on (Chen et al., 2019).

A net predicts as the labels are drawn, so it predicts a given label with probability p. With e the noise rate and a the
chance that two wrong labels of a class are equal (1 / (C - 1) for symmetric noise, 1 for pairs of classes):

    p = (1 - e)^2 + a e^2,    e = (1 - sqrt(1 - (1 + a)(1 - p))) / (1 + a)

Shapes: n samples, C classes.
"""

import math

import torch
from torch import Tensor


def noise_rate(agreement: float, alike: float) -> float:
    """The noise rate e, from p and a."""
    return (1 - math.sqrt(max(1 - (1 + alike) * (1 - agreement), 0.0))) / (1 + alike)


def noise_left(rate: float, alike: float) -> float:
    """The share of wrong labels among those that are predicted, a e^2 / p, from e and a."""
    return alike * rate**2 / (alike * rate**2 + (1 - rate) ** 2)


def alike_labels(predicted: Tensor, labels: Tensor, num_classes: int) -> float:
    """Estimate a, at least 1 / (C - 1): how many of all pairs with the same prediction (n,) have the same label (n,).

    Only samples whose label was not predicted count. Without a pair it is 1.
    """
    wrong = predicted != labels
    counts = torch.bincount(predicted[wrong] * num_classes + labels[wrong], minlength=num_classes**2).double()
    totals = counts.view(num_classes, -1).sum(dim=1)
    num_pairs = float((totals * (totals - 1)).sum())
    return max(float((counts * (counts - 1)).sum()) / num_pairs, symmetric(num_classes)) if num_pairs else 1.0


def symmetric(num_classes: int) -> float:
    """Return a of symmetric noise."""
    return 1 / max(num_classes - 1, 1)


def estimated_noise(predicted: Tensor, labels: Tensor, pattern: str) -> Tensor:
    """(3,) float64: e, a, and 1 if the noise is symmetric, from predictions (n,) of held-out samples and labels (n,).

    Noise of the pattern "symmetric" or "asymmetric" has a known a. If a is estimated, the noise is symmetric where a is
    nearer, as a factor, to that of symmetric noise than to 1.
    """
    num_classes = int(torch.maximum(predicted, labels).max()) + 1
    known = {"symmetric": symmetric(num_classes), "asymmetric": 1.0}
    alike = known.get(pattern) or alike_labels(predicted, labels, num_classes)
    rate = noise_rate(float((predicted == labels).double().mean()), alike)
    is_symmetric = pattern == "symmetric" or alike < math.sqrt(symmetric(num_classes))
    return torch.tensor([rate, alike, is_symmetric], dtype=torch.float64)
